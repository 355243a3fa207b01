//! The register of all diagnostics: number, slug and the rule in one line.
//!
//! A number is never used again for another rule, also after its rule is gone: people search for it.
//! Ranges: `Y0xx` YAML and the form of any file, `C0xx` contracts, `M0xx` and `M1xx` mappings, `G0xx`
//! configuration.

use std::fmt;

/// Declares [`Code`] and its table from one list, so that no rule can exist without its explanation.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $number:literal $slug:literal: $rule:literal;)*) => {
        /// Which rule a finding is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $rule] $(#[$doc])* $name,)*
        }

        impl Code {
            /// Every rule, in the order of the register.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The stable number, such as `Y005`.
            pub fn number(self) -> &'static str {
                match self { $(Code::$name => $number,)* }
            }

            /// The stable name, such as `duplicate-key`.
            pub fn slug(self) -> &'static str {
                match self { $(Code::$name => $slug,)* }
            }

            /// The rule in one line, for listings of all rules.
            pub fn rule(self) -> &'static str {
                match self { $(Code::$name => $rule,)* }
            }
        }
    };
}

codes! {
    // The text of a file.
    YamlSyntax "Y001" "yaml-syntax": "The text must be YAML.";
    NotUtf8 "Y002" "not-utf8": "Files are UTF-8.";
    EmptyFile "Y003" "empty-file": "A file has content.";
    TooLarge "Y004" "too-large": "A file stays within the bounds of size, nesting and number of values.";
    DuplicateKey "Y005" "duplicate-key": "A key is given once.";
    Anchor "Y006" "anchor": "Values are written out: anchors, aliases and merge keys are not read.";
    Tag "Y007" "tag": "Values carry no tags.";
    SeveralDocuments "Y008" "several-documents": "A file holds one document.";
    AmbiguousBoolean "Y009" "ambiguous-boolean": "Words that some YAML readers take for booleans are quoted.";
    AmbiguousNumber "Y010" "ambiguous-number": "Numbers are written as in JSON; all else that looks like a number is quoted.";
    KeyKind "Y011" "key-kind": "A key is a plain or quoted text.";

    // The form of a file: keys and kinds of values, the same for every reader.
    UnknownKey "Y020" "unknown-key": "Only keys that mean something are written.";
    MissingKey "Y021" "missing-key": "Keys that are needed are there.";
    WrongKind "Y022" "wrong-kind": "A value is of the kind that its key needs.";
    UnknownWord "Y023" "unknown-word": "Where a value is one of a few words, it is one of these.";
    OutOfRange "Y024" "out-of-range": "A number lies within what its key allows.";

    // Contracts.
    OpenApiVersion "C001" "openapi-version": "A contract is an OpenAPI 3.1 document.";
    UnknownReference "C002" "unknown-reference": "A `$ref` leads to a component of the same file.";
    ReferenceForm "C003" "reference-form": "A `$ref` is written `#/components/<kind>/<name>`, and nothing beside it changes the type.";
    ReferenceCycle "C004" "reference-cycle": "A `$ref` leads to a type in the end.";
    OutsideSubset "C005" "outside-subset": "A contract uses the documented part of OpenAPI.";
    Alternatives "C006" "alternatives": "Alternatives of `oneOf` and `anyOf` differ by their JSON type.";
    PathForm "C007" "path-form": "A path is made of literal segments and of segments that are one `{variable}`.";
    PathVariable "C008" "path-variable": "Path parameters and the variables of the path are the same.";
    StatusForm "C009" "status-form": "A response is keyed by a status, a class such as `2XX`, or `default`.";
    ParameterForm "C010" "parameter-form": "A parameter is in path, query or header; path parameters are required.";
    MediaType "C011" "media-type": "Bodies are application/json.";
    RequiredField "C012" "required-field": "`required` names fields that are among the properties.";
    EnumValue "C013" "enum-value": "Values of an enumeration are scalars of its type, each given once.";
    SameOperation "C014" "same-operation": "Two operations differ by more than names of path variables.";
    SameParameter "C015" "same-parameter": "A parameter is given once per operation.";
    KeywordKind "C016" "keyword-kind": "A keyword stands beside the `type` that it speaks about.";

    // The form of a pack.
    MappingVersion "M001" "mapping-version": "A mapping file says which version of the language it is written in.";
    UnknownSide "M002" "unknown-side": "A side is one of the two that the pack declares.";
    MissingSide "M003" "missing-side": "What is said per side is said for both.";
    PlaceForm "M004" "place-form": "A place is a member name or a JSONPath of names.";
    StatusWord "M005" "status-word": "A status is a number from 200 to 599, or a class such as `2xx` where one is allowed.";
    BlockEnd "M006" "block-end": "Steps end in exactly one answer, refusal or decision.";
    OneOfKeys "M007" "one-of-keys": "Where one of several keys says what a thing is, exactly one is given.";
    ExprForm "M008" "expr-form": "A value form is one of the closed list.";
    ShapeUse "M009" "shape-use": "A shape is used by name, alone or as the element of a list.";
    RowLength "M010" "row-length": "A row of a table has a cell for each column, and an outcome.";
    FillForm "M011" "fill-form": "A one-sided field is filled by one of the closed list of forms.";
    ExampleForm "M012" "example-form": "An example is a request and its answer, or a value on both sides.";
    NoManifest "M014" "no-manifest": "A pack has a `pack.yaml`.";
    NoContract "M015" "no-contract": "The contracts that a pack names are among its files.";
    ConfigPath "M013" "config-path": "A setting is written `$.config.<name>`.";

    // Names and shapes.
    DeclaredTwice "M020" "declared-twice": "A name is declared once.";
    Unused "M021" "unused": "What is declared is used.";
    UnknownSetting "M022" "unknown-setting": "A setting is declared in `pack.yaml`.";
    UnknownReason "M023" "unknown-reason": "A reason is declared under `reasons`.";
    SettingType "M024" "setting-type": "A setting is a boolean, an integer or a string, and fits where it is used.";
    UnknownShape "M025" "unknown-shape": "A shape is declared under `shapes`.";
    UnknownType "M026" "unknown-type": "`of` names schemas of the contracts.";
    ShapeType "M027" "shape-type": "A shape relates two objects, and is used on values of its types.";
    LeadsToItself "M028" "leads-to-itself": "A shape does not contain itself and is not like itself.";
    UnknownField "M029" "unknown-field": "A line names fields of the contract.";
    ClaimedTwice "M030" "claimed-twice": "A field has one line.";
    Unaccounted "M031" "unaccounted": "Every field of both types has a line.";
    EmptyRest "M032" "empty-rest": "`rest` stands for at least one field.";
    Types "M033" "types": "What is copied fits the type of its target, null included.";
    MayBeAbsent "M034" "may-be-absent": "A required field has a source that is always there, or a default.";
    LiteralType "M035" "literal-type": "A literal fits the type of its field.";
    NoSource "M036" "no-source": "A required field of what is built has a source.";
    RefuseWithin "M037" "refuse-within": "Only members of the body itself refuse a call.";
    UnknownConversion "M038" "unknown-conversion": "A conversion is one of the closed list.";
    ConversionArguments "M039" "conversion-arguments": "A conversion has the arguments that it takes.";
    ConversionTypes "M040" "conversion-types": "A conversion takes what its source may be and gives what its target takes.";
    ByKindGap "M041" "by-kind-gap": "`by_kind` has a place for every kind of its field.";

    // Configuration.
    Reference "G001" "reference": "`${NAME}` and `file:PATH` lead to a value.";
    ValueForm "G002" "value-form": "A value is written as its key needs it: an address, a size, a duration, a URL, a date.";
    Conflict "G003" "conflict": "Keys of the configuration agree with one another.";
    AdminExposed "G004" "admin-exposed": "Where others can reach the admin port, it asks for a token.";
    NotAvailable "G005" "not-available": "Only what this version can do is asked for.";
    PackMismatch "G006" "pack-mismatch": "The configuration names sides, operations and settings that its pack has.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::Code;
    use std::collections::HashSet;

    #[test]
    fn no_number_and_no_slug_stands_for_two_rules() {
        let numbers: HashSet<_> = Code::ALL.iter().map(|c| c.number()).collect();
        let slugs: HashSet<_> = Code::ALL.iter().map(|c| c.slug()).collect();
        assert_eq!(numbers.len(), Code::ALL.len());
        assert_eq!(slugs.len(), Code::ALL.len());
    }

    #[test]
    fn numbers_keep_to_their_form_and_ranges() {
        for code in Code::ALL {
            let number = code.number();
            assert_eq!(number.len(), 4, "{number}");
            assert!(number[1..].bytes().all(|b| b.is_ascii_digit()), "{number}");
            assert!(["Y0", "C0", "M0", "M1", "G0"].iter().any(|range| number.starts_with(range)), "{number}");
            assert!(code.rule().ends_with('.'), "{number}: the rule is a sentence");
        }
    }
}
