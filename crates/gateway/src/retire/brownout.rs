//! Brownouts: windows in which calls are rejected, their scope, and the check of new ones.

use super::error::RetireError;
use super::usage::UsageInfo;
use crate::clock::{rfc3339, unix_ms};
use crate::outcome::Outcome;
use crate::store::BrownoutRow;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// Maximum number of operations, and of clients, in one window.
const NAMES_MAX: usize = 200;
/// Maximum length of a reason in characters.
const REASON_CHARS_MAX: usize = 500;
/// Longest window; a longer one would not be a brownout.
const WINDOW_MAX: Duration = Duration::from_secs(31 * 24 * 3600);

/// A window in which calls are rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brownout {
    /// Identifies the window for its removal.
    pub id: String,
    /// The name of the side that clients use, such as `v2`.
    pub side: String,
    /// Empty: all operations of the side, and calls that match no operation.
    pub operations: Vec<String>,
    /// Empty: all clients, unknown ones included.
    pub clients: Vec<String>,
    /// Start, wall time in milliseconds since 1970.
    pub from_ms: i64,
    /// End (exclusive), wall time in milliseconds since 1970.
    pub until_ms: i64,
    /// The text for clients; empty for the pack's text of `brownout`.
    pub reason: String,
    /// `configuration` or `operator`.
    pub by: String,
}

/// The form for people and API clients.
impl Serialize for Brownout {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut shown = serializer.serialize_struct("Brownout", 8)?;
        shown.serialize_field("id", &self.id)?;
        shown.serialize_field("side", &self.side)?;
        shown.serialize_field("operations", &self.operations)?;
        shown.serialize_field("clients", &self.clients)?;
        shown.serialize_field("from", &rfc3339(self.from_ms))?;
        shown.serialize_field("until", &rfc3339(self.until_ms))?;
        shown.serialize_field("reason", &self.reason)?;
        shown.serialize_field("by", &self.by)?;
        shown.end()
    }
}

impl Brownout {
    /// Converts a stored row.
    pub(super) fn of_row(row: BrownoutRow) -> Brownout {
        // An unreadable list matches no name, which is safer than matching all.
        let list = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| vec![String::new()]);
        Brownout {
            operations: list(&row.operations),
            clients: list(&row.clients),
            id: row.id,
            side: row.side,
            from_ms: row.from_ms,
            until_ms: row.until_ms,
            reason: row.reason,
            by: row.set_by,
        }
    }

    /// Returns its state: `planned`, `open` or `over`.
    pub fn state(&self, now_ms: i64) -> &'static str {
        match () {
            () if now_ms < self.from_ms => "planned",
            () if now_ms < self.until_ms => "open",
            () => "over",
        }
    }

    /// Returns whether the window rejects a call at this time. An empty operation is unknown, and
    /// so is an empty client.
    pub(super) fn is_for(&self, side: &str, operation: &str, client: &str, now_ms: i64) -> bool {
        let names = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
        self.state(now_ms) == "open"
            && self.side == side
            && names(&self.operations, operation)
            && names(&self.clients, client)
    }
}

/// A window to add.
#[derive(Clone, Debug, Default)]
pub struct NewBrownout {
    /// Required only if clients use several sides.
    pub side: Option<String>,
    /// Method and path templates, such as `GET /things/{id}`. Empty: all operations of the side,
    /// and calls that match no operation.
    pub operations: Vec<String>,
    /// Registered names. Empty: all clients, unknown ones included.
    pub clients: Vec<String>,
    /// Confirms a window without names, which affects all calls of all clients. Rejected for a
    /// window with names.
    pub everything: bool,
    /// Start, wall time in milliseconds since 1970.
    pub from_ms: i64,
    /// End, wall time in milliseconds since 1970. Must be later than `from_ms` and than now.
    pub until_ms: i64,
    /// The text for clients; empty for the pack's text of `brownout`.
    pub reason: String,
    /// Ids of the run-time windows that the caller has seen. If the stored ones differ, no window
    /// is added.
    pub seen: Option<Vec<String>>,
}

impl NewBrownout {
    /// Returns whether it names neither operations nor clients.
    pub fn is_for_all(&self) -> bool {
        self.operations.is_empty() && self.clients.is_empty()
    }

    /// Validates scope, times and limits at the given time.
    pub(super) fn check(&self, now_ms: i64) -> Result<(), RetireError> {
        match (self.is_for_all(), self.everything) {
            (true, false) => return Err(RetireError::NoScope),
            (false, true) => return Err(RetireError::TwoScopes),
            _ => {}
        }
        let length = self.until_ms.saturating_sub(self.from_ms);
        let what = if length <= 0 {
            "a brownout ends after it begins"
        } else if self.until_ms <= now_ms {
            "this brownout is over already"
        } else if length > millis(WINDOW_MAX) {
            "a brownout lasts at most 31 days; a sunset is for good"
        } else if self.operations.len().max(self.clients.len()) > NAMES_MAX {
            "a brownout names at most 200 operations and 200 clients; without names it is for all"
        } else if self.reason.chars().count() > REASON_CHARS_MAX || self.reason.chars().any(char::is_control)
        {
            "a reason is at most 500 characters in one line"
        } else {
            return Ok(());
        };
        Err(RetireError::Window(what.to_owned()))
    }
}

/// The calls that a window would reject, estimated from usage counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrownoutReach {
    /// Registered clients that made such calls within the last week, by name.
    pub clients: Vec<String>,
    /// Whether unknown clients made such calls.
    pub has_strangers: bool,
    /// Calls per second: the sum over clients and operations of the mean rate since the first
    /// counted call. `None` if there was no call.
    pub per_second: Option<f64>,
}

