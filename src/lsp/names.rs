//! Descriptions, definitions and renames of names, and corrections of findings.

use super::pack::{Cursor, Workspace, map_offset};
use super::text::ColumnUnit;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use switchback_compiler::diagnostic::{
    Code, FileId, Findings, Severity, Sources, Span, TextEdit, apply, write_like,
};
use switchback_compiler::mapping::load::MANIFEST;
use switchback_compiler::mapping::schema::{self, SchemaPlace};
use switchback_compiler::mapping::{Compiled, ResolvedKind, ResolvedName, named_schema};
use switchback_compiler::yaml;

/// Returns the description of the name or key at a place, in Markdown.
pub(super) fn hover(workspace: &mut Workspace, encoding: ColumnUnit, cursor: &Cursor) -> Option<Value> {
    let of_name = workspace.names(cursor).and_then(|(compiled, file, offset)| {
        let found = names_at(compiled, file, offset);
        let span = found.first()?.span;
        let mut about: Vec<&str> = found.iter().map(|one| one.about.as_str()).collect();
        about.dedup();
        let declaration = found.first().and_then(|one| declared_lines(&compiled.sources, one));
        // The text around the name is equal in both, so only its start has to be moved.
        let start = cursor.offset - (offset - span.start).min(cursor.offset);
        let text = about.into_iter().map(str::to_owned).chain(declaration).collect::<Vec<_>>().join("\n\n");
        Some((text, start, start + (span.end - span.start)))
    });
    let (text, start, end) = of_name.or_else(|| describe_key(workspace, cursor))?;
    let range = encoding.range(&cursor.text, start, end);
    Some(json!({"contents": {"kind": "markdown", "value": text}, "range": range}))
}

/// Returns the declaration of a reason or a setting, whose text says more than its name.
fn declared_lines(sources: &Sources, reference: &ResolvedName) -> Option<String> {
    const LINES_MAX: usize = 6;
    let is_text = matches!(reference.kind, ResolvedKind::Reason | ResolvedKind::Setting);
    let column = sources.start(reference.declared).column as usize;
    let text = sources.text(reference.declared.file).get(reference.declared.start as usize..)?;
    let mut lines = text.lines();
    let first = lines.next().filter(|_| is_text)?;
    let is_inside = |line: &&str| line.get(..column).is_some_and(|start| start.trim().is_empty());
    let more = lines.take_while(is_inside).filter_map(|line| line.get(column - 1..)).take(LINES_MAX);
    let lines: Vec<&str> = std::iter::once(first).chain(more).collect();
    Some(format!("```yaml\n{}\n```", lines.join("\n")))
}

/// Returns the documentation of the key at a place, and the range of the key.
fn describe_key(workspace: &mut Workspace, cursor: &Cursor) -> Option<(String, u32, u32)> {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let tree = yaml::parse(&mut sources, &cursor.file, cursor.text.as_bytes(), &mut findings)?;
    let schema = schema_of(workspace, cursor);
    let place = SchemaPlace::find(&schema, &tree, cursor.offset)?;
    let key = place.key?;
    let text = place.describe(&key.name)?;
    Some((format!("`{}`: {text}", key.name), key.span.start, key.span.end))
}

/// Returns the schema of a file with the names of the pack.
pub(super) fn schema_of(workspace: &mut Workspace, cursor: &Cursor) -> Value {
    let compiled = workspace.compile(&cursor.root);
    let sides = compiled.and_then(|compiled| compiled.contracts.as_ref());
    let sides = sides.map(|sides| sides.each_ref().map(|side| side.name.as_str()));
    match compiled {
        Some(compiled) if cursor.file != MANIFEST => named_schema(compiled),
        _ => schema::pack(sides),
    }
}

/// Returns the declarations of the name at a place. A name of both sides has two.
pub(super) fn definition(workspace: &mut Workspace, encoding: ColumnUnit, cursor: &Cursor) -> Option<Value> {
    let (compiled, file, offset) = workspace.names(cursor)?;
    let found = names_at(compiled, file, offset);
    let mut declared: Vec<(String, Span, Arc<str>)> = Vec::new();
    for reference in found {
        let span = reference.declared;
        let text = compiled.sources.text(span.file).into();
        declared.push((compiled.sources.name(span.file).to_owned(), span, text));
    }
    let mut places: Vec<Value> = Vec::new();
    for (name, span, text) in declared {
        let path = cursor.root.join(&name);
        // The declaration may be in the file that has changed since.
        let present =
            workspace.buffers.get(&path).map_or(Arc::clone(&text), |buffer| Arc::clone(&buffer.text));
        let Some(start) = map_offset(&text, &present, span.start) else { continue };
        let line_end = present.get(start as usize..).and_then(|rest| rest.find('\n')).unwrap_or(0) as u32;
        let end = start + (span.end - span.start).min(line_end.max(1));
        let place = json!({"uri": workspace.uri(&path), "range": encoding.range(&present, start, end)});
        if !places.contains(&place) {
            places.push(place);
        }
    }
    (!places.is_empty()).then(|| places.into())
}

