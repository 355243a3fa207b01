//! `switchback check --fix`: applies the suggestions of the compiler that are sure.
//!
//! A suggestion is sure if it corrects an error, no other name is as near to what is written, and the
//! pack has that error no more and no other one after it. No other text is changed.

use crate::cli::output::{HAS_FINDINGS, count_noun, replace};
use crate::cli::pack::{could_not_use, fail};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use switchback_compiler::diagnostic::{Finding, Help, Severity, Span, TextEdit, apply};
use switchback_compiler::mapping::load::{MANIFEST, MAPPING_SUFFIX, PackFile, PackSource};
use switchback_compiler::mapping::{Compiled, Compiler};

/// Corrections to apply at most. More errors than this have another cause.
const FIXES_MAX: usize = 200;

/// A correction, by file.
struct Fix {
    file: String,
    /// The change for people: `things.map.yaml:4:9: nmae → name`.
    about: String,
    text: String,
    /// The new words, as bytes of the corrected text.
    words: Range<u32>,
}

/// Corrects the files of a pack and prints the corrections. Files that have changed since they were
/// read are not written.
pub(super) fn fix(folder: &Path) -> Result<(), ExitCode> {
    let read = PackSource::from_dir(folder).map_err(|error| could_not_use(folder, &error))?;
    let (mut source, mut compiler) = (read.clone(), Compiler::default());
    let mut compiled = compiler.compile(&source);
    let mut fixed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut count = 0;
    while count < FIXES_MAX {
        let fixes = sure_fixes(&compiled);
        let applied = fixes.into_iter().find_map(|fix| {
            let next = replace_text(&source, &fix.file, &fix.text);
            let result = compiler.compile(&next);
            is_better(&compiled, &result, &fix).then_some((fix, next, result))
        });
        let Some((fix, next, result)) = applied else { break };
        fixed.entry(fix.file).or_default().push(fix.about);
        (source, compiled) = (next, result);
        count += 1;
    }
    write(folder, &read, &source, &fixed)?;
    println!("{} corrected\n", count_noun(count as u64, "error"));
    Ok(())
}

fn sure_fixes(compiled: &Compiled) -> Vec<Fix> {
    let sources = &compiled.sources;
    let findings = compiled.findings.in_order();
    let sure = findings.into_iter().filter(|finding| {
        let is_sure = matches!(&finding.help, Some(Help::Suggestion(suggestion)) if suggestion.is_sure);
        let file = sources.name(finding.span.file);
        let is_own = file == MANIFEST || file.ends_with(MAPPING_SUFFIX);
        finding.severity == Severity::Error && is_sure && is_own
    });
    let fix = |edit: TextEdit| {
        let (span, written) = (edit.span, sources.snippet(edit.span));
        let (file, at) = (sources.name(span.file), sources.start(span));
        let about = format!("{file}:{}:{}: {written} → {}", at.line, at.column, edit.text);
        let words = span.start..span.start + edit.text.len() as u32;
        let text = apply(sources.text(span.file), &[edit])?;
        Some(Fix { file: file.to_owned(), about, text, words })
    };
    sure.filter_map(|finding| finding.edit(sources)).filter_map(fix).collect()
}

/// Returns whether a correction has removed an error and added none, and no error is about its words.
fn is_better(before: &Compiled, after: &Compiled, fix: &Fix) -> bool {
    let is_about = |span: Span| {
        let (sources, words) = (&after.sources, &fix.words);
        // A finding about a block of several lines is about more than a word in it.
        let is_line = !sources.snippet(span).contains('\n');
        sources.name(span.file) == fix.file && is_line && span.start < words.end && words.start < span.end
    };
    let is_doubtful = |finding: &&Finding| {
        let related = finding.related.iter().map(|(span, _)| *span);
        finding.severity == Severity::Error && related.chain([finding.span]).any(is_about)
    };
    if after.findings.in_order().iter().any(is_doubtful) {
        return false;
    }
    let errors = |compiled: &Compiled| {
        let errors = compiled.findings.in_order().into_iter().filter(|one| one.severity == Severity::Error);
        errors.map(|one| (one.code, one.message.clone())).collect::<Vec<_>>()
    };
    let (mut before, after) = (errors(before), errors(after));
    let count = before.len();
    let is_known = |error: &(_, String)| {
        let at = before.iter().position(|known| known == error);
        at.map(|at| before.swap_remove(at)).is_some()
    };
    after.len() < count && after.iter().all(is_known)
}

fn replace_text(source: &PackSource, file: &str, text: &str) -> PackSource {
    let files = source.files().iter().map(|(name, bytes)| match name == file {
        true => (name.clone(), Arc::from(text.as_bytes())),
        false => (name.clone(), Arc::clone(bytes)),
    });
    PackSource::from_files(files.collect::<Vec<PackFile>>())
}

/// Writes the corrected files.
fn write(
    folder: &Path,
    read: &PackSource,
    corrected: &PackSource,
    fixed: &BTreeMap<String, Vec<String>>,
) -> Result<(), ExitCode> {
    let pairs = read.files().iter().zip(corrected.files());
    for ((name, before), (_, after)) in pairs.filter(|((name, _), _)| fixed.contains_key(name)) {
        let path = folder.join(name);
        let present = std::fs::read(&path).map_err(|error| could_not_use(&path, &error))?;
        if present[..] != before[..] {
            let why = format!("{}: the file has changed since it was read; run it again", path.display());
            return Err(fail(HAS_FINDINGS, why));
        }
        replace(&path, after).map_err(|error| could_not_use(&path, &error))?;
        fixed[name].iter().for_each(|line| println!("{line}"));
    }
    Ok(())
}
