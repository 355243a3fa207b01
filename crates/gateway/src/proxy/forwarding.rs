//! Handling of `X-Forwarded-*` and `Forwarded` (RFC 7239) in forwarded requests, as the operator
//! configures it.

use crate::server::{IpNet, Peer};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::net::IpAddr;
use std::sync::Arc;

/// The policy for these fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedFields {
    /// Forward the fields unchanged.
    #[default]
    Pass,
    /// Append the peer to the fields of a trusted peer; replace those of other peers.
    Append,
    /// Replace the fields by those of the peer.
    Set,
    /// Remove the fields.
    Drop,
}

impl ForwardedFields {
    /// Returns whether the policy needs the address of the peer.
    pub fn names_peer(self) -> bool {
        matches!(self, ForwardedFields::Append | ForwardedFields::Set)
    }
}

/// The configured policy and the trusted proxies.
#[derive(Clone, Debug, Default)]
pub struct Forwarding {
    /// Policy for `X-Forwarded-*` and `Forwarded` (RFC 7239) in calls.
    pub fields: ForwardedFields,
    /// Networks of trusted proxies. Empty: no peer is trusted.
    pub trusted: Arc<[IpNet]>,
}

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// Prefix of the family. Besides the standard names it covers `X-Forwarded-Prefix`,
/// `X-Forwarded-Ssl` and others that a service may trust.
const FAMILY: &[u8] = b"x-forwarded";

/// Returns whether a field belongs to the family. Treats `_` as `-`, as some servers do.
fn is_of_family(name: &HeaderName) -> bool {
    let mut dashed = name.as_str().bytes().map(|byte| if byte == b'_' { b'-' } else { byte });
    *name == header::FORWARDED
        || (FAMILY.iter().all(|known| dashed.next() == Some(*known))
            && matches!(dashed.next(), None | Some(b'-')))
}

impl Forwarding {
    /// Returns the client address: that of the peer or, if the peer is trusted, the last untrusted
    /// address in `X-Forwarded-For`. Earlier entries may be forged.
    pub(crate) fn client(&self, peer: Peer, headers: &HeaderMap) -> IpAddr {
        let mut address = peer.address.ip().to_canonical();
        if self.trusted.is_empty() {
            return address;
        }
        let lines: Vec<&str> = headers.get_all(FOR).iter().filter_map(|line| line.to_str().ok()).collect();
        // From right to left: each proxy appends the address of its peer, so only the entries that
        // trusted proxies appended are reliable.
        let mut said = lines.iter().rev().flat_map(|line| line.rsplit(',')).map(str::trim);
        while self.trusts(address) {
            let Some(before) = said.next().and_then(|said| said.parse::<IpAddr>().ok()) else { break };
            address = before.to_canonical();
        }
        address
    }

    /// Returns the scheme of the client: `X-Forwarded-Proto` of a trusted peer, or that of the
    /// connection. An untrusted client must not control the URLs in responses, which caches may
    /// store.
    pub(crate) fn scheme(&self, peer: Option<Peer>, headers: &HeaderMap) -> &'static str {
        let is_trusted = peer.is_some_and(|peer| self.trusts(peer.address.ip().to_canonical()));
        let said = headers.get(PROTO).filter(|_| is_trusted).and_then(|proto| proto.to_str().ok());
        match said {
            Some(said) if said.eq_ignore_ascii_case("https") => "https",
            Some(said) if said.eq_ignore_ascii_case("http") => "http",
            // An unknown scheme in the field is ignored rather than copied into URLs.
            _ if peer.is_some_and(|peer| peer.is_tls) => "https",
            _ => "http",
        }
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|net| net.contains(&address))
    }

    /// Applies the policy to the fields of a forwarded request. `host` is the authority that the
    /// client requested.
    pub(crate) fn apply(&self, headers: &mut HeaderMap, peer: Option<Peer>, host: Option<&HeaderValue>) {
        if self.fields == ForwardedFields::Pass {
            return;
        }
        let address = peer.map(|peer| peer.address.ip().to_canonical());
        let is_trusted = address.is_some_and(|address| self.trusts(address));
        if self.fields != ForwardedFields::Append || !is_trusted {
            remove(headers, |_| true);
        } else {
            // Trusted proxies write dashes; names with `_` come from beyond them.
            remove(headers, |name| name.as_str().contains('_'));
        }
        let (Some(peer), Some(address), true) = (peer, address, self.fields.names_peer()) else { return };
        let proto = if peer.is_tls { "https" } else { "http" };
        append(headers, FOR, &address.to_string());
        append(headers, header::FORWARDED, &element(address, host, proto));
        // An earlier proxy knows better what the client requested.
        if let Some(host) = host.filter(|_| !headers.contains_key(HOST)) {
            headers.insert(HOST, host.clone());
        }
        if !headers.contains_key(PROTO) {
            headers.insert(PROTO, HeaderValue::from_static(proto));
        }
    }
}

