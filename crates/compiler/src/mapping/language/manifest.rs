//! `pack.yaml`.

use super::kinds::{
    Alternatives, Anything, BothSides, BySide, Count, EachSide, EntriesOf, LinesBySide, ListOf, MapOf, Place,
    Status, Text, kinds, word_kinds,
};
use super::section::{Read, section};
use super::{EventSidesKeys, RefusePolicyDecl, SideRef, Spanned, SyntaxReader};
use crate::diagnostic::{Findings, Span};
use crate::mapping::faults;
use crate::mapping::schema::{Sides, by_side, list_of, reference, text, words};
use crate::yaml::{Fields, Key, Kind, Node};
use serde_json::{Value, json};
use switchback_plan::{
    BasicPart, BodyForm, ClientAuth, GATEWAY_ERRORS, RefreshExtra, Scheme, SettingKind, TokenRequests,
};

/// Reads `pack.yaml`. Returns `None` if the name, the sides, the contracts or the error format
/// cannot be read.
pub(in crate::mapping) fn manifest(root: &Node, findings: &mut Findings) -> Option<Manifest> {
    let key = Key { name: String::new(), span: root.span };
    let unnamed = || Spanned { value: String::new(), span: root.span };
    let mut reader = SyntaxReader { sides: [unnamed(), unnamed()], findings };
    // The keys of other sections are names of sides, so no other section can be read without them.
    let mut discarded = Findings::new();
    let mut names = SyntaxReader { sides: reader.sides.clone(), findings: &mut discarded };
    match root.get("sides").and_then(|sides| SideNames::read(&key, sides, &mut names)) {
        Some(sides) => reader.sides = sides,
        None => {
            let fields = Fields::parse(root, &Manifest::KEYS, reader.findings)?;
            SideNames::read(&key, fields.get("sides")?, &mut reader);
            return None;
        }
    }
    Manifest::read(&key, root, &mut reader)
}

section! {
    /// `pack.yaml`.
    Manifest is "a pack" {
        /// Name of the pack.
        required name("pack"): Text,
        /// The names of the two API versions.
        required sides: SideNames,
        /// The OpenAPI document of each side, as a path within the pack.
        required contracts: BothSides<Text>,
        /// How each side carries its token.
        filled credentials: BySide<CredentialDecl, 2>,
        /// Languages of the reasons; the first is the default.
        filled languages: ListOf<Text>,
        /// Format of errors: those of the gateway and of the service.
        required errors: Errors,
        /// Policy for refused operations. Routes can override it.
        filled refuse: RefusePolicyDecl,
        /// Path prefix that selects a client's secondary account, with one `{variable}`.
        default scope: BySide<Text, 0>,
        /// Hosts of a side besides the one at its own address, with the operations that each
        /// answers: `GET /files/{id}`,
        /// or a server as the contract gives it to operations.
        default hosts: EachSide<EntriesOf<HostDecl>>,
        /// Header fields and query parameters of every call to a side. Routes can override them.
        default send: EachSide<Sent>,
        /// Formats of media types whose names do not tell them: `{application/x-amz-json-1.1: json}`.
        default media: MapOf<MediaFormatKind>,
        /// The sides that clients speak; the default is both. Operations of another side need no
        /// route.
        default serves: ServedSides = |_| [true, true],
        /// Policy for operations without a route: `refuse`, `forward` to the side's own service, or
        /// `keep` unchanged.
        default rest: RestBySide,
        /// Operations that are equal on both sides are pairs without being written.
        optional identical: Identical,
        /// How lists are paged, for `pages:` of calls.
        optional paging: PagingDecl,
        /// Header fields that the gateway adds to answers.
        default headers: OwnHeaders,
        /// Settings that the pack reads under `$.config`. The operator sets their values.
        default settings: EntriesOf<SettingDecl>,
        /// Rules for comparing two answers in a dual run.
        default compare: Compare,
        /// The side that sends events, and the places of their names.
        optional events: EventSidesKeys,
        /// Value of a side that tables write for values without a row, if the type of the place
        /// accepts it.
        default unknown_values: BySide<Anything, 0>,
        at span: Span,
    }
}

