//! Scalar types of the configuration: sizes, durations, addresses, URLs, dates. Each accepts one
//! spelling, reports the expected form for any other, and displays itself in that spelling. Places
//! and findings are left to the reader.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use switchback_engine::redact::{MASK, looks_secret};
use switchback_gateway::server::IpNet;
use time::{Date, Month, OffsetDateTime, Time, format_description::well_known::Rfc3339};

/// A text that is no value of its type; the message names the expected form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScalarError(Cow<'static, str>);

impl From<&'static str> for ScalarError {
    fn from(message: &'static str) -> ScalarError {
        ScalarError(Cow::Borrowed(message))
    }
}

impl From<String> for ScalarError {
    fn from(message: String) -> ScalarError {
        ScalarError(Cow::Owned(message))
    }
}

/// A number of bytes: `512`, `64KiB`, `10MiB`, `1GiB`. Decimal units (`kB`) are rejected, because
/// many users mean the binary ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

const SIZE_UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl FromStr for ByteSize {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<ByteSize, ScalarError> {
        let expected = "expected a number of bytes such as `512`, `64KiB`, `10MiB` or `1GiB`";
        let (digits, unit) = SIZE_UNITS
            .iter()
            .find_map(|(name, unit)| Some((text.strip_suffix(name)?.trim_end(), *unit)))
            .unwrap_or((text, 1));
        let number = parse_digits(digits).ok_or(expected)?;
        // A wrapped product would turn a huge limit into a tiny one.
        let bytes = number.checked_mul(unit);
        Ok(ByteSize(bytes.ok_or_else(|| format!("`{text}` is more than can be counted"))?))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Zero is a multiple of every unit, and `0GiB` would be an odd spelling for it.
        match SIZE_UNITS.iter().find(|(_, unit)| self.0 != 0 && self.0.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(f, "{}{name}", self.0 / unit),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A duration: `250ms`, `15s`, `5m`, `2h`, `30d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(pub Duration);

const PERIOD_UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl FromStr for Period {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<Period, ScalarError> {
        let expected = "expected a duration such as `250ms`, `15s`, `5m`, `2h` or `30d`";
        let (digits, unit) = PERIOD_UNITS
            .iter()
            .find_map(|(name, unit)| Some((text.strip_suffix(name)?.trim_end(), *unit)))
            .ok_or(expected)?;
        let number = parse_digits(digits).ok_or(expected)?;
        let millis =
            number.checked_mul(unit).ok_or_else(|| format!("`{text}` is more than can be waited"))?;
        Ok(Period(Duration::from_millis(millis)))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let (name, unit) = PERIOD_UNITS
            .iter()
            .rev()
            .find(|(_, unit)| millis != 0 && millis.is_multiple_of(u128::from(*unit)))
            .unwrap_or(&PERIOD_UNITS[0]);
        write!(f, "{}{name}", millis / u128::from(*unit))
    }
}

/// Parses ASCII digits only: no sign, underscore or empty text.
pub(super) fn parse_digits(text: &str) -> Option<u64> {
    // `u64::from_str` accepts a leading `+`.
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Parses a listening address: IP and port, such as `127.0.0.1:8080` or `[::]:8080`. Port 0 selects
/// any free port.
pub(super) fn address(text: &str) -> Result<SocketAddr, ScalarError> {
    text.parse().map_err(|_| {
        // `:8080` and `localhost:8080` are common in other programs. The message repeats the port, so that
        // it can be copied into the file.
        match text
            .strip_prefix(':')
            .or_else(|| text.strip_prefix("localhost:"))
            .and_then(|port| port.parse::<u16>().ok())
        {
            Some(port) => {
                format!("expected an IP address and a port, such as `127.0.0.1:{port}` or `0.0.0.0:{port}`")
                    .into()
            }
            None => "expected an IP address and a port, such as `127.0.0.1:8080` or `[::1]:8080`".into(),
        }
    })
}

/// Parses a network such as `10.0.0.0/8`, or a single address.
pub(super) fn network(text: &str) -> Result<IpNet, ScalarError> {
    // A single address is a network of one host: most lists of proxies name hosts.
    let one = || text.parse::<IpAddr>().map(IpNet::from).ok();
    let network = text.parse().ok().or_else(one);
    Ok(network.ok_or("expected an address or a network, such as `10.0.0.7` or `10.0.0.0/8`")?)
}

/// Returns whether a text is a common URL scheme. Any other may be a secret that contains a colon.
pub(super) fn is_scheme(text: &str) -> bool {
    ["http", "https", "ws", "wss", "ftp", "file", "tcp", "unix"].contains(&text)
}

/// An `http` or `https` URL with a host and without user, password and fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebUrl(http::Uri);

impl WebUrl {
    /// Returns the URL for requests.
    pub fn uri(&self) -> &http::Uri {
        &self.0
    }

    /// Returns the path without its trailing slash, to which operation paths are appended. Empty
    /// for the root.
    pub fn base_path(&self) -> &str {
        self.0.path().trim_end_matches('/')
    }

    /// Returns whether the URL uses TLS.
    pub fn is_https(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// Returns whether the URL has a query.
    pub fn has_query(&self) -> bool {
        self.0.query().is_some()
    }

    /// Returns the URL for display, with query values and path segments that look secret masked.
    pub fn to_masked(&self) -> String {
        let whole = self.0.to_string();
        let (address, query) =
            whole.split_once('?').map_or((whole.as_str(), None), |(address, query)| (address, Some(query)));
        let origin = address.find("://").map_or(0, |at| at + 3);
        let path = address[origin..].find('/').map_or(address.len(), |at| origin + at);
        let segments = address[path..].split('/');
        // Webhook addresses of many services contain a secret in the path.
        let segments = segments.map(|segment| if looks_secret(segment) { MASK } else { segment });
        let mut masked = format!("{}{}", &address[..path], segments.collect::<Vec<_>>().join("/"));
        for (at, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
            let name = pair.split_once('=').map_or("", |(name, _)| name);
            masked.push_str(if at == 0 { "?" } else { "&" });
            masked.push_str(&format!("{name}={MASK}"));
        }
        masked
    }

    /// Returns whether the host is `localhost` or a loopback address.
    pub fn is_loopback(&self) -> bool {
        // `http` keeps the brackets of an IPv6 host, which `IpAddr` does not parse.
        let host = self.0.host().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

impl FromStr for WebUrl {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<WebUrl, ScalarError> {
        let expected = "expected a URL such as `https://api.example.com/v3`";
        // `http::Uri` drops a fragment silently, so that a mistake would be hidden.
        if text.contains('#') {
            return Err("a URL here has no fragment (`#…`)".into());
        }
        let uri: http::Uri = text.parse().map_err(|_| expected)?;
        match uri.scheme_str() {
            Some("http" | "https") => {}
            // The message quotes common schemes only. The text before a colon may also be a secret that
            // was pasted here.
            Some(other) if is_scheme(other) => {
                return Err(format!("`{other}` is not supported; use `http` or `https`").into());
            }
            Some(_) => return Err("the scheme is not supported; use `http` or `https`".into()),
            None => return Err(expected.into()),
        }
        let authority = uri.authority().ok_or(expected)?.as_str();
        if authority.contains('@') {
            return Err("user and password do not belong into a URL; they would end up in logs".into());
        }
        if uri.host().unwrap_or_default().is_empty() {
            return Err(expected.into());
        }
        Ok(WebUrl(uri))
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The address of the store: `sqlite:PATH` or `postgres://…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl(String);

impl StoreUrl {
    /// Returns the URL for the store. It may contain a password.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the URL for display, without password and query.
    pub fn to_masked(&self) -> String {
        let Some((scheme, rest)) = self.0.split_once("://") else { return self.0.clone() };
        let rest = rest.split('?').next().unwrap_or_default();
        // The last `@`, since a password may contain one that is not escaped.
        match rest.rsplit_once('@') {
            Some((user, host)) => {
                let user = user.split(':').next().unwrap_or_default();
                format!("{scheme}://{user}:***@{host}")
            }
            None => format!("{scheme}://{rest}"),
        }
    }
}

impl FromStr for StoreUrl {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<StoreUrl, ScalarError> {
        let known = [("sqlite:", 7), ("postgres://", 11), ("postgresql://", 13)];
        let authority =
            text.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or(""));
        let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
        // A list of hosts, as libpq permits it, could lead to one that is no longer the primary.
        if text.starts_with("postgres") && hosts.contains(',') {
            return Err("a store has one host; use a name or a proxy that follows the primary".into());
        }
        match known.iter().any(|(prefix, length)| text.starts_with(prefix) && text.len() > *length) {
            true => Ok(StoreUrl(text.to_owned())),
            false => Err("expected `sqlite:FILE` or `postgres://USER@HOST/DATABASE`".into()),
        }
    }
}

