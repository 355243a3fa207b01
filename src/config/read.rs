//! Reads typed values from a YAML tree. Each kind of value defines how it is read, described in the
//! JSON Schema and printed in the masked dump; each section is declared once by [`section`], so the
//! three cannot diverge.

use super::scalars::{self, ByteSize, DateOrTime, PathPrefix, Period, ScalarError, StoreUrl, WebUrl};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use switchback_compiler::diagnostic::{Code, Finding, Findings, Span, suggest};
use switchback_compiler::yaml::{Kind, Node, described};
use switchback_engine::redact::{MASK, is_telling_name, looks_secret};
use switchback_gateway::proxy::cors::AllowedOrigin;
use switchback_gateway::secret::Secret;
use switchback_gateway::server::IpNet;

/// The context of reading.
pub(super) struct ReadContext<'a> {
    pub(super) findings: &'a mut Findings,
    pub(super) read_file: &'a dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
    /// The text of the file.
    pub(super) text: &'a str,
    /// Places of values that findings may quote: values of known keys that look like the expected
    /// kind. Anything else may be a secret under a misspelt key or in the wrong place.
    pub(super) quotable: Vec<Span>,
}

impl ReadContext<'_> {
    /// Allows findings to quote this scalar, or the scalars of this list, if they look like the
    /// expected kind.
    pub(super) fn quote<T: FromYaml>(&mut self, node: &Node) {
        let may_quote = match &node.kind {
            Kind::Seq(items) => {
                return items.iter().filter(|item| is_scalar(item)).for_each(|item| self.quote::<T>(item));
            }
            Kind::String(text, _) | Kind::Number(text) => T::may_quote(text),
            Kind::Bool(value) => T::may_quote(if *value { "true" } else { "false" }),
            // Null may be a tagged value; its text is still in the file.
            Kind::Null | Kind::Map(_) => false,
        };
        if may_quote {
            self.quotable.push(node.span);
        }
    }

    /// Allows findings to quote this byte range of a scalar as typed.
    fn quote_part(&mut self, node: &Node, part: std::ops::Range<usize>) {
        let at = |offset: usize| node.span.start + u32::try_from(offset).unwrap_or(u32::MAX);
        self.quotable.push(Span::new(node.span.file, at(part.start), at(part.end)));
    }

    /// Returns a scalar as typed, including its quotes.
    fn source_text(&self, node: &Node) -> &str {
        self.text.get(node.span.start as usize..node.span.end as usize).unwrap_or_default()
    }
}

/// Returns whether a text looks like a number with an optional unit, a date or an address: it
/// starts like one and has no longer run of letters than a unit.
pub(super) fn is_measure(text: &str) -> bool {
    // Units are shorter. A longer run of letters may belong to a secret.
    const LETTERS_MAX: usize = 4;
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || "+-.:[".contains(c));
    let mut runs = text.split(|c: char| !c.is_ascii_alphabetic());
    begins && text.is_ascii() && runs.all(|run| run.len() <= LETTERS_MAX) && !looks_secret(text)
}

/// Returns whether a text is one of these words or a likely misspelling.
pub(super) fn is_word(text: &str, words: &[&str]) -> bool {
    words.contains(&text) || suggest(text, words.iter().copied()).is_some()
}

/// Returns whether a text looks like a listening address.
fn is_address(text: &str) -> bool {
    is_measure(text.strip_prefix("localhost").unwrap_or(text))
}

/// Returns whether a text looks like a name or a path rather than a token.
pub(super) fn is_name(text: &str) -> bool {
    !looks_secret(text)
}

fn is_scalar(node: &Node) -> bool {
    !matches!(node.kind, Kind::Seq(_) | Kind::Map(_))
}

/// Reads the value of a known key.
pub(super) fn value_of<T: FromYaml>(node: &Node, reading: &mut ReadContext<'_>) -> Option<T> {
    reading.quote::<T>(node);
    T::parse(node, reading)
}

/// A kind of value in the configuration.
pub(super) trait FromYaml: Sized {
    /// Returns whether findings may quote `text` where this kind is expected. The text may be
    /// wrong, or a secret for another key.
    fn may_quote(_: &str) -> bool {
        false
    }

    /// Reads the value. Reports a mistake and returns `None`.
    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self>;
    /// Returns the JSON Schema of this kind.
    fn schema() -> Value;
    /// Returns the value for the masked dump.
    fn to_value(&self) -> Value;
}

