//! Which header fields cross the gateway. Maps are built anew from what a policy lets through,
//! never copied and then cleaned: a field that nobody thought of stays outside.
//!
//! Two policies per direction. *Translated* messages let a short list through, because everything
//! else described a message that no longer exists (lengths, codings, validators, ranges, cookies of
//! the other side). `no-transform` is not heeded there: it binds those who pass a representation on
//! (RFC 9110, section 7.7), while a translated answer is another resource's, made from the
//! upstream's. *Forwarded* messages, to the old service while it lives, keep all but what belongs
//! to one hop (RFC 9110, section 7.6.1).

use crate::telemetry::trace::{TRACEPARENT, TRACESTATE, TraceParent};
use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use switchback_plan::{ANSWER_KEEPS, BodyFormat, CALL_KEEPS, Credential};

/// The name under which this gateway signs Via, and by which it knows a request that comes back to
/// it. Gateways that call one another need different ones; replicas of one gateway share theirs.
#[derive(Clone, Debug)]
pub struct Pseudonym {
    name: String,
    via_11: HeaderValue,
    via_2: HeaderValue,
    via_10: HeaderValue,
}

impl Pseudonym {
    /// `name` must be a token (RFC 9110, section 5.6.2); others are refused.
    pub fn new(name: &str) -> Option<Pseudonym> {
        let is_token = !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
        let via = |version: &str| HeaderValue::try_from(format!("{version} {name}")).ok();
        is_token.then_some(())?;
        Some(Pseudonym {
            via_11: via("1.1")?,
            via_2: via("2.0")?,
            via_10: via("1.0")?,
            name: name.to_owned(),
        })
    }

    /// The Via member for a message received in this version.
    fn via(&self, version: Version) -> HeaderValue {
        match version {
            Version::HTTP_2 => self.via_2.clone(),
            Version::HTTP_10 => self.via_10.clone(),
            _ => self.via_11.clone(),
        }
    }
}

impl Default for Pseudonym {
    fn default() -> Pseudonym {
        Pseudonym::new("switchback").expect("the name is a token")
    }
}

/// Whether a request went through this gateway before.
pub fn has_passed(headers: &HeaderMap, pseudonym: &Pseudonym) -> bool {
    let members = headers.get_all(header::VIA).iter().filter_map(|value| value.to_str().ok());
    members.flat_map(|value| value.split(',')).any(|member| {
        member.split_whitespace().nth(1).is_some_and(|name| name.eq_ignore_ascii_case(&pseudonym.name))
    })
}

/// Fields that describe one connection.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
];

/// Fields that the gateway sets or withholds on purpose when it forwards a request.
const OUR_OWN: [HeaderName; 4] = [header::HOST, header::CONTENT_LENGTH, header::EXPECT, header::VIA];

/// Whether a request tells services to take it for one with another method, as some do: what it
/// would do is then not for its own method to say.
pub fn names_other_method(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("x-") && name.as_str().contains("method"))
}

/// The fields that a message's `Connection` lines name as belonging to its hop.
struct Nominated<'a>(Vec<&'a str>);

