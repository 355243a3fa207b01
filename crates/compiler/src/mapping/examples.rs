//! Lowers examples to their runnable form, and fills in their open values. Checks only the form;
//! `translate::example` runs them.

use super::ast::{self, ExampleAnswer, ProgramDecl, Spanned};
use super::literal::json;
use crate::diagnostic::{Code, FileId, Finding, Findings, NameKind, Sources, Span, did_you_mean};
use crate::yaml::Node;
use http::Method;
use switchback_json::{Str, Value};
use switchback_plan::{
    ArchiveId, Archived, Example, ExampleCall, ExampleEnd, ExampleKind, Exchange, HarvestExample, Origin,
    RouteExample, ShapeExample, SideId, Wanted,
};

/// Placeholder for a value to be filled in.
pub(super) const OPEN: &str = "?";

/// Returns the examples of a program, in order. Reports and omits invalid ones.
pub(super) fn lower(program: &ProgramDecl, sources: &Sources, findings: &mut Findings) -> Vec<Example> {
    let mut reader = ExampleReader { program, sources, findings };
    program.examples.iter().filter_map(|example| reader.example(example)).collect()
}

struct ExampleReader<'a> {
    program: &'a ProgramDecl,
    sources: &'a Sources,
    findings: &'a mut Findings,
}

