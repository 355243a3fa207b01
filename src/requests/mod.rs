//! The sample of recent requests of all replicas, for the admin API and the studio. The gateway
//! crate collects the sample of this process (`recent`); the samples of the others come through the
//! store (`studio::replicas`), as [`SampleDigest`]s.

mod digest;
mod filter;

pub(crate) use digest::SampleDigest;
pub(crate) use filter::{MINUTES, NONE, RequestsFilter, RequestsFilterError, outcomes};

use serde::Serialize;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use switchback_gateway::recent::{RecentRequests, RequestSample, SampleMessages};

/// Time after which a reader counts as gone, and replicas no longer exchange samples.
const READER_MS: i64 = 20_000;

/// The samples of all replicas. Clones share them.
#[derive(Clone)]
pub struct RequestsView(Arc<SharedView>);

struct SharedView {
    own: RecentRequests,
    name: String,
    others: Mutex<Vec<OtherSample>>,
    /// When the sample was last read, as Unix time in milliseconds.
    read_ms: AtomicI64,
}

/// The sample of another replica.
#[derive(Clone, Debug)]
pub(crate) struct OtherSample {
    pub(crate) replica: String,
    pub(crate) digest: Arc<SampleDigest>,
}

/// Requests that match a filter.
#[derive(Debug, Default)]
pub(crate) struct FoundRequests {
    /// Newest first.
    pub(crate) matching: Vec<FoundRequest>,
    /// The requests that were searched, by replica; this process first.
    pub(crate) replicas: Vec<ReplicaShare>,
}

/// The extent of a replica's sample in the period of a filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ReplicaShare {
    pub(crate) replica: String,
    /// Start of the period, as Unix time in milliseconds.
    pub(crate) since_ms: i64,
    /// Sampled requests that ended in the period.
    pub(crate) sampled: u64,
    /// All requests that ended in the period.
    pub(crate) requests: u64,
}

/// A sampled request of a replica.
#[derive(Clone, Debug)]
pub(crate) struct FoundRequest {
    pub(crate) replica: Arc<str>,
    pub(crate) sample: Arc<RequestSample>,
}

impl RequestsView {
    pub fn new(own: RecentRequests) -> RequestsView {
        let (name, others) = (process_name(), Mutex::default());
        RequestsView(Arc::new(SharedView { own, name, others, read_ms: AtomicI64::new(i64::MIN) }))
    }

    /// Returns the limit of this process's sample in bytes; 0 if it is disabled.
    pub(crate) fn bytes_max(&self) -> usize {
        self.0.own.bytes_max()
    }

    /// Returns the requests that match a filter. `now_ms` is noted as the time of a reader.
    pub(crate) fn find(&self, filter: &RequestsFilter, now_ms: i64) -> FoundRequests {
        self.0.read_ms.store(now_ms, Relaxed);
        let own = self.0.own.last(filter.minutes);
        let mut found = FoundRequests::default();
        let own_share = ReplicaShare {
            replica: self.0.name.clone(),
            since_ms: own.since_ms,
            sampled: own.samples.len() as u64,
            requests: own.requests,
        };
        found.add(own_share, own.samples, filter);
        for other in self.others().iter() {
            let Some(window) = other.digest.window(filter.minutes) else { continue };
            let samples = other.digest.samples.iter();
            let samples: Vec<_> = samples.filter(|one| window.includes(one)).map(Arc::clone).collect();
            let share = ReplicaShare {
                replica: other.replica.clone(),
                since_ms: window.since_ms,
                sampled: samples.len() as u64,
                requests: window.requests,
            };
            found.add(share, samples, filter);
        }
        found.matching.sort_by_key(|one| std::cmp::Reverse(one.sample.at_ms));
        found
    }

    /// Returns the newest request with this id. `now_ms` is noted as the time of a reader.
    pub(crate) fn one(&self, id: &str, now_ms: i64) -> Option<FoundRequest> {
        let filter = RequestsFilter {
            id: id.to_owned(),
            minutes: MINUTES[MINUTES.len() - 1],
            ..RequestsFilter::default()
        };
        self.find(&filter, now_ms).matching.into_iter().find(|found| found.sample.id == id)
    }

    /// Returns the messages of a request. `None` if they were not recorded, or gave way to newer ones.
    pub(crate) fn messages(&self, id: &str) -> Option<Arc<SampleMessages>> {
        self.0.own.messages(id).or_else(|| {
            let others = self.others();
            let mut all = others.iter().flat_map(|other| &other.digest.messages);
            all.find(|(known, _)| known == id).map(|(_, messages)| Arc::new(messages.clone()))
        })
    }

    /// Returns whether the sample was read lately.
    pub(crate) fn has_reader(&self, now_ms: i64) -> bool {
        now_ms.saturating_sub(self.0.read_ms.load(Relaxed)) < READER_MS
    }

    /// Returns the digest of this process's sample, for the other replicas.
    pub(crate) fn digest(&self) -> SampleDigest {
        SampleDigest::new(MINUTES.map(|minutes| self.0.own.last(minutes)), |id| self.0.own.messages(id))
    }

    /// Replaces the samples of the other replicas.
    pub(crate) fn set_others(&self, others: Vec<OtherSample>) {
        *self.others() = others;
    }

    fn others(&self) -> MutexGuard<'_, Vec<OtherSample>> {
        self.0.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FoundRequests {
    fn add(&mut self, share: ReplicaShare, samples: Vec<Arc<RequestSample>>, filter: &RequestsFilter) {
        let replica: Arc<str> = Arc::from(share.replica.as_str());
        self.replicas.push(share);
        let matching = samples.into_iter().filter(|sample| filter.fits(sample));
        self.matching.extend(matching.map(|sample| FoundRequest { replica: Arc::clone(&replica), sample }));
    }

    /// Returns the number of sampled requests and of all requests, of all replicas.
    pub(crate) fn share(&self) -> (u64, u64) {
        let sum = |of: fn(&ReplicaShare) -> u64| self.replicas.iter().map(of).sum();
        (sum(|one| one.sampled), sum(|one| one.requests))
    }
}

/// Returns the display name of this process: host name (in Kubernetes, the pod) and process id.
pub(crate) fn process_name() -> String {
    let host =
        std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    let host = host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty());
    format!("{}, process {}", host.unwrap_or_else(|| "an unnamed machine".to_owned()), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_gateway::clock::Clock;

    fn sample(id: &str, at_ms: i64) -> Arc<RequestSample> {
        Arc::new(RequestSample { id: id.to_owned(), at_ms, ..RequestSample::default() })
    }

    #[test]
    fn requests_of_all_replicas_are_one_list_with_the_extent_of_each() {
        let view = RequestsView::new(RecentRequests::new(1 << 20, Clock::machine()));
        let digest = digest::tests::digest(70, vec![sample("new", 9_000), sample("old", 500)]);
        view.set_others(vec![OtherSample { replica: "other".to_owned(), digest: Arc::new(digest) }]);
        let filter = RequestsFilter { minutes: 5, ..RequestsFilter::default() };
        let found = view.find(&filter, 0);
        assert_eq!(found.share(), (1, 70), "the old one ended before the period");
        assert_eq!(found.replicas.iter().map(|share| share.sampled).collect::<Vec<_>>(), [0, 1]);
        assert_eq!((&*found.matching[0].replica, &*found.matching[0].sample.id), ("other", "new"));
        assert!(view.one("new", 0).is_some() && view.one("ne", 0).is_none());
        assert!(view.messages("new").is_some() && view.messages("ne").is_none());
        assert!(view.has_reader(READER_MS - 1) && !view.has_reader(READER_MS));
    }
}