impl<'a> Nominated<'a> {
    fn from_headers(headers: &'a HeaderMap) -> Nominated<'a> {
        let lines = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
        Nominated(
            lines.flat_map(|line| line.split(',')).map(str::trim).filter(|name| !name.is_empty()).collect(),
        )
    }

    fn has(&self, name: &HeaderName) -> bool {
        self.0.iter().any(|nominated| nominated.eq_ignore_ascii_case(name.as_str()))
    }
}

/// Header fields of a translated call: few of the client's, then our own. The credential is added
/// later, by the layer that owns it, so that nothing a client sends can take its place. There is
/// room for `more` fields besides: to grow costs as much as all the rest.
pub fn translated_request(
    from: &HeaderMap,
    version: Version,
    trace: TraceParent,
    pseudonym: &Pseudonym,
    more: usize,
) -> HeaderMap {
    // One pass over a handful of fields is less than a search for each that could be there.
    let mut kept = CALL_KEEPS.each_ref().map(|_| None);
    let mut has_more = false;
    for (name, value) in from {
        if let Some(at) = CALL_KEEPS.iter().position(|kept| kept == name) {
            has_more |= kept[at].is_some();
            kept[at].get_or_insert(value);
        }
    }
    let nominated = Nominated::from_headers(from);
    // Those kept, the four below, the host and the credential: maps of up to six take a good deal
    // less memory.
    let mut to = HeaderMap::with_capacity(6 + kept.iter().flatten().count() + more);
    for (name, value) in CALL_KEEPS.iter().zip(kept) {
        if let Some(value) = value.filter(|_| !nominated.has(name)) {
            to.insert(name.clone(), value.clone());
            // A field may come in several lines (RFC 9110, section 5.3); few do.
            if has_more {
                for value in from.get_all(name).iter().skip(1) {
                    to.append(name.clone(), value.clone());
                }
            }
        }
    }
    to.insert(header::ACCEPT, HeaderValue::from_static(switchback_plan::BodyFormat::JSON));
    to.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    add_trace(from, &mut to, trace);
    add_via(from, &mut to, version, pseudonym);
    to
}

/// Header fields of a request that is forwarded unchanged: all but those of the hop, and those that
/// could forge them or our own, since some servers read `_` as `-`.
pub fn forwarded_request(
    from: &HeaderMap,
    version: Version,
    trace: TraceParent,
    pseudonym: &Pseudonym,
) -> HeaderMap {
    let mut to = HeaderMap::with_capacity(from.len() + 4);
    let nominated = Nominated::from_headers(from);
    for (name, value) in from {
        let is_trace = name == TRACEPARENT || name == TRACESTATE;
        if is_end_to_end(name, &nominated) && !OUR_OWN.contains(name) && !is_trace && !forges(name) {
            to.append(name.clone(), value.clone());
        }
    }
    if takes_trailers(from) {
        to.insert(header::TE, HeaderValue::from_static("trailers"));
        // It is for each hop to say (RFC 9110, section 10.1.4).
        to.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
    add_trace(from, &mut to, trace);
    add_via(from, &mut to, version, pseudonym);
    to
}

fn takes_trailers(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::TE).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
}

/// Whether a server that reads `_` as `-` would take a field for one that is not the client's to set.
fn forges(name: &HeaderName) -> bool {
    let Some(dashed) = with_dashes(name) else { return false };
    let is_reserved = |reserved: &HeaderName| reserved.as_str() == dashed;
    HOP_BY_HOP.iter().any(is_reserved) || OUR_OWN.iter().any(is_reserved)
}

/// The name with `-` for `_`, where it has one.
fn with_dashes(name: &HeaderName) -> Option<String> {
    name.as_str().contains('_').then(|| name.as_str().replace('_', "-"))
}

/// Whether a body is an urlencoded form, by what its message says.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    let named = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    named.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case(BodyFormat::FORM))
}

/// Takes away the fields that a client's own credential is read from, and those that some servers
/// would take for them.
pub fn remove_credentials(headers: &mut HeaderMap, credential: &Credential) {
    let is_one = |name: &HeaderName| {
        let dashed = with_dashes(name);
        credential.read_headers().any(|own| own == name.as_str() || dashed.as_deref() == Some(own))
    };
    let found: Vec<HeaderName> = headers.keys().filter(|name| is_one(name)).cloned().collect();
    found.into_iter().for_each(|name| drop(headers.remove(name)));
}

/// Header fields of a translated answer: few of the upstream's. Its caching rules are kept only
/// where they restrict: what was cacheable by the other side's address and credential need not be
/// by this one's.
pub fn translated_answer(from: &HeaderMap) -> HeaderMap {
    // What is kept, and what is usually added later: `Vary`, the type, the request's name.
    let mut to = HeaderMap::with_capacity(6);
    let nominated = Nominated::from_headers(from);
    // One pass over a handful of fields is less than a search for each that could be there.
    for (name, value) in from {
        let is_kept = ANSWER_KEEPS.contains(name) && !nominated.has(name);
        if is_kept || (*name == header::CACHE_CONTROL && restricts_caching(value)) {
            to.append(name.clone(), value.clone());
        }
    }
    to
}

fn restricts_caching(cache_control: &HeaderValue) -> bool {
    let lower = cache_control.as_bytes().to_ascii_lowercase();
    let names = |word: &[u8]| memchr::memmem::find(&lower, word).is_some();
    names(b"no-store") || names(b"no-cache") || names(b"private")
}