impl ExampleReader<'_> {
    fn origin(&self, span: Span) -> Origin {
        super::origin(self.sources, span)
    }

    fn example(&mut self, example: &ast::ExampleDecl) -> Option<Example> {
        let (kind, span) = match example {
            ast::ExampleDecl::Route(route) => (ExampleKind::Route(Box::new(self.route(route)?)), route.span),
            ast::ExampleDecl::Shape(shape) => (ExampleKind::Shape(self.shape(shape)?), shape.span),
            ast::ExampleDecl::Harvest(harvest) => {
                (ExampleKind::Harvest(Box::new(self.harvest(harvest)?)), harvest.span)
            }
        };
        Some(Example { kind, origin: self.origin(span) })
    }

    fn route(&mut self, route: &ast::RouteExampleDecl) -> Option<RouteExample> {
        let (side, call) = route.at.value.split_once(' ')?;
        let serves = self.side(side, route.at.span)?;
        let (method, target) = self.method_and_target(call, route.at.span)?;
        let exchange = self.exchange(&route.exchange)?;
        let again = match &route.again {
            Some(again) => Some(self.exchange(again)?),
            None => None,
        };
        Some(RouteExample {
            serves,
            method,
            target,
            headers: texts(&route.send.headers),
            body: route.send.body.as_ref().map(json),
            config: route.send.config.iter().map(|(name, value)| (name.value.clone(), json(value))).collect(),
            archived: self.archive_entries(&route.send.archives)?,
            exchange,
            again,
        })
    }

    fn exchange(&mut self, exchange: &ast::ExchangeDecl) -> Option<Exchange> {
        let calls = exchange.calls.iter().map(|call| self.call(call)).collect::<Option<Vec<_>>>()?;
        let keeps = self.archive_entries(&exchange.keeps)?;
        let end = match &exchange.answer {
            ExampleAnswer::Refused(reason) => {
                self.known_reason(reason)?;
                ExampleEnd::Refused(reason.value.clone())
            }
            ExampleAnswer::Answer { status, headers, body } => ExampleEnd::Answer {
                status: self.status(status)?,
                headers: texts(headers),
                body: expected_body(body.as_ref()),
            },
        };
        Some(Exchange { calls, keeps, end })
    }

    fn harvest(&mut self, harvest: &ast::HarvestExampleDecl) -> Option<HarvestExample> {
        let known: Vec<(&str, Span)> =
            self.program.harvests.iter().map(|known| (known.name.value.as_str(), known.name.span)).collect();
        let Some(at) = known.iter().position(|(name, _)| *name == harvest.name.value) else {
            let message = format!("there is no harvest `{}`", harvest.name.value);
            self.report(harvest.name.span, message, |finding| {
                finding.did_you_mean_declared(&harvest.name.value, &known)
            });
            return None;
        };
        let exchange = self.exchange(&harvest.exchange)?;
        Some(HarvestExample { harvest: at, page: harvest.page.value, exchange })
    }

    fn archive_entries(&mut self, entries: &[ast::ArchivedDecl]) -> Option<Vec<Archived>> {
        let known: Vec<&str> =
            self.program.archives.iter().map(|archive| archive.name.value.as_str()).collect();
        let mut all = Vec::new();
        for entry in entries {
            let Some(at) = known.iter().position(|name| *name == entry.archive.value) else {
                let message = format!("there is no archive `{}`", entry.archive.value);
                self.report_undeclared(&entry.archive, NameKind::Archive, message, &known);
                return None;
            };
            all.push(Archived {
                archive: ArchiveId(at as u16),
                key: entry.key.clone(),
                age: entry.age.unsigned_abs(),
                value: entry.value.as_ref().map(json),
            });
        }
        Some(all)
    }

    fn call(&mut self, call: &ast::ExampleCallDecl) -> Option<ExampleCall> {
        let (method, target) = self.method_and_target(&call.expect.value, call.expect.span)?;
        let texts = |fields: &[(ast::Spanned<String>, ast::Spanned<String>)]| {
            fields.iter().map(|(name, value)| (name.value.clone(), value.value.clone())).collect()
        };
        Some(ExampleCall {
            method,
            target,
            headers: texts(&call.headers),
            reply_headers: texts(&call.reply_headers),
            body: call.body.as_ref().map(json),
            status: self.status(&call.reply.status)?,
            reply: call.reply.body.as_ref().map(json),
            origin: self.origin(call.expect.span),
        })
    }

    fn shape(&mut self, shape: &ast::ShapeExampleDecl) -> Option<ShapeExample> {
        let known: Vec<&str> = self
            .program
            .shapes
            .iter()
            .filter_map(|shape| Some(shape.name.as_ref()?.value.as_str()))
            .collect();
        if !known.contains(&shape.shape.value.as_str()) {
            let message = format!("there is no shape `{}`", shape.shape.value);
            self.report_undeclared(&shape.shape, NameKind::Shape, message, &known);
            return None;
        }
        let [old, new] = &shape.values;
        Some(ShapeExample {
            shape: shape.shape.value.clone(),
            source: SideId(u8::from(shape.source == 1)),
            values: [expected_body(old.as_ref()), expected_body(new.as_ref())],
            lost: shape.lost.iter().map(|place| place.value.clone()).collect(),
        })
    }

    fn side(&mut self, name: &str, span: Span) -> Option<SideId> {
        let sides = &self.program.manifest.sides;
        match sides.iter().position(|side| side.value == name) {
            Some(0) => Some(SideId::OLD),
            Some(_) => Some(SideId::NEW),
            None => {
                let message = format!("`{name}` is not a side of this pack");
                // The side is only a part of the text at `span`.
                let near = did_you_mean(name, sides.iter().map(|side| side.value.as_str()));
                self.report(span, message, |finding| finding.maybe_help(near));
                None
            }
        }
    }

    /// Parses a request line such as `GET /things/7?page=1`.
    fn method_and_target(&mut self, text: &str, span: Span) -> Option<(Method, String)> {
        let parts = text.split_once(' ').filter(|(_, target)| target.starts_with('/'));
        let parsed = parts.and_then(|(method, target)| {
            let method = Method::from_bytes(method.as_bytes()).ok()?;
            // Methods are case-sensitive (RFC 9110, section 9.1): `get` would be another method.
            method.as_str().bytes().all(|byte| byte.is_ascii_uppercase()).then(|| (method, target.to_owned()))
        });
        if parsed.is_none() {
            let message = format!("`{text}` is not a method and an address");
            self.report(span, message, |finding| finding.help("write it like `GET /things/7?page=1`"));
        }
        parsed
    }

    fn status(&mut self, status: &Spanned<i64>) -> Option<u16> {
        // Three digits from 100 to 599 (RFC 9110, section 15).
        let known = u16::try_from(status.value).ok().filter(|status| (100..600).contains(status));
        if known.is_none() {
            self.report(status.span, format!("{} is not a status", status.value), |finding| finding);
        }
        known
    }

    fn known_reason(&mut self, reason: &Spanned<String>) -> Option<()> {
        let known: Vec<&str> = self.program.reasons.iter().map(|reason| reason.name.value.as_str()).collect();
        if known.contains(&reason.value.as_str()) {
            return Some(());
        }
        let message = format!("there is no reason `{}`", reason.value);
        self.report_undeclared(reason, NameKind::Reason, message, &known);
        None
    }

    /// Reports a name that the pack does not declare.
    fn report_undeclared(&mut self, name: &Spanned<String>, kind: NameKind, message: String, known: &[&str]) {
        self.report(name.span, message, |finding| {
            finding.did_you_mean(&name.value, known).with_declarations(kind, &name.value)
        });
    }

    fn report(&mut self, span: Span, message: String, advise: impl FnOnce(Finding) -> Finding) {
        self.findings.push(advise(Finding::error(Code::ExampleForm, span, message)));
    }
}