/// A value with its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// The place; for defaults, the empty span at the start of the file.
    pub span: Span,
}

impl<T> Deref for Placed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: FromYaml> FromYaml for Placed<T> {
    fn may_quote(text: &str) -> bool {
        T::may_quote(text)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        T::parse(node, reading).map(|value| Placed { value, span: node.span })
    }

    fn schema() -> Value {
        T::schema()
    }

    fn to_value(&self) -> Value {
        self.value.to_value()
    }
}

impl<T: FromYaml> FromYaml for Option<T> {
    fn may_quote(text: &str) -> bool {
        T::may_quote(text)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        T::parse(node, reading).map(Some)
    }

    fn schema() -> Value {
        T::schema()
    }

    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }
}

/// Declares a section of the file: its struct, reader, schema and dump. Keys under `required` must
/// be present (their fields are `None` only after a finding); keys with `= default` fall back to
/// it; all others are optional.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $name:ident is $what:literal,
        required { $( $(#[doc = $rdoc:literal])+ $rkey:ident: $rkind:ty, )* }
        optional { $( $(#[doc = $odoc:literal])+ $okey:ident: $okind:ty $(= $odefault:expr)?, )* }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        pub(super) struct $name {
            $( $(#[doc = $rdoc])+ pub(super) $rkey: Option<Placed<$rkind>>, )*
            $( $(#[doc = $odoc])+ pub(super) $okey: section!(@type $okind $(, $odefault)?), )*
        }

        impl $name {
            const KEYS: switchback_compiler::yaml::Keys = switchback_compiler::yaml::Keys {
                what: $what,
                entries: &[
                    $( switchback_compiler::yaml::KeyEntry::required(stringify!($rkey)), )*
                    $( switchback_compiler::yaml::KeyEntry::optional(stringify!($okey)), )*
                ],
            };

            /// Returns the section for a file that omits it: all keys at their defaults.
            #[allow(dead_code, reason = "sections with required keys are never assumed")]
            pub(super) fn assumed() -> Self {
                $name { $( $rkey: None, )* $( $okey: section!(@assumed $okind $(, $odefault)?), )* }
            }
        }

        impl FromYaml for $name {
            fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
                let fields = switchback_compiler::yaml::Fields::parse(node, &Self::KEYS, reading.findings)?;
                Some($name {
                    $( $rkey: fields
                        .get(stringify!($rkey))
                        .and_then(|node| $crate::config::read::value_of(node, reading)), )*
                    $( $okey: fields
                        .get(stringify!($okey))
                        .and_then(|node| $crate::config::read::value_of(node, reading))
                        .unwrap_or_else(|| section!(@assumed $okind $(, $odefault)?)), )*
                })
            }

            fn schema() -> Value {
                #[allow(unused_mut, reason = "a section may have no keys of one group")]
                let mut properties = serde_json::Map::new();
                $( properties.insert(
                    stringify!($rkey).to_owned(),
                    describe_schema(<$rkind as FromYaml>::schema(), &[$($rdoc),+], None),
                ); )*
                $( properties.insert(
                    stringify!($okey).to_owned(),
                    describe_schema(
                        <$okind as FromYaml>::schema(),
                        &[$($odoc),+],
                        section!(@default $okind $(, $odefault)?),
                    ),
                ); )*
                let required: &[&str] = &[$(stringify!($rkey)),*];
                json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
            }

            fn to_value(&self) -> Value {
                // `json!` would recurse once per key.
                let members = [
                    $( (stringify!($rkey), self.$rkey.to_value()), )*
                    $( (stringify!($okey), self.$okey.to_value()), )*
                ];
                Value::Object(members.map(|(key, value)| (key.to_owned(), value)).into_iter().collect())
            }
        }
    };
    (@type $kind:ty) => { Option<Placed<$kind>> };
    (@type $kind:ty, $default:expr) => { Placed<$kind> };
    (@assumed $kind:ty) => { None };
    (@assumed $kind:ty, $default:expr) => { Placed { value: $default, span: Span::default() } };
    (@default $kind:ty) => { None };
    (@default $kind:ty, $default:expr) => {{ let default: $kind = $default; Some(default.to_value()) }};
}
pub(super) use section;

/// Implements [`FromYaml`] for enums of words. Findings may quote a word, also a misspelt one, of a
/// `quotable` kind, but not of a `masked` one.
macro_rules! words {
    ($($name:ident: $quoting:ident { $($word:literal => $value:ident),+ $(,)? })+) => { $(
        impl FromYaml for $name {
            words!(@$quoting [$($word),+]);

            fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
                match node.word(&[$($word),+], reading.findings)? {
                    $($word => Some($name::$value),)+
                    _ => None,
                }
            }

            fn schema() -> Value {
                json!({"enum": [$($word),+]})
            }

            fn to_value(&self) -> Value {
                json!(match self {
                    $($name::$value => $word,)+
                })
            }
        }
    )+ };
    (@quotable [$($word:literal),+]) => {
        fn may_quote(text: &str) -> bool {
            $crate::config::read::is_word(text, &[$($word),+])
        }
    };
    (@masked [$($word:literal),+]) => {};
}
pub(super) use words;

/// Adds the description and the default of its key to a schema.
pub(super) fn describe_schema(schema: Value, lines: &[&str], default: Option<Value>) -> Value {
    let mut schema = described(schema, lines);
    if let (Value::Object(members), Some(default)) = (&mut schema, default) {
        members.insert("default".to_owned(), default);
    }
    schema
}

/// Returns the text of any scalar as typed, whichever YAML type it resolves to.
pub(super) fn scalar_text<'n>(
    node: &'n Node,
    wanted: &str,
    reading: &mut ReadContext<'_>,
) -> Option<&'n str> {
    match &node.kind {
        Kind::String(text, _) | Kind::Number(text) => Some(text),
        Kind::Bool(true) => Some("true"),
        Kind::Bool(false) => Some("false"),
        _ => node.wrong_kind(wanted, None, reading.findings),
    }
}

fn parse_scalar<T>(
    node: &Node,
    wanted: &str,
    parse: impl FnOnce(&str) -> Result<T, ScalarError>,
    reading: &mut ReadContext<'_>,
) -> Option<T> {
    let text = scalar_text(node, wanted, reading)?;
    let invalid = |error: ScalarError| Finding::error(Code::ValueForm, node.span, error.to_string());
    parse(text).map_err(|error| reading.findings.push(invalid(error))).ok()
}

/// Implements [`FromYaml`] for kinds that are parsed from one text and displayed as one.
macro_rules! text_kinds {
    ($($kind:ty, $wanted:literal, $quoted:ident, $parse:expr, $show:expr, $example:literal;)*) => {$(
        impl FromYaml for $kind {
            fn may_quote(text: &str) -> bool {
                $quoted(text)
            }

            fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
                parse_scalar(node, $wanted, $parse, reading)
            }

            fn schema() -> Value {
                json!({"type": ["string", "integer"], "examples": [$example]})
            }

            fn to_value(&self) -> Value {
                let show: fn(&$kind) -> String = $show;
                Value::String(show(self))
            }
        }
    )*};
}

text_kinds! {
    ByteSize, "a size", is_measure, str::parse, ByteSize::to_string, "10MiB";
    Period, "a duration", is_measure, str::parse, Period::to_string, "15s";
    SocketAddr, "an address", is_address, scalars::address, SocketAddr::to_string, "127.0.0.1:8080";
    IpNet, "an address or a network", is_measure, scalars::network, IpNet::to_string, "10.0.0.0/8";
    DateOrTime, "a day or a moment", is_measure, str::parse, DateOrTime::to_string, "2026-12-31";
    PathPrefix, "a path prefix", is_name, str::parse, PathPrefix::to_string, "/v2";
    PathBuf, "a path", is_name, scalars::path, |path| path.display().to_string(), "mappings/messaging";
    String, "a text", is_name, |text| match text { "" => Err("expected a text, and this is empty".into()), _ => Ok(text.to_owned()) }, String::clone, "a text";
}

impl FromYaml for WebUrl {
    /// Reads a URL. User, password and query may be secret, and so may a path that looks like it,
    /// or any text that is no URL; only the rest is quotable.
    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let typed = reading.source_text(node).to_owned();
        let end = typed.find(['?', '#']).unwrap_or(typed.len());
        let origin = typed[..end].find("://").map_or(0, |at| at + 3);
        let scheme = typed[..origin].trim_matches(['\'', '"']).trim_end_matches("://");
        let user = typed[origin..end].rfind('@').map_or(origin, |at| origin + at + 1);
        let path = typed[user..end].find('/').map_or(end, |at| user + at);
        let end = if looks_secret(&typed[path..end]) { path } else { end };
        let host = typed[user..path].trim_matches(['\'', '"']);
        if scalars::is_scheme(scheme) {
            reading.quote_part(node, 0..origin);
        }
        // Without a scheme, only a name with several labels counts as a host.
        let is_host = origin > 0 || host.contains('.') || host.starts_with("localhost");
        if is_host && !looks_secret(host) {
            reading.quote_part(node, user..end);
        }
        parse_scalar(node, "a URL", str::parse, reading)
    }

    fn schema() -> Value {
        json!({"type": ["string", "integer"], "examples": ["https://api.example.com/v3"]})
    }

    fn to_value(&self) -> Value {
        Value::String(self.to_masked())
    }
}

impl FromYaml for StoreUrl {
    /// Reads a store URL, which may contain a password. Only `sqlite:` paths are quotable.
    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let path = reading.source_text(node).trim_matches(['\'', '"']).strip_prefix("sqlite:");
        if path.is_some_and(is_name) {
            reading.quotable.push(node.span);
        }
        parse_scalar(node, "a store", str::parse, reading)
    }

    fn schema() -> Value {
        json!({"type": "string", "examples": ["sqlite:switchback.db", "postgres://switchback@db/switchback"]})
    }

    fn to_value(&self) -> Value {
        Value::String(self.to_masked())
    }
}