/// Whether a request wants its connection to go over to another protocol. Other versions of HTTP,
/// and TLS, are none: what the gateway is there to see would then go by unseen (h2c), and clients
/// that offer them can do without.
pub fn wants_switch(headers: &HeaderMap, version: Version) -> bool {
    if version != Version::HTTP_11 || !headers.contains_key(header::UPGRADE) {
        return false;
    }
    let lines = headers.get_all(header::UPGRADE).iter().map(|value| value.to_str().unwrap_or_default());
    let mut protocols = lines.flat_map(|line| line.split(',')).map(str::trim);
    let is_other = |protocol: &str| {
        let name = protocol.split('/').next().unwrap_or_default();
        !name.is_empty()
            && !["h2c", "h2", "h3", "http", "tls"].iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    Nominated::from_headers(headers).has(&header::UPGRADE) && protocols.all(is_other)
}

/// Has a forwarded request ask for the other protocol as the client's does; whether it does.
pub fn add_switch(from: &HeaderMap, version: Version, to: &mut HeaderMap) -> bool {
    let wants = wants_switch(from, version);
    if wants {
        to.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        add_protocols(from, to);
    }
    wants
}

/// The answer with which a connection goes over to another protocol says which.
pub fn add_switched(from: &HeaderMap, to: &mut HeaderMap) {
    to.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    add_protocols(from, to);
}

fn add_protocols(from: &HeaderMap, to: &mut HeaderMap) {
    for value in from.get_all(header::UPGRADE) {
        to.append(header::UPGRADE, value.clone());
    }
}

/// How many hops are left to a request that says so.
pub fn forwards_left(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::MAX_FORWARDS)?.to_str().ok()?.trim().parse().ok()
}

/// Whether an answer goes over to a protocol that was asked for, by their names and versions.
pub fn switches_as_asked(asked: &HeaderMap, answered: &HeaderMap) -> bool {
    fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
        let lines = headers.get_all(header::UPGRADE).iter().map(|value| value.to_str().unwrap_or_default());
        lines.flat_map(|line| line.split(',')).map(str::trim).filter(|protocol| !protocol.is_empty())
    }
    let mut chosen = protocols(answered).peekable();
    let is_asked = |chosen: &str| protocols(asked).any(|asked| asked.eq_ignore_ascii_case(chosen));
    chosen.peek().is_some() && chosen.all(is_asked)
}

/// One hop less is left to a request that says how many there may be (RFC 9110, section 7.6.2).
pub fn count_down(headers: &mut HeaderMap) {
    if let Some(left) = forwards_left(headers) {
        headers.insert(header::MAX_FORWARDS, HeaderValue::from(left.saturating_sub(1)));
    }
}

/// Header fields of an answer that is forwarded unchanged: all but those of the hop, in their
/// order. Content-Length is written anew from the body; of an answer to HEAD it stays, since there
/// is no body to tell.
pub fn forwarded_answer(from: &HeaderMap, is_head: bool) -> HeaderMap {
    let mut to = HeaderMap::with_capacity(from.len() + 2);
    let nominated = Nominated::from_headers(from);
    for (name, value) in from {
        if is_end_to_end(name, &nominated) && (is_head || name != header::CONTENT_LENGTH) {
            to.append(name.clone(), value.clone());
        }
    }
    to
}

fn is_end_to_end(name: &HeaderName, nominated: &Nominated<'_>) -> bool {
    // Trailers go on with the bodies of what is forwarded, and so does what announces them.
    *name == header::TRAILER || (!HOP_BY_HOP.contains(name) && !nominated.has(name))
}

fn add_trace(from: &HeaderMap, to: &mut HeaderMap, trace: TraceParent) {
    to.insert(TRACEPARENT, trace.child(fastrand::u64(..)).header_value());
    if !from.contains_key(TRACESTATE) {
        return;
    }
    // Vendors' additions belong to the trace they came with, not to one that we began.
    let is_theirs =
        from.get(TRACEPARENT).and_then(|value| TraceParent::parse(value.to_str().ok()?)).is_some();
    if is_theirs {
        for value in from.get_all(TRACESTATE) {
            to.append(TRACESTATE, value.clone());
        }
    }
}

