//! The phases of one side's operations as the data path reads them: one number per operation, without a lock. Who may
//! write them, and why, is in [`super::phases`].

use super::phase::Phase;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// What a program serves of one side. A reload makes new tables; requests in flight read the one they began with.
#[derive(Debug, Default)]
pub struct Table {
    side: Arc<str>,
    /// The hash of the pack that translates.
    pack: Arc<str>,
    rows: Vec<Row>,
}

/// One operation.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) operation: Arc<str>,
    /// Whether it changes something.
    pub(super) writes: bool,
    pub(super) configured: Phase,
    /// Whether the side's own service is there for it.
    pub(super) has_own: bool,
    pub(super) is_event: bool,
    now: AtomicU64,
    /// The number of the store's write that set or reset it; 0 while neither was done.
    period: AtomicI64,
}

/// An operation as a table is made of it.
#[derive(Clone, Debug)]
pub struct Served {
    /// Such as `GET /things/{id}`.
    pub operation: Arc<str>,
    /// Whether it changes something.
    pub writes: bool,
    /// Its phase while none is set at run time.
    pub configured: Phase,
    /// Whether the side's own service is there for it: without it, it is translated.
    pub has_own: bool,
    /// Whether it is an event that the side's receivers get, and no call.
    pub is_event: bool,
}

impl Table {
    /// The operations of a side in the order of its routes, then its events, each in its configured phase. `pack` is the hash
    /// of the pack that translates.
    pub fn new(side: &str, pack: &str, served: impl IntoIterator<Item = Served>) -> Table {
        let row = |served: Served| Row {
            now: AtomicU64::new(possible(served.configured, served.has_own).packed()),
            has_own: served.has_own,
            is_event: served.is_event,
            period: AtomicI64::new(0),
            operation: served.operation,
            writes: served.writes,
            configured: served.configured,
        };
        Table { side: side.into(), pack: pack.into(), rows: served.into_iter().map(row).collect() }
    }

    /// The phase of the route with this index.
    pub fn phase(&self, route: usize) -> Phase {
        self.rows.get(route).map_or_else(Phase::default, |row| row.now())
    }

    /// Which period of the route in its phase this is: what is counted, is counted for it.
    pub fn period(&self, route: usize) -> i64 {
        self.rows.get(route).map_or(0, |row| row.period.load(Relaxed))
    }

    /// The phase of an event, and which period in it this is; none of one that the pack does not have.
    pub(crate) fn event(&self, operation: &str) -> Option<(Phase, i64)> {
        let row = self.rows.iter().find(|row| row.is_event && *row.operation == *operation)?;
        Some((row.now(), row.period.load(Relaxed)))
    }

    /// The side that these operations are of.
    pub fn side(&self) -> &Arc<str> {
        &self.side
    }

    pub(super) fn pack(&self) -> &str {
        &self.pack
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Puts every operation into the phase that was set for it, or into the configured one; and notes the write of the store
    /// since which it has been there.
    pub(super) fn settle(&self, set: impl Fn(&str) -> Option<(Option<Phase>, i64)>) {
        for row in &self.rows {
            let (phase, period) = set(&row.operation).unwrap_or((None, 0));
            let phase = phase.unwrap_or(row.configured);
            row.now.store(possible(phase, row.has_own).packed(), Relaxed);
            row.period.store(period, Relaxed);
        }
    }
}

impl Row {
    pub(super) fn now(&self) -> Phase {
        Phase::unpacked(self.now.load(Relaxed))
    }
}

/// Without the side's own service there is nobody to forward to.
fn possible(phase: Phase, has_own: bool) -> Phase {
    if phase.needs_own() && !has_own { Phase::default() } else { phase }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(has_own: bool) -> Table {
        let served = ["GET /a", "GET /b"].map(|operation| Served {
            operation: operation.into(),
            writes: false,
            configured: Phase::Shadow,
            has_own,
            is_event: false,
        });
        Table::new("old", "hash", served)
    }

    #[test]
    fn what_is_set_wins_until_it_is_gone() {
        let table = table(true);
        table.settle(|operation| (operation == "GET /a").then_some((Some(Phase::Legacy), 7)));
        assert_eq!([table.phase(0), table.phase(1)], [Phase::Legacy, Phase::Shadow]);
        assert_eq!([table.period(0), table.period(1)], [7, 0]);
        table.settle(|_| Some((None, 9)));
        assert_eq!([table.phase(0), table.phase(1)], [Phase::Shadow, Phase::Shadow]);
        assert_eq!(table.period(0), 9, "who is put back begins anew");
        table.settle(|_| None);
        assert_eq!([table.phase(0), table.phase(1)], [Phase::Shadow, Phase::Shadow]);
        assert_eq!(table.phase(2), Phase::default());
    }

    #[test]
    fn without_the_old_service_everything_is_translated() {
        let table = table(false);
        assert_eq!(table.phase(0), Phase::default());
        table.settle(|_| Some((Some(Phase::Legacy), 7)));
        assert_eq!(table.phase(0), Phase::default());
    }
}
