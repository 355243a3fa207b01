//! The redactor: applies the secrets known to a deployment and a request to values, texts, headers
//! and addresses.

use super::MASK;
use super::names::{is_harmless_header, is_telling_name};
use super::sample::{Kind, Sample};
use super::secret_heuristics::{is_moment, is_plain, looks_secret};
use super::text::{is_active, without_credentials};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::borrow::Cow;
use std::collections::BTreeSet;
use switchback_json::{Object, Str, Value};
use switchback_plan::{Disclosed, Disclosures, Exposure, OperationDisclosure, SegmentDisclosure};

/// Maximum number of characters of a value, or of a masked value's shape, in a sample.
const SHOWN_CHARS_MAX: usize = 64;

/// Minimum length of a secret that is searched for inside other texts. Shorter ones would mask
/// ordinary words.
const KNOWN_CHARS_MIN: usize = 4;

/// The key of the hashes in samples. Equal values have equal hashes under one salt, so a report can
/// show that two values differ without disclosing them.
#[derive(Clone)]
pub struct Salt([u8; 32]);

impl Salt {
    /// Creates a salt from random bytes. They must be persisted: samples under different salts are
    /// not comparable.
    pub fn new(bytes: [u8; 32]) -> Salt {
        Salt(bytes)
    }
}

/// Removes secrets from values before they are stored.
#[derive(Clone)]
pub struct Redactor {
    salt: Salt,
    known: Vec<String>,
}

/// The parts of a message that were masked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masked {
    /// Secret texts, which must be masked in all other parts of the message, too.
    pub texts: BTreeSet<String>,
    /// Places whose numbers, booleans or times were replaced, with `*` for every index. Masked
    /// texts are not listed, because they are recognizable.
    pub places: BTreeSet<String>,
}

/// Minimum length of a secret text that is masked in other parts of a message. Shorter ones occur
/// there by chance.
const CARRIED_CHARS_MIN: usize = 6;

/// Number of hash bytes in a sample.
const HASH_BYTES: usize = 6;

/// Number of hash bytes in a masked text.
const MASK_HASH_BYTES: usize = 3;

/// The reason why a text is masked, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hidden {
    Not,
    /// Possibly written by a person.
    Private,
    /// Secret by its name, by its value, or by declaration.
    Secret,
}

impl Redactor {
    /// Creates a redactor without known secrets.
    pub fn new(salt: Salt) -> Redactor {
        Redactor { salt, known: Vec::new() }
    }

    /// Returns a redactor that also masks these texts wherever they occur, such as the credentials
    /// of the current request. Texts of fewer than four characters are ignored.
    pub fn knowing<T: AsRef<str>>(&self, secrets: impl IntoIterator<Item = T>) -> Redactor {
        let long = |text: &T| text.as_ref().chars().count() >= KNOWN_CHARS_MIN;
        let added = secrets.into_iter().filter(long).map(|text| text.as_ref().to_owned());
        Redactor { salt: self.salt.clone(), known: self.known.iter().cloned().chain(added).collect() }
    }

    /// Returns a sample of a value. `name` is the name of the enclosing member.
    pub fn sample(&self, name: Option<&str>, disclosed: Disclosed<'_>, value: &Value) -> Sample {
        let text = value.to_vec();
        let (kind, length) = measure(value);
        let tells = name.is_some_and(is_telling_name);
        let scalar = match value {
            Value::String(content) => Some(content.decode()),
            Value::Number(number) => Some(Cow::Borrowed(number.text())),
            _ => None,
        };
        let shown = match value {
            Value::Null => true,
            Value::Bool(_) => !disclosed.is_secret() && !tells,
            Value::Number(number) => !self.hides_number(number.text(), tells, disclosed),
            Value::String(content) => self.hides(&content.decode(), tells, disclosed) == Hidden::Not,
            // A container may hold secrets, so only empty ones are disclosed.
            Value::Array(_) | Value::Object(_) => length == 0,
        };
        Sample {
            kind,
            length,
            shape: scalar.filter(|_| !shown).map(|text| shape(&text)),
            // Salted and truncated: equal values are recognizable, but a short value cannot be
            // found by trying all candidates without the salt.
            hash: self.hash(&text),
            text: shown.then(|| cut(&String::from_utf8_lossy(&text))),
        }
    }

