//! The state of a call: answered, rejected by a brownout, or retired. Requests read an immutable
//! snapshot, which is rebuilt when a setting changes.

use super::brownout::Brownout;
use super::sunset::{ClientSunset, Notice, notice};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::time::Duration;

/// All effective brownouts and sunsets.
#[derive(Debug, Default)]
pub(super) struct Standings {
    brownouts: Vec<Brownout>,
    /// Sunsets by client; each has few, so a list suffices.
    sunsets: HashMap<String, Vec<SideEnd>, RandomState>,
}

#[derive(Debug)]
struct SideEnd {
    side: String,
    at_ms: i64,
    notice: Option<Notice>,
}

/// The state of a call.
#[derive(Debug)]
pub(crate) enum CallStanding {
    /// It is answered, with this notice.
    Open(Option<Notice>),
    /// A brownout is open for it.
    Brownout { retry_after: Duration, reason: String, id: String },
    /// Its side is retired for its client.
    Retired(Option<Notice>),
}

impl Standings {
    pub(super) fn new(brownouts: Vec<Brownout>, sunsets: &[ClientSunset]) -> Standings {
        let mut by_client: HashMap<String, Vec<SideEnd>, RandomState> = HashMap::default();
        for sunset in sunsets {
            let Some(at_ms) = sunset.at_ms else { continue };
            let notice = sunset.announce.then(|| notice(at_ms, sunset.deprecated_ms));
            let ending = SideEnd { side: sunset.side.clone(), at_ms, notice };
            by_client.entry(sunset.client.clone()).or_default().push(ending);
        }
        Standings { brownouts, sunsets: by_client }
    }

    /// Returns whether there are no settings, so that the caller can skip reading the clock.
    pub(super) fn is_empty(&self) -> bool {
        self.brownouts.is_empty() && self.sunsets.is_empty()
    }

    /// Returns the state of a call of `client` (empty: unknown) for an operation (empty: unknown)
    /// of a side.
    pub(super) fn standing(&self, side: &str, operation: &str, client: &str, now_ms: i64) -> CallStanding {
        let ending = self.sunsets.get(client).and_then(|all| all.iter().find(|ending| ending.side == side));
        if let Some(ending) = ending.filter(|ending| ending.at_ms <= now_ms) {
            return CallStanding::Retired(ending.notice.clone());
        }
        let open = self.brownouts.iter().filter(|window| window.is_for(side, operation, client, now_ms));
        // The window that closes last determines when a retry makes sense.
        if let Some(window) = open.max_by_key(|window| window.until_ms) {
            let left = u64::try_from(window.until_ms - now_ms).unwrap_or_default();
            return CallStanding::Brownout {
                retry_after: Duration::from_secs(left.div_ceil(1000)),
                reason: window.reason.clone(),
                id: window.id.clone(),
            };
        }
        CallStanding::Open(ending.and_then(|ending| ending.notice.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(from_ms: i64, until_ms: i64, operations: &[&str], clients: &[&str]) -> Brownout {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        Brownout {
            id: format!("{from_ms}"),
            side: "old".to_owned(),
            operations: names(operations),
            clients: names(clients),
            from_ms,
            until_ms,
            reason: String::new(),
            by: "operator".to_owned(),
        }
    }

    fn shown(standings: &Standings, side: &str, operation: &str, client: &str, now_ms: i64) -> String {
        match standings.standing(side, operation, client, now_ms) {
            CallStanding::Open(None) => "open".to_owned(),
            CallStanding::Open(Some(notice)) => format!("open {notice:?}"),
            CallStanding::Brownout { retry_after, id, .. } => format!("{id} {}", retry_after.as_secs()),
            CallStanding::Retired(_) => "retired".to_owned(),
        }
    }

    #[test]
    fn a_window_is_for_what_it_names_while_it_is_open() {
        let standings = Standings::new(vec![window(1000, 5000, &["GET /a"], &["x"])], &[]);
        for (side, operation, client, now_ms, expected) in [
            ("old", "GET /a", "x", 999, "open"),
            ("old", "GET /a", "x", 1000, "1000 4"),
            ("old", "GET /a", "x", 4001, "1000 1"),
            ("old", "GET /a", "x", 5000, "open"),
            ("new", "GET /a", "x", 2000, "open"),
            ("old", "GET /b", "x", 2000, "open"),
            ("old", "GET /a", "y", 2000, "open"),
            ("old", "GET /a", "", 2000, "open"),
        ] {
            assert_eq!(
                shown(&standings, side, operation, client, now_ms),
                expected,
                "{side} {operation} {client} {now_ms}"
            );
        }
        let all = Standings::new(vec![window(0, 9000, &[], &[]), window(1, 3000, &["GET /a"], &[])], &[]);
        assert_eq!(shown(&all, "old", "", "", 1000), "0 8");
        assert_eq!(shown(&all, "old", "GET /a", "x", 1000), "0 8", "the last to end counts");
    }

    #[test]
    fn a_client_is_told_of_its_end_and_refused_from_then_on() {
        let sunset = |at_ms, announce| ClientSunset {
            client: "x".to_owned(),
            side: "old".to_owned(),
            at_ms,
            deprecated_ms: Some(-1),
            announce,
            by: "operator".to_owned(),
            set_ms: 0,
        };
        let standings = Standings::new(Vec::new(), &[sunset(Some(86_400_000), true)]);
        let told = shown(&standings, "old", "GET /a", "x", 0);
        assert!(told.contains("Fri, 02 Jan 1970 00:00:00 GMT") && told.contains("@-1"), "{told}");
        assert_eq!(shown(&standings, "old", "GET /a", "y", i64::MAX), "open");
        assert_eq!(shown(&standings, "new", "GET /a", "x", i64::MAX), "open");
        assert_eq!(shown(&standings, "old", "", "x", 86_400_000), "retired");
        let silent = Standings::new(Vec::new(), &[sunset(Some(86_400_000), false)]);
        assert_eq!(shown(&silent, "old", "GET /a", "x", 0), "open");
        assert!(Standings::new(Vec::new(), &[sunset(None, true)]).is_empty());
    }
}
