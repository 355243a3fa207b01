//! The phases of one side's operations as the data path reads them: one atomic number per
//! operation. [`super::phases`] writes them.

use super::phase::Phase;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// The served operations of one side. A reload creates new tables; requests in flight continue to
/// use the one they started with.
#[derive(Debug, Default)]
pub struct OperationTable {
    side: Arc<str>,
    /// The hash of the translating pack.
    pack: Arc<str>,
    rows: Vec<OperationRow>,
}

/// One operation.
#[derive(Debug)]
pub(super) struct OperationRow {
    pub(super) operation: Arc<str>,
    /// Whether it has effects.
    pub(super) writes: bool,
    pub(super) configured: Phase,
    /// Whether the side's own service is available for it.
    pub(super) has_own: bool,
    pub(super) is_event: bool,
    now: AtomicU64,
    /// The store's write number of the last change or reset, or 0.
    period: AtomicI64,
}

/// An operation to add to a table.
#[derive(Clone, Debug)]
pub struct Served {
    /// Method and path template, such as `GET /things/{id}`.
    pub operation: Arc<str>,
    /// Whether it has effects.
    pub writes: bool,
    /// Its phase while no other is set at run time.
    pub configured: Phase,
    /// Whether the side's own service is available for it. If not, the operation is translated.
    pub has_own: bool,
    /// Whether it is an event sent to the side's receivers rather than a call.
    pub is_event: bool,
}

impl OperationTable {
    /// Creates a table of a side's operations in the order of its routes, then its events, each in
    /// its configured phase. `pack` is the hash of the translating pack.
    pub fn new(side: &str, pack: &str, served: impl IntoIterator<Item = Served>) -> OperationTable {
        let row = |served: Served| OperationRow {
            now: AtomicU64::new(possible(served.configured, served.has_own).pack()),
            has_own: served.has_own,
            is_event: served.is_event,
            period: AtomicI64::new(0),
            operation: served.operation,
            writes: served.writes,
            configured: served.configured,
        };
        OperationTable { side: side.into(), pack: pack.into(), rows: served.into_iter().map(row).collect() }
    }

    /// Returns the phase of the route with this index.
    pub fn phase(&self, route: usize) -> Phase {
        self.rows.get(route).map_or_else(Phase::default, |row| row.now())
    }

    /// Returns the current period of the route with this index, under which evidence is counted.
    pub fn period(&self, route: usize) -> i64 {
        self.rows.get(route).map_or(0, |row| row.period.load(Relaxed))
    }

    /// Returns the phase and the period of an event, or `None` if the pack does not contain it.
    pub(crate) fn event(&self, operation: &str) -> Option<(Phase, i64)> {
        let row = self.rows.iter().find(|row| row.is_event && *row.operation == *operation)?;
        Some((row.now(), row.period.load(Relaxed)))
    }

    /// Returns the side of these operations.
    pub fn side(&self) -> &Arc<str> {
        &self.side
    }

    pub(super) fn pack(&self) -> &str {
        &self.pack
    }

    pub(super) fn rows(&self) -> &[OperationRow] {
        &self.rows
    }

    /// Sets every operation to the phase that `set` returns, or else the configured one, and
    /// records the write number as its period.
    pub(super) fn settle(&self, set: impl Fn(&str) -> Option<(Option<Phase>, i64)>) {
        for row in &self.rows {
            let (phase, period) = set(&row.operation).unwrap_or((None, 0));
            let phase = phase.unwrap_or(row.configured);
            row.now.store(possible(phase, row.has_own).pack(), Relaxed);
            row.period.store(period, Relaxed);
        }
    }
}

impl OperationRow {
    pub(super) fn now(&self) -> Phase {
        Phase::unpack(self.now.load(Relaxed))
    }
}

/// Returns the phase that is possible: without the side's own service, requests cannot be forwarded
/// to it.
fn possible(phase: Phase, has_own: bool) -> Phase {
    if phase.needs_own() && !has_own { Phase::default() } else { phase }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(has_own: bool) -> OperationTable {
        let served = ["GET /a", "GET /b"].map(|operation| Served {
            operation: operation.into(),
            writes: false,
            configured: Phase::Shadow,
            has_own,
            is_event: false,
        });
        OperationTable::new("old", "hash", served)
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
