//! The section `notices`: receivers of notices to operators, and the limits of their queue.

use super::checked::NoticesConfig;
use super::events::is_receiver_name;
use super::read::{FromYaml, NamedMap, Placed, PositiveCount, ReadContext, describe_schema, section, words};
use super::scalars::{Period, WebUrl};
use serde_json::{Value, json};
use std::time::Duration;
use switchback_compiler::diagnostic::{Code, Finding, Findings, Span};
use switchback_compiler::yaml::Node;
use switchback_gateway::notices::{NoticeForm, NoticeKind, NoticeReceiver, NoticeSettings};
use switchback_gateway::secret::Secret;
use switchback_gateway::signature::{Signature, SignatureForm};

section! {
    /// Notices to operators.
    RawNotices is "`notices`",
    required {}
    optional {
        /// The receivers, by their names in the history, metrics and `switchback notices`.
        receivers: NamedMap<String, Placed<RawNoticeReceiver>> = NamedMap(Vec::new()),
        /// Undelivered notices of one receiver. Further ones are dropped.
        queue: PositiveCount = PositiveCount(1_000),
        /// Timeout for the answer of a receiver.
        timeout: Period = Period(Duration::from_secs(15)),
        /// Attempts after which a notice fails.
        attempts: PositiveCount = PositiveCount(5),
        /// Pause after the first failed attempt. It doubles with each attempt, with some jitter. A
        /// longer `Retry-After` of up to an hour takes precedence.
        retry_first: Period = Period(Duration::from_secs(15)),
        /// Longest pause between two attempts.
        retry_max: Period = Period(Duration::from_secs(300)),
    }
}

section! {
    /// A receiver of notices.
    RawNoticeReceiver is "a receiver of notices",
    required {
        /// `https` URL, or `http` on this machine. It is not displayed, since URLs of Slack and
        /// Teams are secrets: `${NAME}` or `file:PATH`.
        url: Secret<String>,
    }
    optional {
        /// The body: `json` (Standard Webhooks, signed), `slack` (incoming webhook) or `teams`
        /// (Workflows).
        form: NoticeForm = NoticeForm::Json,
        /// Signing secret of Standard Webhooks in base64 after `whsec_`. Required for `json`.
        secret: Secret<String>,
        /// The kinds of notices to send. The default is all.
        events: Vec<NoticeKind> = NoticeKind::ALL.to_vec(),
    }
}

words! {
    NoticeForm: quotable { "json" => Json, "slack" => Slack, "teams" => Teams }
    NoticeKind: quotable {
        "gate.held" => GateHeld,
        "gate.rolled_back" => GateRolledBack,
        "phase.changed" => PhaseChanged,
        "rollout.paused" => RolloutPaused,
        "rollout.aborted" => RolloutAborted,
        "rollout.completed" => RolloutCompleted,
        "grant.ended" => GrantEnded,
        "brownout.began" => BrownoutBegan,
        "brownout.ended" => BrownoutEnded,
        "reload.refused" => ReloadRefused,
        "certificate.expires" => CertificateExpires,
    }
}

/// Converts and checks the section.
pub(super) fn notices(raw: RawNotices, findings: &mut Findings) -> NoticesConfig {
    let receivers = raw.receivers.value.0.into_iter();
    let receivers = receivers.filter_map(|(name, one)| receiver(name, one, findings)).collect();
    if raw.retry_max.0 < raw.retry_first.0 {
        let what = "the longest pause is shorter than the first one";
        findings.push(Finding::error(Code::Conflict, raw.retry_max.span, what).help("raise `retry_max`"));
    }
    NoticesConfig {
        receivers,
        settings: NoticeSettings {
            queue: usize::try_from(raw.queue.0).unwrap_or(usize::MAX),
            attempts: raw.attempts.0,
            retry_first: raw.retry_first.0,
            retry_max: raw.retry_max.0,
            timeout: raw.timeout.0,
        },
    }
}

fn receiver(
    name: Placed<String>,
    raw: Placed<RawNoticeReceiver>,
    findings: &mut Findings,
) -> Option<NoticeReceiver> {
    let is_named = is_receiver_name(&name, findings);
    let (raw, span) = (raw.value, raw.span);
    // A misspelt form or event leaves the default, about which there is nothing to report.
    let is_in = |place: Span| span.start <= place.start && place.end <= span.end;
    let is_read = findings.in_order().iter().all(|finding| !is_in(finding.span));
    let form = raw.form.value;
    let sign = match (form, raw.secret) {
        (NoticeForm::Json, Some(secret)) => signature(&secret, findings),
        (NoticeForm::Json, None) if is_read => {
            let what = "the form `json` is signed and needs the key `secret`";
            findings.push(Finding::error(Code::MissingKey, span, what).help(SECRET_HELP));
            None
        }
        (NoticeForm::Slack | NoticeForm::Teams, Some(secret)) => {
            let what = format!("the form `{}` is not signed", form.to_value().as_str().unwrap_or_default());
            let help = "remove `secret`; the URL is the secret of this form";
            findings.push(Finding::error(Code::Conflict, secret.span, what).help(help));
            None
        }
        (_, None) => None,
    };
    if raw.events.is_empty() && is_read {
        let what = "a receiver without events gets no notices";
        findings.push(Finding::error(Code::Conflict, raw.events.span, what).help("remove `events` for all"));
    }
    let url = raw.url?;
    check_url(&url, findings);
    is_named.then_some(NoticeReceiver {
        name: name.value,
        url: url.value,
        form,
        sign,
        kinds: raw.events.value,
    })
}

const SECRET_HELP: &str = "base64 after `whsec_`, such as `echo whsec_$(openssl rand -base64 24)` prints";

fn signature(secret: &Placed<Secret<String>>, findings: &mut Findings) -> Option<Signature> {
    let signature = Signature::new(SignatureForm::StandardWebhooks, std::slice::from_ref(&secret.value));
    if signature.is_none() {
        let what = "this is no secret of Standard Webhooks";
        findings.push(Finding::error(Code::ValueForm, secret.span, what).help(SECRET_HELP));
    }
    signature
}

/// Checks that a URL has the right form and leads through TLS or to this machine.
fn check_url(url: &Placed<Secret<String>>, findings: &mut Findings) {
    match url.expose().parse::<WebUrl>() {
        Err(error) => findings.push(Finding::error(Code::ValueForm, url.span, error.to_string())),
        Ok(parsed) if !parsed.is_https() && !parsed.is_loopback() => {
            let what = "notices would travel unencrypted to another machine";
            findings.push(Finding::error(Code::Conflict, url.span, what).help("use an `https` URL"));
        }
        Ok(_) => {}
    }
}