section! {
    /// `sides: {old: v2, new: v3}`
    SideNames is "`sides`" {
        /// The retired side.
        required old: Text,
        /// The side that replaces it.
        required new: Text,
    }
    into [Spanned<String>; 2]: |sides, _, _| Some([sides.old, sides.new])
}

kinds! {
    /// `serves: [v1]`
    ServedSides -> [bool; 2], |key, node, reader| {
        let mut served = [false, false];
        for name in ListOf::<Text>::read(key, node, reader)? {
            if let Some(side) = reader.side(&name.value, name.span) {
                served[side.side] = true;
            }
        }
        // Either the list is empty, or its names are unknown and have been reported.
        (served != [false, false]).then_some(served)
    }, |_| list_of(&text());
    /// `identical: keep`
    Identical -> Span, |_, node, reader| node.word(&["keep"], reader.findings).map(|_| node.span), |_| words(&["keep"]);
    /// One word for both sides, or `{v1: forward, v2: refuse}`.
    RestBySide -> [Option<Spanned<RestWord>>; 2], |key, node, reader| {
        if node.as_map().is_some() {
            return BySide::<RestKind, 0>::read(key, node, reader);
        }
        let both = RestKind::read(key, node, reader);
        Some([both.clone(), both])
    }, |sides| json!({"anyOf": [RestKind::schema(sides), by_side(sides, 0, &RestKind::schema(sides))]});
}

word_kinds! {
    /// The policy for operations without a route.
    RestKind -> RestWord {
        "refuse" => RestWord::Refuse,
        "forward" => RestWord::Forward,
        "keep" => RestWord::Keep,
    }
}

word_kinds! {
    /// The format of a media type.
    MediaFormatKind -> MediaFormat {
        "json" => MediaFormat::Json,
    }
}

/// The format of a media type that a pack declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaFormat {
    Json,
}

/// Policy for operations without a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestWord {
    Refuse,
    /// Forward to the service of the client's own side, while it is available.
    Forward,
    /// Pass unchanged to the equal operation of the other side. An operation without one is an
    /// error.
    Keep,
}

/// An additional host of a side, at an address other than the side's own.
#[derive(Clone, Debug)]
pub(crate) struct HostDecl {
    pub name: Spanned<String>,
    /// Operation keys, and server URLs that the contract assigns to operations.
    pub answers: Vec<Spanned<String>>,
}

impl Read for HostDecl {
    type Output = HostDecl;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<HostDecl> {
        let answers = ListOf::<Text>::read(key, node, reader).unwrap_or_default();
        Some(HostDecl { name: SyntaxReader::key(key), answers })
    }

    fn schema(sides: Sides<'_>) -> Value {
        ListOf::<Text>::schema(sides)
    }
}

section! {
    /// How a side carries its token.
    CredentialDecl is "a credential" {
        /// Places that a client's token is taken from; the first that is there wins.
        required read: Carriers,
        /// Place that a token is sent in; or a list of header fields, all of which carry it.
        required send: SendCarriers,
        /// Authentication scheme before the token, such as `Bearer`; `none` for the token alone.
        optional scheme: Text,
        /// Header fields that every call to the side carries.
        default headers: MapOf<Text>,
        /// Form of token requests to the authorization server. The configuration can override it.
        default tokens("oauth"): TokensDecl,
        at span: Span,
    }
}

section! {
    /// Requests to the authorization server.
    #[derive(Default)]
    TokensDecl is "`oauth`" {
        /// The form of the body; the default is `form`.
        optional body: BodyForm,
        /// Client authentication: `basic`, `post`, `none` or `private_key_jwt` (RFC 7591, section 2).
        optional client_auth: ClientAuth,
        /// Fields of a refresh in addition to the refresh token.
        optional refresh_sends: ListOf<RefreshExtra>,
    }
}

section! {
    /// A carrier in its long form.
    CarrierKeys is "a place of a token" {
        /// The header field; the default with `basic` is `authorization`.
        optional header: Text,
        /// The scheme in this field, instead of the side's.
        optional scheme: Text,
        /// The part of HTTP Basic that is the token: user, password or both.
        strict basic: BasicPart,
        /// A query parameter that is the token, instead of a header field.
        optional query: Text,
        /// A field of an urlencoded body that is the token, instead of a header field.
        optional form: Text,
        at span: Span,
    }
}

