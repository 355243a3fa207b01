//! Reads a token from a request, removes it, and adds one to a call. Each location is a variant of
//! [`Carrier`], each scheme of a header field a variant of [`Scheme`]; both have one arm here per
//! direction.

use super::wire::authorization;
use crate::secret::Secret;
use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::{HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;
use switchback_plan::{BasicPart, Carrier, Credential, Scheme};

/// The location of the token in calls to a side.
#[derive(Debug)]
pub enum TokenPlace {
    /// Header fields, all of which carry the token.
    Headers {
        /// Names of the fields.
        names: Vec<HeaderName>,
        /// The scheme that precedes the token in each field.
        scheme: Scheme,
    },
    /// A query parameter of this name.
    Query(String),
    /// A form field of this name.
    FormField(String),
}

impl TokenPlace {
    /// Returns the location that a side's credential declares, or `None` if a header name is
    /// invalid.
    pub fn from_credential(credential: &Credential) -> Option<TokenPlace> {
        match credential.send.first()? {
            Carrier::Query(name) => Some(TokenPlace::Query(name.clone())),
            Carrier::FormField(name) => Some(TokenPlace::FormField(name.clone())),
            Carrier::Header { scheme, .. } => {
                let names = credential.send.iter().filter_map(Carrier::header);
                let names: Result<_, _> = names.map(|(name, _)| name.parse()).collect();
                Some(TokenPlace::Headers { names: names.ok()?, scheme: scheme.clone() })
            }
        }
    }

    /// Returns the scheme that precedes the token.
    pub fn scheme(&self) -> &Scheme {
        match self {
            TokenPlace::Headers { scheme, .. } => scheme,
            TokenPlace::Query(_) | TokenPlace::FormField(_) => &Scheme::Bare,
        }
    }
}

/// Accepts Base64 with or without padding, since clients differ.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Extracts the token from a field value, or returns `None` if the value does not match the scheme.
/// Scheme names are case-insensitive (RFC 9110, section 11.1).
pub fn extract_token<'v>(value: &'v str, scheme: &Scheme) -> Option<Cow<'v, str>> {
    let token = match scheme {
        Scheme::Bare => Cow::Borrowed(value.trim()),
        Scheme::Word(word) => Cow::Borrowed(after(value, word)?),
        Scheme::Basic(part) => {
            let decoded = String::from_utf8(BASE64.decode(after(value, "Basic")?.trim_end()).ok()?).ok()?;
            // The user name contains no colon, but the password may (RFC 7617, section 2).
            let (user, password) = decoded.split_once(':')?;
            Cow::Owned(match part {
                BasicPart::User => user.to_owned(),
                BasicPart::Password => password.to_owned(),
                // A credential of both parts is incomplete with only one of them.
                BasicPart::Both if user.is_empty() || password.is_empty() => return None,
                BasicPart::Both => decoded,
            })
        }
    };
    (!token.is_empty()).then_some(token)
}

fn after<'v>(value: &'v str, scheme: &str) -> Option<&'v str> {
    let (head, rest) = value.trim().split_once(' ')?;
    head.eq_ignore_ascii_case(scheme).then(|| rest.trim_start())
}

/// Returns the field value that carries a token, marked sensitive. Returns `None` if the token
/// contains characters that a header cannot carry.
pub fn value(token: &str, scheme: &Scheme) -> Option<HeaderValue> {
    match scheme {
        Scheme::Bare => authorization("", token),
        Scheme::Word(word) => authorization(word, token),
        Scheme::Basic(part) => {
            let both = Secret::new(match part {
                BasicPart::User => format!("{token}:"),
                BasicPart::Password => format!(":{token}"),
                BasicPart::Both => token.to_owned(),
            });
            authorization("Basic", &BASE64.encode(both.expose()))
        }
    }
}

/// Returns the decoded values of a query parameter or form field. `+` is not decoded to a space,
/// because tokens contain none.
pub fn values<'q>(pairs: &'q str, name: &str) -> impl Iterator<Item = Cow<'q, str>> {
    let pairs = pairs.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.filter(move |(own, _)| is_named(own, name)).map(|(_, value)| percent_decode(value))
}

/// Removes the named parameters from a query or form. Returns `None` if it contains none of them.
pub fn without<'n>(pairs: &str, names: impl Iterator<Item = &'n str> + Clone) -> Option<String> {
    let is_one = |pair: &&str| {
        let own = pair.split_once('=').map_or(*pair, |(own, _)| own);
        names.clone().any(|name| is_named(own, name))
    };
    pairs
        .split('&')
        .any(|pair| is_one(&pair))
        .then(|| pairs.split('&').filter(|pair| !is_one(pair)).collect::<Vec<_>>().join("&"))
}

/// Removes the named query parameters from a request target. Returns `None` if it contains none of
/// them.
pub fn target_without<'n>(target: &str, names: impl Iterator<Item = &'n str> + Clone) -> Option<String> {
    let (path, query) = target.split_once('?')?;
    let left = without(query, names)?;
    Some(if left.is_empty() { path.to_owned() } else { format!("{path}?{left}") })
}

