//! The table of all diagnostics: number, slug, and the rule in one line.
//!
//! Numbers are never reused, even after a rule is removed, because people search for them. Ranges:
//! `Y0xx` for YAML and the form of any file, `C0xx` for contracts, `M0xx` to `M2xx` for mappings,
//! `G0xx` for the configuration.

use std::fmt;

/// Declares [`Code`] and its table from one list, so that every rule has an explanation.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $number:literal $slug:literal: $rule:literal;)*) => {
        /// The rule that a finding refers to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $rule] $(#[$doc])* $name,)*
        }

        impl Code {
            /// Every rule, in the order of the table.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// Returns the stable number, such as `Y005`.
            pub fn number(self) -> &'static str {
                match self { $(Code::$name => $number,)* }
            }

            /// Returns the stable name, such as `duplicate-key`.
            pub fn slug(self) -> &'static str {
                match self { $(Code::$name => $slug,)* }
            }

            /// Returns the rule in one line, for listings of all rules.
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
    Anchor "Y006" "anchor": "An alias repeats a value that has an anchor before it; merge keys are not read.";
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
    OpenApiVersion "C001" "openapi-version": "A contract is a document of OpenAPI 3.0, 3.1 or 3.2, or of Swagger 2.0.";
    UnknownReference "C002" "unknown-reference": "A `$ref` leads to a place in the document, or in a file beside it.";
    ReferenceForm "C003" "reference-form": "A `$ref` leads to a file of the pack.";
    ReferenceCycle "C004" "reference-cycle": "A `$ref` leads to a type in the end.";
    OutsideSubset "C005" "outside-subset": "A contract says what its types show; what only narrows them is not read.";
    Alternatives "C006" "alternatives": "Alternatives are told apart by kind, by a constant, or by a field of their own.";
    PathForm "C007" "path-form": "A path is made of text and `{variables}`, with text between two of them.";
    PathVariable "C008" "path-variable": "Path parameters and the variables of the path are the same.";
    StatusForm "C009" "status-form": "A response is keyed by a status, a class such as `2XX`, or `default`.";
    ParameterForm "C010" "parameter-form": "A parameter has a name, and is in path, query, header or cookie.";
    EnumValue "C013" "enum-value": "Values of an enumeration are scalars of its type, each given once.";
    SameOperation "C014" "same-operation": "Two operations differ by more than names of path variables.";
    SameParameter "C015" "same-parameter": "A parameter is given once per operation.";

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
    ExampleBreach "M263" "example-breach": "The messages of an example are what the contracts promise.";
    ExampleForm "M012" "example-form": "An example is a request and its answer, or a value on both sides.";
    NoManifest "M014" "no-manifest": "A pack has a `pack.yaml`.";
    NoContract "M015" "no-contract": "The contracts that a pack names are among its files.";
    UnknownFragment "M016" "unknown-fragment": "A fragment is declared under `fragments`.";
    FragmentArguments "M017" "fragment-arguments": "A use gives a fragment the arguments that it takes.";
    FragmentUse "M018" "fragment-use": "A fragment is used by name, where a block like its own stands.";
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
    LeadsToItself "M028" "leads-to-itself": "A shape or a fragment does not lead to itself, and does not lie within too many others.";
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
    OthersForm "M042" "others-form": "`'*'` stands for all members that nothing names, and goes to `'*'`.";
    AlternativeShapes "M043" "alternative-shapes": "A shape over alternatives names one shape for each, and has no lines.";
    ShapeElse "M255" "shape-else": "What a shape does not take is an error, a literal, or left out of the list that it stands in.";
    NothingTurnedAway "M256" "nothing-turned-away": "`else:` of a shape is for what one of its conversions does not take.";

    // Routes.
    OperationForm "M100" "operation-form": "An operation is written as its method and its path.";
    UnknownOperation "M101" "unknown-operation": "An operation is one of the contract's.";
    Unanswered "M102" "unanswered": "Every operation of both contracts is answered by a route.";
    AnsweredTwice "M103" "answered-twice": "An operation is answered by one route.";
    PathVariables "M104" "path-variables": "Every variable of a called path is filled from one of the served path, or from a place.";
    QueryParameter "M105" "query-parameter": "Every query parameter is passed to one that the called operation has, or dropped.";
    HeaderName "M106" "header-name": "Header fields that are mapped are the service's, not the connection's or the gateway's.";
    UnknownStatus "M107" "unknown-status": "A status that is answered or expected is in the contract.";
    StatusUncovered "M108" "status-uncovered": "Every success of the called operation is mapped, once.";
    BusinessError "M109" "business-error": "A 5xx that only some operations list is declared as an answer.";
    BodyMissing "M110" "body-missing": "A body that the contract wants is made.";
    BodyUnexpected "M111" "body-unexpected": "A body is made only where the contract has one.";
    OpaqueBody "M115" "opaque-body": "A body that is no JSON is kept as it is, or the operation is refused.";
    MediaApart "M220" "media-apart": "What is passed as it comes is of media types that both sides have.";
    MediaLine "M221" "media-line": "A media type that is renamed is one of a body that is passed, in its contract.";
    MediaFormat "M222" "media-format": "A media type whose format the pack declares is one of a contract, and its name does not tell the format.";
    FilePart "M230" "file-part": "A part that is a file is kept, renamed or dropped, and nothing else becomes one.";
    PartsObject "M231" "parts-object": "A body of parts is one object, whose members are its parts.";
    XmlForm "M232" "xml-form": "A body that is mapped to or from XML is of types that XML can represent.";
    VerdictSaid "M112" "verdict": "The verdict that a route declares is the one that follows from it.";
    RefusalPolicy "M113" "refusal-policy": "A refusal is answered with the status of an error, and ends on a day that there is.";
    ApproximationName "M114" "approximation-name": "An approximation has a name where answers are marked with it.";

    RequestHeader "M260" "request-header": "A header field of requests that both sides declare is passed, or has a line that says what becomes of it.";
    AnswerHeader "M261" "answer-header": "A header field of answers that both sides declare is passed, or has a line that says what becomes of it.";
    Cookie "M262" "cookie": "A cookie that a called operation requires is sent, and no cookie of a client or service is read.";

    ParameterStyle "M175" "parameter-style": "A list goes to a list, and the fields of an object to those of an object.";
    ConstantParameter "M176" "constant-parameter": "A constant parameter has a value that its contract takes.";
    Lookup "M177" "lookup": "What is looked up is looked up in a list of objects, by a member that can be equal.";

    // Paths and values.
    PathSyntax "M120" "path-syntax": "A path is JSONPath as RFC 9535 has it, without `..`.";
    PathUnknown "M121" "path-unknown": "A path leads to a place that the contracts know.";
    PathSingular "M122" "path-singular": "Where one value is needed, a path leads to one place.";
    UsedBefore "M123" "used-before": "A result is read after the step that makes it.";
    NeverEqual "M124" "never-equal": "What is compared can be equal.";
    ScalarNeeded "M125" "scalar-needed": "Parts of addresses, query parameters and header fields are scalars.";
    ValueType "M126" "value-type": "A value is of the type of its place.";
    MissingField "M127" "missing-field": "Required fields of what is made are there.";
    ShapePlace "M128" "shape-place": "A shape makes a value of one side out of a value of the other.";

    // Steps, conditions and tables.
    StepName "M140" "step-name": "A result has a name of its own.";
    Unread "M141" "unread": "What is read, filled or passed in has somebody who uses it.";
    OnFail "M142" "on-fail": "A call after a write says what follows when it fails.";
    Resume "M143" "resume": "Only replies of writes are remembered.";
    Paging "M144" "paging": "Only lists that the contract pages are read page by page.";
    CallBound "M145" "call-bound": "The number of calls per request is bounded.";
    FanOut "M152" "fan-out": "A call for each element has a bound and a name, and takes the elements of a reply, or of a list that was made.";
    ResumeKey "M282" "resume-key": "What of the request a remembered write is made of is in its key.";
    BoundUnsaid "M280" "bound-unsaid": "A bound on elements or pages says what follows beyond it.";
    WriteBeyond "M281" "write-beyond": "A write for each element is refused beyond its bound.";
    Unchecked "M153" "unchecked": "What is read of a request after a write, becomes a text or decides is checked before.";
    RefusedLate "M154" "refused-late": "A client is turned away before the first write, or for what a reply has shown.";
    Archive "M155" "archive": "An archive is declared, kept into and looked into, with values of its type.";
    KeepLate "M156" "keep-late": "What is kept is kept by an operation that writes, before any call that does.";
    Harvest "M157" "harvest": "A harvest reads the pages of a list and keeps what it finds.";
    PollForm "M248" "poll-form": "A call that waits for something to end has a name, a condition, an interval and a bound.";
    PollWrite "M249" "poll-write": "Only a call that reads is made again until something holds.";
    PollTime "M250" "poll-time": "What is waited for is asked for in an interval, within a time, by a bounded number of calls.";
    PollBlind "M251" "poll-blind": "What ends the waiting is looked for in the call's own reply.";
    PollSettled "M252" "poll-settled": "A condition that is waited for can hold, and can fail to hold.";
    PollForgotten "M253" "poll-forgotten": "A write that is waited for is remembered, or harmless to repeat.";
    ConditionForm "M146" "condition-form": "A condition looks at a place that can decide it.";
    CellValue "M147" "cell-value": "A cell asks for a value that its column can have.";
    TableGap "M148" "table-gap": "Every combination of a table's columns has a row.";
    RowUnreachable "M149" "row-unreachable": "Every row of a table decides something.";
    TableSize "M150" "table-size": "A table can be read by people and looked through.";
    Outcome "M151" "outcome": "Rows lead to outcomes, and every outcome has a row.";

    // The pack as a whole.
    PackForm "M160" "pack-form": "Sides, credentials and scopes of a pack can work.";
    SettingForm "M161" "setting-form": "Settings have dotted names, and defaults of their type.";
    ErrorForm "M162" "error-form": "Errors of the gateway are of each side's error type and of known kinds.";
    Language "M164" "language": "Texts are in the languages of the pack.";
    MissingText "M165" "missing-text": "A reason has a text in every language, and must have one in the default language.";
    Placeholder "M166" "placeholder": "Placeholders of a reason are the same in all languages, and are given where it is used.";
    Comparison "M167" "comparison": "What is said about comparing is said of types and members of the contracts.";
    PartialConversion "M169" "partial-conversion": "A conversion takes every value that may come, or says what follows otherwise.";
    ReadBack "M168" "read-back": "What a write has changed is read back by a reading of its side, where the pack serves both.";

    EventForm "M191" "event-form": "Events have a side that sends them, a name at a place of theirs, and a key in their body.";
    UnknownEvent "M192" "unknown-event": "An event is a webhook of its side's contract.";
    EventUnanswered "M193" "event-unanswered": "Every event of the side that sends becomes one of the other's, or is dropped for a reason.";
    EventCorrelation "M240" "event-correlation": "Two events, one of each side, are the same by values that both have, within a time.";
    KeptLink "M241" "kept-link": "Links of an answer that is kept lead to the gateway, as the one to the next page does.";
    HostName "M242" "host-name": "A host of a side has a name of small letters, digits and dashes, and at least one operation.";
    HostServer "M243" "host-server": "A server that `hosts` names is one that the contract gives to operations.";
    HostTwice "M244" "host-twice": "An operation is answered by one host.";
    FailureForm "M190" "failure-form": "A failure is told by values that an answer of its side can have, and has the status of an error.";

    // The language, continued.
    QuotedWord "M200" "quoted-word": "A word that has a meaning is written without quotes, or as `{word: …}`.";
    ErrorsReworded "M201" "errors-reworded": "Errors of other types than `errors.types` keep their words where the served side promises the same.";

    PagedParameter "M210" "paged-parameter": "Pages are asked for by query parameters that the operation has.";
    PagedMember "M211" "paged-member": "What says something of pages is a member of the answer, of the type for it.";
    PagedKind "M212" "paged-kind": "Pages of a side are asked for by one thing: a number, an offset, a cursor, or a link that the page before gave.";
    PagedTold "M213" "paged-told": "What has to be known of pages, is told by the side that knows it.";
    PageSize "M214" "page-size": "How large a page is, is known wherever it is counted with.";
    LastPage "M215" "last-page": "After the last page clients are told so in a way that their contract has.";
    PagedTwice "M216" "paged-twice": "What `paging` says is not said a second time.";
    PagedCall "M217" "paged-call": "One call of a route, a reading, reads its pages.";
    PageBound "M218" "page-bound": "A bound on pages stands where they are read one after the other.";

    // Configuration.
    Reference "G001" "reference": "`${NAME}` and `file:PATH` lead to a value.";
    ValueForm "G002" "value-form": "A value is written as its key needs it: an address, a size, a duration, a URL, a date.";
    Conflict "G003" "conflict": "Keys of the configuration agree with one another.";
    AdminExposed "G004" "admin-exposed": "Where others can reach the admin port, it asks for a token.";
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
            assert!(
                ["Y0", "C0", "M0", "M1", "M2", "G0"].iter().any(|range| number.starts_with(range)),
                "{number}"
            );
            assert!(code.rule().ends_with('.'), "{number}: the rule is a sentence");
        }
    }
}
