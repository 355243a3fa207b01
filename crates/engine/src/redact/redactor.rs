//! The redactor: what a deployment and a request know to be secret, applied to values, texts, headers and addresses.

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

/// Most characters of a value, or of a masked value's shape, that a sample keeps.
const SHOWN_CHARS_MAX: usize = 64;

/// Texts shorter than this are not looked for inside others: they would mask ordinary words.
const KNOWN_CHARS_MIN: usize = 4;

/// The key of the hashes in samples. Equal values have equal hashes under one salt, so a report can tell that two differ
/// without telling what they are.
#[derive(Clone)]
pub struct Salt([u8; 32]);

impl Salt {
    /// The salt of these bytes, which must be random and kept: with others, samples of before compare with nothing.
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

/// What was masked of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masked {
    /// Secret texts: what must not be shown anywhere else either.
    pub texts: BTreeSet<String>,
    /// Places whose values stand for others of their form, with `*` for every index: numbers, booleans, moments. That a text
    /// is masked can be seen.
    pub places: BTreeSet<String>,
}

/// Shorter texts are masked where they stand, and not wherever they occur: they would occur by chance.
const CARRIED_CHARS_MIN: usize = 6;

/// Bytes of a hash that are shown.
const HASH_BYTES: usize = 6;

/// Bytes of the hash in a masked text.
const MASK_HASH_BYTES: usize = 3;

/// Why a text is not shown, if it is not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hidden {
    Not,
    /// It may be what people write.
    Private,
    /// It is secret, or looks like it.
    Secret,
}

impl Redactor {
    /// A redactor that knows no credentials yet.
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

    /// A value as it may be kept. `name` is that of the member it is in.
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
            Value::Array(_) | Value::Object(_) => length == 0,
        };
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
        let shown = self.hides_header(name, &text, Disclosed::UNKNOWN) == Hidden::Not;
        Sample {
            kind: Kind::String,
            length: text.chars().count() as u64,
            shape: (!shown).then(|| shape(&text)),
            hash: self.hash(value),
            text: shown.then(|| cut(&text)),
        }
    }

    /// The value of a header as it may be kept in a message: masked unless the field is known to be harmless.
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

    /// A running text of ours, such as the cause of a fault, with what is secret in it masked: known secrets anywhere, and
    /// words that look like one. Texts of others are values: see [`Redactor::value`].
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

    /// A path with its query below the base of a side, by what may be shown of the operation it is for. Of one that no
    /// operation has, words of the contract are shown and numbers. Names of parameters are shown where the contract has them.
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
                let bare = decoded(name);
                let known =
                    operation.map_or(Disclosed::UNKNOWN, |operation| side.parameter(operation, &bare));
                // A name that no contract has may be anything, too.
                let shows = side.is_parameter(operation, &bare) && !self.masks_name(&bare);
                let shown = if shows { name.to_owned() } else { self.mask(&bare) };
                format!("{shown}={}", self.part(value, is_telling_name(&bare), known))
            }
            None if side.is_parameter(operation, parameter) => parameter.to_owned(),
            None => self.part(parameter, false, Disclosed::UNKNOWN),
        });
        format!("{path}?{}", parameters.collect::<Vec<_>>().join("&"))
    }

    /// One value of an address, as it stands there.
    fn part(&self, raw: &str, tells: bool, disclosed: Disclosed<'_>) -> String {
        let text = decoded(raw);
        let is_number = text.parse::<f64>().is_ok_and(f64::is_finite) || matches!(&*text, "true" | "false");
        if disclosed.is_number() && is_number && !self.hides_number(&text, tells, disclosed) {
            return raw.to_owned();
        }
        match self.hides(&text, tells, disclosed) {
            Hidden::Not => raw.to_owned(),
            Hidden::Private | Hidden::Secret => self.mask(&text),
        }
    }

    /// A JSON value as it may be kept in a message: texts are masked, so that equal ones stay equal; numbers become 0,
    /// booleans false and moments the first of the year 2000 where they are secret. Order, names and kinds stay, so that a
    /// redacted body can still be run through a plan. Names of members that look secret, or are data, are masked too.
    pub fn value(&self, value: &Value, disclosed: Disclosed<'_>, masked: &mut Masked) -> Value {
        self.masked(value, false, disclosed, &mut "$".to_owned(), masked)
    }

    fn masked(
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
                    .map(|item| self.masked(item, tells, disclosed.element(), place, masked))
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
                    let tells = tells || is_telling_name(&name);
                    let inner = self.masked(inner, tells, disclosed.member(&name), place, masked);
                    place.truncate(length);
                    object.insert(shown, inner);
                }
                Value::Object(object)
            }
        }
    }

    /// A text of others that has no form we know, such as a body that is no JSON.
    pub fn unread(&self, text: &[u8]) -> String {
        if text.is_empty() {
            String::new()
        } else {
            format!("{MASK}{}", self.short_hash(text, MASK_HASH_BYTES))
        }
    }

    /// Whether a member's name must not be shown.
    pub fn masks_name(&self, name: &str) -> bool {
        self.knows(name) || looks_secret(name)
    }

    /// The start of the hash of a text under this salt, for names and values that are not shown.
    pub fn hash(&self, bytes: &[u8]) -> String {
        self.short_hash(bytes, HASH_BYTES)
    }

    fn short_hash(&self, bytes: &[u8], count: usize) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.salt.0).expect("HMAC takes keys of any length");
        mac.update(bytes);
        mac.finalize().into_bytes()[..count].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What stands for a text. Lines and what stands between commas are masked one by one, because plans take texts apart
    /// there; a moment is another moment, because plans read them.
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

    /// A number is an amount or an identifier; only what is known to be secret hides in one.
    fn hides_number(&self, text: &str, tells: bool, disclosed: Disclosed<'_>) -> bool {
        tells || disclosed.is_secret() || self.knows(text)
    }

    fn hides(&self, text: &str, tells: bool, disclosed: Disclosed<'_>) -> Hidden {
        if text.is_empty() {
            return Hidden::Not;
        }
        match disclosed.text(text) {
            Exposure::Secret => Hidden::Secret,
            Exposure::Listed => Hidden::Not,
            _ if tells || self.knows(text) || looks_secret(text) => Hidden::Secret,
            Exposure::Private if !is_plain(text) => Hidden::Private,
            Exposure::Harmless | Exposure::Private => Hidden::Not,
        }
    }
}

fn decoded(raw: &str) -> String {
    percent_encoding::percent_decode_str(raw).decode_utf8_lossy().into_owned()
}

/// The first moment of the year 2000, written as `text` is.
fn another_moment(text: &str) -> String {
    let is_year_first = text.as_bytes().get(4).is_some_and(|byte| !byte.is_ascii_digit());
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
        // Marks that tell a form stay; any other character may be all that a text says.
        ' ' | '-' | '_' | '.' | ':' | '/' | '@' | '+' | ',' | '(' | ')' => c,
        _ => '?',
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
