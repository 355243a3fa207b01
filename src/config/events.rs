//! The section `events`: receivers, signatures and the limits of the queue.

use super::checked::{EventReceiver, EventsConfig, OwnEventsConfig};
use super::read::{
    FromYaml, NamedMap, OneOrMore, Placed, PositiveCount, ReadContext, describe_schema, section, words,
};
use super::scalars::{ByteSize, PathPrefix, Period, WebUrl};
use serde_json::{Value, json};
use std::time::Duration;
use switchback_compiler::diagnostic::{Code, Finding, Findings, Span};
use switchback_compiler::yaml::Node;
use switchback_gateway::secret::Secret;
use switchback_gateway::signature::{Encoding, HmacForm, Signature, SignatureForm};

section! {
    /// Translation of events for their receivers. Without receivers, no events are accepted.
    RawEvents is "`events`",
    required {}
    optional {
        /// The receivers, by their names in logs, metrics and `switchback events`.
        receivers: NamedMap<String, RawReceiver> = NamedMap(Vec::new()),
        /// Accepted difference between the timestamp of a signature and the current time.
        tolerance: Period = Period(Duration::from_secs(300)),
        /// Period in which a repeated message is recognized: it is acknowledged and not delivered
        /// again.
        remember: Period = Period(Duration::from_secs(3 * 86_400)),
        /// Events that wait for one receiver, including dead letters. Further ones are rejected
        /// with 503.
        queue: PositiveCount = PositiveCount(10_000),
        /// Total size of these events.
        queue_bytes: ByteSize = ByteSize(64 << 20),
        /// Size of the body of an event. A larger one is rejected with 413.
        body_bytes: ByteSize = ByteSize(256 << 10),
        /// Timeout for the response of a receiver.
        timeout: Period = Period(Duration::from_secs(15)),
        /// Concurrent deliveries.
        deliveries: PositiveCount = PositiveCount(32),
        /// Attempts after which an event becomes a dead letter.
        attempts: PositiveCount = PositiveCount(12),
        /// Pause after the first failed attempt. It doubles with each attempt, with some jitter.
        retry_first: Period = Period(Duration::from_secs(5)),
        /// Longest pause between two attempts.
        retry_max: Period = Period(Duration::from_secs(3_600)),
        /// Events of one receiver that wait for the event of the other version. Further ones are
        /// not compared.
        pairs: PositiveCount = PositiveCount(10_000),
        /// Total size of their bodies.
        pairs_bytes: ByteSize = ByteSize(64 << 20),
    }
}

section! {
    /// A receiver of events in the format of its version.
    RawReceiver is "a receiver",
    required {
        /// Verification of the service's signature.
        verify: RawSignature,
        /// URL to which the events are delivered.
        url: WebUrl,
    }
    optional {
        /// Path on the client port to which the service delivers. The default is `/events/` and the
        /// name.
        path: PathPrefix,
        /// Signature of deliveries. By default they are not signed.
        sign: RawSignature,
        /// Deliveries of the version that the receiver knows, while it exists: the phase of an
        /// event decides which of the two is delivered, and both are compared.
        own: RawOwn,
    }
}

section! {
    /// Deliveries of the version that the receiver knows.
    RawOwn is "`own`",
    required {
        /// Verification of that version's signature.
        verify: RawSignature,
    }
    optional {
        /// Path on the client port. The default is `/events/`, the name and `/own`.
        path: PathPrefix,
    }
}

