//! Reads archives and harvests, and the steps that look up and store entries.

use super::{SyntaxReader, faults, keys};
use crate::mapping::ast::{
    AnswerDecl, ArchiveDecl, ArchiveValue, ArchivedDecl, BlockDecl, BlockEnd, EachOfDecl, ExprDecl, ExprKind,
    HarvestDecl, KeepDecl, PredicateDecl, RecallDecl, Spanned,
};
use crate::yaml::{Fields, Key, Kind, Node};

impl SyntaxReader<'_> {
    /// `name: {about, value}`
    pub(super) fn archive(&mut self, key: &Key, node: &Node) -> Option<ArchiveDecl> {
        let fields = self.fields(node, &keys::ARCHIVE)?;
        let about = self.text_of(fields.get("about"));
        let value = match fields.get("value") {
            None => None,
            Some(value) => Some(self.archive_value(value)?),
        };
        Some(ArchiveDecl { name: Self::key(key), about: about?, value })
    }

    /// `{v1: Type}` or `{v1: Type, field: name}`
    fn archive_value(&mut self, node: &Node) -> Option<ArchiveValue> {
        let (mut of, mut field) = (None, None);
        for (key, value) in node.map(self.findings)? {
            if key.name == "field" {
                field = self.text(value);
            } else if let Some(side) = self.side(&key.name, key.span) {
                of = self.text(value).map(|ty| (side, ty));
            }
        }
        let Some((side, ty)) = of else {
            let sides = self.sides.clone();
            let known = [sides[0].value.as_str(), sides[1].value.as_str()];
            self.findings.push(faults::one_of_keys(node.span, "the value of an archive", &known));
            return None;
        };
        Some(ArchiveValue { side, ty, field })
    }

    /// `name: {about, from, steps, page}`
    pub(super) fn harvest(&mut self, key: &Key, node: &Node) -> Option<HarvestDecl> {
        let fields = self.fields(node, &keys::HARVEST)?;
        let about = self.text_of(fields.get("about"));
        let from = self.text_of(fields.get("from")).and_then(|name| self.side(&name.value, name.span));
        let steps = self.list_of(fields.get("steps")).iter().filter_map(|n| self.step(n)).collect();
        let page = self.text_of(fields.get("page"))?;
        let body = ExprDecl { kind: ExprKind::Path(page.value.clone()), span: page.span };
        // A harvest has no client. The page is modelled as the answer of its block, so that the
        // block compiles like any other.
        let status = Spanned { value: 200, span: page.span };
        let answer = AnswerDecl {
            legacy_forward: [None; 2],
            status,
            headers: Vec::new(),
            body: Some(body),
            span: page.span,
        };
        let block = BlockDecl { steps, end: Some(BlockEnd::Answer(answer)) };
        Some(HarvestDecl { name: Self::key(key), about: about?, from: from?, block, page, span: key.span })
    }

    /// `{recall: name, key: value, each: {name: list}, when: predicate}`
    pub(super) fn recall(&mut self, node: &Node) -> Option<RecallDecl> {
        let fields = self.fields(node, &keys::RECALL)?;
        let archive = self.text_of(fields.get("recall"));
        let key = fields.get("key").and_then(|n| self.expr(n));
        let each = self.each_of(&fields)?;
        let when = self.archive_condition(&fields)?;
        Some(RecallDecl { archive: archive?, key: key?, each, when })
    }

    /// `{keep: name, key: value, value: value, each: {name: list}, when: predicate}`
    pub(super) fn keep(&mut self, node: &Node) -> Option<KeepDecl> {
        let fields = self.fields(node, &keys::KEEP)?;
        let archive = self.text_of(fields.get("keep"));
        let key = fields.get("key").and_then(|n| self.expr(n));
        let value = match fields.get("value") {
            None => None,
            Some(value) => Some(self.expr(value)?),
        };
        let each = self.each_of(&fields)?;
        let when = self.archive_condition(&fields)?;
        Some(KeepDecl { archive: archive?, key: key?, value, each, when })
    }

    /// Reads `when: predicate`. An outer `None` is an error.
    fn archive_condition(&mut self, fields: &Fields<'_>) -> Option<Option<PredicateDecl>> {
        match fields.get("when") {
            None => Some(None),
            Some(when) => self.predicate(when, &[]).map(Some),
        }
    }

    /// Reads `each: {name: list}`. An outer `None` is an error.
    fn each_of(&mut self, fields: &Fields<'_>) -> Option<Option<EachOfDecl>> {
        let Some(node) = fields.get("each") else { return Some(None) };
        let [(key, list)] = node.map(self.findings)? else {
            self.findings.push(faults::one_element_name(node.span));
            return None;
        };
        Some(Some(EachOfDecl { name: Self::key(key), list: self.text(list)? }))
    }

    /// `{name: {key: {age: 60, value: …}}}`
    pub(super) fn archive_entries(&mut self, node: Option<&Node>) -> Vec<ArchivedDecl> {
        let mut all = Vec::new();
        for (name, entries) in self.map_of(node) {
            for (key, entry) in self.map_of(Some(entries)) {
                let Some(fields) = self.fields(entry, &keys::ARCHIVED) else { continue };
                let Some(age) = fields.get("age").and_then(|n| self.whole(n, 0..=u64::from(u32::MAX))) else {
                    continue;
                };
                let value = fields.get("value").cloned();
                all.push(ArchivedDecl {
                    archive: Self::key(name),
                    key: key.name.clone(),
                    age: age.value,
                    value,
                });
            }
        }
        all
    }

    /// `{name: {key: value}}` or `{name: [key]}`
    pub(super) fn keeps(&mut self, node: Option<&Node>) -> Vec<ArchivedDecl> {
        let mut all = Vec::new();
        for (name, entries) in self.map_of(node) {
            let mut add = |key: String, value: Option<Node>| {
                all.push(ArchivedDecl { archive: Self::key(name), key, age: 0, value });
            };
            match &entries.kind {
                Kind::Seq(keys) => {
                    for key in keys {
                        match &key.kind {
                            // YAML reads an unquoted numeric key as a number, and keys of archives
                            // are texts.
                            Kind::Number(text) => add(text.clone(), None),
                            _ => self.text(key).into_iter().for_each(|key| add(key.value, None)),
                        }
                    }
                }
                _ => {
                    for (key, value) in self.map_of(Some(entries)) {
                        add(key.name.clone(), Some(value.clone()));
                    }
                }
            }
        }
        all
    }
}