    /// Returns a sample of bytes that are not JSON.
    pub fn sample_of_bytes(&self, bytes: &[u8]) -> Sample {
        Sample {
            kind: Kind::Bytes,
            length: bytes.len() as u64,
            shape: None,
            hash: self.hash(bytes),
            text: None,
        }
    }

    /// Returns a sample of a header's value.
    pub fn sample_of_header(&self, name: &str, value: &[u8]) -> Sample {
        let text = String::from_utf8_lossy(value);
        let shown = self.hides_header(name, &text, Disclosed::UNKNOWN) == Hidden::Not;
        Sample {
            kind: Kind::String,
            length: text.chars().count() as u64,
            shape: (!shown).then(|| shape(&text)),
            hash: self.hash(value),
            text: shown.then(|| cut(&text)),
        }
    }

    /// Redacts the value of a header for a stored message. It is masked unless the field is
    /// harmless.
    pub fn header(&self, name: &str, value: &str, disclosed: Disclosed<'_>) -> String {
        match self.hides_header(name, value, disclosed) {
            Hidden::Not => value.to_owned(),
            Hidden::Private | Hidden::Secret => self.mask(value),
        }
    }

    fn hides_header(&self, name: &str, value: &str, disclosed: Disclosed<'_>) -> Hidden {
        let tells = is_telling_name(name);
        if is_harmless_header(name) && !tells {
            let looks_secret = self.knows(value) || value.split_whitespace().any(looks_secret);
            return if looks_secret { Hidden::Secret } else { Hidden::Not };
        }
        self.hides(value, tells, disclosed)
    }

