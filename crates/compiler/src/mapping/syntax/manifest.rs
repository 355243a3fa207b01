//! Reads `pack.yaml`.

use super::{SyntaxReader, keys};
use crate::diagnostic::Findings;
use crate::mapping::ast::{
    CarrierDecl, CarrierKind, Compare, CompareType, CredentialDecl, Errors, FailureDecl, FieldPlace,
    HostDecl, Manifest, OwnHeaders, PagingDecl, ReadBackDecl, RefusePolicyDecl, RestWord, Sent, SettingDecl,
    Shows, SideErrors, Spanned,
};
use crate::mapping::faults;
use crate::yaml::{Fields, Kind, Node};
use switchback_plan::{
    BasicPart, BodyForm, ClientAuth, PerSide, RefreshExtra, Scheme, SideId, TokenRequests,
};

/// Policies for operations without a route.
pub(in crate::mapping) const REST: &[&str] = &["refuse", "forward", "keep"];

pub(super) fn parse_manifest(root: &Node, findings: &mut Findings) -> Option<Manifest> {
    let fields = Fields::parse(root, &keys::PACK, findings)?;
    let sides = sides(fields.get("sides")?, findings)?;
    let mut reader = SyntaxReader { sides: sides.clone(), findings };
    let contracts = reader.texts_by_side(fields.get("contracts")?, "`contracts`");
    // Read before a missing part returns early, so that errors here are reported as well.
    let errors = fields.get("errors").and_then(|node| reader.errors(node));
    Some(Manifest {
        name: reader.text_of(fields.get("pack"))?,
        sides,
        contracts: contracts?,
        credentials: fields.get("credentials").map_or([None, None], |node| reader.credentials(node)),
        send: fields.get("send").map(|node| reader.send(node)).unwrap_or_default(),
        hosts: reader.hosts(fields.get("hosts")),
        scope: fields.get("scope").map_or([None, None], |node| reader.scope(node)),
        serves: reader.serves(fields.get("serves")),
        rest: fields.get("rest").map_or([None, None], |node| reader.rest(node)),
        identical: fields
            .get("identical")
            .and_then(|node| node.word(&["keep"], reader.findings).map(|_| node.span)),
        languages: reader.texts(fields.get("languages")),
        paging: fields.get("paging").and_then(|node| reader.paging(node)),
        errors: errors?,
        refuse: fields.get("refuse").map_or_else(RefusePolicyDecl::default, |node| reader.policy(node)),
        headers: fields.get("headers").map(|node| reader.own_headers(node)).unwrap_or_default(),
        settings: reader.settings(fields.get("settings")),
        compare: fields.get("compare").and_then(|node| reader.compare(node)).unwrap_or_default(),
        events: fields.get("events").and_then(|node| reader.event_sides(node)),
        unknown_values: fields.get("unknown_values").map_or([None, None], |node| {
            reader.by_side(node, "`unknown_values`", true).map(Option::<&Node>::cloned)
        }),
        span: root.span,
    })
}

fn sides(node: &Node, findings: &mut Findings) -> Option<[Spanned<String>; 2]> {
    let fields = Fields::parse(node, &keys::SIDES, findings)?;
    let mut side = |name| {
        let node: &Node = fields.get(name)?;
        Some(Spanned { value: node.text(findings)?.to_owned(), span: node.span })
    };
    // Read both sides before returning, so that errors in either are reported.
    let (old, new) = (side("old"), side("new"));
    Some([old?, new?])
}

