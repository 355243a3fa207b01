//! Archives and the harvests that fill them, and the steps that look up and store entries.

use super::kinds::{Element, ListOf, SideName, Text, kinds};
use super::section::{Read, section};
use super::{
    AnswerDecl, BlockDecl, BlockEnd, ExprDecl, ExprKind, PredicateDecl, SideRef, Spanned, StepDecl,
    SyntaxReader, faults,
};
use crate::diagnostic::Span;
use crate::mapping::schema::{Sides, text};
use crate::yaml::{Key, Node, described};
use serde_json::{Map, Value, json};

section! {
    /// One entry of `archives:`. Without a value, its entries consist of their keys alone.
    ArchiveDecl is "an archive", defines "archive" {
        name name: Spanned<String>,
        /// Content and purpose of the archive, for the operator.
        required about: Text,
        /// The type of its values; without it an entry is its key alone.
        strict value: ArchiveValue,
    }
}

/// `value: {v1: Type}`, or `{v1: Type, field: name}` for a field of it.
#[derive(Clone, Debug)]
pub(crate) struct ArchiveValue {
    pub side: SideRef,
    pub ty: Spanned<String>,
    pub field: Option<Spanned<String>>,
}

impl Read for ArchiveValue {
    type Output = ArchiveValue;

    fn read(_: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ArchiveValue> {
        let (mut of, mut field) = (None, None);
        for (key, value) in node.map(reader.findings)? {
            if key.name == "field" {
                field = reader.text(value);
            } else if let Some(side) = reader.side(&key.name, key.span) {
                of = reader.text(value).map(|ty| (side, ty));
            }
        }
        let Some((side, ty)) = of else {
            let known = [reader.sides[0].value.as_str(), reader.sides[1].value.as_str()];
            reader.findings.push(faults::one_of_keys(node.span, "the value of an archive", &known));
            return None;
        };
        Some(ArchiveValue { side, ty, field })
    }

    fn schema(sides: Sides<'_>) -> Value {
        let mut properties: Map<String, Value> = Map::new();
        // Without the names of the sides, any other key may be one of them.
        let mut open = text();
        for side in sides.into_iter().flatten() {
            properties.insert(side.to_owned(), described(text(), &["A type of this side's contract."]));
            open = Value::Bool(false);
        }
        let field = described(text(), &["A field of that type, and not the whole."]);
        properties.insert("field".to_owned(), field);
        json!({"type": "object", "additionalProperties": open, "properties": properties, "minProperties": 1, "maxProperties": 2})
    }
}

/// One entry of `harvests:`.
#[derive(Clone, Debug)]
pub(crate) struct HarvestDecl {
    pub name: Spanned<String>,
    pub about: Spanned<String>,
    pub from: SideRef,
    /// `steps:`, with `page:` as the answer of the block.
    pub block: BlockDecl,
    /// `page: path`: the list on the fetched page.
    pub page: Spanned<String>,
    pub span: Span,
}

section! {
    /// The keys of a harvest.
    HarvestKeys is "a harvest", defines "harvest" {
        name name: Spanned<String>,
        /// Description of the data, for the operator.
        required about: Text,
        /// The side that is read.
        required from: SideName,
        /// Steps for one page; its number is `$.request.query.page`.
        filled steps: ListOf<StepDecl>,
        /// Path of the list on the page. A page with fewer elements is the last one.
        required page: Text,
        at_name span: Span,
    }
    into HarvestDecl: |HarvestKeys { name, about, from, steps, page, span }, _, _| {
        let body = ExprDecl { kind: ExprKind::Path(page.value.clone()), span: page.span };
        // A harvest has no client. The page is modelled as the answer of its block, so that the
        // block compiles like any other.
        let answer = AnswerDecl {
            legacy_forward: [None; 2],
            status: Spanned { value: 200, span: page.span },
            headers: Vec::new(),
            body: Some(body),
            span: page.span,
        };
        let block = BlockDecl { steps, end: Some(BlockEnd::Answer(answer)) };
        Some(HarvestDecl { name, about, from, block, page, span })
    }
}

section! {
    /// A step that looks up an entry.
    RecallDecl is "a step that looks up" {
        /// Archive to look up. The result is `{age, value}`, or absent without an entry.
        required archive("recall"): Text,
        /// Key of the entry, a scalar.
        required key: ExprDecl,
        /// Looks an entry up for each element of a list: `{name: list}`.
        strict each: EachOf,
        /// Condition under which the entry is looked up.
        strict when: PredicateDecl,
    }
}

section! {
    /// A step that stores an entry.
    KeepDecl is "a step that keeps" {
        /// Puts an entry into this archive.
        required archive("keep"): Text,
        /// Key of the entry, a scalar.
        required key: ExprDecl,
        /// Value of the entry, if the archive has values.
        strict value: ExprDecl,
        /// Keeps an entry for each element of a list: `{name: list}`.
        strict each: EachOf,
        /// Condition under which the entry is stored.
        strict when: PredicateDecl,
    }
}

/// `each: {name: list}`. It has no bound because it makes no calls.
#[derive(Clone, Debug)]
pub(crate) struct EachOfDecl {
    pub name: Spanned<String>,
    pub list: Spanned<String>,
}

kinds! {
    /// The element of an [`EachOfDecl`].
    EachOf -> EachOfDecl, |key, node, reader| {
        Element::<Text>::read(key, node, reader).map(|(name, list)| EachOfDecl { name, list })
    }, Element::<Text>::schema;
}
