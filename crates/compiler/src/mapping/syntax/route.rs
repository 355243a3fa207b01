//! Reads entries of `routes:`: pairs, and the head of `serve` routes.

use super::{SyntaxReader, faults, keys};
use crate::diagnostic::suggest;
use crate::mapping::ast::{
    BodyDecl, ConstantParameter, Notes, PairDecl, ParameterLine, RefusedParameter, RouteDecl, ServeDecl,
    ShapeUse, SideRef, Spanned, StatusLine, StatusWord,
};
use crate::yaml::{Key, Kind, Node};

/// Query parameters or headers of a pair.
#[derive(Default)]
struct ParameterRules {
    lines: Vec<ParameterLine>,
    constants: Vec<ConstantParameter>,
    refused: Vec<RefusedParameter>,
    faulty: Vec<String>,
}

/// Lines `old: new`, with spans.
type TextPairs = Vec<(Spanned<String>, Spanned<String>)>;

impl SyntaxReader<'_> {
    pub(super) fn route(&mut self, node: &Node) -> Option<RouteDecl> {
        let is = |key: &str| node.get(key).is_some();
        match (is("pair"), is("serve")) {
            (true, false) => self.pair(node).map(RouteDecl::Pair),
            (false, true) => self.serve(node).map(RouteDecl::Serve),
            _ => {
                const KINDS: &[&str] = &["pair", "serve"];
                let entries = node.map(self.findings)?;
                // Report a misspelled key at the key instead of the entire route.
                let is_slip = |key: &&Key| suggest(&key.name, KINDS).is_some();
                self.findings.push(match entries.iter().map(|(key, _)| key).find(is_slip) {
                    Some(key) if !is("pair") && !is("serve") => {
                        faults::unknown_line(&key.name, key.span, "a route", KINDS)
                    }
                    _ => faults::one_of_keys(node.span, "a route", KINDS),
                });
                None
            }
        }
    }

    fn pair(&mut self, node: &Node) -> Option<PairDecl> {
        let fields = self.fields(node, &keys::PAIR)?;
        let (operations, front) = self.pair_of(fields.get("pair")?)?;
        let headers = fields.get("headers").and_then(|n| self.fields(n, &keys::PAIR_HEADERS));
        let request_headers = self.parameters(headers.as_ref().and_then(|h| h.get("request")), false);
        let response_headers = self.parameters(headers.as_ref().and_then(|h| h.get("response")), false);
        let media = fields.get("media").and_then(|n| self.fields(n, &keys::PAIR_MEDIA));
        let request_media = self.texts_map(media.as_ref().and_then(|m| m.get("request")));
        let response_media = self.texts_map(media.as_ref().and_then(|m| m.get("response")));
        let path = self.texts_map(fields.get("path"));
        let query = self.parameters(fields.get("query"), true);
        Some(PairDecl {
            only_if: self.text_of(fields.get("if")),
            operations,
            front,
            made: false,
            paging: fields.get("paging").and_then(|node| self.paged_route(node)),
            path,
            allow_slash: self.texts(fields.get("allow_slash")),
            query: query.lines,
            constant_query: query.constants,
            faulty_query: query.faulty,
            refused_query: query.refused,
            request_headers: request_headers.lines,
            response_headers: response_headers.lines,
            constant_request_headers: request_headers.constants,
            constant_response_headers: response_headers.constants,
            request_media,
            response_media,
            request: fields.get("request").and_then(|n| self.body(n)),
            response: fields.get("response").and_then(|n| self.body(n)),
            status: self.status_lines(fields.get("status")),
            business_errors: self.statuses(fields.get("business_errors")),
            retry: self.flag(fields.get("retry"), "safe", "never"),
            effect: self.flag(fields.get("effect"), "write", "none"),
            notes: self.notes(node),
            span: fields.get("pair")?.span,
        })
    }

    /// Reads `{v1: GET /a, v2: GET /b, front: v1}`.
    fn pair_of(&mut self, node: &Node) -> Option<([Spanned<String>; 2], Option<SideRef>)> {
        let mut operations = [None, None];
        let mut front = None;
        for (key, value) in node.map(self.findings)? {
            if key.name == "front" {
                front = self.text(value).and_then(|name| self.side(&name.value, name.span));
            // Precedes the lookup of sides, which would report a misspelled `front` as an unknown
            // side.
            } else if suggest(&key.name, &["front"]).is_some() {
                self.findings.push(faults::unknown_line(&key.name, key.span, "a pair", &["front"]));
            } else if let Some(side) = self.side(&key.name, key.span) {
                operations[side.side] = self.text(value);
            }
        }
        for (side, operation) in operations.iter().enumerate() {
            if operation.is_none() {
                self.findings.push(faults::missing_side("a pair", &self.sides[side].value, node.span));
            }
        }
        let [old, new] = operations;
        Some(([old?, new?], front))
    }

    /// Reads a map of texts.
    pub(super) fn texts_map(&mut self, node: Option<&Node>) -> TextPairs {
        let mut lines = Vec::new();
        for (key, value) in self.map_of(node) {
            lines.extend(self.text(value).map(|value| (Self::key(key), value)));
        }
        lines
    }

    /// Reads `[name]`, or `{old: new}` whose values may be converted, constant or, in a query,
    /// refused.
    fn parameters(&mut self, node: Option<&Node>, refusable: bool) -> ParameterRules {
        let mut read = ParameterRules::default();
        if let (Some(Kind::Seq(_)), true) = (node.map(|n| &n.kind), refusable) {
            let names = self.texts(node).into_iter();
            read.lines = names.map(|name| ParameterLine::plain(name.clone(), name)).collect();
            return read;
        }
        for (key, value) in self.map_of(node) {
            let mark = self.findings.len();
            match value.kind {
                Kind::Map(_) if value.get("constant").is_some() => {
                    self.constant_parameter(key, value, &mut read)
                }
                Kind::Map(_) if refusable && value.get("refuse").is_some() => {
                    read.refused.extend(self.refused_parameter(key, value));
                }
                Kind::Map(_) => read.lines.extend(self.converted_parameter(key, value)),
                _ => {
                    let line = self.text(value).map(|value| ParameterLine::plain(Self::key(key), value));
                    read.lines.extend(line);
                }
            }
            // Record every name on the line, because an error hides which of them it covers.
            if self.findings.errors_since(mark) {
                let named = value.as_map().unwrap_or_default().iter().filter_map(|(_, value)| value.as_str());
                read.faulty.extend(named.chain([key.name.as_str()]).map(str::to_owned));
            }
        }
        read
    }

    /// Reads `name: {constant: {v2: value}}`.
    fn constant_parameter(&mut self, key: &Key, node: &Node, read: &mut ParameterRules) {
        let Some(fields) = self.fields(node, &keys::CONSTANT) else { return };
        for (side, value) in self.map_of(fields.get("constant")) {
            if matches!(value.kind, Kind::Map(_) | Kind::Null) {
                self.findings.push(faults::constant_parameter(value.span));
                continue;
            }
            let side = self.side(&side.name, side.span);
            let constant = |side| ConstantParameter { name: Self::key(key), side, value: value.clone() };
            read.constants.extend(side.map(constant));
        }
    }

    /// Reads `old: {<new side>: new, as, else}`.
    fn converted_parameter(&mut self, key: &Key, node: &Node) -> Option<ParameterLine> {
        let new_side = self.sides[1].value.clone();
        let known = [&[new_side.as_str()], keys::PARAMETER].concat();
        for (key, _) in node.map(self.findings)?.iter().filter(|(key, _)| !known.contains(&key.name.as_str()))
        {
            let all = [known.as_slice(), &["constant", "refuse"]].concat();
            self.findings.push(faults::unknown_line(&key.name, key.span, "a parameter", &all));
        }
        // An unknown key, reported above, may be the misspelled name of the side.
        let Some(new) = node.get(&new_side) else {
            if node
                .as_map()
                .is_some_and(|lines| lines.iter().all(|(key, _)| known.contains(&key.name.as_str())))
            {
                self.findings.push(faults::missing_side("a parameter", &new_side, node.span));
            }
            return None;
        };
        let conversion = self.conversion(node.get("as"), node.get("else"));
        Some(ParameterLine { old: Self::key(key), new: self.text(new)?, conversion })
    }

    /// Reads `name: {refuse: reason, unless: [value]}`.
    fn refused_parameter(&mut self, key: &Key, node: &Node) -> Option<RefusedParameter> {
        let fields = self.fields(node, &keys::QUERY_REFUSE)?;
        let unless = self.texts(fields.get("unless"));
        Some(RefusedParameter { name: Self::key(key), reason: self.text_of(fields.get("refuse"))?, unless })
    }

    /// Reads a body of a pair.
    pub(super) fn body(&mut self, node: &Node) -> Option<BodyDecl> {
        match &node.kind {
            Kind::String(word, _) if word == "empty" => Some(BodyDecl::Empty(node.span)),
            Kind::String(word, _) if word == "keep" => Some(BodyDecl::Keep(node.span)),
            Kind::Map(_) if node.get("shape").is_some() => self.shaped_body(node).map(BodyDecl::Shape),
            Kind::Map(_) => self.shape(None, node).map(|shape| BodyDecl::Inline(Box::new(shape))),
            Kind::Seq(_) | Kind::String(..) => self.shape_use(node).map(BodyDecl::Shape),
            _ => {
                let lines = keys::LINES.iter().map(|line| format!("`{line}`")).collect::<Vec<_>>().join(", ");
                let help =
                    format!("the name of a shape, `[Name]`, `empty`, `keep`, or lines of a shape: {lines}");
                node.wrong_kind("a body", Some(help), self.findings)
            }
        }
    }

    /// Reads `{shape: [Name], else: drop}`.
    fn shaped_body(&mut self, node: &Node) -> Option<ShapeUse> {
        let fields = self.fields(node, &keys::SHAPED_BODY)?;
        let mut shape = self.shape_use(fields.get("shape")?)?;
        match fields.get("else") {
            Some(otherwise) if shape.each => self.shape_else(&mut shape, otherwise),
            Some(otherwise) => self.findings.push(faults::else_of_body(otherwise.span)),
            None => {}
        }
        Some(shape)
    }

    fn status_lines(&mut self, node: Option<&Node>) -> Vec<StatusLine> {
        let mut lines = Vec::new();
        for (key, value) in self.map_of(node) {
            let Some(old) = self.status_key(key) else { continue };
            let words: &[Node] = match &value.kind {
                Kind::Seq(items) => items,
                _ => std::slice::from_ref(value),
            };
            let new: Vec<_> = words.iter().filter_map(|word| self.status_word(word)).collect();
            // Invalid words have been reported, but an empty list has not.
            if new.is_empty() && words.is_empty() {
                self.findings.push(faults::status("[]", value.span));
            }
            lines.push(StatusLine { old, new });
        }
        lines
    }

    /// Reads a status, or a class such as `2xx`.
    fn status_word(&mut self, node: &Node) -> Option<Spanned<StatusWord>> {
        let class = match &node.kind {
            Kind::String(text, _) => match text.as_bytes() {
                [digit @ b'2'..=b'5', b'x', b'x'] => Some(digit - b'0'),
                _ => {
                    self.findings.push(faults::status(text, node.span));
                    return None;
                }
            },
            _ => None,
        };
        let value = match class {
            Some(class) => StatusWord::Class(class),
            None => StatusWord::Exact(self.status(node)?.value as u16),
        };
        Some(Spanned { value, span: node.span })
    }

    fn statuses(&mut self, node: Option<&Node>) -> Vec<Spanned<i64>> {
        self.list_of(node).iter().filter_map(|n| self.status(n)).collect()
    }

    /// Reads one of two words as a boolean; `yes` is true.
    pub(super) fn flag(&mut self, node: Option<&Node>, yes: &str, no: &str) -> Option<Spanned<bool>> {
        let node = node?;
        let word = node.word(&[yes, no], self.findings)?;
        Some(Spanned { value: word == yes, span: node.span })
    }

    /// Reads `differs`, `approximate` and `verdict` of a route or an outcome.
    pub(super) fn notes(&mut self, node: &Node) -> Notes {
        let mut notes = Notes {
            differs: self.sentences(node.get("differs")),
            approximate: self.approximate(node.get("approximate")),
            verdict: Vec::new(),
        };
        match node.get("verdict") {
            Some(Node { kind: Kind::Map(entries), .. }) => {
                for (key, value) in entries {
                    let side = self.side(&key.name, key.span);
                    let word = self.verdict(value);
                    notes.verdict.extend(side.zip(word).map(|(side, word)| (Some(side), word)));
                }
            }
            Some(value) => notes.verdict.extend(self.verdict(value).map(|word| (None, word))),
            None => {}
        }
        notes
    }

    fn verdict(&mut self, node: &Node) -> Option<Spanned<String>> {
        let word = node.word(&["exact", "different", "partly"], self.findings)?;
        Some(Spanned { value: word.to_owned(), span: node.span })
    }

    /// Reads sentences, or `{name: sentence}`.
    fn approximate(&mut self, node: Option<&Node>) -> Vec<(Option<Spanned<String>>, Spanned<String>)> {
        match node.map(|n| &n.kind) {
            Some(Kind::Map(_)) => {
                self.texts_map(node).into_iter().map(|(name, text)| (Some(name), text)).collect()
            }
            _ => self.sentences(node).into_iter().map(|text| (None, text)).collect(),
        }
    }

    /// Reads one sentence or a list of them.
    fn sentences(&mut self, node: Option<&Node>) -> Vec<Spanned<String>> {
        match node.map(|n| &n.kind) {
            Some(Kind::Seq(_)) => self.texts(node),
            _ => self.text_of(node).into_iter().collect(),
        }
    }

    /// Reads `{name: drop}`.
    fn drop_list(&mut self, node: Option<&Node>) -> Vec<Spanned<String>> {
        let mut names = Vec::new();
        for (key, value) in self.map_of(node) {
            names.extend(value.word(&["drop"], self.findings).map(|_| Self::key(key)));
        }
        names
    }

    fn serve(&mut self, node: &Node) -> Option<ServeDecl> {
        let fields = self.fields(node, &keys::SERVE)?;
        let side = self.text_of(fields.get("serve")).and_then(|name| self.side(&name.value, name.span));
        let at = self.text_of(fields.get("at"));
        let check = self.list_of(fields.get("check")).iter().filter_map(|n| self.check(n)).collect();
        let fill = self
            .map_of(fields.get("fill"))
            .iter()
            .map(|(key, value): &(Key, Node)| (Self::key(key), value.clone()));
        let dropped = self.drop_list(fields.get("query"));
        let dropped_headers = self.drop_list(fields.get("headers"));
        Some(ServeDecl {
            only_if: self.text_of(fields.get("if")),
            fill: fill.collect(),
            allow_slash: self.texts(fields.get("allow_slash")),
            dropped,
            dropped_headers,
            paging: fields.get("paging").and_then(|node| self.paged_route(node)),
            check,
            block: self.block(&fields, "this route"),
            business_errors: self.statuses(fields.get("business_errors")),
            notes: self.notes(node),
            span: at.as_ref().map_or(node.span, |at| at.span),
            side: side?,
            at: at?,
        })
    }
}