section! {
    /// Signature of messages: Standard Webhooks, or HMAC-SHA-256 in a header field.
    RawSignature is "a signature",
    required {
        /// Signing secret; for Standard Webhooks in base64 after `whsec_`. In a list, the first
        /// secret signs and all are accepted; this is how a secret is rotated.
        secret: OneOrMore<Placed<Secret<String>>>,
    }
    optional {
        /// `standard-webhooks` or `hmac`.
        form: RawForm = RawForm::StandardWebhooks,
        /// `hmac`: header field of the signature.
        header: String,
        /// `hmac`: text before the signature in the field, such as `sha256=`.
        prefix: String,
        /// `hmac`: encoding of the signature, `hex` or `base64`.
        encoding: RawEncoding,
        /// `hmac`: header field of the signing time in seconds since 1970. With it, the time, a dot
        /// and the body are signed; without it, the body alone.
        timestamp: String,
        /// `hmac`: header field of the message identifier.
        id: String,
        /// `hmac`: whether the identifier is signed: it and a dot are then the first part of the
        /// signed text. Only a signed identifier is used to recognize a repeated message; otherwise
        /// the time and the body are, if there is a `timestamp`.
        signs_id: bool,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawForm {
    StandardWebhooks,
    Hmac,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawEncoding {
    Hex,
    Base64,
}

words! {
    RawForm: quotable { "standard-webhooks" => StandardWebhooks, "hmac" => Hmac }
    RawEncoding: quotable { "hex" => Hex, "base64" => Base64 }
}

/// Converts and checks the section.
pub(super) fn events(raw: RawEvents, findings: &mut Findings) -> EventsConfig {
    let mut receivers: Vec<EventReceiver> = Vec::new();
    for (name, receiver) in raw.receivers.value.0 {
        if !is_receiver_name(&name, findings) {
            continue;
        }
        let mut place = |given: &Option<Placed<PathPrefix>>, usual: String, taken: &[(String, String)]| {
            let path = given.as_ref().map_or(usual, |path| path.as_str().to_owned());
            let span = given.as_ref().map_or(name.span, |path| path.span);
            check_path(&path, span, taken, findings);
            Placed { value: path, span }
        };
        let mut taken: Vec<(String, String)> = receivers
            .iter()
            .flat_map(|other| other.paths().map(|path| (other.name.clone(), path.value.clone())))
            .collect();
        let path = place(&receiver.path, format!("/events/{}", *name), &taken);
        // The path of the receiver's own version must differ from this one, too.
        taken.push((name.value.clone(), path.value.clone()));
        let own = receiver.own.map(|own| {
            let path = place(&own.value.path, format!("{}/own", path.value), &taken);
            (path, own.value.verify)
        });
        let own = match own {
            None => None,
            Some((path, verify)) => {
                let Some(verify) = verify.and_then(|raw| signature(raw, true, findings)) else { continue };
                Some(OwnEventsConfig { path, verify })
            }
        };
        let verify = receiver.verify.and_then(|raw| signature(raw, true, findings));
        let sign = receiver.sign.map(|raw| signature(raw, false, findings));
        let (Some(verify), Some(url)) = (verify, receiver.url) else { continue };
        if !url.is_https() && !url.is_loopback() {
            let what = "events would travel unencrypted to another machine";
            findings.push(Finding::warning(Code::Conflict, url.span, what).help("use an `https` URL"));
        }
        receivers.push(EventReceiver {
            name: name.value,
            path,
            verify,
            url: url.value,
            sign: sign.flatten(),
            own,
        });
    }
    if raw.retry_max.0 < raw.retry_first.0 {
        let what = "the longest pause is shorter than the first one";
        findings.push(Finding::error(Code::Conflict, raw.retry_max.span, what).help("raise `retry_max`"));
    }
    EventsConfig {
        receivers,
        settings: switchback_gateway::events::EventSettings {
            queue: u64::from(raw.queue.0),
            queue_bytes: raw.queue_bytes.0,
            body_bytes: raw.body_bytes.0,
            tolerance: raw.tolerance.0,
            remember: raw.remember.0,
            timeout: raw.timeout.0,
            deliveries: usize::try_from(raw.deliveries.0).unwrap_or(usize::MAX),
            attempts: raw.attempts.0,
            retry_first: raw.retry_first.0,
            retry_max: raw.retry_max.0,
            pairs: u64::from(raw.pairs.0),
            pairs_bytes: raw.pairs_bytes.0,
        },
    }
}

/// Checks the name of a receiver.
pub(super) fn is_receiver_name(name: &Placed<String>, findings: &mut Findings) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let is_name = name.len() <= NAME_CHARS_MAX && name.bytes().all(is_plain);
    if !is_name {
        let what = format!("a receiver's name is 1 to {NAME_CHARS_MAX} letters, digits, `.`, `_` and `-`");
        findings.push(Finding::error(Code::ValueForm, name.span, what));
    }
    is_name
}

/// Checks that a receiver's path is unique and not `/`. It may lie within a front, since events are
/// matched first. `taken` holds the receivers so far with their paths.
fn check_path(path: &str, span: Span, taken: &[(String, String)], findings: &mut Findings) {
    if path.is_empty() {
        let what = "`/` is no path of its own";
        findings.push(Finding::error(Code::Conflict, span, what).help("for example `/events/NAME`"));
    }
    if let Some((other, _)) = taken.iter().find(|(_, known)| known == path) {
        let what = format!("the receiver `{other}` has the path `{path}` already");
        findings
            .push(Finding::error(Code::Conflict, span, what).help("give each receiver a path of its own"));
    }
}

const NAME_CHARS_MAX: usize = 64;

/// Converts a signature. `is_checked`: incoming messages are verified with it; otherwise outgoing
/// ones are signed.
pub(super) fn signature(
    raw: Placed<RawSignature>,
    is_checked: bool,
    findings: &mut Findings,
) -> Option<Signature> {
    let (raw, span) = (raw.value, raw.span);
    let secrets = raw.secret?;
    let mut field = |given: Option<Placed<String>>| match given {
        None => Some(None),
        Some(name) => match http::HeaderName::from_bytes(name.as_bytes()) {
            Ok(parsed) => Some(Some(parsed)),
            Err(_) => {
                let what = "this is not the name of a header field";
                findings.push(Finding::error(Code::ValueForm, name.span, what));
                None
            }
        },
    };
    let form = match raw.form.value {
        RawForm::StandardWebhooks => {
            let own = [&raw.header, &raw.prefix, &raw.timestamp, &raw.id].into_iter().flatten();
            let own = own.map(|own| own.span).chain(raw.signs_id.as_ref().map(|signs| signs.span)).next();
            if let Some(own) = own {
                let what = "Standard Webhooks says itself where its signature stands";
                findings.push(
                    Finding::error(Code::Conflict, own, what).help("leave it out, or set `form: hmac`"),
                );
                return None;
            }
            SignatureForm::StandardWebhooks
        }
        RawForm::Hmac => {
            let id_place = raw.id.as_ref().map(|id| id.span);
            let (header, timestamp, id) = (field(raw.header)?, field(raw.timestamp)?, field(raw.id)?);
            let Some(header) = header else {
                let what = "`form: hmac` needs the key `header`: the field with the signature";
                findings.push(Finding::error(Code::MissingKey, span, what));
                return None;
            };
            let encoding = match raw.encoding.map(|encoding| encoding.value) {
                Some(RawEncoding::Base64) => Encoding::Base64,
                _ => Encoding::Hex,
            };
            let prefix = raw.prefix.map(|prefix| prefix.value).unwrap_or_default();
            let signs_id = raw.signs_id.as_ref().is_some_and(|signs| signs.value);
            if let (None, Some(signs)) = (&id, raw.signs_id.as_ref().filter(|_| signs_id)) {
                let what = "no key `id` says which field has the name that is signed";
                findings.push(Finding::error(Code::Conflict, signs.span, what).help("add `id`"));
            }
            if let (Some(place), true, false) = (id_place, is_checked, signs_id) {
                let what = "a message is not known again by a name that is not signed";
                let help = "`signs_id: true` where the sender signs the name, a dot and the rest; else leave `id` out: by `timestamp` \
                            it is known by its moment and its body";
                findings.push(Finding::warning(Code::Conflict, place, what).help(help));
            }
            SignatureForm::Hmac(HmacForm { header, prefix, encoding, timestamp, id, signs_id })
        }
    };
    let texts: Vec<Secret<String>> = secrets.value.0.iter().map(|secret| secret.value.clone()).collect();
    let made = Signature::new(form, &texts);
    if made.is_none() {
        let what = "this is no secret of Standard Webhooks";
        let help = "base64 after `whsec_`, such as `echo whsec_$(openssl rand -base64 24)` makes";
        findings.push(Finding::error(Code::ValueForm, secrets.span, what).help(help));
    }
    made
}
