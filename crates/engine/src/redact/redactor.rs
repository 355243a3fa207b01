//! The redactor: what a deployment and a request know to be secret, applied to values, texts, headers and addresses.

use super::MASK;
use super::looks::{is_active, is_telling_name, looks_secret};
use super::sample::{Kind, Sample};
use super::text::without_credentials;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::borrow::Cow;
use switchback_json::{Object, Str, Value};

/// Most characters of a value, or of a masked value's shape, that a sample keeps.
const SHOWN_CHARS_MAX: usize = 64;

/// Texts shorter than this are not looked for inside others: they would mask ordinary words.
const KNOWN_CHARS_MIN: usize = 4;

/// The key of the hashes in samples. Equal values have equal hashes under one salt, so a report can tell that two differ
/// without telling what they are.
#[derive(Clone)]
pub struct Salt([u8; 32]);

impl Salt {
    pub fn new(bytes: [u8; 32]) -> Salt {
        Salt(bytes)
    }
}

/// Takes out of values what must not be kept.
#[derive(Clone)]
pub struct Redactor {
    salt: Salt,
    known: Vec<String>,
}

impl Redactor {
    pub fn new(salt: Salt) -> Redactor {
        Redactor { salt, known: Vec::new() }
    }

    /// The same, which also masks these texts wherever they occur: the credentials of the request at hand. Texts under
    /// four characters are passed over.
    pub fn knowing<T: AsRef<str>>(&self, secrets: impl IntoIterator<Item = T>) -> Redactor {
        let long = |text: &T| text.as_ref().chars().count() >= KNOWN_CHARS_MIN;
        let added = secrets.into_iter().filter(long).map(|text| text.as_ref().to_owned());
        Redactor { salt: self.salt.clone(), known: self.known.iter().cloned().chain(added).collect() }
    }

    /// A value as it may be kept. `name` is that of the member it is in; `is_secret` is what the pack declares.
    pub fn sample(&self, name: Option<&str>, is_secret: bool, value: &Value) -> Sample {
        let text = value.to_vec();
        let (kind, length) = measure(value);
        let scalar = match value {
            Value::String(content) => Some(content.decode()),
            Value::Number(number) => Some(Cow::Borrowed(number.text())),
            _ => None,
        };
        let is_masked = is_secret
            || name.is_some_and(is_telling_name)
            || scalar.as_deref().is_some_and(|text| self.must_mask(text, kind));
        let holds_others = matches!(kind, Kind::Array | Kind::Object) && length > 0;
        let constant = matches!(kind, Kind::Null | Kind::Boolean);
        let shown = constant || !(is_masked || holds_others);
        Sample {
            kind,
            length,
            shape: scalar.filter(|_| !shown).map(|text| shape(&text)),
            hash: self.hash(&text),
            text: shown.then(|| cut(&String::from_utf8_lossy(&text))),
        }
    }

    /// Bytes that are no JSON, as they may be kept.
    pub fn sample_of_bytes(&self, bytes: &[u8]) -> Sample {
        Sample {
            kind: Kind::Bytes,
            length: bytes.len() as u64,
            shape: None,
            hash: self.hash(bytes),
            text: None,
        }
    }

    /// The value of a header, as it may be kept.
    pub fn sample_of_header(&self, name: &str, value: &[u8]) -> Sample {
        let text = String::from_utf8_lossy(value);
        let shown = !is_telling_name(name) && !self.must_mask(&text, Kind::String);
        Sample {
            kind: Kind::String,
            length: text.chars().count() as u64,
            shape: (!shown).then(|| shape(&text)),
            hash: self.hash(value),
            text: shown.then(|| cut(&text)),
        }
    }

    /// The value of a header with what is secret in it masked.
    pub fn header(&self, name: &str, value: &str) -> String {
        if is_telling_name(name) { MASK.to_owned() } else { self.text(value) }
    }

