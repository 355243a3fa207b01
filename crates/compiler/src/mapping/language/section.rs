//! Declares the maps of the language: [`section`] derives the struct of the syntax tree, its
//! reader, the table of known keys and the JSON Schema from one list of keys.

use super::SyntaxReader;
use crate::mapping::schema::Sides;
use crate::yaml::{Fields, Key, KeyEntry, Keys, Node};
use serde_json::{Map, Value, json};

/// A form of value: how it is read, and its JSON Schema.
pub(crate) trait Read {
    /// The value in the syntax tree.
    type Output;

    /// Reads a value. Reports a mistake and returns `None`. `key` is the key that the value, or the
    /// list that contains it, is under.
    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<Self::Output>;

    /// Returns the schema of the form.
    fn schema(sides: Sides<'_>) -> Value;
}

/// A form that is a map with known keys, which other maps may contain.
pub(crate) trait Section: Read {
    /// The names of the keys.
    const ENTRIES: &'static [KeyEntry];

    /// Reads the keys from a map that may have others, too. `name` is the key of the map.
    fn read_fields(name: &Key, fields: &Fields<'_>, reader: &mut SyntaxReader<'_>) -> Option<Self::Output>;

    /// Adds the schemas of the keys.
    fn properties(sides: Sides<'_>, properties: &mut Map<String, Value>);
}

/// Declares a map with known keys. The documentation of a key is its description in the schema.
///
/// Each key has a mode:
/// - `required`: without a valid value, the section is dropped.
/// - `lenient`: must be present; `None` without a valid value.
/// - `filled`: must be present; the default without a valid value.
/// - `optional`: `None` without a valid value.
/// - `strict`: `None` if it is absent; an invalid value drops the section.
/// - `default`: the default without a valid value, either of the type or of the span of the map.
///
/// Other fields are no keys: `part` contains further keys of the same map, `name` is the key that
/// the section is under, `at` is the span of the section, `at_name` the span of its name, and
/// `span_of` the span of the value of a key.
///
/// `into` converts the keys to another part of the syntax tree; the function may report further
/// mistakes.
///
/// `defines` moves the schema to this name under `$defs`. `with` names a function that adds rules
/// between keys to the schema.
macro_rules! section {
    (
        $(#[$meta:meta])*
        $name:ident is $what:literal $(, defines $definition:literal)? $(, with $rules:path)? {
            $(
                $(#[doc = $doc:literal])*
                $mode:ident $field:ident $(($key:literal))?: $kind:ty $(= $default:expr)?,
            )*
        }
        $( into $output:ty: $convert:expr )?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $( $(#[doc = $doc])* pub $field: section!(@type $mode $kind), )*
        }

        impl crate::mapping::language::section::Section for $name {
            const ENTRIES: &'static [crate::yaml::KeyEntry] =
                &[$( section!(@entry $mode $kind, section!(@key $field $($key)?)), )*];

            fn read_fields(
                name: &crate::yaml::Key,
                fields: &crate::yaml::Fields<'_>,
                reader: &mut crate::mapping::language::SyntaxReader<'_>,
            ) -> Option<Self::Output> {
                // Not every section reads its name.
                let _ = name;
                let convert: fn(
                    $name,
                    &crate::yaml::Fields<'_>,
                    &mut crate::mapping::language::SyntaxReader<'_>,
                ) -> Option<Self::Output> = section!(@convert $($convert)?);
                $(
                    let $field = section!(
                        @read $mode $kind, section!(@key $field $($key)?), name, fields, reader $(, $default)?
                    );
                )*
                convert($name { $( $field: section!(@done $mode $field), )* }, fields, reader)
            }

            fn properties(
                sides: crate::mapping::schema::Sides<'_>,
                properties: &mut serde_json::Map<String, serde_json::Value>,
            ) {
                $(
                    section!(@property $mode $kind, section!(@key $field $($key)?), [$($doc),*], sides, properties);
                )*
            }
        }

        impl $name {
            pub(in crate::mapping) const KEYS: crate::yaml::Keys =
                crate::yaml::Keys { what: $what, entries: <Self as crate::mapping::language::section::Section>::ENTRIES };

            /// Returns the schema of the map.
            pub(in crate::mapping) fn definition(
                sides: crate::mapping::schema::Sides<'_>,
            ) -> serde_json::Value {
                #[allow(unused_mut, reason = "most sections have no further rules")]
                let mut schema =
                    crate::mapping::language::section::object(&Self::KEYS, |properties| {
                        <Self as crate::mapping::language::section::Section>::properties(sides, properties)
                    });
                $( $rules(&mut schema); )?
                schema
            }
        }

        impl crate::mapping::language::section::Read for $name {
            type Output = section!(@output $name $(, $output)?);

            fn read(
                key: &crate::yaml::Key,
                node: &crate::yaml::Node,
                reader: &mut crate::mapping::language::SyntaxReader<'_>,
            ) -> Option<Self::Output> {
                let fields = crate::yaml::Fields::parse(node, &Self::KEYS, reader.findings)?;
                <Self as crate::mapping::language::section::Section>::read_fields(key, &fields, reader)
            }

            #[allow(unreachable_code, unused_variables, reason = "a definition is a reference")]
            fn schema(sides: crate::mapping::schema::Sides<'_>) -> serde_json::Value {
                $( return crate::mapping::schema::reference($definition); )?
                Self::definition(sides)
            }
        }
    };

    (@output $name:ident) => { $name };
    (@output $name:ident, $output:ty) => { $output };

    (@convert) => { |section, _, _| Some(section) };
    (@convert $convert:expr) => { $convert };

    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };

    (@type required $kind:ty) => { <$kind as crate::mapping::language::section::Read>::Output };
    (@type filled $kind:ty) => { <$kind as crate::mapping::language::section::Read>::Output };
    (@type default $kind:ty) => { <$kind as crate::mapping::language::section::Read>::Output };
    (@type lenient $kind:ty) => { Option<<$kind as crate::mapping::language::section::Read>::Output> };
    (@type optional $kind:ty) => { Option<<$kind as crate::mapping::language::section::Read>::Output> };
    (@type strict $kind:ty) => { Option<<$kind as crate::mapping::language::section::Read>::Output> };
    (@type part $kind:ty) => { <$kind as crate::mapping::language::section::Read>::Output };
    (@type $mode:ident $kind:ty) => { $kind };

    (@entry required $kind:ty, $key:expr) => { crate::yaml::KeyEntry::required($key) };
    (@entry lenient $kind:ty, $key:expr) => { crate::yaml::KeyEntry::required($key) };
    (@entry filled $kind:ty, $key:expr) => { crate::yaml::KeyEntry::required($key) };
    (@entry optional $kind:ty, $key:expr) => { crate::yaml::KeyEntry::optional($key) };
    (@entry strict $kind:ty, $key:expr) => { crate::yaml::KeyEntry::optional($key) };
    (@entry default $kind:ty, $key:expr) => { crate::yaml::KeyEntry::optional($key) };
    (@entry part $kind:ty, $key:expr) => { crate::yaml::KeyEntry::Part(<$kind as crate::mapping::language::section::Section>::ENTRIES) };
    (@entry $mode:ident $kind:ty, $key:expr) => { crate::yaml::KeyEntry::Part(&[]) };

    (@read name $kind:ty, $key:expr, $name:ident, $fields:ident, $reader:ident) => {
        crate::mapping::language::SyntaxReader::key($name)
    };
    (@read at $kind:ty, $key:expr, $name:ident, $fields:ident, $reader:ident) => { $fields.node.span };
    (@read span_of $kind:ty, $key:expr, $name:ident, $fields:ident, $reader:ident) => {
        $fields.get($key).map_or($fields.node.span, |value| value.span)
    };
    (@read at_name $kind:ty, $key:expr, $name:ident, $fields:ident, $reader:ident) => { $name.span };
    (@read part $kind:ty, $key:expr, $name:ident, $fields:ident, $reader:ident) => {
        <$kind as crate::mapping::language::section::Section>::read_fields($name, $fields, $reader)
    };
    (@read strict $kind:ty, $key:expr, $name:ident, $fields:ident, $reader:ident) => {
        match $fields.entry($key) {
            None => Some(None),
            Some((key, node)) => <$kind as crate::mapping::language::section::Read>::read(key, node, $reader).map(Some),
        }
    };
    (@read default $kind:ty, $key:expr, $name:ident, $fields:ident, $reader:ident, $default:expr) => {{
        let default: fn(crate::diagnostic::Span) -> _ = $default;
        section!(@read optional $kind, $key, $name, $fields, $reader)
            .unwrap_or_else(|| default($fields.node.span))
    }};
    (@read default $kind:ty, $key:expr, $name:ident, $fields:ident, $reader:ident) => {
        section!(@read optional $kind, $key, $name, $fields, $reader).unwrap_or_default()
    };
    (@read filled $kind:ty, $key:expr, $name:ident, $fields:ident, $reader:ident) => {
        section!(@read optional $kind, $key, $name, $fields, $reader).unwrap_or_default()
    };
    (@read $mode:ident $kind:ty, $key:expr, $name:ident, $fields:ident, $reader:ident) => {
        $fields
            .entry($key)
            .and_then(|(key, node)| <$kind as crate::mapping::language::section::Read>::read(key, node, $reader))
    };

    // All keys are read before a missing one drops the section, so that all mistakes are reported.
    (@done required $field:ident) => { $field? };
    (@done strict $field:ident) => { $field? };
    (@done part $field:ident) => { $field? };
    (@done $mode:ident $field:ident) => { $field };

    (@property name $kind:ty, $key:expr, [$($doc:literal),*], $sides:ident, $properties:ident) => {};
    (@property span_of $kind:ty, $key:expr, [$($doc:literal),*], $sides:ident, $properties:ident) => {};
    (@property at $kind:ty, $key:expr, [$($doc:literal),*], $sides:ident, $properties:ident) => {};
    (@property at_name $kind:ty, $key:expr, [$($doc:literal),*], $sides:ident, $properties:ident) => {};
    (@property part $kind:ty, $key:expr, [$($doc:literal),*], $sides:ident, $properties:ident) => {
        <$kind as crate::mapping::language::section::Section>::properties($sides, $properties);
    };
    (@property $mode:ident $kind:ty, $key:expr, [$($doc:literal),*], $sides:ident, $properties:ident) => {
        $properties.insert(
            $key.to_owned(),
            crate::yaml::described(<$kind as crate::mapping::language::section::Read>::schema($sides), &[$($doc),*]),
        );
    };
}
pub(super) use section;

/// Returns the schema of a map with these keys.
pub(super) fn object(keys: &Keys, add_properties: impl FnOnce(&mut Map<String, Value>)) -> Value {
    let mut properties = Map::new();
    add_properties(&mut properties);
    let mut object = json!({"type": "object", "additionalProperties": false, "properties": properties});
    let required: Vec<&str> =
        keys.all().into_iter().filter(|(_, required)| *required).map(|(name, _)| name).collect();
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}