    /// Redacts a text of the gateway, such as the cause of an error: masks known secrets anywhere,
    /// and words that look like secrets. For texts of others, use [`Redactor::value`].
    pub fn text(&self, text: &str) -> String {
        let known =
            self.known.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK));
        // After the known secrets: masking a URL first could cut one of them in two.
        let masked = without_credentials(&known);
        let words = masked.split_inclusive(|c: char| c.is_whitespace());
        words
            .map(|word| {
                let bare = word.trim_end();
                if looks_secret(bare) { format!("{MASK}{}", &word[bare.len()..]) } else { word.to_owned() }
            })
            .collect()
    }

    /// Redacts the path and query of a request, relative to the base path of a side, by the
    /// disclosures of its operation. Without an operation, only numbers and literal segments of the
    /// contract are disclosed. Parameter names are disclosed if the contract declares them.
    pub fn target(
        &self,
        target: &str,
        side: &Disclosures,
        operation: Option<&OperationDisclosure>,
    ) -> String {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let mut known = operation.map(|operation| operation.path.iter());
        let segments = path.split('/').enumerate().map(|(at, segment)| {
            // The path starts with a slash, so its first segment is empty.
            if at == 0 || segment.is_empty() {
                return segment.to_owned();
            }
            match known.as_mut().map(Iterator::next) {
                Some(Some(SegmentDisclosure::Literal(text))) if **text == *segment => segment.to_owned(),
                Some(Some(SegmentDisclosure::Variable(id))) => {
                    self.part(segment, false, side.value(Some(*id)))
                }
                None if side.is_literal(segment) => segment.to_owned(),
                _ => self.part(segment, false, Disclosed::UNKNOWN),
            }
        });
        let path = segments.collect::<Vec<_>>().join("/");
        let Some(query) = query else { return path };
        let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
            Some((name, value)) => {
                let bare = percent_decode(name);
                let known =
                    operation.map_or(Disclosed::UNKNOWN, |operation| side.parameter(operation, &bare));
                // An undeclared name may itself contain data.
                let shows = side.is_parameter(operation, &bare) && !self.masks_name(&bare);
                let shown = if shows { name.to_owned() } else { self.mask(&bare) };
                format!("{shown}={}", self.part(value, is_telling_name(&bare), known))
            }
            None if side.is_parameter(operation, parameter) => parameter.to_owned(),
            None => self.part(parameter, false, Disclosed::UNKNOWN),
        });
        format!("{path}?{}", parameters.collect::<Vec<_>>().join("&"))
    }

    /// Redacts one percent-encoded value of an address.
    fn part(&self, raw: &str, tells: bool, disclosed: Disclosed<'_>) -> String {
        let text = percent_decode(raw);
        let is_number = text.parse::<f64>().is_ok_and(f64::is_finite) || matches!(&*text, "true" | "false");
        // A numeric parameter is disclosed under the same conditions as a JSON number.
        if disclosed.is_number() && is_number && !self.hides_number(&text, tells, disclosed) {
            return raw.to_owned();
        }
        match self.hides(&text, tells, disclosed) {
            Hidden::Not => raw.to_owned(),
            Hidden::Private | Hidden::Secret => self.mask(&text),
        }
    }

    /// Redacts a JSON value for a stored message. Masked texts remain comparable; secret numbers
    /// become 0, booleans false, and times the first of January 2000. Order, names and types are
    /// preserved, so that a redacted body can still be translated. Names of members that look
    /// secret or that are data are masked, too.
    pub fn value(&self, value: &Value, disclosed: Disclosed<'_>, masked: &mut Masked) -> Value {
        self.mask_value(value, false, disclosed, &mut "$".to_owned(), masked)
    }

    fn mask_value(
        &self,
        value: &Value,
        tells: bool,
        disclosed: Disclosed<'_>,
        place: &mut String,
        masked: &mut Masked,
    ) -> Value {
        match value {
            Value::Null => Value::Null,
            Value::Bool(_) if tells || disclosed.is_secret() => {
                masked.places.insert(place.clone());
                Value::Bool(false)
            }
            Value::Number(number) if self.hides_number(number.text(), tells, disclosed) => {
                masked.places.insert(place.clone());
                Value::from(0)
            }
            Value::Bool(_) | Value::Number(_) => value.clone(),
            Value::String(content) => {
                let text = content.decode();
                let hidden = self.hides(&text, tells, disclosed);
                if hidden == Hidden::Not {
                    return value.clone();
                }
                if hidden == Hidden::Secret && text.chars().count() >= CARRIED_CHARS_MIN {
                    masked.texts.insert(text.clone().into_owned());
                }
                let mask = self.mask(&text);
                // A replaced time looks like a real one, so record its place.
                if !mask.contains(MASK) {
                    masked.places.insert(place.clone());
                }
                Value::string(&mask)
            }
            Value::Array(items) => {
                let length = place.len();
                place.push_str("[*]");
                let items: Vec<Value> = items
                    .iter()
                    .map(|item| self.mask_value(item, tells, disclosed.element(), place, masked))
                    .collect();
                place.truncate(length);
                Value::from(items)
            }
            Value::Object(members) => {
                let mut object = Object::new();
                for (key, inner) in members.iter() {
                    let name = key.decode();
                    let hides_name = self.masks_name(&name) || disclosed.is_data_name(&name);
                    let shown = if hides_name { Str::new(&self.mask(&name)) } else { key.clone() };
                    let length = place.len();
                    place.push('.');
                    place.push_str(&shown.decode());
                    // A telling name applies to all values below it.
                    let tells = tells || is_telling_name(&name);
                    let inner = self.mask_value(inner, tells, disclosed.member(&name), place, masked);
                    place.truncate(length);
                    object.insert(shown, inner);
                }
                Value::Object(object)
            }
        }
    }

    /// Redacts a text of unknown format, such as a body that is not JSON.
    pub fn unread(&self, text: &[u8]) -> String {
        if text.is_empty() {
            String::new()
        } else {
            format!("{MASK}{}", self.short_hash(text, MASK_HASH_BYTES))
        }
    }

    /// Returns whether a member's name must be masked.
    pub fn masks_name(&self, name: &str) -> bool {
        self.knows(name) || looks_secret(name)
    }

    /// Returns the start of the hash of a text under this salt.
    pub fn hash(&self, bytes: &[u8]) -> String {
        self.short_hash(bytes, HASH_BYTES)
    }

    fn short_hash(&self, bytes: &[u8], count: usize) -> String {
        // The hash is keyed, so that guessable values cannot be found by hashing candidates.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.salt.0).expect("HMAC takes keys of any length");
        mac.update(bytes);
        mac.finalize().into_bytes()[..count].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the replacement of a text. Lines and comma-separated items are masked individually,
    /// because plans split texts there. A time is replaced by another time, because plans parse
    /// them.
    fn mask(&self, text: &str) -> String {
        if is_moment(text) {
            return another_moment(text);
        }
        let pieces = text.split_inclusive([',', '\n']).map(|piece| {
            let bare = piece.trim_end_matches([',', '\n']);
            let word = bare.trim();
            if word.is_empty() {
                return piece.to_owned();
            }
            let mask = format!("{MASK}{}", self.short_hash(word.as_bytes(), MASK_HASH_BYTES));
            piece.replacen(word, &mask, 1)
        });
        pieces.collect()
    }

    fn knows(&self, text: &str) -> bool {
        self.known.iter().any(|secret| text.contains(secret.as_str()))
    }

    /// Numbers are usually amounts or identifiers, so they are masked only if they are known to be
    /// secret.
    fn hides_number(&self, text: &str, tells: bool, disclosed: Disclosed<'_>) -> bool {
        tells || disclosed.is_secret() || self.knows(text)
    }

    fn hides(&self, text: &str, tells: bool, disclosed: Disclosed<'_>) -> Hidden {
        if text.is_empty() {
            return Hidden::Not;
        }
        match disclosed.text(text) {
            Exposure::Secret => Hidden::Secret,
            // The contract lists this text, so a secret appearance is a coincidence.
            Exposure::Listed => Hidden::Not,
            _ if tells || self.knows(text) || looks_secret(text) => Hidden::Secret,
            Exposure::Private if !is_plain(text) => Hidden::Private,
            Exposure::Harmless | Exposure::Private => Hidden::Not,
        }
    }
}

fn percent_decode(raw: &str) -> String {
    percent_encoding::percent_decode_str(raw).decode_utf8_lossy().into_owned()
}

/// Returns the first of January 2000, 00:00, in the format of `text`.
fn another_moment(text: &str) -> String {
    let is_year_first = text.as_bytes().get(4).is_some_and(|byte| !byte.is_ascii_digit());
    // Join the parts with placeholders, then insert the separators of the original.
    let date = if is_year_first { ["2000", "01", "01"] } else { ["01", "01", "2000"] };
    let mark = |c: &char| !c.is_ascii_digit();
    let marks: Vec<char> = text.chars().take(10).filter(mark).collect();
    let mut moment = date.join("\u{0}");
    for mark in marks {
        moment = moment.replacen('\u{0}', &mark.to_string(), 1);
    }
    moment.extend(text.chars().skip(10).map(|c| if c.is_ascii_digit() { '0' } else { c }));
    moment
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
        // Punctuation reveals the format of a text. Any other character could reveal its content.
        ' ' | '-' | '_' | '.' | ':' | '/' | '@' | '+' | ',' | '(' | ')' => c,
        _ => '?',
    })
}

/// Truncates a text and replaces characters that would affect its rendering.
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
