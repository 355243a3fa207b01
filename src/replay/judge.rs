//! Comparison rules of a replay.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::sync::Arc;
use switchback_engine::diff::{
    self, BufferedAnswer, Candidate, Cause, Comparison, Finding, Noise, OperationRules, Rules, View,
};
use switchback_engine::redact::{MASK, Redactor, Salt};
use switchback_json::{Limits, Value};
use switchback_plan::{Disclosures, Pack, PerSide, RouteId, SideId};

/// Compares recorded messages with those of the current pack.
pub(super) struct ReplayJudge {
    rules: Rules,
    redactor: Redactor,
    /// By side.
    disclosures: PerSide<Arc<Disclosures>>,
    /// Whether texts that are masked as a whole are compared by their masks. They are equal for equal
    /// texts of one recording.
    pub compares_masked_texts: bool,
}

/// The route of an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangeRoute {
    pub serves: SideId,
    pub route: RouteId,
}

/// An answer: status, headers, body.
pub(super) type RecordedResponse = (u16, HeaderMap, Bytes);

/// Masked values of two messages that were compared.
#[derive(Debug, Default)]
struct MaskNotes {
    /// Whether texts that are masked as a whole are compared.
    compares_texts: bool,
    /// Places of such texts with different masks.
    texts: Vec<String>,
    /// Whether a value was compared by its kind alone.
    is_by_kind: bool,
}

impl ReplayJudge {
    /// Builds a judge. `salt` keys the hashes that are printed in place of redacted values.
    pub fn new(pack: &Pack, salt: Salt) -> ReplayJudge {
        let disclosures = pack.disclosures.each_ref().map(Arc::clone);
        ReplayJudge {
            rules: Rules::compile(pack),
            redactor: Redactor::new(salt),
            disclosures,
            compares_masked_texts: false,
        }
    }

    /// Compares the recorded answer with that of the current plan. Also returns whether a masked value
    /// was compared by its kind alone.
    ///
    /// `by_service`: the recorded answer is a service's own. It may differ by the losses and the
    /// noise that the pack declares; an answer of the gateway must be equal. `masked` and
    /// `masked_header`: places and a header field with placeholders in the recording.
    pub fn answers(
        &self,
        at: ExchangeRoute,
        by_service: bool,
        masked: &[String],
        masked_header: Option<&HeaderName>,
        before: RecordedResponse,
        now: RecordedResponse,
    ) -> (Comparison, bool) {
        let mut notes = MaskNotes { compares_texts: self.compares_masked_texts, ..MaskNotes::default() };
        let rules = self.rules.of_route(at.serves, at.route);
        let (before, now) = alike(before, now, masked, masked_header, &mut notes);
        let mut comparison = match by_service {
            true => self.compare(rules, before, now),
            // Declared losses have occurred in the recorded answer already, so they are no excuse for a
            // difference.
            false => self.compare(&rules.without_excuses(), before, now),
        };
        // A text that a line computes from a masked one may be right under another mask.
        let is_proven = |finding: &Finding| {
            matches!(finding.cause, Cause::Copied { .. }) || !notes.texts.contains(&finding.pattern)
        };
        let found = comparison.findings.len();
        comparison.findings.retain(is_proven);
        let is_by_kind = notes.is_by_kind || comparison.findings.len() < found;
        (comparison, is_by_kind)
    }

    /// Compares the bodies of two calls; `masked` as in [`ReplayJudge::answers`].
    pub fn bodies(&self, masked: &[String], before: Bytes, now: Bytes) -> Vec<Finding> {
        let call = |body: Bytes| (200, HeaderMap::new(), body);
        let (before, now) = alike(call(before), call(now), masked, None, &mut MaskNotes::default());
        self.compare(&OperationRules::unknown(), before, now).findings
    }

    /// Returns the redacted target of a call to a side.
    pub fn target(&self, called: SideId, method: &str, target: &str) -> String {
        let disclosures = &self.disclosures[called];
        let path = target.split('?').next().unwrap_or_default();
        self.redactor.target(target, disclosures, disclosures.find(method, path))
    }

    fn compare(&self, rules: &OperationRules, before: RecordedResponse, now: RecordedResponse) -> Comparison {
        let (before, now) = (view(before), Candidate::Answered(view(now)));
        diff::compare(rules, &before, &now, &Noise::default(), &diff::Limits::default(), &self.redactor)
    }
}