/// Sets a query parameter of a request target to a token. An existing parameter of the name is
/// removed first, because the URL may come from a service that has already added one.
pub fn target_with(target: &str, name: &str, token: &str) -> String {
    let without = target_without(target, std::iter::once(name));
    let target = without.as_deref().unwrap_or(target);
    let mark = if target.contains('?') { '&' } else { '?' };
    format!("{target}{mark}{}", pair(name, token))
}

/// Appends a field with a token to a form.
pub fn form_with(form: &[u8], name: &str, token: &str) -> Vec<u8> {
    let mark: &[u8] = if form.is_empty() { b"" } else { b"&" };
    [form, mark, pair(name, token).as_bytes()].concat()
}

fn pair(name: &str, token: &str) -> String {
    format!("{}={}", utf8_percent_encode(name, ESCAPED), utf8_percent_encode(token, ESCAPED))
}

/// All characters except the unreserved ones of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn is_named(own: &str, name: &str) -> bool {
    own == name || percent_decode(own) == name
}

fn percent_decode(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn basic_is_as_rfc_7617_shows_it() {
        let shown = value("Aladdin:open sesame", &Scheme::Basic(BasicPart::Both)).expect("it fits");
        assert_eq!(shown, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(shown.is_sensitive());
        assert_eq!(value("key", &Scheme::Basic(BasicPart::User)).expect("it fits"), "Basic a2V5Og==");
        assert_eq!(value("key", &Scheme::Basic(BasicPart::Password)).expect("it fits"), "Basic OmtleQ==");
    }

    fn part() -> impl Strategy<Value = BasicPart> {
        prop::sample::select(vec![BasicPart::User, BasicPart::Password, BasicPart::Both])
    }

    proptest! {
        /// User and password are extracted with and without padding; the other parts are not read.
        #[test]
        fn basic_is_read_as_it_is_defined(
            user in "[^:\\PC]{0,12}",
            password in "\\PC{0,12}",
            scheme in "[bB][aA][sS][iI][cC]",
            spaces in " {1,3}",
            is_padded: bool,
            part in part(),
        ) {
            let mut coded = BASE64.encode(format!("{user}:{password}"));
            if !is_padded {
                coded.truncate(coded.trim_end_matches('=').len());
            }
            let wanted = match part {
                BasicPart::User => user,
                BasicPart::Password => password,
                BasicPart::Both if user.is_empty() || password.is_empty() => String::new(),
                BasicPart::Both => format!("{user}:{password}"),
            };
            let read = extract_token(&format!("{scheme}{spaces}{coded}"), &Scheme::Basic(part)).map(Cow::into_owned);
            prop_assert_eq!(read, Some(wanted).filter(|wanted| !wanted.is_empty()));
        }

        /// A value that is not Basic yields no token.
        #[test]
        fn what_is_not_basic_is_not_read(value in "\\PC{0,40}", part in part()) {
            prop_assume!(!value.trim().to_ascii_lowercase().starts_with("basic "));
            prop_assert_eq!(extract_token(&value, &Scheme::Basic(part)), None);
            let _ = extract_token(&format!("Basic {value}"), &Scheme::Basic(part));
        }

        #[test]
        fn what_is_put_into_a_query_or_a_form_is_read_out_of_it_and_taken_out_of_it(
            token in "[!-~]{8,40}",
            name in "[a-z_&= %]{1,8}",
            before in prop::option::of("[a-z]{1,3}=[a-z0-9%2]{0,5}"),
        ) {
            prop_assume!(before.as_ref().is_none_or(|before| !is_named(before.split('=').next().unwrap(), &name)));
            let target = before.as_ref().map_or("/a".to_owned(), |before| format!("/a?{before}"));
            let with = target_with(&target, &name, &token);
            let (_, query) = with.split_once('?').expect("there is one");
            let form = form_with(before.as_deref().unwrap_or_default().as_bytes(), &name, &token);
            prop_assert_eq!(query.as_bytes(), &form[..]);
            prop_assert_eq!(values(query, &name).collect::<Vec<_>>(), [token.as_str()]);
            prop_assert_eq!(target_without(&with, [name.as_str()].into_iter()), Some(target.clone()));
            prop_assert_eq!(target_without(&target, [name.as_str()].into_iter()), None);
            prop_assert_eq!(target_with(&target_with(&target, &name, "another"), &name, &token), with);
        }

        /// A user has no colon (RFC 7617, section 2), and tokens of clients are visible ASCII.
        #[test]
        fn what_is_put_into_a_field_is_read_out_of_it(
            token in "[!-9;-~]{8,40}",
            word in "[A-Za-z][A-Za-z0-9-]{0,9}",
            which in 0..5_usize,
        ) {
            let scheme = match which {
                0 => Scheme::Bare,
                1 => Scheme::Word(word),
                2 => Scheme::Basic(BasicPart::User),
                3 => Scheme::Basic(BasicPart::Password),
                _ => Scheme::Basic(BasicPart::Both),
            };
            let token = if which == 4 { format!("{token}:{token}") } else { token };
            let value = value(&token, &scheme).expect("it fits");
            let read = extract_token(value.to_str().expect("ASCII"), &scheme);
            prop_assert_eq!(read.as_deref(), Some(token.as_str()));
        }
    }
}
