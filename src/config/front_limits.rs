//! The limits that a front or one of its operations replaces.

use super::checked::{Config, LimitsConfig, OwnLimits};
use super::ranges::{HELD_BYTES_MIN, check_floor, check_wait};
use super::read::{FromYaml, Placed, ReadContext, describe_schema, section};
use super::scalars::{ByteSize, Period};
use serde_json::{Value, json};
use std::time::Duration;
use switchback_compiler::diagnostic::{Code, Finding, Findings};
use switchback_compiler::yaml::Node;
use switchback_gateway::proxy::limits::LimitOverrides;

section! {
    /// Limits of one front or operation, in place of those of `limits`. An operation inherits from
    /// its front. The shadow has its own.
    RawOwnLimits is "limits of a front",
    required {}
    optional {
        /// Size of a request body, both as sent and decoded. A larger one is rejected with 413.
        body_bytes: ByteSize,
        /// Size of a request body that is forwarded unchanged. A larger one is rejected with 413.
        forwarded_bytes: ByteSize,
        /// Size of a streamed upstream response, decoded. A larger one is aborted.
        answer_bytes: ByteSize,
        /// Timeout between two chunks of a request body.
        body_timeout: Period,
        /// Timeout from sending a call to the head of its response, and between two chunks of its
        /// body.
        upstream_timeout: Period,
        /// Timeout from the head of a request to the head of its response.
        total_timeout: Period,
        /// Timeout of a forwarded request without a byte in either direction.
        forwarded_idle_timeout: Period,
    }
}

/// Converts and checks limits. `total` is the inherited total timeout.
pub(super) fn check_own_limits(raw: &RawOwnLimits, total: Duration, findings: &mut Findings) -> OwnLimits {
    let sizes = [
        ("body_bytes", &raw.body_bytes, 1),
        ("forwarded_bytes", &raw.forwarded_bytes, 1),
        ("answer_bytes", &raw.answer_bytes, HELD_BYTES_MIN),
    ];
    for (name, size, floor) in sizes {
        size.iter().for_each(|size| check_floor(name, size, floor, findings));
    }
    let waits = [
        ("body_timeout", &raw.body_timeout),
        ("upstream_timeout", &raw.upstream_timeout),
        ("total_timeout", &raw.total_timeout),
        ("forwarded_idle_timeout", &raw.forwarded_idle_timeout),
    ];
    for (name, wait) in waits {
        wait.iter().for_each(|wait| check_wait(name, wait, findings));
    }
    let total = raw.total_timeout.as_ref().map_or(total, |own| own.0);
    // A total that is shorter than the inherited `upstream_timeout` is intended: it ends the call.
    if let Some(part) = raw.upstream_timeout.as_ref().filter(|part| part.0 > total) {
        let what =
            format!("`upstream_timeout` ({}) is longer than `total_timeout` ({})", part.value, Period(total));
        findings.push(Finding::error(Code::Conflict, part.span, what).help("set `total_timeout` too"));
    }
    let size = |size: &Option<Placed<ByteSize>>| size.as_ref().map(|size| size.0);
    let time = |time: &Option<Placed<Period>>| time.as_ref().map(|time| time.0);
    OwnLimits {
        limits: LimitOverrides {
            request_bytes_max: size(&raw.body_bytes),
            forwarded_bytes_max: size(&raw.forwarded_bytes),
            body_idle_timeout: time(&raw.body_timeout),
            total_timeout: time(&raw.total_timeout),
            response_timeout: time(&raw.upstream_timeout),
            forwarded_idle_timeout: time(&raw.forwarded_idle_timeout),
            response_bytes_max: size(&raw.answer_bytes),
        },
        total_timeout_place: raw.total_timeout.as_ref().map(|total| total.span),
    }
}

/// A limit that a front or operation replaces.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ReplacedLimit {
    /// The key of the section, such as `fronts./v2.limits`.
    pub place: String,
    /// The key of the limit.
    pub limit: &'static str,
    /// The limit, as the configuration writes it.
    pub value: String,
    /// The limit that it replaces.
    pub inherited: String,
}

/// Returns the limits that fronts and their operations replace, in the order of the file.
pub fn replaced_limits(config: &Config) -> Vec<ReplacedLimit> {
    let LimitsConfig { body_bytes, forwarded_bytes, answer_bytes, .. } = config.limits;
    let LimitsConfig { body_timeout, upstream_timeout, total_timeout, forwarded_idle_timeout, .. } =
        config.limits;
    let all = limit_values(&LimitOverrides {
        request_bytes_max: Some(body_bytes),
        forwarded_bytes_max: Some(forwarded_bytes),
        body_idle_timeout: Some(body_timeout),
        total_timeout: Some(total_timeout),
        response_timeout: Some(upstream_timeout),
        forwarded_idle_timeout: Some(forwarded_idle_timeout),
        response_bytes_max: Some(answer_bytes),
    });
    let mut replaced = Vec::new();
    for front in &config.fronts {
        let place = format!("fronts.{}", front.prefix.as_str());
        let of_front = limit_values(&front.limits.limits);
        add_replaced(&format!("{place}.limits"), &of_front, &[&all], &mut replaced);
        for (operation, own) in &front.operation_limits {
            let place = format!("{place}.operation_limits.{}", operation.value);
            add_replaced(&place, &limit_values(&own.limits), &[&of_front, &all], &mut replaced);
        }
    }
    replaced
}

/// The keys of limits with their values, as the configuration writes them.
type LimitValues = [(&'static str, Option<String>); 7];

fn limit_values(limits: &LimitOverrides) -> LimitValues {
    let size = |bytes: Option<u64>| bytes.map(|bytes| ByteSize(bytes).to_string());
    let time = |time: Option<Duration>| time.map(|time| Period(time).to_string());
    [
        ("body_bytes", size(limits.request_bytes_max)),
        ("forwarded_bytes", size(limits.forwarded_bytes_max)),
        ("answer_bytes", size(limits.response_bytes_max)),
        ("body_timeout", time(limits.body_idle_timeout)),
        ("upstream_timeout", time(limits.response_timeout)),
        ("total_timeout", time(limits.total_timeout)),
        ("forwarded_idle_timeout", time(limits.forwarded_idle_timeout)),
    ]
}

/// Adds the limits of `own`, each with the value of the first of `before` that has one.
fn add_replaced(place: &str, own: &LimitValues, before: &[&LimitValues], replaced: &mut Vec<ReplacedLimit>) {
    for (at, (limit, value)) in own.iter().enumerate() {
        let Some(value) = value.clone() else { continue };
        let inherited = before.iter().find_map(|before| before[at].1.clone()).unwrap_or_default();
        replaced.push(ReplacedLimit { place: place.to_owned(), limit, value, inherited });
    }
}