/// Returns the range of the shape's name at a place.
pub(super) fn prepare_rename(
    workspace: &mut Workspace,
    encoding: ColumnUnit,
    cursor: &Cursor,
) -> Option<Value> {
    let compiled = workspace.compile(&cursor.root)?;
    let span = find_shape(compiled, cursor)?.span;
    Some(encoding.range(&cursor.text, span.start, span.end))
}

/// Renames the shape at a place in all files of the pack.
///
/// # Errors
///
/// Returns a sentence if the renamed pack would not have the same meaning.
pub(super) fn rename(
    workspace: &mut Workspace,
    encoding: ColumnUnit,
    cursor: &Cursor,
    name: &str,
) -> Result<Option<Value>, RenameError> {
    let Some(compiled) = workspace.compile(&cursor.root) else { return Ok(None) };
    let Some(shape) = find_shape(compiled, cursor) else { return Ok(None) };
    let before = errors(compiled);
    // Parts of a pack with errors may be unread, and their uses unknown.
    if compiled
        .findings
        .in_order()
        .iter()
        .any(|one| one.severity == Severity::Error && one.code != Code::Unused)
    {
        return Err(RenameError::Errors);
    }
    let uses = compiled
        .references
        .iter()
        .filter(|one| one.kind == ResolvedKind::Shape && one.declared == shape.declared);
    let mut edits: BTreeMap<String, Vec<TextEdit>> = BTreeMap::new();
    for one in uses {
        let text = write_like(compiled.sources.snippet(one.span), name);
        let of_file = edits.entry(compiled.sources.name(one.span.file).to_owned()).or_default();
        of_file.push(TextEdit { span: one.span, text });
    }
    let mut texts = Vec::new();
    let mut changes = Map::new();
    for (file, edits) in edits {
        let Some(id) = compiled.sources.find(&file) else { return Ok(None) };
        let text = compiled.sources.text(id);
        texts.push((file.clone(), apply(text, &edits).ok_or(RenameError::Meaning)?));
        let lines: Vec<Value> = edits.iter().map(|edit| edit_of(encoding, text, edit)).collect();
        changes.insert(file, lines.into());
    }
    let renamed = workspace.try_texts(&cursor.root, &texts);
    if renamed.is_none_or(|renamed| errors(&renamed) != before) {
        return Err(RenameError::Meaning);
    }
    let uris = changes.into_iter().map(|(file, edits)| (workspace.uri(&cursor.root.join(file)), edits));
    Ok(Some(json!({"changes": uris.collect::<Map<_, _>>()})))
}

/// Why a shape is not renamed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(super) enum RenameError {
    #[error("the pack has errors; correct them before renaming a shape")]
    Errors,
    #[error("the pack would not have the same meaning under this name; choose another one")]
    Meaning,
}

fn errors(compiled: &Compiled) -> usize {
    compiled.findings.count(Severity::Error)
}

/// Returns the corrections of the findings in a range of a file.
pub(super) fn corrections(
    workspace: &mut Workspace,
    encoding: ColumnUnit,
    cursor: &Cursor,
    end: u32,
) -> Option<Value> {
    let uri = workspace.uri(&cursor.root.join(&cursor.file));
    let compiled = workspace.compile(&cursor.root)?;
    let file = compiled.sources.find(&cursor.file)?;
    let mut actions: Vec<Value> = Vec::new();
    for finding in compiled.findings.in_order() {
        let Some(edit) = finding.edit(&compiled.sources) else { continue };
        if edit.span.file != file || edit.span.end < cursor.offset || edit.span.start > end {
            continue;
        }
        actions.push(json!({
            "title": format!("Change to `{}`", edit.text),
            "kind": "quickfix",
            "edit": {"changes": {uri.as_str(): [edit_of(encoding, &cursor.text, &edit)]}},
        }));
    }
    Some(actions.into())
}

fn edit_of(encoding: ColumnUnit, text: &str, edit: &TextEdit) -> Value {
    json!({"range": encoding.range(text, edit.span.start, edit.span.end), "newText": edit.text})
}

/// Returns the names at an offset of a file.
fn names_at(compiled: &Compiled, file: FileId, offset: u32) -> Vec<&ResolvedName> {
    let is_at =
        |one: &&ResolvedName| one.span.file == file && one.span.start <= offset && offset <= one.span.end;
    let mut found: Vec<&ResolvedName> = compiled.references.iter().filter(is_at).collect();
    // A path within an operation is nearer to the cursor than the operation.
    let shortest = found.iter().map(|one| one.span.end - one.span.start).min();
    found.retain(|one| Some(one.span.end - one.span.start) == shortest);
    found
}

fn find_shape<'c>(compiled: &'c Compiled, cursor: &Cursor) -> Option<&'c ResolvedName> {
    let file = compiled.sources.find(&cursor.file)?;
    names_at(compiled, file, cursor.offset).into_iter().find(|one| one.kind == ResolvedKind::Shape)
}