impl FromYaml for AllowedOrigin {
    fn may_quote(text: &str) -> bool {
        is_name(text)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let parse =
            |text: &str| text.parse::<AllowedOrigin>().map_err(|error| ScalarError::from(error.to_string()));
        parse_scalar(node, "an origin", parse, reading)
    }

    fn schema() -> Value {
        json!({"type": "string", "examples": ["https://app.example.com", "https://*.example.com", "*"]})
    }

    fn to_value(&self) -> Value {
        Value::String(self.to_string())
    }
}

impl FromYaml for bool {
    fn may_quote(text: &str) -> bool {
        is_word(text, &["true", "false", "yes", "no", "on", "off"])
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        node.boolean(reading.findings)
    }

    fn schema() -> Value {
        json!({"type": "boolean"})
    }

    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }
}

/// A count from one to a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PositiveCount(pub(super) u32);

impl PositiveCount {
    const MAX: u32 = 1_000_000;
}

impl FromYaml for PositiveCount {
    fn may_quote(text: &str) -> bool {
        is_measure(text)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let value = node.whole(1..=u64::from(PositiveCount::MAX), reading.findings)?;
        u32::try_from(value).ok().map(PositiveCount)
    }

    fn schema() -> Value {
        json!({"type": "integer", "minimum": 1, "maximum": PositiveCount::MAX})
    }