    /// A text with what is secret in it masked: known secrets anywhere, and words that look like one.
    pub fn text(&self, text: &str) -> String {
        let known =
            self.known.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK));
        let masked = without_credentials(&known);
        let words = masked.split_inclusive(|c: char| c.is_whitespace());
        words
            .map(|word| {
                let bare = word.trim_end();
                if looks_secret(bare) { format!("{MASK}{}", &word[bare.len()..]) } else { word.to_owned() }
            })
            .collect()
    }

    /// A path with its query, with the values of telling parameters and whatever looks like a secret masked.
    pub fn target(&self, target: &str) -> String {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let plain = |part: &str| {
            let decoded = percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned();
            if self.must_mask(&decoded, Kind::String) { MASK.to_owned() } else { part.to_owned() }
        };
        let path = path.split('/').map(plain).collect::<Vec<_>>().join("/");
        let Some(query) = query else { return path };
        let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
            Some((name, _)) if is_telling_name(name) => format!("{name}={MASK}"),
            Some((name, value)) => format!("{}={}", plain(name), plain(value)),
            None => plain(parameter),
        });
        format!("{path}?{}", parameters.collect::<Vec<_>>().join("&"))
    }

    /// A JSON value with every secret in it masked: strings become `***`, numbers 0, and what a telling name or the pack
    /// (by `is_secret`, which gets the names from the top, `*` for any element) calls secret is masked whole. Order,
    /// names and kinds stay, so that a redacted body can still be run through a plan. Member names that look secret are
    /// masked, too.
    pub fn value(&self, value: &Value, is_secret: &dyn Fn(&[&str]) -> bool) -> Value {
        self.masked(value, false, &mut Vec::new(), is_secret)
    }

    fn masked(
        &self,
        value: &Value,
        whole: bool,
        at: &mut Vec<String>,
        is_secret: &dyn Fn(&[&str]) -> bool,
    ) -> Value {
        let names: Vec<&str> = at.iter().map(String::as_str).collect();
        let whole = whole || is_secret(&names);
        match value {
            Value::Null | Value::Bool(_) => value.clone(),
            Value::Number(number) if whole || self.must_mask(number.text(), Kind::Number) => Value::from(0),
            Value::Number(_) => value.clone(),
            Value::String(content) => match content.decode() {
                text if whole || self.must_mask(&text, Kind::String) => Value::string(MASK),
                _ => value.clone(),
            },
            Value::Array(items) => {
                at.push("*".to_owned());
                let items: Vec<Value> =
                    items.iter().map(|item| self.masked(item, whole, at, is_secret)).collect();
                at.pop();
                Value::from(items)
            }
            Value::Object(members) => {
                let mut object = Object::new();
                for (at_member, (key, inner)) in members.iter().enumerate() {
                    let name = key.decode().into_owned();
                    let tells = is_telling_name(&name);
                    let shown = match self.must_mask(&name, Kind::String) {
                        true => Str::new(&format!("{MASK}{at_member}")),
                        false => key.clone(),
                    };
                    at.push(name);
                    object.insert(shown, self.masked(inner, whole || tells, at, is_secret));
                    at.pop();
                }
                Value::Object(object)
            }
        }
    }

    /// Whether a member's name must not be shown.
    pub fn masks_name(&self, name: &str) -> bool {
        self.must_mask(name, Kind::String)
    }

    /// The start of the hash of a text under this salt, for names and values that are not shown.
    pub fn hash(&self, bytes: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.salt.0).expect("HMAC takes keys of any length");
        mac.update(bytes);
        mac.finalize().into_bytes()[..6].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn must_mask(&self, text: &str, kind: Kind) -> bool {
        // A number is an amount or an identifier; only what is known to be secret hides in one.
        self.known.iter().any(|secret| text.contains(secret.as_str()))
            || (kind != Kind::Number && looks_secret(text))
    }
}

fn measure(value: &Value) -> (Kind, u64) {
    match value {
        Value::Null => (Kind::Null, 0),
        Value::Bool(_) => (Kind::Boolean, 0),
        Value::Number(number) => (Kind::Number, number.text().len() as u64),
        Value::String(content) => (Kind::String, content.decode().chars().count() as u64),
        Value::Array(items) => (Kind::Array, items.len() as u64),
        Value::Object(members) => (Kind::Object, members.len() as u64),
    }
}

fn shape(text: &str) -> String {
    cut_with(text, |c| match c {
        c if c.is_numeric() => '9',
        c if c.is_uppercase() => 'A',
        c if c.is_alphabetic() => 'a',
        c if is_active(c) => '?',
        c => c,
    })
}

/// As it is, but for characters that act on whoever shows it.
fn cut(text: &str) -> String {
    cut_with(text, |c| if is_active(c) { '\u{fffd}' } else { c })
}

fn cut_with(text: &str, shown: impl Fn(char) -> char) -> String {
    let mut chars = text.chars();
    let mut out: String = chars.by_ref().take(SHOWN_CHARS_MAX).map(shown).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}
