//! References `${NAME}` and `${NAME:-default}` in the values of a configuration file.
//!
//! References are replaced by placeholders before the text is parsed as YAML, where braces have
//! another meaning (`{ id: ${ID} }` is no YAML), and resolved in the finished tree. A placeholder
//! is as long as its reference, so spans of the tree are valid in the file, and a value from the
//! environment cannot add keys, quotes or comments.

use std::sync::Arc;
use switchback_compiler::diagnostic::{Code, FileId, Finding, Findings, Span};
use switchback_compiler::yaml::{Key, Kind, Node, TextStyle};

/// First character of a placeholder. It is for private use, so no configuration contains it.
const MARK: char = '\u{e000}';
/// Pads a placeholder to the length of its reference.
const FILL: char = '~';
const OPENING: &str = "${";

/// A reference and its byte range.
struct ValueReference {
    start: usize,
    end: usize,
    name: String,
    default: Option<String>,
}

/// The references of one file.
pub(super) struct References {
    found: Vec<ValueReference>,
}

/// A tree with all references resolved.
pub(super) struct ResolvedTree {
    pub(super) tree: Node,
    /// Places of values with an unset variable. That was reported; their other errors are
    /// consequences.
    pub(super) unset: Vec<Span>,
}

impl References {
    /// Replaces the references of `text` with placeholders. An incomplete `${` is reported and left
    /// as it is.
    pub(super) fn take_out(text: &str, file: FileId, findings: &mut Findings) -> (References, String) {
        let mut found = Vec::new();
        let mut replaced = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(start) = text[at..].find(OPENING).map(|offset| at + offset) {
            replaced.push_str(&text[at..start]);
            match ValueReference::parse(text, start) {
                Some(reference) => {
                    at = reference.end;
                    replaced.push(MARK);
                    replaced.extend(std::iter::repeat_n(FILL, reference.fill()));
                    found.push(reference);
                }
                None => {
                    // Continue behind the opening: a complete reference may follow within the incomplete
                    // one.
                    at = start + OPENING.len();
                    replaced.push_str(OPENING);
                    if !is_in_comment(text, start) {
                        findings.push(malformed_reference(span(file, start, at)));
                    }
                }
            }
        }
        replaced.push_str(&text[at..]);
        (References { found }, replaced)
    }

    /// Resolves the references of a tree through `variable`. Keys are not expanded; references in
    /// keys are reported.
    pub(super) fn resolve(
        &self,
        tree: Node,
        variable: &dyn Fn(&str) -> Option<String>,
        findings: &mut Findings,
    ) -> ResolvedTree {
        let mut resolving = Resolving { variable, findings, unset: Vec::new() };
        let tree = self.resolve_node(tree, &mut resolving);
        ResolvedTree { tree, unset: resolving.unset }
    }

    /// Returns the byte ranges of references that findings may quote: everything except defaults,
    /// which may be secret.
    pub(super) fn names(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.found.iter().flat_map(|reference| {
            let default = reference.default.as_ref().map_or(0, String::len);
            [reference.start..reference.end - 1 - default, reference.end - 1..reference.end]
        })
    }

    fn resolve_node(&self, node: Node, resolving: &mut Resolving<'_>) -> Node {
        let kind = match node.kind {
            Kind::String(text, style) if text.contains(MARK) => {
                self.expand(&text, style, node.span, resolving)
            }
            Kind::Seq(items) => Kind::Seq(Arc::new(
                items.iter().map(|item| self.resolve_node(item.clone(), resolving)).collect(),
            )),
            Kind::Map(entries) => Kind::Map(Arc::new(
                entries
                    .iter()
                    .cloned()
                    .map(|(key, value)| {
                        (self.plain_key(key, resolving.findings), self.resolve_node(value, resolving))
                    })
                    .collect(),
            )),
            other => other,
        };
        Node { span: node.span, kind }
    }

    /// Replaces the placeholders of a scalar. An unquoted scalar that is a single reference becomes
    /// a number or boolean if its value is one, as if the value were in the file.
    fn expand(&self, text: &str, style: TextStyle, place: Span, resolving: &mut Resolving<'_>) -> Kind {
        // Placeholders carry no name, so they are matched with the references by their order.
        let mut within = self.references_in(place);
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(MARK) {
            out.push_str(&rest[..at]);
            let Some(reference) = within.next() else { break };
            // An empty variable counts as unset, like `${NAME:-default}` in a shell.
            let value = (resolving.variable)(&reference.name)
                .filter(|value| !value.is_empty())
                .or_else(|| reference.default.clone());
            match value {
                Some(value) => out.push_str(&value),
                None => {
                    let at = span(place.file, reference.start, reference.end);
                    resolving.findings.push(unset(&reference.name, at));
                    resolving.unset.push(place);
                }
            }
            rest = rest[at + MARK.len_utf8()..].get(reference.fill()..).unwrap_or_default();
        }
        out.push_str(rest);
        let is_whole =
            text.starts_with(MARK) && text.trim_start_matches(MARK).bytes().all(|b| b == FILL as u8);
        match out.as_str() {
            "true" if is_whole && style == TextStyle::Plain => Kind::Bool(true),
            "false" if is_whole && style == TextStyle::Plain => Kind::Bool(false),
            number if is_whole && style == TextStyle::Plain && is_number(number) => Kind::Number(out),
            _ => Kind::String(out, style),
        }
    }

    fn plain_key(&self, key: Key, findings: &mut Findings) -> Key {
        let Some(reference) = self.references_in(key.span).next().filter(|_| key.name.contains(MARK)) else {
            return key;
        };
        findings.push(in_key(span(key.span.file, reference.start, reference.end)));
        key
    }

