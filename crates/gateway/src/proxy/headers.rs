//! Policies for header fields that pass through the gateway. Header maps are built from allowed
//! fields, never copied and then filtered, so an unforeseen field is dropped.
//!
//! There are two policies per direction. *Translated* messages keep a short list, because all other
//! fields describe a message that no longer exists (lengths, codings, validators, ranges, cookies
//! of the other side). `no-transform` does not apply there: it binds intermediaries that forward a
//! representation (RFC 9110, section 7.7), while a translated response represents another resource.
//! *Forwarded* messages, to the old service until it is switched off, keep all fields except those
//! of one hop (RFC 9110, section 7.6.1).

use crate::telemetry::trace::{TRACEPARENT, TRACESTATE, TraceParent};
use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use std::cell::LazyCell;
use switchback_plan::{ANSWER_KEEPS, BodyFormat, CALL_KEEPS, Credential};

/// The gateway's name in `Via`, by which it detects its own requests in a loop. Gateways that call
/// each other need different names; replicas of one gateway share a name.
#[derive(Clone, Debug)]
pub struct Pseudonym {
    name: String,
    via_11: HeaderValue,
    via_2: HeaderValue,
    via_10: HeaderValue,
}

impl Pseudonym {
    /// Returns `None` if `name` is not a token (RFC 9110, section 5.6.2).
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

