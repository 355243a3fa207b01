//! Counts each request: in the metrics, by client, operation and outcome, with its duration; and in
//! the persistent usage counters.
//!
//! Metric handles are cached per thread, so cores share no lock on this path.

use super::ending::EndedRequest;
use crate::error::ErrorKind;
use crate::outcome::Outcome;
use crate::proxy::facts::RequestFacts;
use crate::proxy::unknown_calls::{called_path, label, method};
use crate::retire::Usage;
use crate::telemetry::metrics::RequestMeter;
use http::StatusCode;
use std::cell::RefCell;
use std::collections::HashMap;

/// Counts a request.
pub(super) fn count(ended: &EndedRequest<'_>, usage: &Usage) {
    let EndedRequest { facts, ending, .. } = ended;
    let outcome = ending.outcome(facts);
    with_meter(facts.client(), facts.operation(), facts.side(), |meter| {
        let took = (!ended.is_open_ended).then_some(ended.took);
        meter.record(outcome, ending.status(), took, ended.own_time);
    });
    count_usage(usage, facts, outcome, ending.status());
}

fn count_usage(usage: &Usage, facts: &RequestFacts<'_>, outcome: Outcome, status: Option<u16>) {
    // Requests outside all fronts belong to no API, and the sender of an unknown token may be
    // anybody. Both are counted in the metrics only.
    let Some(front) = &facts.front else { return };
    if facts.error.as_ref().is_some_and(|error| error.kind == ErrorKind::UnknownToken.name()) {
        return;
    }
    match facts.operation() {
        "" => {
            // Only a status from the front's own service confirms that the path exists.
            let status = status.filter(|_| outcome == Outcome::Forwarded);
            let path = called_path(facts, status.and_then(|status| StatusCode::from_u16(status).ok()));
            let called = format!("{} {}", method(&facts.context.method), label(front, &path));
            usage.count_unknown(facts.side(), facts.client(), &called, outcome);
        }
        operation => usage.count(facts.side(), facts.client(), operation, outcome),
    }
}

/// Handles by client or operation name.
type HandlesByName<T> = HashMap<String, T, foldhash::fast::RandomState>;

thread_local! {
    /// By client, then operation, then a short list of sides. Enrolment and the contracts bound all
    /// three.
    static METERS: RefCell<HandlesByName<HandlesByName<Vec<RequestMeter>>>> = RefCell::new(HandlesByName::default());
}

fn with_meter(client: &str, operation: &str, side: &str, record: impl FnOnce(&RequestMeter)) {
    let of_side = |meters: &Vec<RequestMeter>| meters.iter().position(|meter| meter.side() == side);
    METERS.with_borrow_mut(|meters| {
        if let Some(known) = meters.get(client).and_then(|operations| operations.get(operation))
            && let Some(at) = of_side(known)
        {
            return record(&known[at]);
        }
        let meter = RequestMeter::new(client, operation, side);
        record(&meter);
        meters.entry(client.to_owned()).or_default().entry(operation.to_owned()).or_default().push(meter);
    });
}