    fn to_value(&self) -> Value {
        json!(self.0)
    }
}

impl FromYaml for Secret<String> {
    /// Reads a text, `${NAME}`, or `file:PATH` for the content of a file without its trailing line
    /// break.
    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let path = reading.source_text(node).trim_matches(['\'', '"']).strip_prefix("file:");
        if path.is_some_and(is_name) {
            reading.quotable.push(node.span);
        }
        let text = scalar_text(node, "a secret, such as `${NAME}` or `file:PATH`", reading)?;
        let Some(path) = text.strip_prefix("file:") else {
            return nonempty_secret(text.to_owned(), node.span, reading);
        };
        let content = match (reading.read_file)(Path::new(path)) {
            Ok(content) => content,
            Err(error) => {
                let what = format!("the file `{path}` cannot be read: {error}");
                reading.findings.push(Finding::error(Code::Reference, node.span, what));
                return None;
            }
        };
        match String::from_utf8(content) {
            Ok(text) => nonempty_secret(text.trim_end_matches(['\n', '\r']).to_owned(), node.span, reading),
            Err(_) => {
                let what = format!("the file `{path}` is not UTF-8");
                reading.findings.push(Finding::error(Code::Reference, node.span, what));
                None
            }
        }
    }

    fn schema() -> Value {
        json!({"type": ["string", "integer"], "examples": ["${NAME}", "file:/run/secrets/name"]})
    }

    fn to_value(&self) -> Value {
        Value::String(MASK.to_owned())
    }
}

fn nonempty_secret(text: String, span: Span, reading: &mut ReadContext<'_>) -> Option<Secret<String>> {
    if text.is_empty() {
        reading.findings.push(Finding::error(Code::ValueForm, span, "a secret must not be empty"));
        return None;
    }
    Some(Secret::new(text))
}

impl<T: FromYaml> FromYaml for Vec<T> {
    fn may_quote(text: &str) -> bool {
        T::may_quote(text)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let items = node.list(reading.findings)?;
        Some(items.iter().filter_map(|item| T::parse(item, reading)).collect())
    }

    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }

    fn to_value(&self) -> Value {
        self.iter().map(T::to_value).collect()
    }
}