fn texts(fields: &[(Spanned<String>, Spanned<String>)]) -> Vec<(String, String)> {
    // Header names are case-insensitive (RFC 9110, section 5.1).
    fields.iter().map(|(name, value)| (name.value.to_ascii_lowercase(), value.value.clone())).collect()
}

fn expected_body(node: Option<&Node>) -> Wanted {
    match node {
        None => Wanted::None,
        Some(node) if is_open(node) => Wanted::Open,
        Some(node) => Wanted::Json(json(node)),
    }
}

/// Returns whether a value is to be filled in.
pub(super) fn is_open(node: &Node) -> bool {
    node.as_str() == Some(OPEN)
}

/// Returns the texts of all files with open values, filled in; see `Compiled::fill_open_places`.
pub(super) fn fill_open_places(
    program: &ProgramDecl,
    sources: &Sources,
    found: &[Vec<Value>],
) -> Vec<(FileId, String)> {
    // Edits of the text, not of the parsed form, so that comments and layout of the file remain.
    let mut edits: Vec<(Span, String)> = Vec::new();
    for (example, values) in program.examples.iter().zip(found) {
        let spans = open_places(example);
        let spans = spans.into_iter().map(|span| sources.written(span));
        edits.extend(spans.zip(values).map(|(span, value)| (span, flow(value))));
    }
    // Edit each file from back to front, so that no edit shifts the spans of others.
    edits.sort_by_key(|(span, _)| (span.file, std::cmp::Reverse(span.start)));
    // Of an open value that aliases repeat, the first result is written.
    edits.dedup_by_key(|(span, _)| *span);
    let mut texts: Vec<(FileId, String)> = Vec::new();
    for (span, text) in edits {
        if texts.last().is_none_or(|(file, _)| *file != span.file) {
            texts.push((span.file, sources.text(span.file).to_owned()));
        }
        if let Some((_, whole)) = texts.last_mut() {
            whole.replace_range(span.start as usize..span.end as usize, &text);
        }
    }
    texts
}

/// Returns the spans of the open values of an example.
fn open_places(example: &ast::ExampleDecl) -> Vec<Span> {
    let nodes: Vec<&Node> = match example {
        ast::ExampleDecl::Route(route) => std::iter::once(&route.exchange)
            .chain(&route.again)
            .filter_map(|exchange| match &exchange.answer {
                ExampleAnswer::Answer { body, .. } => body.as_ref(),
                ExampleAnswer::Refused(_) => None,
            })
            .collect(),
        ast::ExampleDecl::Shape(shape) => shape.values.iter().flatten().collect(),
        ast::ExampleDecl::Harvest(_) => Vec::new(),
    };
    nodes.into_iter().filter(|node| is_open(node)).map(|node| node.span).collect()
}

/// Formats a value as single-line YAML with minimal quoting.
fn flow(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let entry = |(key, value): (&Str, &Value)| format!("{}: {}", word(&key.decode()), flow(value));
            format!("{{{}}}", members.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => word(&text.decode()),
        scalar => scalar.to_string(),
    }
}