/// A day (`2026-12-31`, its first second in UTC) or a moment (`2026-12-31T23:59:59Z`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DateOrTime(pub OffsetDateTime);

impl DateOrTime {
    /// Returns the Unix time in milliseconds.
    pub fn unix_ms(self) -> i64 {
        self.0.unix_timestamp().saturating_mul(1000).saturating_add(i64::from(self.0.millisecond()))
    }
}

impl FromStr for DateOrTime {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<DateOrTime, ScalarError> {
        let expected = "expected a day such as `2026-12-31` or a moment such as `2026-12-31T23:59:59Z`";
        if let Ok(moment) = OffsetDateTime::parse(text, &Rfc3339) {
            return Ok(DateOrTime(moment));
        }
        // Exact widths, as in RFC 3339: `20-12-31` would otherwise be a day of the year 20.
        let mut parts = text.split('-').map(|part| (part.len(), parse_digits(part)));
        let (Some((4, Some(year))), Some((2, Some(month))), Some((2, Some(day))), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(expected.into());
        };
        let month = u8::try_from(month).ok().and_then(|month| Month::try_from(month).ok()).ok_or(expected)?;
        let date = i32::try_from(year).ok().zip(u8::try_from(day).ok());
        let date =
            date.and_then(|(year, day)| Date::from_calendar_date(year, month, day).ok()).ok_or(expected)?;
        Ok(DateOrTime(date.with_time(Time::MIDNIGHT).assume_utc()))
    }
}