kinds! {
    /// A list of carriers. An error in one drops the list, so that no further finding reports an
    /// empty list.
    Carriers -> Vec<CarrierDecl>, |key, node, reader| {
        let all: Vec<_> = node.list(reader.findings)?.iter().map(|node| CarrierDecl::read(key, node, reader)).collect();
        all.into_iter().collect()
    }, ListOf::<CarrierDecl>::schema;
    /// One carrier, or a list of them.
    SendCarriers -> Vec<CarrierDecl>, |key, node, reader| match node.kind {
        Kind::Seq(_) => Carriers::read(key, node, reader),
        _ => CarrierDecl::read(key, node, reader).map(|one| vec![one]),
    }, |sides| json!({"anyOf": [CarrierDecl::schema(sides), Carriers::schema(sides)]});
    /// The value of a parameter of every call. It is sent as text, for which maps and null have no
    /// representation.
    ConstantValue -> Node, |_, node, reader| match node.kind {
        Kind::Map(_) | Kind::Null => {
            reader.findings.push(super::faults::constant_parameter(node.span));
            None
        }
        _ => Some(node.clone()),
    }, |_| json!({"type": ["string", "number", "boolean", "array"]});
}

/// `x-api-key`, `{header: authorization, scheme: Token}`, `{basic: user}`, `{query: api_key}` or
/// `{form: token}`.
#[derive(Clone, Debug)]
pub(crate) struct CarrierDecl {
    /// Name of the header, query parameter or form field.
    pub name: Spanned<String>,
    pub kind: CarrierKind,
}

#[derive(Clone, Debug)]
pub(crate) enum CarrierKind {
    /// A header with the side's `scheme`.
    Usual,
    /// A header with its own scheme.
    Scheme(Spanned<String>),
    /// A header with a scheme that has a word of its own in the manifest.
    Own(Scheme),
    Query,
    FormField,
}

impl Read for CarrierDecl {
    type Output = CarrierDecl;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<CarrierDecl> {
        if node.as_map().is_none() {
            return Some(CarrierDecl { name: reader.text(node)?, kind: CarrierKind::Usual });
        }
        let CarrierKeys { header, scheme, basic, query, form, span } = CarrierKeys::read(key, node, reader)?;
        let (name, kind) = match (header, scheme, basic, query, form) {
            (None, None, None, Some(name), None) if !name.value.is_empty() => (name, CarrierKind::Query),
            (None, None, None, None, Some(name)) if !name.value.is_empty() => (name, CarrierKind::FormField),
            (header, None, Some(part), None, None) => {
                let usual = || Spanned { value: "authorization".to_owned(), span };
                (header.unwrap_or_else(usual), CarrierKind::Own(Scheme::Basic(part)))
            }
            (Some(name), scheme, None, None, None) => {
                (name, scheme.map_or(CarrierKind::Usual, CarrierKind::Scheme))
            }
            _ => {
                reader.findings.push(faults::carrier(span));
                return None;
            }
        };
        Some(CarrierDecl { name, kind })
    }

    fn schema(sides: Sides<'_>) -> Value {
        json!({"anyOf": [text(), CarrierKeys::definition(sides)]})
    }
}

impl CarrierKind {
    pub(crate) fn is_header(&self) -> bool {
        !matches!(self, CarrierKind::Query | CarrierKind::FormField)
    }
}

impl From<&TokensDecl> for TokenRequests {
    fn from(tokens: &TokensDecl) -> TokenRequests {
        TokenRequests {
            body: tokens.body,
            client_auth: tokens.client_auth,
            refresh_sends: tokens.refresh_sends.clone(),
        }
    }
}

impl CredentialDecl {
    /// Returns the carriers for reading and for sending tokens.
    pub(crate) fn carriers(&self) -> impl Iterator<Item = &CarrierDecl> {
        self.read.iter().chain(&self.send)
    }

    /// Returns the headers that carry a token in either direction.
    pub(crate) fn headers_of_tokens(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.carriers().filter(|carrier| carrier.kind.is_header()).map(|carrier| &carrier.name)
    }
}