/// One value, or a list of them.
#[derive(Clone, Debug)]
pub(super) struct OneOrMore<T>(pub(super) Vec<T>);

impl<T: FromYaml> FromYaml for OneOrMore<T> {
    fn may_quote(text: &str) -> bool {
        T::may_quote(text)
    }

    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        match node.kind {
            Kind::Seq(_) => Vec::parse(node, reading).map(OneOrMore),
            _ => T::parse(node, reading).map(|value| OneOrMore(vec![value])),
        }
    }

    fn schema() -> Value {
        json!({"anyOf": [T::schema(), {"type": "array", "items": T::schema(), "minItems": 1}]})
    }

    fn to_value(&self) -> Value {
        self.0.to_value()
    }
}

/// A map with user-defined keys, in the order of the file.
#[derive(Clone, Debug)]
pub(super) struct NamedMap<K, T>(pub(super) Vec<(Placed<K>, T)>);

impl<K: FromYaml, T: FromYaml> FromYaml for NamedMap<K, T> {
    fn parse(node: &Node, reading: &mut ReadContext<'_>) -> Option<Self> {
        let mut named = Vec::new();
        for (key, value) in node.map(reading.findings)? {
            // As a value, so that keys are read and checked by the same code.
            let key_node = Node {
                span: key.span,
                kind: Kind::String(key.name.clone(), switchback_compiler::yaml::TextStyle::Plain),
            };
            let key = Placed::<K>::parse(&key_node, reading);
            named.extend(key.zip(value_of(value, reading)));
        }
        Some(NamedMap(named))
    }

    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": T::schema()})
    }

    fn to_value(&self) -> Value {
        let shown = |(key, value): &(Placed<K>, T)| {
            let name = key.to_value().as_str().unwrap_or_default().to_owned();
            (name, value.to_value())
        };
        Value::Object(self.0.iter().map(shown).collect())
    }
}

/// Any value. The pack defines its type.
#[derive(Clone, Debug)]
pub(super) struct Free {
    pub(super) value: Value,
    /// Places of all values other than maps, by dotted name.
    pub(super) places: Vec<(String, Span)>,
}

impl Free {
    /// Returns the default: an empty map.
    pub(super) fn nothing() -> Free {
        Free { value: json!({}), places: Vec::new() }
    }
}

impl FromYaml for Free {
    fn parse(node: &Node, _: &mut ReadContext<'_>) -> Option<Self> {
        let mut places = Vec::new();
        place_leaves(node, "", &mut places);
        Some(Free { value: free(node), places })
    }

    fn schema() -> Value {
        json!({"type": "object"})
    }

    /// Returns the value for the masked dump. Masks texts that look like a secret or have a name
    /// that suggests one; the pack does not declare secrets.
    fn to_value(&self) -> Value {
        mask_value(&self.value, false)
    }
}

fn mask_value(value: &Value, tells: bool) -> Value {
    match value {
        Value::String(text) if tells || looks_secret(text) => Value::String(MASK.to_owned()),
        // A PIN or an account number can be a secret, too.
        Value::Number(_) if tells => Value::String(MASK.to_owned()),
        Value::Array(items) => items.iter().map(|item| mask_value(item, tells)).collect(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                (name.clone(), mask_value(value, tells || is_telling_name(name)))
            };
            Value::Object(members.iter().map(member).collect())
        }
        value => value.clone(),
    }
}

fn place_leaves(node: &Node, name: &str, places: &mut Vec<(String, Span)>) {
    let Kind::Map(entries) = &node.kind else {
        places.push((name.to_owned(), node.span));
        return;
    };
    for (key, value) in entries.iter() {
        let dot = if name.is_empty() { "" } else { "." };
        place_leaves(value, &format!("{name}{dot}{}", key.name), places);
    }
}

fn free(node: &Node) -> Value {
    match &node.kind {
        Kind::Null => Value::Null,
        Kind::Bool(value) => Value::Bool(*value),
        // A number that JSON cannot represent stays a text, which the check against the pack rejects.
        Kind::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
        Kind::String(text, _) => Value::String(text.clone()),
        Kind::Seq(items) => items.iter().map(free).collect(),
        Kind::Map(entries) => {
            Value::Object(entries.iter().map(|(key, value)| (key.name.clone(), free(value))).collect())
        }
    }
}
