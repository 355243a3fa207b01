//! The samples of one core, within a limit of bytes.

use super::RequestSample;
use std::collections::VecDeque;
use std::sync::Arc;

/// Samples of successful and of failed requests, each oldest first.
#[derive(Debug, Default)]
pub(super) struct Ring {
    kinds: [RingQueue; 2],
}

#[derive(Debug, Default)]
struct RingQueue {
    entries: VecDeque<RingEntry>,
    bytes: usize,
}

#[derive(Debug)]
struct RingEntry {
    /// The minute in which the request ended.
    minute: u64,
    bytes: usize,
    sample: Arc<RequestSample>,
}

impl Ring {
    /// Adds a sample and drops older ones until all fit into `bytes_max`. Each kind keeps half of
    /// the bytes when the other needs room. A sample that does not fit alone is not added.
    pub(super) fn add(
        &mut self,
        sample: Arc<RequestSample>,
        is_failure: bool,
        minute: u64,
        bytes_max: usize,
    ) {
        // Twice the entry: a queue doubles its allocation when it grows.
        let bytes = sample.bytes() + 2 * size_of::<RingEntry>();
        if bytes > bytes_max {
            return;
        }
        while self.bytes() + bytes > bytes_max {
            let [successes, failures] = &mut self.kinds;
            let is_over = successes.bytes > bytes_max / 2 || failures.entries.is_empty();
            if is_over { successes.drop_oldest() } else { failures.drop_oldest() }
        }
        let queue = &mut self.kinds[usize::from(is_failure)];
        queue.bytes += bytes;
        queue.entries.push_back(RingEntry { minute, bytes, sample });
    }

    /// Appends the samples of `first` and later minutes to `samples`.
    pub(super) fn copy_since(&self, first: u64, samples: &mut Vec<Arc<RequestSample>>) {
        let entries = self.kinds.iter().flat_map(|queue| &queue.entries);
        samples.extend(entries.filter(|entry| entry.minute >= first).map(|entry| Arc::clone(&entry.sample)));
    }

    fn bytes(&self) -> usize {
        self.kinds.iter().map(|queue| queue.bytes).sum()
    }
}

impl RingQueue {
    fn drop_oldest(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recent::CallSample;
    use proptest::prelude::*;

    fn sample(path: usize, calls: usize) -> Arc<RequestSample> {
        let call = CallSample { path: "x".repeat(path), ..CallSample::default() };
        Arc::new(RequestSample {
            path: "x".repeat(path),
            calls: vec![call; calls],
            ..RequestSample::default()
        })
    }

    fn listed(ring: &Ring) -> Vec<Arc<RequestSample>> {
        let mut samples = Vec::new();
        ring.copy_since(0, &mut samples);
        samples
    }

    proptest! {
        #[test]
        fn samples_never_exceed_their_bytes_and_the_newest_of_each_kind_is_there(
            added in prop::collection::vec((0..2_000_usize, 0..5_usize, any::<bool>()), 1..60),
            bytes_max in 0..30_000_usize,
        ) {
            let mut ring = Ring::default();
            for (path, calls, is_failure) in added {
                let newest = sample(path, calls);
                ring.add(Arc::clone(&newest), is_failure, 0, bytes_max);
                let samples = listed(&ring);
                let bytes: usize = samples.iter().map(|sample| sample.bytes()).sum();
                prop_assert!(bytes <= bytes_max && ring.bytes() <= bytes_max);
                let is_there = samples.iter().any(|sample| Arc::ptr_eq(sample, &newest));
                prop_assert_eq!(is_there, newest.bytes() + 2 * size_of::<RingEntry>() <= bytes_max);
            }
        }
    }

    #[test]
    fn successes_do_not_displace_failures_beyond_their_half() {
        let mut ring = Ring::default();
        let bytes_max = 40 * (sample(100, 0).bytes() + 2 * size_of::<RingEntry>());
        for _ in 0..100 {
            ring.add(sample(100, 0), true, 0, bytes_max);
        }
        assert_eq!(ring.kinds[1].entries.len(), 40, "failures alone may use all");
        for _ in 0..1_000 {
            ring.add(sample(100, 0), false, 0, bytes_max);
        }
        let failures = ring.kinds[1].entries.len();
        assert!((19..=21).contains(&failures), "{failures}");
        for _ in 0..1_000 {
            ring.add(sample(100, 0), true, 0, bytes_max);
        }
        let successes = ring.kinds[0].entries.len();
        assert!((19..=21).contains(&successes), "{successes}");
    }
}