impl SyntaxReader<'_> {
    fn credentials(&mut self, node: &Node) -> [Option<CredentialDecl>; 2] {
        self.by_side(node, "`credentials`", false).map(|node| {
            let fields = self.fields(node?, &keys::CREDENTIAL)?;
            let read = self.carriers(fields.get("read")?)?;
            let send = match fields.get("send")? {
                several @ Node { kind: Kind::Seq(_), .. } => self.carriers(several)?,
                one => vec![self.carrier(one)?],
            };
            let scheme = self.text_of(fields.get("scheme"));
            let headers = self.texts_map(fields.get("headers"));
            let tokens = fields.get("oauth").map_or_else(TokenRequests::default, |node| self.tokens(node));
            Some(CredentialDecl { read, send, scheme, headers, tokens, span: node?.span })
        })
    }

    /// Reads a list of carriers. Returns `None` after an error, so that no further finding reports
    /// an empty list.
    fn carriers(&mut self, node: &Node) -> Option<Vec<CarrierDecl>> {
        let all: Vec<_> = self.list_of(Some(node)).iter().map(|node| self.carrier(node)).collect();
        all.into_iter().collect()
    }

    /// Reads `x-api-key`, `{header: authorization, scheme: Token}`, `{basic: user}`, `{query:
    /// api_key}` or `{form: token}`.
    fn carrier(&mut self, node: &Node) -> Option<CarrierDecl> {
        if node.as_map().is_none() {
            return Some(CarrierDecl { name: self.text(node)?, kind: CarrierKind::Usual });
        }
        let fields = self.fields(node, &keys::CARRIER)?;
        let (header, scheme) = (self.text_of(fields.get("header")), self.text_of(fields.get("scheme")));
        let basic = match fields.get("basic") {
            Some(node) => Some(BasicPart::of_word(node.word(BasicPart::WORDS, self.findings)?)?),
            None => None,
        };
        let (query, form) = (self.text_of(fields.get("query")), self.text_of(fields.get("form")));
        match (header, scheme, basic, query, form) {
            (None, None, None, Some(name), None) if !name.value.is_empty() => {
                Some(CarrierDecl { name, kind: CarrierKind::Query })
            }
            (None, None, None, None, Some(name)) if !name.value.is_empty() => {
                Some(CarrierDecl { name, kind: CarrierKind::FormField })
            }
            (header, None, Some(part), None, None) => {
                let usual = || Spanned { value: "authorization".to_owned(), span: node.span };
                let kind = CarrierKind::Own(Scheme::Basic(part));
                Some(CarrierDecl { name: header.unwrap_or_else(usual), kind })
            }
            (Some(name), scheme, None, None, None) => {
                Some(CarrierDecl { name, kind: scheme.map_or(CarrierKind::Usual, CarrierKind::Scheme) })
            }
            _ => {
                self.findings.push(faults::carrier(node.span));
                None
            }
        }
    }

    fn tokens(&mut self, node: &Node) -> TokenRequests {
        let Some(fields) = self.fields(node, &keys::OAUTH) else { return TokenRequests::default() };
        let mut word = |node: &Node, words: &[&'static str]| node.word(words, self.findings);
        let body = fields.get("body").and_then(|node| word(node, BodyForm::WORDS));
        let client_auth = fields.get("client_auth").and_then(|node| word(node, ClientAuth::WORDS));
        let refresh_sends = fields.get("refresh_sends").map(|node| {
            let items = node.list(self.findings).unwrap_or_default();
            let words = items.iter().filter_map(|node| node.word(RefreshExtra::WORDS, self.findings));
            words.filter_map(RefreshExtra::of_word).collect()
        });
        TokenRequests {
            body: body.and_then(BodyForm::of_word),
            client_auth: client_auth.and_then(ClientAuth::of_word),
            refresh_sends,
        }
    }

    /// Reads a list of sides such as `[v1]`. Both sides if omitted.
    fn serves(&mut self, node: Option<&Node>) -> [bool; 2] {
        let Some(node) = node else { return [true, true] };
        let mut served = [false, false];
        for name in self.texts(Some(node)) {
            if let Some(side) = self.side(&name.value, name.span) {
                served[side.side] = true;
            }
        }
        // Either the list is empty, or its names are unknown and have been reported.
        if served == [false, false] { [true, true] } else { served }
    }

    /// Reads `refuse`, `forward` or `keep`, for both sides or as `{v1: forward, v2: refuse}`.
    fn rest(&mut self, node: &Node) -> [Option<Spanned<RestWord>>; 2] {
        let word = |reader: &mut Self, node: &Node| {
            let value = match node.word(REST, reader.findings)? {
                "refuse" => RestWord::Refuse,
                "forward" => RestWord::Forward,
                _ => RestWord::Keep,
            };
            Some(Spanned { value, span: node.span })
        };
        if node.as_map().is_none() {
            let both = word(self, node);
            return [both.clone(), both];
        }
        self.by_side(node, "`rest`", true).map(|node| word(self, node?))
    }

    /// Reads `{v2: {headers: {name: value}, query: {name: value}}}`.
    fn send(&mut self, node: &Node) -> PerSide<Sent> {
        self.by_side(node, "`send`", true).map(|node| {
            let Some(fields) = node.and_then(|node| self.fields(node, &keys::SENT)) else {
                return Sent::default();
            };
            let mut constants = |key| {
                let mut read = Vec::new();
                for (name, value) in self.map_of(fields.get(key)) {
                    match value.kind {
                        // A constant is sent as text, for which these have no representation.
                        Kind::Map(_) | Kind::Null => {
                            self.findings.push(super::faults::constant_parameter(value.span))
                        }
                        _ => read.push((Self::key(name), value.clone())),
                    }
                }
                read
            };
            Sent { headers: constants("headers"), query: constants("query") }
        })
    }

    fn scope(&mut self, node: &Node) -> [Option<Spanned<String>>; 2] {
        self.by_side(node, "`scope`", true).map(|node| self.text(node?))
    }

    fn paging(&mut self, node: &Node) -> Option<PagingDecl> {
        let fields = self.fields(node, &keys::PAGING)?;
        let query = self.text_of(fields.get("query"));
        let first = fields.get("first").and_then(|n| self.whole(n, 0..=1));
        let size = fields.get("size").and_then(|n| self.whole(n, 1..=10_000));
        Some(PagingDecl { query: query?, first: first?, size: size? })
    }

    fn own_headers(&mut self, node: &Node) -> OwnHeaders {
        let Some(fields) = self.fields(node, &keys::OWN_HEADERS) else { return OwnHeaders::default() };
        OwnHeaders { approximate: self.text_of(fields.get("approximate")) }
    }

    fn errors(&mut self, node: &Node) -> Option<Errors> {
        let fields = self.fields(node, &keys::ERRORS)?;
        let none = || Spanned { value: String::new(), span: node.span };
        let types = match fields.get("types") {
            Some(node) => self.texts_by_side(node, "`types`"),
            None => Some([none(), none()]),
        };
        let (all, status) = self.error_statuses(fields.get("status"));
        let sides = match fields.get("sides") {
            Some(node) => self.by_side(node, "`sides`", true).map(|node| self.side_errors(node?)),
            None => [None, None],
        };
        let failures = match fields.get("failures") {
            Some(node) => self.by_side(node, "`failures`", true).map(|node| self.failures(node)),
            None => [Vec::new(), Vec::new()],
        };
        let (text, kind) = (self.texts_map(fields.get("text")), self.texts_map(fields.get("kind")));
        let shape = self.text_of(fields.get("shape"));
        let (body, types) = (fields.get("body")?.clone(), types?);
        Some(Errors { body, types, shape, status, text, kind, all, sides, failures })
    }

    /// Reads one status for all errors, or statuses by kind of error.
    #[expect(clippy::type_complexity, reason = "a list of lines, as all maps are read")]
    fn error_statuses(
        &mut self,
        node: Option<&Node>,
    ) -> (Option<Spanned<i64>>, Vec<(Spanned<String>, Spanned<i64>)>) {
        match node {
            Some(one @ Node { kind: Kind::Number(_), .. }) => (self.status(one), Vec::new()),
            node => {
                let mut lines = Vec::new();
                for (key, value) in self.map_of(node) {
                    lines.extend(self.status(value).map(|value| (Self::key(key), value)));
                }
                (None, lines)
            }
        }
    }

    fn side_errors(&mut self, node: &Node) -> Option<SideErrors> {
        let fields = self.fields(node, &keys::SIDE_ERRORS)?;
        let (all, status) = self.error_statuses(fields.get("status"));
        let kind = self.texts_map(fields.get("kind"));
        Some(SideErrors { body: fields.get("body").cloned(), all, status, kind })
    }

    /// Reads `[{when: {$.body.ok: false, $.body.error: [expired, revoked]}, status: 401}]`.
    fn failures(&mut self, node: Option<&Node>) -> Vec<FailureDecl> {
        let mut failures = Vec::new();
        for node in self.list_of(node) {
            let Some(fields) = self.fields(node, &keys::FAILURE) else { continue };
            let values = |node: &Node| match node.as_seq() {
                Some(several) => several.to_vec(),
                None => vec![node.clone()],
            };
            let when = self.map_of(fields.get("when")).iter();
            let when = when.map(|(place, node)| (Self::key(place), values(node))).collect();
            if let Some(status) = fields.get("status").and_then(|node| self.status(node)) {
                failures.push(FailureDecl { when, status, span: node.span });
            }
        }
        failures
    }

    fn settings(&mut self, node: Option<&Node>) -> Vec<SettingDecl> {
        let mut settings = Vec::new();
        for (key, value) in self.map_of(node) {
            let Some(fields) = self.fields(value, &keys::SETTING) else { continue };
            let (kind, about) = (self.text_of(fields.get("type")), self.text_of(fields.get("about")));
            let (Some(kind), Some(about)) = (kind, about) else { continue };
            settings.push(SettingDecl {
                name: Self::key(key),
                kind,
                default: fields.get("default").cloned(),
                values: self.texts(fields.get("values")),
                about,
                reading: self.text_of(fields.get("reading")),
            });
        }
        settings
    }

    fn compare(&mut self, node: &Node) -> Option<Compare> {
        let fields = self.fields(node, &keys::COMPARE)?;
        let headers = self.texts(fields.get("headers"));
        let mut types = Vec::new();
        for (key, node) in self.map_of(fields.get("types")) {
            let Some(side) = self.side(&key.name, key.span) else { continue };
            for (name, node) in self.map_of(Some(node)) {
                let Some(fields) = self.fields(node, &keys::COMPARE_TYPE) else { continue };
                let key = self.text_of(fields.get("key")).and_then(|text| self.place(&text.value, text.span));
                types.push(CompareType {
                    side,
                    name: Self::key(name),
                    key,
                    noise: self.places(fields.get("noise")),
                    unordered: self.places(fields.get("unordered")),
                    secret: self.places(fields.get("secret")),
                    harmless: self.places(fields.get("harmless")),
                });
            }
        }
        let (read_back, shows) =
            (self.read_back(fields.get("read_back")), self.shown_members(fields.get("shows")));
        Some(Compare { headers, types, read_back, shows })
    }

    /// Reads `{v1: {files: ['POST /files']}}`.
    fn hosts(&mut self, node: Option<&Node>) -> PerSide<Vec<HostDecl>> {
        let mut hosts = PerSide::default();
        for (key, node) in self.map_of(node) {
            let Some(side) = self.side(&key.name, key.span) else { continue };
            let of_side: &mut Vec<HostDecl> = &mut hosts[SideId(side.side as u8)];
            for (name, node) in self.map_of(Some(node)) {
                of_side.push(HostDecl { name: Self::key(name), answers: self.texts(Some(node)) });
            }
        }
        hosts
    }

    /// Reads `{v1: {POST /a: 'GET /a/{$.answer.body.id}'}}`.
    fn read_back(&mut self, node: Option<&Node>) -> Vec<ReadBackDecl> {
        let mut lines = Vec::new();
        for (key, node) in self.map_of(node) {
            let Some(side) = self.side(&key.name, key.span) else { continue };
            let pairs = self.texts_map(Some(node)).into_iter();
            lines.extend(pairs.map(|(write, read)| ReadBackDecl { side, write, read }));
        }
        lines
    }

    /// Reads `{v1: {'PUT /a/{id}': [name]}}`.
    fn shown_members(&mut self, node: Option<&Node>) -> Vec<Shows> {
        let mut lines = Vec::new();
        for (key, node) in self.map_of(node) {
            let Some(side) = self.side(&key.name, key.span) else { continue };
            for (write, node) in self.map_of(Some(node)) {
                lines.push(Shows { side, write: Self::key(write), members: self.texts(Some(node)) });
            }
        }
        lines
    }

    fn places(&mut self, node: Option<&Node>) -> Vec<Spanned<FieldPlace>> {
        let texts = self.texts(node);
        texts.iter().filter_map(|text| self.place(&text.value, text.span)).collect()
    }
}