section! {
    /// Header fields and query parameters added to every call to a side.
    #[derive(Default)]
    Sent is "`send`" {
        /// Header fields, by name.
        default headers: MapOf<ConstantValue>,
        /// Query parameters, by name.
        default query: MapOf<ConstantValue>,
    }
}

section! {
    /// How lists are paged, for `pages:` of calls.
    PagingDecl is "`paging`" {
        /// Query parameter with the number of the page.
        required query: Text,
        /// Number of the first page.
        required first: Count<0, 1>,
        /// Entries on a full page; a shorter one is the last.
        required size: Count<1, 10_000>,
    }
}

section! {
    /// Names of headers that the gateway adds to responses.
    #[derive(Default)]
    OwnHeaders is "`headers`" {
        /// Header field that lists the approximations in an answer.
        optional approximate: Text,
    }
}

section! {
    /// The format of errors.
    Errors is "`errors`" {
        /// Body of the gateway's errors, with the placeholders `$text` (the message), `$status`
        /// (the status of the answer) and `$kind` (the kind of error).
        required body: Anything,
        /// The type of the service's errors, in each contract.
        strict types: BothSides<Text>,
        /// Shape that turns one into the other, where they differ.
        optional shape: Text,
        /// Statuses of the gateway's errors, where not the usual ones; or one status that every
        /// error is answered with.
        default status: ErrorStatuses,
        /// Reasons for the gateway's errors, instead of the engine's English; a list of kinds if each
        /// has a reason of its own name.
        default text: ByErrorKind,
        /// Values of `$kind`, by kind of error; the default is the engine's name of the kind.
        default kind: ByErrorKind,
        /// Error format for clients of one side, if it differs from the common one.
        default sides: BySide<SideErrors, 0>,
        /// Conditions by which answers of a side are failures regardless of their status. The first
        /// match applies.
        default failures: BySide<ListOf<FailureDecl>, 0>,
        at span: Span,
    }
}

impl Errors {
    /// Returns the name of the error type of a side; `None` if its errors have no common type.
    pub(crate) fn type_name(&self, side: usize) -> Option<&Spanned<String>> {
        self.types.as_ref().map(|types| &types[side]).filter(|name| !name.value.is_empty())
    }
}

section! {
    /// Error format for clients of one side, where it differs from the common one.
    SideErrors is "the errors of a side" {
        /// Body of an error.
        optional body: Anything,
        /// One status that every error is answered with, or statuses by kind.
        default status: ErrorStatuses,
        /// Values of `$kind`, by kind of error.
        default kind: ByErrorKind,
    }
}

kinds! {
    /// A text for each kind of error; a list of kinds that are texts themselves.
    ByErrorKind -> Vec<(Spanned<String>, Spanned<String>)>, |key, node, reader| match node.kind {
        Kind::Seq(_) => {
            let kinds = ListOf::<Text>::read(key, node, reader)?;
            Some(kinds.into_iter().map(|kind| (kind.clone(), kind)).collect())
        }
        _ => MapOf::<Text>::read(key, node, reader),
    }, |_| json!({"anyOf": [list_of(&error_kind()), by_error_kind(text())]});
}

/// One status for all errors, or statuses by kind of error.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorStatuses {
    pub all: Option<Spanned<i64>>,
    pub by_kind: Vec<(Spanned<String>, Spanned<i64>)>,
}

impl Read for ErrorStatuses {
    type Output = ErrorStatuses;

    fn read(key: &Key, node: &Node, reader: &mut SyntaxReader<'_>) -> Option<ErrorStatuses> {
        Some(match node.kind {
            Kind::Number(_) => ErrorStatuses { all: Status::read(key, node, reader), by_kind: Vec::new() },
            _ => ErrorStatuses { all: None, by_kind: MapOf::<Status>::read(key, node, reader)? },
        })
    }

    fn schema(_: Sides<'_>) -> Value {
        json!({"anyOf": [reference("status"), by_error_kind(reference("status"))]})
    }
}

fn by_error_kind(value: Value) -> Value {
    json!({"type": "object", "propertyNames": error_kind(), "additionalProperties": value})
}

fn error_kind() -> Value {
    words(&GATEWAY_ERRORS.iter().map(|(kind, ..)| *kind).collect::<Vec<_>>())
}

