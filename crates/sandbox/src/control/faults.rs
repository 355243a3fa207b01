//! Faults: rules that spoil the answers of chosen calls. Which calls is a side, a method, a path and a count; chance is rolled
//! from the seed, so that the same calls meet the same faults.

use crate::Side;
use crate::seed::mix;
use http::Method;
use serde::{Deserialize, Serialize};

/// A rule as it is given and shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Given by the sandbox.
    #[serde(default)]
    pub id: u64,
    /// Any side where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
    /// Any method where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// A path below the version as in the document, `{…}` for any segment; any path where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How many fitting calls pass unharmed before the first fault.
    #[serde(default)]
    pub skip: u64,
    /// How many calls are spoilt; all that follow where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The chance of each, from 0 to 1.
    #[serde(default = "certain")]
    pub probability: f64,
    pub action: Action,
    /// Fitting calls so far, and those spoilt.
    #[serde(default)]
    pub seen: u64,
    #[serde(default)]
    pub done: u64,
}

fn certain() -> f64 {
    1.0
}

/// Whether something happens instead of the work or after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The call has no effect on the state.
    #[default]
    Before,
    /// The call has its effect; only the answer suffers.
    After,
}

/// What happens to a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// The answer comes later.
    Delay { ms: u64 },
    /// Another status, with a `{reason}` or the given body.
    Status {
        code: u16,
        #[serde(default)]
        body: Option<serde_json::Value>,
        #[serde(default)]
        when: When,
    },
    /// The connection is reset (RST).
    Reset {
        #[serde(default)]
        when: When,
    },
    /// The connection is closed after so many bytes of the body, fewer than were announced.
    Truncate { bytes: usize },
    /// The body comes in pieces.
    Drip { bytes: usize, every_ms: u64 },
    /// A body that never ends follows the answer's head.
    Endless {},
    /// The body is cut within and lengthened, so that it is no JSON, with a right Content-Length.
    InvalidJson {},
    /// An HTML error page, as proxies and load balancers send.
    Html { status: u16 },
    /// The body is compressed and says so.
    Gzip {},
}

/// The rules in force.
#[derive(Default)]
pub struct Faults {
    rules: Vec<Fault>,
    next_id: u64,
}

impl Faults {
    /// Puts a rule into force and gives its id.
    pub fn add(&mut self, mut fault: Fault) -> u64 {
        self.next_id += 1;
        fault.id = self.next_id;
        fault.seen = 0;
        fault.done = 0;
        self.rules.push(fault);
        self.next_id
    }

    /// Removes a rule; whether there was one.
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

    /// What happens to a call, in the order in which the rules were given.
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
        let strikes = ((roll >> 11) as f64) < self.probability * (1u64 << 53) as f64;
        self.done += u64::from(strikes);
        strikes
    }
}

/// Whether a path pattern fits: `{…}` is any segment, everything else itself.
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