impl fmt::Display for DateOrTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.format(&Rfc3339).map_err(|_| fmt::Error)?)
    }
}

/// The path prefix of a front: `/v2`. Starts with a slash, has no trailing slash, and consists of
/// unreserved characters (RFC 3986, section 2.3). The root is written `/` and matches every path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathPrefix(String);

impl PathPrefix {
    /// Returns the prefix for comparison with paths; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PathPrefix {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<PathPrefix, ScalarError> {
        if text == "/" {
            return Ok(PathPrefix(String::new()));
        }
        let segments = text.strip_prefix('/').ok_or("expected a path prefix such as `/v2`")?;
        // Characters that may be escaped are excluded, as two spellings of one prefix would both have to
        // match.
        let is_plain = |segment: &str| {
            !segment.is_empty()
                && segment
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~'))
                && !matches!(segment, "." | "..")
        };
        match segments.split('/').all(is_plain) {
            true => Ok(PathPrefix(text.to_owned())),
            false => {
                Err("expected segments of letters, digits, `-`, `_`, `.` and `~`, such as `/v2` or `/api/v2`"
                    .into())
            }
        }
    }
}

impl fmt::Display for PathPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "/" } else { &self.0 })
    }
}

/// Parses the path of a file or folder. Relative paths are resolved from the working directory, as
/// on the command line.
pub(super) fn path(text: &str) -> Result<PathBuf, ScalarError> {
    match text.is_empty() || text.contains('\0') {
        true => Err("expected the path of a file or folder".into()),
        false => Ok(PathBuf::from(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both_ways<T: FromStr<Err = ScalarError> + fmt::Display>(cases: &[(&str, &str)]) {
        for (typed, shown) in cases {
            let value = typed.parse::<T>().unwrap_or_else(|error| panic!("{typed}: {error}"));
            assert_eq!(value.to_string(), *shown, "{typed}");
            assert_eq!(shown.parse::<T>().map(|again| again.to_string()), Ok((*shown).to_owned()));
        }
    }

    fn refused<T: FromStr<Err = ScalarError>>(cases: &[&str]) {
        for typed in cases {
            assert!(typed.parse::<T>().is_err(), "{typed} was taken");
        }
    }

    #[test]
    fn sizes() {
        both_ways::<ByteSize>(&[
            ("0", "0"),
            ("1500", "1500"),
            ("1024", "1KiB"),
            ("10MiB", "10MiB"),
            ("2 GiB", "2GiB"),
        ]);
        refused::<ByteSize>(&[
            "",
            "10MB",
            "10kb",
            "-1",
            "1.5MiB",
            "MiB",
            "+1",
            "1_000",
            "18446744073709551615KiB",
        ]);
    }

    #[test]
    fn durations() {
        both_ways::<Period>(&[
            ("0ms", "0ms"),
            ("1500ms", "1500ms"),
            ("60s", "1m"),
            ("90s", "90s"),
            ("30d", "30d"),
        ]);
        refused::<Period>(&["", "15", "15sec", "-1s", "1.5s", "s", "1w", "99999999999999999999d"]);
    }

    #[test]
    fn urls() {
        both_ways::<WebUrl>(&[
            ("https://a.example/v3", "https://a.example/v3"),
            ("http://[::1]:1/", "http://[::1]:1/"),
        ]);
        refused::<WebUrl>(&[
            "",
            "a.example",
            "/v3",
            "ftp://a",
            "file:///etc",
            "http://u:p@a/",
            "http://a/#x",
            "http:// a",
        ]);
        let masked = |text: &str| text.parse::<WebUrl>().unwrap().to_masked();
        assert_eq!(masked("https://a.example/v3"), "https://a.example/v3");
        assert_eq!(
            masked("https://a.example/hooks/Zx81Qm2Lp04Nv7Rk55Tb/in?key=abc&x"),
            "https://a.example/hooks/***/in?key=***&=***"
        );
        assert_eq!("http://a/v3/".parse::<WebUrl>().unwrap().base_path(), "/v3");
        assert_eq!("http://a".parse::<WebUrl>().unwrap().base_path(), "");
    }

    #[test]
    fn a_store_shows_itself_without_its_password() {
        let masked = |text: &str| text.parse::<StoreUrl>().unwrap().to_masked();
        assert_eq!(masked("sqlite:a/b.db"), "sqlite:a/b.db");
        assert_eq!(masked("postgres://me:p@ss@db:5432/x?password=q"), "postgres://me:***@db:5432/x");
        assert_eq!(masked("postgres://db/x"), "postgres://db/x");
        refused::<StoreUrl>(&["", "sqlite:", "mysql://a", "postgres://", "switchback.db"]);
    }

    #[test]
    fn days_and_moments() {
        both_ways::<DateOrTime>(&[
            ("2026-12-31", "2026-12-31T00:00:00Z"),
            ("2026-12-31T23:59:59Z", "2026-12-31T23:59:59Z"),
        ]);
        refused::<DateOrTime>(&[
            "",
            "2026-02-30",
            "31.12.2026",
            "2026-1-1",
            "2026-12-31 10:00",
            "@1700000000",
        ]);
    }

    #[test]
    fn prefixes() {
        both_ways::<PathPrefix>(&[("/", "/"), ("/v2", "/v2"), ("/api/v2", "/api/v2")]);
        refused::<PathPrefix>(&["", "v2", "/v2/", "//v2", "/a/../b", "/ä", "/{id}", "/a%2Fb"]);
        assert_eq!("/".parse::<PathPrefix>().unwrap().as_str(), "");
    }

    #[test]
    fn addresses_say_what_is_missing() {
        assert!(address("127.0.0.1:0").is_ok() && address("[::]:80").is_ok());
        assert!(address(":8080").unwrap_err().to_string().contains("0.0.0.0:8080"));
        assert!(address("localhost:8080").unwrap_err().to_string().contains("127.0.0.1:8080"));
        assert!(address("8080").is_err());
    }
}