    fn references_in(&self, place: Span) -> impl Iterator<Item = &ValueReference> {
        let (from, to) = (place.start as usize, place.end as usize);
        self.found.iter().filter(move |reference| reference.start >= from && reference.end <= to)
    }
}

/// Input and output of the resolution.
struct Resolving<'r> {
    variable: &'r dyn Fn(&str) -> Option<String>,
    findings: &'r mut Findings,
    unset: Vec<Span>,
}

impl ValueReference {
    /// Parses `${NAME}` or `${NAME:-default}` at `start`. A default extends to the first closing
    /// brace of its line.
    fn parse(text: &str, start: usize) -> Option<ValueReference> {
        let inside = text[start..].strip_prefix(OPENING)?;
        // A missing brace must not make the following lines part of the reference.
        let length = inside.find(['}', '\n']).filter(|at| inside[*at..].starts_with('}'))?;
        let (name, default) = match inside[..length].split_once(":-") {
            Some((name, default)) => (name, Some(default.to_owned())),
            None => (&inside[..length], None),
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let end = start + OPENING.len() + length + 1;
        is_name.then(|| ValueReference { start, end, name: name.to_owned(), default })
    }

    /// Returns the padding of the placeholder. A reference has at least four bytes, one more than
    /// [`MARK`].
    fn fill(&self) -> usize {
        self.end - self.start - MARK.len_utf8()
    }
}

/// Returns whether `at` is within a comment. Quotes are ignored: at worst, an incomplete reference
/// after ` #` in a quoted text is not reported.
fn is_in_comment(text: &str, at: usize) -> bool {
    let line = text[..at].rsplit('\n').next().unwrap_or_default();
    line.trim_start().starts_with('#') || line.contains(" #")
}

fn is_number(text: &str) -> bool {
    serde_json::from_str::<serde_json::Number>(text).is_ok()
}

fn span(file: FileId, start: usize, end: usize) -> Span {
    let offset = |at: usize| u32::try_from(at).expect("the size of the file was checked when it was read");
    Span::new(file, offset(start), offset(end))
}

fn malformed_reference(span: Span) -> Finding {
    Finding::error(Code::Reference, span, "`${` does not begin a reference")
        .help("write `${NAME}` or `${NAME:-default}` with letters, digits and `_` in the name")
}

fn unset(name: &str, span: Span) -> Finding {
    Finding::error(
        Code::Reference,
        span,
        format!("the environment variable `{name}` is not set, or is empty"),
    )
    .help(format!("set it, or give a default: `${{{name}:-…}}`"))
}

fn in_key(span: Span) -> Finding {
    Finding::error(Code::Reference, span, "a key cannot be taken from the environment")
        .help("write the key out")
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_compiler::diagnostic::Sources;
    use switchback_compiler::yaml;

    fn read(text: &str) -> (Option<Node>, Vec<String>) {
        let mut findings = Findings::new();
        let mut sources = Sources::new();
        let original = Sources::new().add("c", text);
        let (references, replaced) = References::take_out(text, original, &mut findings);
        assert_eq!(replaced.len(), text.len(), "places must stay");
        let tree = yaml::parse(&mut sources, "c", replaced.as_bytes(), &mut findings);
        let variable = |name: &str| match name {
            "ID" => Some("app-1".to_owned()),
            "N" => Some("10".to_owned()),
            "YES" => Some("true".to_owned()),
            "TRICK" => Some("x }, admin: {open: true".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let tree = tree.map(|node| references.resolve(node, &variable, &mut findings).tree);
        (tree, findings.in_order().iter().map(|finding| finding.message.clone()).collect())
    }

    fn value(text: &str) -> Kind {
        let (tree, messages) = read(text);
        assert_eq!(messages, Vec::<String>::new(), "{text}");
        tree.unwrap().get("k").unwrap().kind.clone()
    }

    #[test]
    fn references_work_in_flow_maps_quotes_and_amid_text() {
        for (text, expected) in [
            ("k: ${ID}", "app-1"),
            ("{k: ${ID}}", "app-1"),
            ("k: 'a ${ID}-${N} b'", "a app-1-10 b"),
            ("k: \"${ID}\"", "app-1"),
            ("k: |-\n  ${ID}", "app-1"),
            ("k: ${NONE:-a:b/c}", "a:b/c"),
            ("k: x${NONE:-}y", "xy"),
            ("k: ${EMPTY:-d}", "d"),
            ("k: '${N}'", "10"),
            ("# ${not a reference\nk: ${ID} # ${NONE}", "app-1"),
        ] {
            assert!(matches!(value(text), Kind::String(found, _) if found == expected), "{text}");
        }
    }

    #[test]
    fn an_unquoted_reference_to_a_number_is_a_number() {
        assert_eq!(value("k: ${N}"), Kind::Number("10".to_owned()));
        assert_eq!(value("k: ${YES}"), Kind::Bool(true));
    }

    #[test]
    fn a_value_from_the_environment_cannot_add_keys() {
        assert!(matches!(value("{k: ${TRICK}}"), Kind::String(text, _) if text == "x }, admin: {open: true"));
    }

    #[test]
    fn what_is_not_set_or_not_a_reference_is_reported() {
        for (text, message) in [
            ("k: ${NONE}", "the environment variable `NONE` is not set, or is empty"),
            ("k: ${EMPTY}", "the environment variable `EMPTY` is not set, or is empty"),
            ("${ID}: 1", "a key cannot be taken from the environment"),
            ("k: '${1}'", "`${` does not begin a reference"),
            ("k: '${ID'", "`${` does not begin a reference"),
        ] {
            assert_eq!(read(text).1, [message], "{text}");
        }
    }
}
