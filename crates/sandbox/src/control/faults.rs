//! Faults: rules that disturb the answers of selected calls. A rule selects by side, method, path
//! and count. Probabilities are derived from the seed, so that equal calls meet equal faults.

use crate::Side;
use crate::seed::mix;
use http::Method;
use serde::{Deserialize, Serialize};

/// A rule, as it is sent and listed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Assigned by the sandbox.
    #[serde(default)]
    pub id: u64,
    /// The side; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// The method; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// A documented path below the version, with `{…}` for any segment; any path if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Number of matching calls before the first fault.
    #[serde(default)]
    pub skip: u64,
    /// Maximum number of disturbed calls; unlimited if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Probability for each matching call, from 0 to 1.
    #[serde(default = "certain")]
    pub probability: f64,
    pub action: Action,
    /// Number of matching calls so far, and number of disturbed ones.
    #[serde(default)]
    pub seen: u64,
    #[serde(default)]
    pub done: u64,
}

fn certain() -> f64 {
    1.0
}

/// Whether the fault replaces the work of the service or follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The call has no effect on the state.
    #[default]
    Before,
    /// The call has its effect; only the answer is disturbed.
    After,
}

/// The disturbance of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Delays the answer.
    Delay { ms: u64 },
    /// Answers with another status and the given body, or with a `{reason}`.
    Status {
        code: u16,
        #[serde(default)]
        body: Option<serde_json::Value>,
        #[serde(default)]
        when: When,
    },
    /// Resets the connection (RST).
    Reset {
        #[serde(default)]
        when: When,
    },
    /// Closes the connection after this number of bytes of the body, before the announced length.
    Truncate { bytes: usize },
    /// Sends the body in delayed chunks.
    Drip { bytes: usize, every_ms: u64 },
    /// Sends an unlimited body after the head of the answer.
    Endless {},
    /// Truncates the body and appends bytes that are not JSON. The `Content-Length` is correct.
    InvalidJson {},
    /// Answers with an HTML error page, as proxies and load balancers do.
    Html { status: u16 },
    /// Compresses the body and sets `Content-Encoding`.
    Gzip {},
}

/// The active rules.
#[derive(Default)]
pub struct Faults {
    rules: Vec<Fault>,
    next_id: u64,
}

impl Faults {
    /// Activates a rule and returns its id.
    pub fn add(&mut self, mut fault: Fault) -> u64 {
        self.next_id += 1;
        fault.id = self.next_id;
        fault.seen = 0;
        fault.done = 0;
        self.rules.push(fault);
        self.next_id
    }

    /// Removes a rule. Returns whether it existed.
    pub fn remove(&mut self, id: u64) -> bool {
        let before = self.rules.len();
        self.rules.retain(|rule| rule.id != id);
        self.rules.len() < before
    }

    pub fn clear(&mut self) {
        self.rules.clear();
    }

    pub fn all(&self) -> &[Fault] {
        &self.rules
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the disturbances of a call, in the order of the rules.
    pub fn strike<S: AsRef<str>>(
        &mut self,
        seed: u64,
        side: Side,
        method: &Method,
        segments: &[S],
    ) -> Vec<Action> {
        let fitting = self.rules.iter_mut().filter(|rule| rule.fits(side, method, segments));
        fitting.filter_map(|rule| rule.strikes(seed).then(|| rule.action.clone())).collect()
    }
}

impl Fault {
    fn fits<S: AsRef<str>>(&self, side: Side, method: &Method, segments: &[S]) -> bool {
        self.side.is_none_or(|wanted| wanted == side)
            && self.method.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(method.as_str()))
            && self.path.as_ref().is_none_or(|pattern| path_fits(pattern, segments))
    }

    fn strikes(&mut self, seed: u64) -> bool {
        self.seen += 1;
        if self.seen <= self.skip || self.count.is_some_and(|count| self.done >= count) {
            return false;
        }
        let roll = mix(seed ^ mix(self.id) ^ self.seen);
        // Use the upper 53 bits, the precision of an f64.
        let strikes = ((roll >> 11) as f64) < self.probability * (1u64 << 53) as f64;
        self.done += u64::from(strikes);
        strikes
    }
}

/// Returns whether a path matches a pattern. `{…}` matches any segment; other segments match
/// literally.
pub fn path_fits<S: AsRef<str>>(pattern: &str, segments: &[S]) -> bool {
    let mut parts = pattern.split('/').filter(|part| !part.is_empty());
    let all = segments
        .iter()
        .all(|segment| parts.next().is_some_and(|part| part.starts_with('{') || part == segment.as_ref()));
    all && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Fault {
        serde_json::from_str(text).expect("a rule")
    }

    fn struck(faults: &mut Faults, calls: usize) -> String {
        let mut one = || faults.strike(7, Side::V3, &Method::GET, &["chats", "1"]).len();
        (0..calls).map(|_| if one() > 0 { 'x' } else { '.' }).collect()
    }

    #[test]
    fn skip_and_count_choose_the_calls() {
        let mut faults = Faults::default();
        faults.add(rule(r#"{"path": "/chats/{id}", "skip": 2, "count": 3, "action": {"delay": {"ms": 1}}}"#));
        assert_eq!(struck(&mut faults, 8), "..xxx...");
    }

    #[test]
    fn chance_is_the_same_for_a_seed() {
        let run = || {
            let mut faults = Faults::default();
            faults.add(rule(r#"{"probability": 0.3, "action": {"invalid_json": {}}}"#));
            struck(&mut faults, 1000)
        };
        let first = run();
        assert_eq!(first, run());
        let hits = first.matches('x').count();
        assert!((200..400).contains(&hits), "{hits} of 1000 at a chance of 0.3");
    }

    #[test]
    fn other_sides_methods_and_paths_are_spared() {
        let mut faults = Faults::default();
        faults.add(rule(r#"{"side": "v2", "action": {"gzip": {}}}"#));
        faults.add(rule(r#"{"method": "post", "action": {"gzip": {}}}"#));
        faults.add(rule(r#"{"path": "/chats/{id}/messages", "action": {"gzip": {}}}"#));
        assert_eq!(struck(&mut faults, 3), "...");
        assert!(serde_json::from_str::<Fault>(r#"{"action": {"explode": {}}}"#).is_err());
        assert!(serde_json::from_str::<Fault>(r#"{"actoin": 1, "action": {"gzip": {}}}"#).is_err());
    }
}