fn word(text: &str) -> String {
    // YAML 1.1 reads these words as booleans or null. `empty` is a keyword of examples.
    const AMBIGUOUS: [&str; 10] = ["yes", "no", "on", "off", "y", "n", "true", "false", "null", "empty"];
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_alphanumeric())
        && text.chars().all(|c| c.is_alphanumeric() || "_-./@ ".contains(c));
    if plain && !AMBIGUOUS.contains(&text.to_lowercase().as_str()) {
        text.to_owned()
    // Single-quoted YAML has no escapes, so control characters need the double-quoted JSON form.
    } else if text.chars().any(char::is_control) {
        Value::string(text).to_string()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::language;
    use crate::mapping::load::{self, PackSource};
    use crate::yaml;
    use std::path::Path;

    const MANIFEST: &str = "\
pack: notes
sides: {old: v1, new: v2}
contracts: {v1: v1.yaml, v2: v2.yaml}
credentials: {v1: {read: [x], send: x, scheme: Bearer}, v2: {read: [x], send: x, scheme: Bearer}}
languages: [en]
errors: {body: {error: $text}, types: {v1: Error, v2: Error}}
refuse: {legacy: never, status: 501}
";

    /// Returns the program of one mapping file, its examples, and the findings.
    fn read(text: &str) -> (ProgramDecl, Sources, Vec<Example>, Vec<String>) {
        let (mut sources, mut findings) = (Sources::new(), Findings::default());
        let manifest = yaml::parse(&mut sources, "pack.yaml", MANIFEST.as_bytes(), &mut findings).unwrap();
        let mut program = ProgramDecl::new(language::manifest(&manifest, &mut findings).unwrap());
        let root = yaml::parse(&mut sources, "x.map.yaml", text.as_bytes(), &mut findings).unwrap();
        language::file(&root, &mut program, &mut findings);
        let examples = lower(&program, &sources, &mut findings);
        let found = findings.in_order().into_iter().map(|finding| {
            let help = finding.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
            format!("{}: {}{help}", sources.start(finding.span).line, finding.message)
        });
        let found = found.collect::<Vec<_>>();
        (program, sources, examples, found)
    }

    #[test]
    fn the_examples_of_the_first_pack_have_the_form_of_examples() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mappings/messaging");
        let (mut sources, mut findings) = (Sources::new(), Findings::default());
        let source = PackSource::from_dir(&folder).unwrap();
        let (program, _) = load::load_pack(&source, &mut sources, &mut findings).unwrap();
        let before = findings.len();
        let examples = lower(&program, &sources, &mut findings);
        assert_eq!((examples.len(), findings.len()), (program.examples.len(), before));
        assert!(!examples.is_empty());
    }

    #[test]
    fn an_example_without_meaning_is_reported_at_its_line() {
        let (_, _, examples, found) = read(
            "\
mapping: 1
reasons: {gone: {en: Gone.}}
examples:
  - {at: v3 GET /a, answer: {status: 200}}
  - {at: v1 get /a, answer: {status: 200}}
  - {at: v1 GET a, answer: {status: 200}}
  - {at: v1 GET /a, refused: gome}
  - {at: v1 GET /a, calls: [{expect: /b, reply: {200: empty}}], answer: {status: 200}}
  - {shape: Note, v1: {}, v2: {}}
  - {at: v1 GET /a, refused: gone}
",
        );
        assert_eq!(
            found,
            [
                "4: `v3` is not a side of this pack; did you mean `v1`?",
                "5: `get /a` is not a method and an address; write it like `GET /things/7?page=1`",
                "6: `GET a` is not a method and an address; write it like `GET /things/7?page=1`",
                "7: there is no reason `gome`; did you mean `gone`?",
                "8: `/b` is not a method and an address; write it like `GET /things/7?page=1`",
                "9: there is no shape `Note`",
            ]
        );
        assert_eq!(examples.len(), 1);
    }

    #[test]
    fn open_places_are_filled_in_and_read_back_as_what_was_found() {
        let text = "\
mapping: 1
examples:
  - at: v1 GET /a
    answer: {status: 200, body: '?'}   # kept
  - {at: v1 GET /b, answer: {status: 200}, again: {answer: {status: 201, body: '?'}}}
  - {at: v1 GET /c, answer: {status: 200, body: '?'}}
";
        let value = r#"{"a b":[1.50,null,"no","it's","x: y","é\n","7","","plain text"],"more":{"true":{}}}"#;
        let value = Value::parse(value.as_bytes(), &switchback_json::Limits::DOCUMENT).unwrap();
        let (program, sources, ..) = read(text);
        let found = [vec![value.clone()], vec![Value::string("done")], Vec::new()];
        let texts = fill_open_places(&program, &sources, &found);
        let [(_, text)] = &texts[..] else { panic!("one file is changed") };
        assert!(text.contains("body: {a b: [1.50, null, 'no', 'it''s', 'x: y', \"é\\n\", '7', '', plain text], more: {'true': {}}}}   # kept"), "{text}");
        let (_, _, examples, found) = read(text);
        assert_eq!(found, Vec::<String>::new());
        let body = |at: usize| match &examples[at].kind {
            ExampleKind::Route(route) => match &route.again.as_ref().unwrap_or(&route.exchange).end {
                ExampleEnd::Answer { body, .. } => body.clone(),
                ExampleEnd::Refused(_) => Wanted::None,
            },
            ExampleKind::Shape(_) | ExampleKind::Harvest(_) => Wanted::None,
        };
        let Wanted::Json(read_back) = body(0) else { panic!("filled in") };
        assert_eq!(Value::parse(&read_back, &switchback_json::Limits::DOCUMENT).unwrap(), value);
        assert_eq!(body(1), Wanted::Json((&b"\"done\""[..]).into()));
        assert_eq!(body(2), Wanted::Open);
    }
}
