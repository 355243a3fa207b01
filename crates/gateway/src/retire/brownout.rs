//! Windows in which calls are turned away: what one is, when it is open and for whom, and what may be set.

use super::retirement::RetireError;
use crate::clock::rfc3339;
use crate::store::BrownoutRow;
use serde::Serialize;
use std::time::Duration;

/// Operations and clients that one window names.
const NAMES_MAX: usize = 200;
/// Characters of a reason.
const REASON_CHARS_MAX: usize = 500;
/// The longest window: what lasts longer is no brownout.
const WINDOW_MAX: Duration = Duration::from_secs(31 * 24 * 3600);

/// A window in which calls are turned away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brownout {
    /// Names it to the operator who removes it.
    pub id: String,
    /// The name of the side that its clients speak, such as `v2`.
    pub side: String,
    /// Empty: all operations of the side, and what no operation is for.
    pub operations: Vec<String>,
    /// Empty: all clients, those that nobody enrolled among them.
    pub clients: Vec<String>,
    /// Wall time in milliseconds since 1970.
    pub from_ms: i64,
    /// Wall time in milliseconds since 1970. The window ends here: from then on calls are answered again.
    pub until_ms: i64,
    /// What clients are told; empty: the pack's text for `brownout`.
    pub reason: String,
    /// `configuration` or `operator`.
    pub by: String,
}

/// As people and programs are shown it.
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
    /// As the store has it.
    pub(super) fn of_row(row: BrownoutRow) -> Brownout {
        // What cannot be read names nobody, which is safer than naming all.
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

    /// Whether it turns away this call (an empty operation: unknown; an empty client: nobody enrolled it) at this time.
    pub(super) fn is_for(&self, side: &str, operation: &str, client: &str, now_ms: i64) -> bool {
        let names = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
        self.from_ms <= now_ms
            && now_ms < self.until_ms
            && self.side == side
            && names(&self.operations, operation)
            && names(&self.clients, client)
    }
}

/// A window to be added.
#[derive(Clone, Debug, Default)]
pub struct NewBrownout {
    /// Only needed where clients speak several sides.
    pub side: Option<String>,
    /// Such as `GET /things/{id}`. Empty: all operations of the side, and what no operation is for.
    pub operations: Vec<String>,
    /// Enrolled names. Empty: all clients, those that nobody enrolled among them.
    pub clients: Vec<String>,
    /// Wall time in milliseconds since 1970.
    pub from_ms: i64,
    /// Wall time in milliseconds since 1970. Must be later than `from_ms` and than now.
    pub until_ms: i64,
    /// What clients are told; empty: the pack's text for `brownout`.
    pub reason: String,
    /// Ids of the windows set at run time that whoever adds it has seen: where there are others, nothing is added.
    pub seen: Option<Vec<String>>,
}

impl NewBrownout {
    /// Whether its times and bounds are in order, at this time.
    pub(super) fn check(&self, now_ms: i64) -> Result<(), RetireError> {
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

pub(super) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