/// Age of a client's last call beyond which it is not expected to call again.
const RECENT: Duration = Duration::from_secs(7 * 24 * 3600);

impl BrownoutReach {
    /// Estimates the reach of a window for these operations and clients of a side. Empty lists
    /// match all.
    pub(super) fn new(
        usage: &[UsageInfo],
        side: &str,
        operations: &[String],
        clients: &[String],
        now_ms: i64,
    ) -> BrownoutReach {
        let is_named = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
        let mut reach = BrownoutReach::default();
        let mut names = BTreeSet::new();
        for one in usage {
            let is_hit = one.side == side
                && is_named(operations, &one.operation)
                && is_named(clients, &one.client)
                // A retired client is rejected already.
                && one.outcome != Outcome::Retired.as_str();
            let (Some(first), Some(last)) = (unix_ms(&one.first), unix_ms(&one.last)) else { continue };
            if !is_hit || last < now_ms.saturating_sub(millis(RECENT)) {
                continue;
            }
            let seconds = now_ms.saturating_sub(first).max(1_000) as f64 / 1e3;
            *reach.per_second.get_or_insert(0.0) += one.calls as f64 / seconds;
            match one.client.as_str() {
                "" => reach.has_strangers = true,
                name => drop(names.insert(name.to_owned())),
            }
        }
        reach.clients = names.into_iter().collect();
        reach
    }
}

impl fmt::Display for BrownoutReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMED: usize = 12;
        let Some(per_second) = self.per_second else {
            return f.write_str("no such call was counted in the last week: its reach is unknown");
        };
        let plural = if self.clients.len() == 1 { "" } else { "s" };
        write!(f, "{} client{plural}", self.clients.len())?;
        if !self.clients.is_empty() {
            write!(f, " ({}", self.clients[..self.clients.len().min(NAMED)].join(", "))?;
            if self.clients.len() > NAMED {
                write!(f, " and {} more", self.clients.len() - NAMED)?;
            }
            f.write_str(")")?;
        }
        if self.has_strangers {
            f.write_str(" and callers that are not enrolled")?;
        }
        f.write_str(" made such calls in the last week, on average ")?;
        match per_second {
            rate if rate < 0.01 => f.write_str("less than 0.01")?,
            rate => write!(f, "{rate:.2}")?,
        }
        f.write_str(" calls per second since each was first counted")
    }
}

pub(super) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_for_all_calls_of_all_clients_has_to_be_confirmed() {
        let window = |operation: &str, everything| NewBrownout {
            operations: Some(operation.to_owned()).into_iter().filter(|name| !name.is_empty()).collect(),
            everything,
            from_ms: 0,
            until_ms: 1_000,
            ..NewBrownout::default()
        };
        for (operation, everything, expected) in [
            ("", false, "names neither operations nor clients"),
            ("GET /a", true, "confirms all calls of all clients"),
            ("", true, ""),
            ("GET /a", false, ""),
        ] {
            let refused = window(operation, everything).check(0).err().map(|error| error.to_string());
            let refused = refused.unwrap_or_default();
            assert!(refused.contains(expected) && refused.is_empty() == expected.is_empty(), "{refused}");
        }
    }

    #[test]
    fn the_reach_of_a_window_is_of_the_calls_that_it_would_turn_away() {
        const DAY_MS: i64 = 24 * 3_600_000;
        let now_ms = 100 * DAY_MS;
        let calls = |client: &str, operation: &str, outcome: Outcome, calls, first_ms, last_ms| UsageInfo {
            side: "old".to_owned(),
            client: client.to_owned(),
            operation: operation.to_owned(),
            unknown: operation.ends_with('*'),
            outcome: outcome.as_str(),
            calls,
            first: rfc3339(first_ms),
            last: rfc3339(last_ms),
        };
        let usage = [
            calls("x", "GET /a", Outcome::Translated, 2_000, now_ms - 1_000_000, now_ms),
            calls("y", "GET /a", Outcome::Translated, 500, now_ms - 1_000_000, now_ms),
            calls("y", "GET /b", Outcome::Translated, 1_000, now_ms - 1_000_000, now_ms),
            calls("", "GET /c/*", Outcome::Rejected, 1_000, now_ms - 1_000_000, now_ms),
            calls("gone", "GET /a", Outcome::Translated, 9_999, 0, now_ms - 8 * DAY_MS),
            calls("ended", "GET /a", Outcome::Retired, 9_999, now_ms - 1_000_000, now_ms),
        ];
        let reach = |operations: &[&str], clients: &[&str]| {
            let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            BrownoutReach::new(&usage, "old", &names(operations), &names(clients), now_ms).to_string()
        };
        assert_eq!(
            reach(&["GET /a"], &[]),
            "2 clients (x, y) made such calls in the last week, on average 2.50 calls per second since each was first counted"
        );
        assert_eq!(
            reach(&[], &["y"]),
            "1 client (y) made such calls in the last week, on average 1.50 calls per second since each was first counted"
        );
        let all = reach(&[], &[]);
        assert!(all.starts_with("2 clients (x, y) and callers that are not enrolled"), "{all}");
        assert!(all.contains("4.50 calls per second"), "{all}");
        assert!(reach(&["GET /nothing"], &[]).contains("unknown"));
        assert!(BrownoutReach::new(&usage, "new", &[], &[], now_ms).per_second.is_none());
    }
}