fn add_via(from: &HeaderMap, to: &mut HeaderMap, version: Version, pseudonym: &Pseudonym) {
    for value in from.get_all(header::VIA) {
        to.append(header::VIA, value.clone());
    }
    to.append(header::VIA, pseudonym.via(version));
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_plan::{Carrier, Scheme};

    fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .fold(HeaderMap::new(), |mut map, (name, value)| {
                map.append(name, value);
                map
            })
    }

    fn trace() -> TraceParent {
        TraceParent::start(7, 7)
    }

    #[test]
    fn fields_of_one_hop_never_cross() {
        let from = map(&[
            ("connection", "keep-alive, X-Secret"),
            ("connection", "close"),
            ("x-secret", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "Basic x"),
            ("te", "trailers"),
            ("trailer", "x-sum"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("x-stays", "a"),
            ("x-stays", "b"),
        ]);
        for to in [
            forwarded_request(&from, Version::HTTP_11, trace(), &Pseudonym::default()),
            forwarded_answer(&from, false),
        ] {
            let own = [TRACEPARENT, header::VIA, header::TE, header::CONNECTION];
            let kept: Vec<_> = to.iter().filter(|(name, _)| !own.contains(name)).collect();
            // With what announces the trailers, which go on with the body.
            assert_eq!(kept.len(), 3, "{to:?}");
            assert_eq!(to.get_all("x-stays").iter().collect::<Vec<_>>(), ["a", "b"]);
        }
    }

    #[test]
    fn cookies_keep_their_number_and_order_when_forwarded_and_never_cross_when_translated() {
        let from = map(&[("set-cookie", "a=1"), ("set-cookie", "b=2"), ("set-cookie", "c=3")]);
        let to = forwarded_answer(&from, false);
        assert_eq!(to.get_all("set-cookie").iter().collect::<Vec<_>>(), ["a=1", "b=2", "c=3"]);
        assert!(translated_answer(&from).is_empty());
    }

    #[test]
    fn a_translated_call_carries_no_credential_or_condition_of_the_client() {
        let from = map(&[
            ("authorization", "Bearer old"),
            ("x-authorization", "Bearer old"),
            ("x_authorization", "Bearer old"),
            ("cookie", "a=1"),
            ("if-none-match", "\"x\""),
            ("range", "bytes=0-1"),
            ("x-forwarded-for", "1.2.3.4"),
            ("accept-language", "es"),
            ("accept-encoding", "gzip"),
            ("content-length", "3"),
        ]);
        let to = translated_request(&from, Version::HTTP_2, trace(), &Pseudonym::default(), 0);
        let mut names: Vec<_> = to.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "accept-encoding", "accept-language", "traceparent", "via"]);
        assert_eq!(to[header::VIA], "2.0 switchback");
        assert_eq!(to[header::ACCEPT_ENCODING], "identity");
    }

    #[test]
    fn what_described_the_old_body_does_not_describe_the_new_one() {
        let from = map(&[
            ("content-length", "3"),
            ("content-encoding", "gzip"),
            ("etag", "\"a\""),
            ("last-modified", "x"),
            ("digest", "x"),
            ("content-digest", "x"),
            ("content-md5", "x"),
            ("accept-ranges", "bytes"),
            ("content-range", "bytes 0-1/2"),
            ("www-authenticate", "Bearer"),
            ("cache-control", "public, max-age=60"),
            ("retry-after", "7"),
        ]);
        let to = translated_answer(&from);
        assert_eq!(to.keys().collect::<Vec<_>>(), [header::RETRY_AFTER]);
        assert_eq!(
            translated_answer(&map(&[("cache-control", "No-Store")]))[header::CACHE_CONTROL],
            "No-Store"
        );
    }

    #[test]
    fn a_request_that_comes_back_is_known_by_via() {
        let own = Pseudonym::default();
        assert!(has_passed(&map(&[("via", "1.1 other, 1.1 Switchback (x)")]), &own));
        assert!(has_passed(&map(&[("via", "1.1 other"), ("via", "2.0 switchback")]), &own));
        assert!(!has_passed(&map(&[("via", "1.1 switchback.example, switchback")]), &own));
        assert!(Pseudonym::new("a b").is_none() && Pseudonym::new("").is_none());
    }

    #[test]
    fn a_method_named_beside_the_method_is_seen() {
        for name in ["x-http-method", "x-http-method-override", "x-method-override", "x-method"] {
            assert!(names_other_method(&map(&[("accept", "*/*"), (name, "DELETE")])), "{name}");
        }
        assert!(!names_other_method(&map(&[("access-control-request-method", "PUT"), ("x-tenant", "7")])));
    }

    #[test]
    fn via_grows_and_a_forged_trace_state_is_left_behind() {
        let from = map(&[
            ("via", "1.0 a"),
            ("tracestate", "v=1"),
            ("x-request-id", "theirs"),
            ("x-forwarded-for", "::1"),
            ("x_tenant", "7"),
            ("content_length", "7"),
        ]);
        let to = forwarded_request(&from, Version::HTTP_10, trace(), &Pseudonym::default());
        assert_eq!(to.get_all(header::VIA).iter().collect::<Vec<_>>(), ["1.0 a", "1.0 switchback"]);
        let mut names: Vec<_> = to.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["traceparent", "via", "x-forwarded-for", "x-request-id", "x_tenant"]);
    }

    #[test]
    fn no_spelling_of_the_clients_credential_goes_on_beside_ours() {
        let mut to = map(&[("x-own", "a"), ("x_own", "b"), ("x_other", "c")]);
        let own = Carrier::Header { name: "x-own".to_owned(), scheme: Scheme::Bare };
        let credential =
            Credential { read: vec![own], send: Vec::new(), headers: Vec::new(), tokens: Default::default() };
        remove_credentials(&mut to, &credential);
        assert_eq!(to.keys().collect::<Vec<_>>(), ["x_other"]);
    }
}
