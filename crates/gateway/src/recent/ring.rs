//! The samples of one core, within a limit of bytes.

use super::{RequestSample, SampleMessages};
use std::collections::VecDeque;
use std::sync::Arc;

/// Samples of successful and of failed requests, and messages, each oldest first.
#[derive(Debug, Default)]
pub(super) struct Ring {
    kinds: [RingQueue<Arc<RequestSample>>; 2],
    messages: RingQueue<(String, Arc<SampleMessages>)>,
}

#[derive(Debug)]
struct RingQueue<T> {
    entries: VecDeque<RingEntry<T>>,
    bytes: usize,
}

#[derive(Debug)]
struct RingEntry<T> {
    /// The minute in which the request ended; not used for messages.
    minute: u64,
    bytes: usize,
    content: T,
}

impl Ring {
    /// Adds a sample and drops older ones until all content fits into `bytes_max`, of the kind that
    /// has more bytes first. A sample that does not fit alone is not added.
    pub(super) fn add(
        &mut self,
        sample: Arc<RequestSample>,
        is_failure: bool,
        minute: u64,
        bytes_max: usize,
    ) {
        let entry = RingEntry::new(minute, sample.bytes(), sample);
        if self.make_room(entry.bytes, bytes_max) {
            self.kinds[usize::from(is_failure)].push(entry);
        }
    }

    /// Adds the messages of a request and drops older ones until they fit into the half of
    /// `bytes_max`. Messages that do not fit alone are not added.
    pub(super) fn add_messages(&mut self, id: &str, messages: Arc<SampleMessages>, bytes_max: usize) {
        let entry = RingEntry::new(0, messages.bytes() + id.len(), (id.to_owned(), messages));
        while self.messages.bytes + entry.bytes > bytes_max / 2 {
            if !self.messages.drop_oldest() {
                return;
            }
        }
        if self.make_room(entry.bytes, bytes_max) {
            self.messages.push(entry);
        }
    }

    /// Drops content until `bytes` more fit into `bytes_max`, samples before messages. Returns
    /// whether they fit.
    fn make_room(&mut self, bytes: usize, bytes_max: usize) -> bool {
        if bytes > bytes_max {
            return false;
        }
        while self.bytes() + bytes > bytes_max {
            let [successes, failures] = &mut self.kinds;
            let larger = if successes.bytes >= failures.bytes { successes } else { failures };
            if !larger.drop_oldest() {
                self.messages.drop_oldest();
            }
        }
        true
    }

    /// Returns the messages of a request.
    pub(super) fn messages(&self, id: &str) -> Option<Arc<SampleMessages>> {
        let mut newest = self.messages.entries.iter().rev().map(|entry| &entry.content);
        newest.find(|(known, _)| known == id).map(|(_, messages)| Arc::clone(messages))
    }

    /// Appends the samples of `first` and later minutes to `samples`.
    pub(super) fn copy_since(&self, first: u64, samples: &mut Vec<Arc<RequestSample>>) {
        let entries = self.kinds.iter().flat_map(|queue| &queue.entries);
        samples.extend(entries.filter(|entry| entry.minute >= first).map(|entry| Arc::clone(&entry.content)));
    }

    fn bytes(&self) -> usize {
        self.kinds.iter().map(|queue| queue.bytes).sum::<usize>() + self.messages.bytes
    }
}

impl<T> RingEntry<T> {
    /// Creates an entry whose content has `bytes` bytes.
    fn new(minute: u64, bytes: usize, content: T) -> RingEntry<T> {
        // Twice the entry: a queue doubles its allocation when it grows.
        RingEntry { minute, bytes: bytes + 2 * size_of::<RingEntry<T>>(), content }
    }
}

impl<T> RingQueue<T> {
    fn push(&mut self, entry: RingEntry<T>) {
        self.bytes += entry.bytes;
        self.entries.push_back(entry);
    }

    /// Drops the oldest entry. Returns whether there was one.
    fn drop_oldest(&mut self) -> bool {
        let dropped = self.entries.pop_front();
        self.bytes -= dropped.as_ref().map_or(0, |entry| entry.bytes);
        dropped.is_some()
    }
}

impl<T> Default for RingQueue<T> {
    fn default() -> RingQueue<T> {
        RingQueue { entries: VecDeque::new(), bytes: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recent::{CallSample, SampleMessage};
    use proptest::prelude::*;

    fn sample(path: usize, calls: usize) -> Arc<RequestSample> {
        let call = CallSample { path: "x".repeat(path), ..CallSample::default() };
        Arc::new(RequestSample {
            path: "x".repeat(path),
            calls: vec![call; calls],
            ..RequestSample::default()
        })
    }

    fn messages(body: usize) -> Arc<SampleMessages> {
        let request = SampleMessage { body: Some("x".repeat(body)), ..SampleMessage::default() };
        Arc::new(SampleMessages { request, ..SampleMessages::default() })
    }

    fn listed(ring: &Ring) -> Vec<Arc<RequestSample>> {
        let mut samples = Vec::new();
        ring.copy_since(0, &mut samples);
        samples
    }

    proptest! {
        #[test]
        fn samples_never_exceed_their_bytes_and_the_newest_of_each_kind_is_there(
            added in prop::collection::vec((0..2_000_usize, 0..5_usize, any::<bool>(), 0..9_000_usize), 1..60),
            bytes_max in 0..30_000_usize,
        ) {
            let mut ring = Ring::default();
            for (path, calls, is_failure, body) in added {
                ring.add_messages("id", messages(body), bytes_max);
                let bytes = ring.messages("id").map_or(0, |messages| messages.bytes());
                prop_assert!(bytes <= bytes_max / 2 && ring.bytes() <= bytes_max);
                let newest = sample(path, calls);
                ring.add(Arc::clone(&newest), is_failure, 0, bytes_max);
                let samples = listed(&ring);
                let bytes: usize = samples.iter().map(|sample| sample.bytes()).sum();
                prop_assert!(bytes <= bytes_max && ring.bytes() <= bytes_max);
                let is_there = samples.iter().any(|sample| Arc::ptr_eq(sample, &newest));
                prop_assert_eq!(is_there, newest.bytes() + 2 * size_of::<RingEntry<Arc<RequestSample>>>() <= bytes_max);
            }
        }
    }

    #[test]
    fn successes_do_not_displace_failures_beyond_their_half() {
        let mut ring = Ring::default();
        let bytes_max = 40 * (sample(100, 0).bytes() + 2 * size_of::<RingEntry<Arc<RequestSample>>>());
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

    #[test]
    fn messages_give_way_to_newer_ones_and_samples_to_messages() {
        let mut ring = Ring::default();
        for _ in 0..20 {
            ring.add(sample(100, 0), false, 0, 5_000);
        }
        let before = listed(&ring).len();
        for id in ["a", "b", "c"] {
            ring.add_messages(id, messages(1_000), 5_000);
        }
        assert!(ring.messages("a").is_none() && ring.messages("c").is_some());
        assert!((1..before).contains(&listed(&ring).len()));
        ring.add(sample(100, 0), true, 0, 5_000);
        assert!(ring.messages("c").is_some());
        ring.add(sample(4_000, 0), true, 0, 5_000);
        assert!(ring.messages("c").is_none(), "one sample may need all of the room");
    }
}