/// Removes the fields of the family that match a predicate.
fn remove(headers: &mut HeaderMap, which: impl Fn(&HeaderName) -> bool) {
    let found: Vec<HeaderName> =
        headers.keys().filter(|name| is_of_family(name) && which(name)).cloned().collect();
    found.iter().for_each(|name| drop(headers.remove(name)));
}

/// Appends to a list field, joined into one line.
fn append(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    let lines = headers.get_all(&name).iter().filter_map(|line| line.to_str().ok());
    // One line: some services read only the first line of a list field.
    let list = lines.chain([value]).collect::<Vec<_>>().join(", ");
    if let Ok(list) = HeaderValue::try_from(list) {
        headers.insert(name, list);
    }
}

/// Renders the `Forwarded` element of one hop (RFC 7239, section 4).
fn element(address: IpAddr, host: Option<&HeaderValue>, proto: &str) -> String {
    let node = match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("\"[{address}]\""),
    };
    // Host needs no escaping: a validated authority has no quotes or backslashes.
    let host = host.and_then(|host| host.to_str().ok()).map(|host| format!(";host=\"{host}\""));
    format!("for={node}{};proto={proto}", host.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(fields: ForwardedFields, peer: &str) -> Vec<(String, String)> {
        let trusted = Arc::from(["10.0.0.0/8".parse::<IpNet>().expect("a network")]);
        let mut headers = HeaderMap::new();
        headers.insert(FOR, HeaderValue::from_static("1.2.3.4"));
        headers.insert(PROTO, HeaderValue::from_static("https"));
        headers.insert(header::FORWARDED, HeaderValue::from_static("for=1.2.3.4"));
        let address = peer.parse().expect("an address");
        let host = HeaderValue::from_static("a.test");
        let peer = Some(Peer { address, is_tls: false });
        Forwarding { fields, trusted }.apply(&mut headers, peer, Some(&host));
        let text = |value: &HeaderValue| value.to_str().expect("plain text").to_owned();
        headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
    }

    #[test]
    fn the_whole_family_is_replaced_however_it_is_spelt() {
        let forged = [
            "x-forwarded-server",
            "x-forwarded-prefix",
            "x-forwarded-ssl",
            "x-forwarded-scheme",
            "x-forwarded-by",
            "x-forwarded",
            "x_forwarded_for",
            "x-forwarded_host",
            "x_forwarded-anything",
        ];
        let trusted = Arc::from(["10.0.0.0/8".parse::<IpNet>().expect("a network")]);
        for (fields, address, dashed) in [
            (ForwardedFields::Append, "9.9.9.9:5", 0),
            (ForwardedFields::Append, "10.1.1.1:5", 6),
            (ForwardedFields::Set, "10.1.1.1:5", 0),
            (ForwardedFields::Drop, "10.1.1.1:5", 0),
            (ForwardedFields::Pass, "9.9.9.9:5", 9),
        ] {
            let names = forged.iter().chain(&["x-forwarder", "x-forward", "forwarded-to"]);
            let field =
                |name: &&'static str| (HeaderName::from_static(name), HeaderValue::from_static("forged"));
            let mut headers: HeaderMap = names.map(field).collect();
            let peer = Some(Peer { address: address.parse().expect("an address"), is_tls: false });
            Forwarding { fields, trusted: Arc::clone(&trusted) }.apply(&mut headers, peer, None);
            let left = headers.values().filter(|value| *value == "forged").count();
            assert_eq!(left, dashed + 3, "{fields:?} of {address}: {headers:?}");
        }
    }

    fn value(said: &[(String, String)], name: &str) -> String {
        said.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
    }

    #[test]
    fn what_trusted_peers_say_is_kept_and_what_others_say_is_not() {
        let trusted = said(ForwardedFields::Append, "10.1.1.1:5");
        assert_eq!(value(&trusted, "x-forwarded-for"), "1.2.3.4, 10.1.1.1");
        assert_eq!(value(&trusted, "x-forwarded-proto"), "https");
        assert_eq!(value(&trusted, "x-forwarded-host"), "a.test");
        assert_eq!(value(&trusted, "forwarded"), "for=1.2.3.4, for=10.1.1.1;host=\"a.test\";proto=http");
        for fields in [ForwardedFields::Append, ForwardedFields::Set] {
            let other = said(fields, "[::ffff:9.9.9.9]:5");
            assert_eq!(value(&other, "x-forwarded-for"), "9.9.9.9");
            assert_eq!(value(&other, "x-forwarded-proto"), "http");
            assert_eq!(value(&other, "forwarded"), "for=9.9.9.9;host=\"a.test\";proto=http");
        }
        let six = said(ForwardedFields::Set, "[2001:db8::1]:5");
        assert!(value(&six, "forwarded").starts_with("for=\"[2001:db8::1]\";"), "{six:?}");
    }

    #[test]
    fn a_client_is_whom_the_last_trusted_proxy_names() {
        let trusted = Arc::from(["10.0.0.0/8".parse::<IpNet>().expect("a network")]);
        let forwarding = Forwarding { fields: ForwardedFields::Pass, trusted };
        let client = |peer: &str, said: &[&'static str]| {
            let lines = said.iter().map(|line| (FOR, HeaderValue::from_static(line)));
            let peer = Peer { address: peer.parse().expect("an address"), is_tls: false };
            forwarding.client(peer, &lines.collect()).to_string()
        };
        assert_eq!(
            client("[::ffff:9.9.9.9]:5", &["1.2.3.4"]),
            "9.9.9.9",
            "whoever is not trusted is the client"
        );
        assert_eq!(client("10.1.1.1:5", &["6.6.6.6, 1.2.3.4"]), "1.2.3.4", "6.6.6.6 may be made up");
        assert_eq!(
            client("10.1.1.1:5", &["6.6.6.6", "1.2.3.4, 10.2.2.2"]),
            "1.2.3.4",
            "of two lines the last"
        );
        assert_eq!(
            client("10.1.1.1:5", &["1.2.3.4, 10.2.2.2, x"]),
            "10.1.1.1",
            "what is no address names nobody"
        );
        assert_eq!(client("10.1.1.1:5", &[]), "10.1.1.1");
        assert_eq!(client("10.1.1.1:5", &["10.2.2.2"]), "10.2.2.2", "only proxies: the first of them");
    }

    #[test]
    fn they_can_be_left_alone_and_left_out() {
        assert_eq!(said(ForwardedFields::Pass, "9.9.9.9:5").len(), 3);
        assert!(said(ForwardedFields::Drop, "10.1.1.1:5").is_empty());
    }

    #[test]
    fn a_protocol_is_taken_from_trusted_peers_alone() {
        let trusted = Arc::from(["10.0.0.0/8".parse::<IpNet>().expect("a network")]);
        let forwarding = Forwarding { fields: ForwardedFields::Append, trusted };
        let asked = |address: &str, is_tls, said: &'static str| {
            let headers = HeaderMap::from_iter([(PROTO, HeaderValue::from_static(said))]);
            let peer = Peer { address: address.parse().expect("an address"), is_tls };
            forwarding.scheme(Some(peer), &headers)
        };
        assert_eq!(asked("10.1.1.1:5", false, "https"), "https");
        assert_eq!(asked("10.1.1.1:5", true, "HTTP"), "http");
        assert_eq!(asked("10.1.1.1:5", true, "gopher"), "https");
        assert_eq!(asked("192.0.2.1:5", false, "https"), "http");
        assert_eq!(asked("192.0.2.1:5", true, "http"), "https");
    }
}