section! {
    /// Recognizes responses that are failures regardless of their status.
    FailureDecl is "a failure" {
        /// Places such as `$.body.ok` or `$.headers.x-state`, each with its value or a list of
        /// values; all are there and hold.
        filled when: MapOf<Alternatives>,
        /// The status that the answer is read as.
        required status: Status,
        at span: Span,
    }
}

section! {
    /// A setting of the pack.
    SettingDecl is "a setting" {
        name name: Spanned<String>,
        /// Type of the value.
        required kind("type"): SettingType,
        /// Purpose of the setting, for the operator.
        required about: Text,
        /// Value if the operator sets none; `null` leaves the setting without a value. Without a
        /// default, the operator must set a value.
        optional default: SettingDefault,
        /// The only texts that it may be.
        default values: ListOf<Text>,
        /// Which open point of a contract it settles.
        optional reading: Text,
    }
}

kinds! {
    /// The type of a setting. Later checks report an unknown word.
    SettingType -> Spanned<String>, Text::read, |_| {
        words(&SettingKind::WORDS.iter().map(|(word, _)| *word).collect::<Vec<_>>())
    };
    /// The default of a setting.
    SettingDefault -> Node, Anything::read, |_| json!({"type": ["boolean", "integer", "string", "null"]});
}

impl SettingDecl {
    /// Returns whether the setting may have no value, that is, its default is `null`.
    pub(crate) fn is_optional(&self) -> bool {
        self.default.as_ref().is_some_and(Node::is_null)
    }
}

section! {
    /// Settings for comparing two responses in a dual run.
    #[derive(Default)]
    Compare is "`compare`" {
        /// Additional header fields to compare.
        default headers: ListOf<Text>,
        /// Rules for types of the contracts.
        default types: LinesBySide<EntriesOf<CompareType>, 0>,
        /// The read on the same side that returns the effect of a write: `GET /things/{id}`, with
        /// variables and places such as `{$.answer.body.id}` in its address.
        default read_back: ReadBacks,
        /// Members of a write's JSON body that its `read_back` returns at the same place with the
        /// same value. They serve to compare the effect of a write on the other side with the
        /// request.
        default shows: ShownMembers,
    }
}

section! {
    /// Comparison rules for one type of one side.
    CompareType is "a comparison" {
        name name: Spanned<String>,
        /// Member that identifies elements in lists of this type.
        optional key: Place,
        /// Members with a value that differs between two equal requests.
        default noise: ListOf<Place>,
        /// Lists without a meaningful order.
        default unordered: ListOf<Place>,
        /// Members with a secret value, which is never stored or displayed, in requests and
        /// answers.
        default secret: ListOf<Place>,
        /// Members with texts that may be stored and displayed; other texts are masked.
        default harmless: ListOf<Place>,
    }
}

/// The read that observes the effect of a write on the same side.
#[derive(Clone, Debug)]
pub(crate) struct ReadBackDecl {
    pub side: SideRef,
    /// Operation key of the write.
    pub write: Spanned<String>,
    /// For example `GET /things/{id}` or `GET /things/{$.answer.body.id}`.
    pub read: Spanned<String>,
}

/// Members of a write's body that a later read returns unchanged.
#[derive(Clone, Debug)]
pub(crate) struct Shows {
    pub side: SideRef,
    /// Operation key of the write.
    pub write: Spanned<String>,
    pub members: Vec<Spanned<String>>,
}

kinds! {
    /// `{v1: {POST /a: 'GET /a/{$.answer.body.id}'}}`
    ReadBacks -> Vec<ReadBackDecl>, |_, node, reader| {
        reader.lines_by_side(node, |write, read, side, reader| {
            Some(ReadBackDecl { side, write: SyntaxReader::key(write), read: reader.text(read)? })
        })
    }, LinesBySide::<MapOf<Text>, 0>::schema;
    /// `{v1: {'PUT /a/{id}': [name]}}`
    ShownMembers -> Vec<Shows>, |_, node, reader| {
        reader.lines_by_side(node, |write, members, side, reader| {
            let members = ListOf::<Text>::read(write, members, reader).unwrap_or_default();
            Some(Shows { side, write: SyntaxReader::key(write), members })
        })
    }, LinesBySide::<MapOf<ListOf<Text>>, 0>::schema;
}