fn view((status, headers, body): RecordedResponse) -> View {
    View { status, headers, body: BufferedAnswer::whole(body) }
}

/// Removes irrelevant differences: header fields that no plan sets (layers of the gateway and the
/// connection add them), and values that the recording masks.
fn alike(
    before: RecordedResponse,
    now: RecordedResponse,
    masked: &[String],
    masked_header: Option<&HeaderName>,
    notes: &mut MaskNotes,
) -> (RecordedResponse, RecordedResponse) {
    let (status, headers, body) = before;
    let by_plans = |name: &&HeaderName| {
        // These two count even if they are absent now: a plan that has stopped to set them must be
        // noticed.
        now.1.contains_key(*name) || [header::CONTENT_TYPE, header::LOCATION].contains(name)
    };
    let mut kept = HeaderMap::new();
    for name in headers.keys().filter(by_plans) {
        headers.get_all(name).iter().for_each(|value| {
            kept.append(name, value.clone());
        });
    }
    let mut now = now;
    // The gateway guarantees that both are JSON, and archives of some tools omit the type.
    if !kept.contains_key(header::CONTENT_TYPE) || !now.1.contains_key(header::CONTENT_TYPE) {
        kept.remove(header::CONTENT_TYPE);
        now.1.remove(header::CONTENT_TYPE);
    }
    for (name, value) in &mut now.1 {
        let is_masked = |before: &&HeaderValue| masked_header == Some(name) || holds_mask(before);
        if let Some(before) = kept.get(name).filter(is_masked) {
            notes.is_by_kind |= *value != *before;
            value.clone_from(before);
        }
    }
    now.2 = masked_alike(&body, now.2, masked, notes);
    ((status, kept, body), now)
}

fn holds_mask(value: &HeaderValue) -> bool {
    value.to_str().is_ok_and(|text| text.contains(MASK))
}

/// Returns `now` with the masks that `before` has at the same places.
fn masked_alike(before: &Bytes, now: Bytes, masked: &[String], notes: &mut MaskNotes) -> Bytes {
    // Parse only bodies with a mask; most have no mask.
    if masked.is_empty() && !before.windows(MASK.len()).any(|window| window == MASK.as_bytes()) {
        return now;
    }
    match (Value::parse(before, &Limits::DOCUMENT), Value::parse(&now, &Limits::DOCUMENT)) {
        (Ok(before), Ok(mut after)) => {
            mask("$", &before, &mut after, masked, notes);
            after.to_string().into()
        }
        _ => now,
    }
}

/// Returns whether a text is masked as a whole: the mask and a hash.
fn is_masked(value: &Value) -> bool {
    let Value::String(text) = value else { return false };
    let text = text.decode();
    let is_hash = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.strip_prefix(MASK).is_some_and(is_hash)
}

fn mask(place: &str, before: &Value, now: &mut Value, masked: &[String], notes: &mut MaskNotes) {
    match (before, now) {
        (Value::String(text), now @ Value::String(_)) if text.decode().contains(MASK) => {
            if notes.compares_texts && is_masked(before) && is_masked(now) {
                if *now != *before {
                    notes.texts.push(place.to_owned());
                }
                return;
            }
            notes.is_by_kind |= *now != *before;
            *now = before.clone()
        }
        // Only if the kind is the same: a mask must not hide that a number became a text.
        (Value::Number(_), now @ Value::Number(_))
        | (Value::Bool(_), now @ Value::Bool(_))
        | (Value::String(_), now @ Value::String(_))
            if masked.iter().any(|masked| masked == place) =>
        {
            notes.is_by_kind = true;
            *now = before.clone();
        }
        (Value::Array(before), Value::Array(now)) => {
            // Elements beyond the shorter list are left for the comparison to report.
            let place = format!("{place}[*]");
            let pairs = before.iter().zip(now.iter_mut());
            pairs.for_each(|(before, now)| mask(&place, before, now, masked, notes));
        }
        (Value::Object(before), Value::Object(now)) => {
            for (key, value) in before.iter() {
                let name = key.decode();
                if let Some(now) = now.get_mut(&name) {
                    mask(&format!("{place}.{name}"), value, now, masked, notes);
                }
            }
        }
        _ => {}
    }
}
