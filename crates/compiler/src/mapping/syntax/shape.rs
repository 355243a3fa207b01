//! Reads shapes, named and inline.

use super::{SyntaxReader, faults, keys};
use crate::mapping::ast::{
    ByKind, Constant, ConversionUse, CopyDecl, Fill, Only, Rename, Rest, RestFill, ShapeDecl, ShapeUse,
    SideRef, Spanned,
};
use crate::yaml::{Key, Kind, Node};

/// Keyword that applies a conversion to each element of a list.
pub(super) const EACH_ELEMENT: &str = "each";

/// Words that fill a field, in addition to literals.
pub(super) const FILL_WORDS: &[&str] = &["absent", "none", "null"];

impl SyntaxReader<'_> {
    /// Reads a shape. A shape without a name is inline.
    pub(super) fn shape(&mut self, name: Option<&Key>, node: &Node) -> Option<ShapeDecl> {
        let fields = self.fields(node, if name.is_some() { &keys::SHAPE } else { &keys::SHAPE_IN_PLACE })?;
        let of = match fields.get("of") {
            Some(of) => Some(self.texts_by_side(of, "`of`")?),
            None => None,
        };
        Some(ShapeDecl {
            name: name.map(Self::key),
            of,
            alternatives: self.texts(fields.get("alternatives")),
            like: self.text_of(fields.get("like")),
            same: self.texts(fields.get("same")),
            rename: self.renames(fields.get("rename")),
            copy: self.copies(fields.get("copy")),
            constant: self.constants(fields.get("constant")),
            by_kind: self.by_kinds(fields.get("by_kind")),
            only: self.onlys(fields.get("only")),
            rest: self.rests(fields.get("rest")),
            span: name.map_or(node.span, |name| name.span),
        })
    }

    fn renames(&mut self, node: Option<&Node>) -> Vec<Rename> {
        self.map_of(node).iter().filter_map(|(key, value)| self.rename(key, value)).collect()
    }

    /// Reads `old: new` or `old: {<new side>: new, shape, as, else, default}`.
    fn rename(&mut self, key: &Key, node: &Node) -> Option<Rename> {
        let old = self.place(&key.name, key.span);
        let span = key.span.to(node.span);
        let plain = |old, new| Rename { old, new, shape: None, conversion: None, defaults: Vec::new(), span };
        if let Kind::String(text, _) = &node.kind {
            let new = self.place(text, node.span);
            return Some(plain(old?, new?));
        }
        let new_side = self.sides[1].value.clone();
        let entries = node.map(self.findings)?;
        let known = [&[new_side.as_str()], keys::RENAME].concat();
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
            self.findings.push(faults::unknown_line(&key.name, key.span, "a rename", &known));
        }
        let Some(new) = node.get(&new_side) else {
            self.findings.push(faults::missing_side("a rename", &new_side, node.span));
            return None;
        };
        let new = self.text(new).and_then(|text| self.place(&text.value, text.span));
        let mut rename = plain(old?, new?);
        rename.shape = match (node.get("shape"), node.get("each_value")) {
            (Some(shape), Some(_)) => {
                self.findings.push(faults::one_shape(shape.span));
                None
            }
            (Some(shape), None) => self.shape_use(shape),
            (None, Some(name)) => {
                self.text(name).map(|name| ShapeUse { name, each: false, each_value: true, otherwise: None })
            }
            (None, None) => None,
        };
        rename.conversion = self.conversion(node.get("as"), node.get("else"));
        // Next to a conversion, `else:` belongs to the conversion.
        if let (Some(shape), None, Some(otherwise)) = (&mut rename.shape, node.get("as"), node.get("else")) {
            self.shape_else(shape, otherwise);
        }
        for (key, value) in self.map_of(node.get("default")) {
            rename.defaults.extend(self.side(&key.name, key.span).map(|side| (side, value.clone())));
        }
        Some(rename)
    }

    /// Reads `Name` or `[Name]`.
    pub(super) fn shape_use(&mut self, node: &Node) -> Option<ShapeUse> {
        match &node.kind {
            Kind::String(name, _) => {
                let name = Spanned { value: name.clone(), span: node.span };
                Some(ShapeUse { name, each: false, each_value: false, otherwise: None })
            }
            Kind::Seq(items) if items.len() == 1 => {
                let name = self.text(&items[0])?;
                Some(ShapeUse { name, each: true, each_value: false, otherwise: None })
            }
            _ => {
                self.findings.push(faults::shape_use(node.span));
                None
            }
        }
    }

    /// Reads the `else:` of a shape.
    pub(super) fn shape_else(&mut self, shape: &mut ShapeUse, node: &Node) {
        if shape.each_value {
            self.findings.push(faults::else_of_map(node.span));
            return;
        }
        // A text is never an object, so the type check of the literal reports a word in quotes.
        shape.otherwise = self.otherwise(node, &["error", "drop"], None);
    }

    /// Reads an `else:` with its keywords. If `meant` is given, warns about keywords in quotes;
    /// `meant` describes how to write the text itself.
    fn otherwise(&mut self, node: &Node, words: &[&str], meant: Option<&str>) -> Option<Node> {
        // Short words resemble too many texts to be reported as misspellings.
        if let Node { kind: Kind::String(word, crate::yaml::TextStyle::Plain), span } = node
            && word.len() >= 4
            && !words.contains(&word.as_str())
            && let Some(near) = crate::diagnostic::suggest(word, words)
        {
            self.findings.push(faults::nearly_otherwise(word, near, *span));
        }
        let unquoted = self.unquote_absent(node);
        if let (None, Some(meant)) = (&unquoted, meant) {
            self.warn_of_quotes(node, words, meant);
        }
        unquoted.or_else(|| Some(node.clone()))
    }

    /// Reads `as: name`, `as: {name: arguments}` or a list of these, with the `else:` of the line.
    pub(super) fn conversion(
        &mut self,
        node: Option<&Node>,
        otherwise: Option<&Node>,
    ) -> Option<ConversionUse> {
        let node = node?;
        const WORDS: &[&str] = &["keep", "error", "drop"];
        let meant = "a `table` that lists it says that the text is meant";
        let otherwise = otherwise.and_then(|otherwise| self.otherwise(otherwise, WORDS, Some(meant)));
        let mut conversions = match &node.kind {
            Kind::Seq(items) if items.len() > 1 => {
                items.iter().filter_map(|item| self.one_conversion(item)).collect()
            }
            _ => vec![self.one_conversion(node)?],
        };
        // The first conversion carries the fallback and the alternatives.
        let or = if conversions.is_empty() { Vec::new() } else { conversions.split_off(1) };
        let first = conversions.pop()?;
        Some(ConversionUse { otherwise, or, ..first })
    }

    /// Reads a conversion by name, with optional arguments.
    fn one_conversion(&mut self, node: &Node) -> Option<ConversionUse> {
        let (name, arguments) = match &node.kind {
            Kind::Map(entries) if entries.len() == 1 && entries[0].0.name == EACH_ELEMENT => {
                let inner = self.conversion(Some(&entries[0].1), None)?;
                return Some(ConversionUse { each: Some(entries[0].0.span), ..inner });
            }
            Kind::Map(entries) if entries.len() == 1 => {
                let (key, arguments) = &entries[0];
                (Self::key(key), Some(arguments.clone()))
            }
            _ => (self.text(node)?, None),
        };
        Some(ConversionUse { name, arguments, otherwise: None, each: None, or: Vec::new() })
    }

    /// Reads `{side: {name: $.place}}`.
    fn copies(&mut self, node: Option<&Node>) -> Vec<CopyDecl> {
        let mut copies = Vec::new();
        for (side, lines) in self.lines_by_side(node) {
            for (key, value) in lines {
                let from = self.text(value).and_then(|text| self.place(&text.value, text.span));
                let Some(from) = from else { continue };
                copies.push(CopyDecl { to: side, name: Self::key(key), from, span: key.span.to(value.span) });
            }
        }
        copies
    }

    /// Reads `{side: {…}}` and returns the lines of each side.
    fn lines_by_side<'n>(&mut self, node: Option<&'n Node>) -> Vec<(SideRef, &'n [(Key, Node)])> {
        let mut lines = Vec::new();
        for (key, value) in self.map_of(node) {
            if let Some(side) = self.side(&key.name, key.span) {
                lines.push((side, self.map_of(Some(value))));
            }
        }
        lines
    }

    fn constants(&mut self, node: Option<&Node>) -> Vec<Constant> {
        let mut constants = Vec::new();
        for (key, value) in self.map_of(node) {
            let [Some(old), Some(new)] = self.by_side(value, "a constant", false) else { continue };
            constants.push(Constant {
                name: Self::key(key),
                values: [old.clone(), new.clone()],
                span: key.span.to(value.span),
            });
        }
        constants
    }

    fn by_kinds(&mut self, node: Option<&Node>) -> Vec<ByKind> {
        let mut lines = Vec::new();
        for (key, value) in self.map_of(node) {
            let Some(old) = self.place(&key.name, key.span) else { continue };
            let (mut new, mut default) = (Vec::new(), None);
            for (kind, place) in self.map_of(Some(value)) {
                if kind.name == "default" {
                    default = self.old_default(place);
                    continue;
                }
                if !keys::KINDS.contains(&kind.name.as_str()) {
                    self.findings.push(faults::unknown_line(&kind.name, kind.span, "`by_kind`", keys::KINDS));
                    continue;
                }
                let place = self.text(place).and_then(|text| self.place(&text.value, text.span));
                new.extend(place.map(|place| (Self::key(kind), place)));
            }
            lines.push(ByKind { old, new, default, span: key.span.to(value.span) });
        }
        lines
    }

    /// Reads `{old side: value}`.
    fn old_default(&mut self, node: &Node) -> Option<Node> {
        let old_side = self.sides[0].value.clone();
        for (key, _) in node.map(self.findings)?.iter().filter(|(key, _)| key.name != old_side) {
            let known = [old_side.as_str()];
            self.findings.push(faults::unknown_line(&key.name, key.span, "the default of `by_kind`", &known));
        }
        node.get(&old_side).cloned()
    }

    fn onlys(&mut self, node: Option<&Node>) -> Vec<Only> {
        let mut onlys = Vec::new();
        for (side, lines) in self.lines_by_side(node) {
            for (key, value) in lines {
                let (Some(place), Some(fill)) = (self.place(&key.name, key.span), self.fill(value)) else {
                    continue;
                };
                onlys.push(Only { side, place, fill, span: key.span.to(value.span) });
            }
        }
        onlys
    }

    /// Reads the fill value of a one-sided field.
    fn fill(&mut self, node: &Node) -> Option<Fill> {
        if let Some(word) = self.unquote_absent(node) {
            return self.fill(&word);
        }
        self.warn_of_quotes(node, &["absent", "none"], "`{value: …}` says that the text is meant");
        match &node.kind {
            Kind::String(word, crate::yaml::TextStyle::Plain) if word == "absent" => Some(Fill::Absent),
            Kind::String(word, crate::yaml::TextStyle::Plain) if word == "none" => Some(Fill::Nothing),
            // An unquoted word is probably a misspelled keyword. Require quotes for texts.
            Kind::String(word, crate::yaml::TextStyle::Plain) if !word.starts_with('$') => {
                self.findings.push(faults::fill_word(word, node.span));
                None
            }
            Kind::String(word, crate::yaml::TextStyle::Plain) if nearly(word) => {
                self.findings.push(faults::nearly_a_filling(word, node.span));
                None
            }
            Kind::String(path, _) if path.starts_with('$') => {
                if path.strip_prefix("$.config.").is_none_or(str::is_empty) {
                    self.findings.push(faults::config_path(path, node.span));
                    return None;
                }
                Some(Fill::Setting(Spanned { value: path["$.config.".len()..].to_owned(), span: node.span }))
            }
            Kind::Map(_) if node.get("refuse").is_some() => {
                let fields = self.fields(node, &keys::FILL_REFUSE)?;
                self.text_of(fields.get("refuse")).map(Fill::Refuse)
            }
            Kind::Map(_) if node.get("value").is_some() => {
                let fields = self.fields(node, &keys::FILL_VALUE)?;
                let despite = fields.get("despite");
                if let Some(despite) = despite {
                    despite.word(&["type"], self.findings);
                }
                let value = fields.get("value")?.clone();
                Some(Fill::Value { value, despite_type: despite.map(|d| d.span) })
            }
            Kind::Map(entries) if !entries.is_empty() => {
                self.findings.push(faults::fill(node.span));
                None
            }
            _ => Some(Fill::Value { value: node.clone(), despite_type: None }),
        }
    }

    /// Reads `{word: absent}`, the form of a keyword in JSON, where every text is in quotes.
    fn unquote_absent(&mut self, node: &Node) -> Option<Node> {
        let (Kind::Map(_), Some(_)) = (&node.kind, node.get("word")) else { return None };
        let fields = self.fields(node, &keys::WORD)?;
        let word = self.text_of(fields.get("word"))?;
        Some(Node { kind: Kind::String(word.value, crate::yaml::TextStyle::Plain), span: word.span })
    }

    /// Warns about a keyword in quotes. `meant` describes how to write the text itself.
    pub(super) fn warn_of_quotes(&mut self, node: &Node, words: &[&str], meant: &str) {
        if let Kind::String(word, crate::yaml::TextStyle::Quoted) = &node.kind
            && words.contains(&word.as_str())
        {
            self.findings.push(faults::quoted_word(word, meant, node.span));
        }
    }

    fn rests(&mut self, node: Option<&Node>) -> Vec<Rest> {
        let mut rests = Vec::new();
        for (key, value) in self.map_of(node) {
            // Even with an invalid value the line covers the fields, so they are not reported as
            // missing.
            let fill = self.rest_fill(value).unwrap_or(None);
            let side = self.side(&key.name, key.span);
            rests.extend(side.map(|side| Rest { side, fill, span: key.span.to(value.span) }));
        }
        rests
    }

    /// Reads `lost`, a literal, or a literal despite the type.
    fn rest_fill(&mut self, node: &Node) -> Option<Option<RestFill>> {
        if let Some(word) = self.unquote_absent(node) {
            return self.rest_fill(&word);
        }
        self.warn_of_quotes(node, &["lost"], "`{value: lost}` says that the text is meant");
        if let Kind::String(_, crate::yaml::TextStyle::Plain) = &node.kind {
            return node.word(&["lost"], self.findings).map(|_| None);
        }
        match self.fill(node)? {
            Fill::Value { value, despite_type } => Some(Some(RestFill { value, despite_type })),
            Fill::Absent | Fill::Nothing | Fill::Setting(_) | Fill::Refuse(_) => {
                self.findings.push(faults::rest_fill(node.span));
                None
            }
        }
    }
}

/// Returns whether a plain text is so similar to a keyword that it is probably a misspelling.
fn nearly(word: &str) -> bool {
    word.len() >= 4 && crate::diagnostic::suggest(word, FILL_WORDS).is_some()
}
