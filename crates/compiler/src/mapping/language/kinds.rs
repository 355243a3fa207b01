//! Forms of values that many keys share: texts, numbers, words, lists, and maps by name or by side.

use super::section::Read;
use super::{FieldPlace, SideRef, Spanned, SyntaxReader, faults};
use crate::diagnostic::Span;
use crate::mapping::schema::{Sides, anything, by_side, list_of, map_of, reference, side_name, text, words};
use crate::yaml::{Key, Kind, Node};
use serde_json::{Value, json};
use std::marker::PhantomData;
use switchback_plan::{BasicPart, BodyForm, ClientAuth, PerSide, RefreshExtra, SideId};

/// Declares forms, each with its value in the syntax tree, its reader and its schema.
macro_rules! kinds {
    ($( $(#[doc = $doc:literal])+ $name:ident -> $output:ty, $read:expr, $schema:expr; )+) => { $(
        $(#[doc = $doc])+
        #[derive(Clone, Debug)]
        pub(crate) struct $name;

        impl crate::mapping::language::section::Read for $name {
            type Output = $output;

            fn read(
                key: &crate::yaml::Key,
                node: &crate::yaml::Node,
                reader: &mut crate::mapping::language::SyntaxReader<'_>,
            ) -> Option<$output> {
                let read: fn(
                    &crate::yaml::Key,
                    &crate::yaml::Node,
                    &mut crate::mapping::language::SyntaxReader<'_>,
                ) -> Option<$output> = $read;
                read(key, node, reader)
            }

            fn schema(sides: crate::mapping::schema::Sides<'_>) -> serde_json::Value {
                let schema: fn(crate::mapping::schema::Sides<'_>) -> serde_json::Value = $schema;
                schema(sides)
            }
        }
    )+ };
}
pub(super) use kinds;

/// Declares one of several words.
macro_rules! word_kinds {
    ($( $(#[doc = $doc:literal])+ $name:ident -> $output:ty { $($word:literal => $value:expr),+ $(,)? } )+) => {
        crate::mapping::language::kinds::kinds! { $(
            $(#[doc = $doc])+
            $name -> crate::mapping::language::Spanned<$output>,
            |_, node, reader| {
                let value = match node.word(&[$($word),+], reader.findings)? {
                    $($word => $value,)+
                    _ => return None,
                };
                Some(crate::mapping::language::Spanned { value, span: node.span })
            },
            |_| crate::mapping::schema::words(&[$($word),+]);
        )+ }
    };
}
pub(super) use word_kinds;

kinds! {
    /// A text.
    Text -> Spanned<String>, |_, node, reader| reader.text(node), |_| text();
    /// A method and a path template.
    Operation -> Spanned<String>, |_, node, reader| reader.text(node),
        |_| json!({"type": "string", "pattern": "^(GET|PUT|POST|DELETE|OPTIONS|HEAD|PATCH) /"});
    /// An HTTP status. Interim statuses (1xx) are no final responses.
    Status -> Spanned<i64>, |_, node, reader| reader.whole(node, 200..=599), |_| reference("status");
    /// An integer that fits in 32 bits.
    Natural -> Spanned<i64>, |_, node, reader| reader.whole(node, 0..=u64::from(u32::MAX)),
        |_| json!({"type": "integer", "minimum": 0});
    /// Any value, which later checks interpret.
    Anything -> Node, |_, node, _| Some(node.clone()), |_| anything();
    /// Any value, or a list of alternatives.
    Alternatives -> Vec<Node>, |_, node, _| Some(node.as_seq().map_or_else(|| vec![node.clone()], <[Node]>::to_vec)),
        |_| anything();
    /// A member name, or a JSONPath of names.
    Place -> Spanned<FieldPlace>, |_, node, reader| reader.place_of(node), |_| text();
    /// The name of a side.
    SideName -> SideRef, |_, node, reader| {
        let name = reader.text(node)?;
        reader.side(&name.value, name.span)
    }, side_name;
    /// `despite: type`. An unknown word is reported and has the same effect.
    DespiteType -> Span, |_, node, reader| {
        node.word(&["type"], reader.findings);
        Some(node.span)
    }, |_| words(&["type"]);
}

word_kinds! {
    /// Whether a write may be repeated.
    Retry -> bool { "safe" => true, "never" => false }
    /// Whether an operation writes.
    Effect -> bool { "write" => true, "none" => false }
    /// A part of a request or response that is dropped.
    Drop -> () { "drop" => () }
}

/// Implements [`Read`] for enums of the plan, which define their own words.
macro_rules! plan_words {
    ($($name:ty),+) => { $(
        impl Read for $name {
            type Output = $name;

            fn read(_: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<$name> {
                <$name>::of_word(node.word(<$name>::WORDS, reader.findings)?)
            }

            fn schema(_: Sides<'_>) -> Value {
                words(<$name>::WORDS)
            }
        }
    )+ };
}
plan_words!(BasicPart, BodyForm, ClientAuth, RefreshExtra);

/// An integer in a range.
#[derive(Clone, Debug)]
pub(crate) struct Count<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Read for Count<MIN, MAX> {
    type Output = Spanned<i64>;

    fn read(_: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Spanned<i64>> {
        reader.whole(node, MIN..=MAX)
    }

    fn schema(_: Sides<'_>) -> Value {
        json!({"type": "integer", "minimum": MIN, "maximum": MAX})
    }
}

/// One element of a list, by a name that binds it: `{name: list}`.
pub(crate) struct Element<K>(PhantomData<K>);

impl<K: Read> Read for Element<K> {
    type Output = (Spanned<String>, K::Output);

    fn read(_: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Self::Output> {
        let [(name, list)] = node.map(reader.findings)? else {
            reader.findings.push(faults::one_element_name(node.span));
            return None;
        };
        Some((SyntaxReader::key(name), K::read(name, list, reader)?))
    }

    fn schema(sides: Sides<'_>) -> Value {
        json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": K::schema(sides)})
    }
}

/// A list. Invalid elements are reported and left out.
pub(crate) struct ListOf<K>(PhantomData<K>);

impl<K: Read> Read for ListOf<K> {
    type Output = Vec<K::Output>;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Self::Output> {
        Some(node.list(reader.findings)?.iter().filter_map(|item| K::read(key, item, reader)).collect())
    }

    fn schema(sides: Sides<'_>) -> Value {
        list_of(&K::schema(sides))
    }
}

/// One value, or a list of them.
pub(crate) struct OneOrList<K>(PhantomData<K>);

impl<K: Read> Read for OneOrList<K> {
    type Output = Vec<K::Output>;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Self::Output> {
        match node.kind {
            Kind::Seq(_) => ListOf::<K>::read(key, node, reader),
            _ => K::read(key, node, reader).map(|one| vec![one]),
        }
    }

    fn schema(sides: Sides<'_>) -> Value {
        json!({"anyOf": [K::schema(sides), list_of(&K::schema(sides))]})
    }
}

/// A map with any keys. Invalid entries are reported and left out.
pub(crate) struct MapOf<K>(PhantomData<K>);

impl<K: Read> Read for MapOf<K> {
    type Output = Vec<(Spanned<String>, K::Output)>;

    fn read(_: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Self::Output> {
        let entries = node.map(reader.findings)?.iter();
        Some(
            entries
                .filter_map(|(key, node)| Some((SyntaxReader::key(key), K::read(key, node, reader)?)))
                .collect(),
        )
    }

    fn schema(sides: Sides<'_>) -> Value {
        map_of(&K::schema(sides))
    }
}

/// A map with entries that contain their names.
pub(crate) struct EntriesOf<K>(PhantomData<K>);

impl<K: Read> Read for EntriesOf<K> {
    type Output = Vec<K::Output>;

    fn read(_: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Self::Output> {
        let entries = node.map(reader.findings)?.iter();
        Some(entries.filter_map(|(key, node)| K::read(key, node, reader)).collect())
    }

    fn schema(sides: Sides<'_>) -> Value {
        map_of(&K::schema(sides))
    }
}

/// A value for each side, of which `NEEDED` must be given. If both are needed, a missing one is
/// reported.
pub(crate) struct BySide<K, const NEEDED: usize>(PhantomData<K>);

impl<K: Read, const NEEDED: usize> Read for BySide<K, NEEDED> {
    type Output = [Option<K::Output>; 2];

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Self::Output> {
        let entries = reader.by_side(node, &format!("`{}`", key.name), NEEDED < 2)?;
        Some(entries.map(|entry| entry.and_then(|(key, node)| K::read(key, node, reader))))
    }

    fn schema(sides: Sides<'_>) -> Value {
        by_side(sides, NEEDED, &K::schema(sides))
    }
}

/// A value for both sides.
pub(crate) struct BothSides<K>(PhantomData<K>);

impl<K: Read> Read for BothSides<K> {
    type Output = [K::Output; 2];

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Self::Output> {
        let [old, new] = BySide::<K, 2>::read(key, node, reader)?;
        Some([old?, new?])
    }

    fn schema(sides: Sides<'_>) -> Value {
        BySide::<K, 2>::schema(sides)
    }
}

/// A value for any of the sides; the default for the others.
pub(crate) struct EachSide<K>(PhantomData<K>);

impl<K: Read<Output: Default>> Read for EachSide<K> {
    type Output = PerSide<K::Output>;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Self::Output> {
        let mut output = PerSide::default();
        for (side, value) in LinesBySide::<K, 0>::read(key, node, reader)? {
            output[SideId(side.side as u8)] = value;
        }
        Some(output)
    }

    fn schema(sides: Sides<'_>) -> Value {
        by_side(sides, 0, &K::schema(sides))
    }
}

/// A value for any of the sides, in the order of the file.
pub(crate) struct LinesBySide<K, const NEEDED: usize>(PhantomData<K>);

impl<K: Read, const NEEDED: usize> Read for LinesBySide<K, NEEDED> {
    type Output = Vec<(SideRef, K::Output)>;

    fn read(_: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Self::Output> {
        let mut lines = Vec::new();
        for (key, node) in node.map(reader.findings)? {
            let Some(side) = reader.side(&key.name, key.span) else { continue };
            lines.extend(K::read(key, node, reader).map(|value| (side, value)));
        }
        Some(lines)
    }

    fn schema(sides: Sides<'_>) -> Value {
        by_side(sides, NEEDED, &K::schema(sides))
    }
}