    /// Returns the `Via` member for a message received in this version.
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

/// Returns whether a request has passed through this gateway before.
pub fn has_passed(headers: &HeaderMap, pseudonym: &Pseudonym) -> bool {
    let members = headers.get_all(header::VIA).iter().filter_map(|value| value.to_str().ok());
    members.flat_map(|value| value.split(',')).any(|member| {
        // A member is the protocol version, then the name, then an optional comment (RFC 9110,
        // section 7.6.3).
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

/// Fields that the gateway itself sets or removes in forwarded requests.
const OUR_OWN: [HeaderName; 4] = [header::HOST, header::CONTENT_LENGTH, header::EXPECT, header::VIA];

/// Returns whether a request has a method override field, such as `X-HTTP-Method-Override`. Its
/// method then does not determine its effect.
pub fn names_other_method(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("x-") && name.as_str().contains("method"))
}

/// Fields that the `Connection` lines of a message limit to one hop.
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

/// Builds the fields of a translated call: a few of the client's, then the gateway's own. The layer
/// that owns the credential adds it later, so that no field of the client can replace it. The map
/// has room for `more` further fields, because growing costs as much as building it.
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
    // The copied fields, the four below, the host and the credential. Maps of up to six fields need
    // considerably less memory.
    let mut to = HeaderMap::with_capacity(6 + kept.iter().flatten().count() + more);
    for (name, value) in CALL_KEEPS.iter().zip(kept) {
        if let Some(value) = value.filter(|_| !nominated.has(name)) {
            to.insert(name.clone(), value.clone());
            // A field may have several lines (RFC 9110, section 5.3), but few requests use that.
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

/// Builds the fields of a forwarded request: all except those of the hop and those that could forge
/// them or the gateway's own.
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
        // `TE` applies to one hop, so each sender must name it in `Connection` (RFC 9110, section
        // 10.1.4).
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

/// Returns whether a server that treats `_` as `-` would mistake a field for one that clients must
/// not set.
fn forges(name: &HeaderName) -> bool {
    let Some(dashed) = with_dashes(name) else { return false };
    let is_reserved = |reserved: &HeaderName| reserved.as_str() == dashed;
    HOP_BY_HOP.iter().any(is_reserved) || OUR_OWN.iter().any(is_reserved)
}

/// Returns the name with `-` for each `_`, or `None` if it has no `_`.
fn with_dashes(name: &HeaderName) -> Option<String> {
    name.as_str().contains('_').then(|| name.as_str().replace('_', "-"))
}

/// Returns whether the content type of a message is an urlencoded form.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    let named = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    named.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case(BodyFormat::FORM))
}

/// Removes the fields that a client's credential is read from, and those that some servers would
/// mistake for them.
pub fn remove_credentials(headers: &mut HeaderMap, credential: &Credential) {
    let is_one = |name: &HeaderName| {
        let dashed = with_dashes(name);
        credential.read_headers().any(|own| own == name.as_str() || dashed.as_deref() == Some(own))
    };
    let found: Vec<HeaderName> = headers.keys().filter(|name| is_one(name)).cloned().collect();
    found.into_iter().for_each(|name| drop(headers.remove(name)));
}

/// Builds the fields of a translated response: a few of the upstream's.
pub fn translated_answer(from: &HeaderMap) -> HeaderMap {
    // Copied fields, and usually `Vary`, the content type and the request id.
    let mut to = HeaderMap::with_capacity(6);
    // Most responses have none of these fields, so that `Connection` is not searched for.
    let nominated = LazyCell::new(|| Nominated::from_headers(from));
    // One pass over a handful of fields is less than a search for each that could be there.
    for (name, value) in from {
        // Caching rules are copied only if they restrict caching. A response that was cacheable
        // under the other side's URL and credential need not be cacheable under this one's.
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

/// Returns whether a request offers to switch protocols. Other versions of HTTP and TLS do not
/// count: over h2c, requests would bypass the gateway's layers, and clients that offer them work
/// without.
pub fn wants_switch(headers: &HeaderMap, version: Version) -> bool {
    if version != Version::HTTP_11 || !headers.contains_key(header::UPGRADE) {
        return false;
    }
    let lines = headers.get_all(header::UPGRADE).iter().map(|value| value.to_str().unwrap_or_default());
    let mut protocols = lines.flat_map(|line| line.split(',')).map(str::trim);
    let is_other = |protocol: &str| {
        let name = protocol.split('/').next().unwrap_or_default();
        !name.is_empty()
            // An upgrade to another version of HTTP would turn the connection into a tunnel that
            // carries requests past authentication, limits and translation.
            && !["h2c", "h2", "h3", "http", "tls"].iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    // Without its name in `Connection`, an earlier hop has forwarded `Upgrade` by mistake (RFC
    // 9110, section 7.8).
    Nominated::from_headers(headers).has(&header::UPGRADE) && protocols.all(is_other)
}

/// Copies the client's request for another protocol to a forwarded request. Returns whether there
/// is one.
pub fn add_switch(from: &HeaderMap, version: Version, to: &mut HeaderMap) -> bool {
    let wants = wants_switch(from, version);
    if wants {
        to.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        add_protocols(from, to);
    }
    wants
}

/// Sets the fields of a response that switches protocols.
pub fn add_switched(from: &HeaderMap, to: &mut HeaderMap) {
    to.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    add_protocols(from, to);
}

fn add_protocols(from: &HeaderMap, to: &mut HeaderMap) {
    for value in from.get_all(header::UPGRADE) {
        to.append(header::UPGRADE, value.clone());
    }
}

/// Returns the remaining hops of a request with `Max-Forwards`.
pub fn forwards_left(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::MAX_FORWARDS)?.to_str().ok()?.trim().parse().ok()
}

/// Returns whether a response switches to a requested protocol, compared by name and version.
pub fn switches_as_asked(asked: &HeaderMap, answered: &HeaderMap) -> bool {
    fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
        let lines = headers.get_all(header::UPGRADE).iter().map(|value| value.to_str().unwrap_or_default());
        lines.flat_map(|line| line.split(',')).map(str::trim).filter(|protocol| !protocol.is_empty())
    }
    let mut chosen = protocols(answered).peekable();
    let is_asked = |chosen: &str| protocols(asked).any(|asked| asked.eq_ignore_ascii_case(chosen));
    // A server must not switch to a protocol that the client did not offer (RFC 9110, section 7.8).
    chosen.peek().is_some() && chosen.all(is_asked)
}

/// Decrements `Max-Forwards` (RFC 9110, section 7.6.2).
pub fn count_down(headers: &mut HeaderMap) {
    if let Some(left) = forwards_left(headers) {
        headers.insert(header::MAX_FORWARDS, HeaderValue::from(left.saturating_sub(1)));
    }
}

/// Builds the fields of a forwarded response: all except those of the hop, in their order.
pub fn forwarded_answer(from: &HeaderMap, is_head: bool) -> HeaderMap {
    let mut to = HeaderMap::with_capacity(from.len() + 2);
    let nominated = Nominated::from_headers(from);
    for (name, value) in from {
        // The server derives Content-Length from the body. The response to HEAD has no body to
        // derive it from, and its length describes that of a GET (RFC 9110, section 8.6).
        if is_end_to_end(name, &nominated) && (is_head || name != header::CONTENT_LENGTH) {
            to.append(name.clone(), value.clone());
        }
    }
    to
}

fn is_end_to_end(name: &HeaderName, nominated: &Nominated<'_>) -> bool {
    // Trailers pass through with forwarded bodies, so the field that announces them does too.
    *name == header::TRAILER || (!HOP_BY_HOP.contains(name) && !nominated.has(name))
}

fn add_trace(from: &HeaderMap, to: &mut HeaderMap, trace: TraceParent) {
    to.insert(TRACEPARENT, trace.child(fastrand::u64(..)).header_value());
    if !from.contains_key(TRACESTATE) {
        return;
    }
    // Vendor entries belong to the trace that they arrived with. A new trace must not continue
    // them.
    let is_theirs =
        from.get(TRACEPARENT).and_then(|value| TraceParent::parse(value.to_str().ok()?)).is_some();
    if is_theirs {
        for value in from.get_all(TRACESTATE) {
            to.append(TRACESTATE, value.clone());
        }
    }
}

fn add_via(from: &HeaderMap, to: &mut HeaderMap, version: Version, pseudonym: &Pseudonym) {
    // Earlier members stay, because each gateway of a loop searches all of them for its own name.
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
            // Including the field that announces the trailers, which pass through with the body.
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
