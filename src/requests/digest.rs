//! The sample of one replica as the others read it: bounded, and as JSON.

use super::MINUTES;
use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use switchback_gateway::recent::{RequestSample, SampleMessages, SampledPeriod};

/// Maximum number of samples of a digest.
const SAMPLES_MAX: usize = 300;
/// Maximum size of the samples of a digest in memory. Their JSON has a similar size.
const BYTES_MAX: usize = 256 << 10;
/// Maximum size of the messages of a digest in memory.
const MESSAGES_BYTES_MAX: usize = 256 << 10;

/// The newest samples of a replica, with the extent of each period.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SampleDigest {
    pub(crate) windows: Vec<SampleWindow>,
    /// Newest first.
    #[serde(serialize_with = "serialize_samples", deserialize_with = "deserialize_samples")]
    pub(crate) samples: Vec<Arc<RequestSample>>,
    /// The messages of the newest of them, by request id.
    pub(crate) messages: Vec<(String, SampleMessages)>,
}

/// A period of a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SampleWindow {
    /// One of [`MINUTES`].
    pub(crate) minutes: u64,
    /// Start of the period by the clock of the replica, as Unix time in milliseconds.
    pub(crate) since_ms: i64,
    /// All requests that ended in the period.
    pub(crate) requests: u64,
}

impl SampleDigest {
    /// Creates the digest from the periods of [`MINUTES`], of which the last is the longest, and the
    /// messages by request id.
    pub(super) fn new(
        periods: [SampledPeriod; MINUTES.len()],
        messages: impl Fn(&str) -> Option<Arc<SampleMessages>>,
    ) -> SampleDigest {
        let windows = MINUTES.iter().zip(&periods).map(|(minutes, period)| SampleWindow {
            minutes: *minutes,
            since_ms: period.since_ms,
            requests: period.requests,
        });
        let windows = windows.collect();
        let [.., longest] = periods;
        let mut bytes = 0;
        let samples = longest.samples.into_iter().take(SAMPLES_MAX).take_while(|sample| {
            bytes += sample.bytes();
            bytes <= BYTES_MAX
        });
        let samples: Vec<Arc<RequestSample>> = samples.collect();
        let mut bytes = 0;
        let messages = samples.iter().filter_map(|sample| Some((sample.id.clone(), messages(&sample.id)?)));
        let messages = messages.take_while(|(_, messages)| {
            bytes += messages.bytes();
            bytes <= MESSAGES_BYTES_MAX
        });
        let messages = messages.map(|(id, messages)| (id, SampleMessages::clone(&messages))).collect();
        SampleDigest { windows, samples, messages }
    }

    /// Returns the period of that many minutes. `None`: a replica of another version has other
    /// periods.
    pub(super) fn window(&self, minutes: u64) -> Option<&SampleWindow> {
        self.windows.iter().find(|window| window.minutes == minutes)
    }
}

impl SampleWindow {
    /// Returns whether a request ended in the period.
    pub(super) fn includes(&self, sample: &RequestSample) -> bool {
        sample.ended_ms() >= self.since_ms
    }
}

fn serialize_samples<S: Serializer>(
    samples: &[Arc<RequestSample>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(samples.iter().map(|sample| &**sample))
}

fn deserialize_samples<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Arc<RequestSample>>, D::Error> {
    let samples = Vec::<RequestSample>::deserialize(deserializer)?;
    Ok(samples.into_iter().take(SAMPLES_MAX).map(Arc::new).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use switchback_gateway::recent::SampleMessage;

    fn message() -> SampleMessages {
        let request = SampleMessage { body: Some("x".repeat(4_000)), ..SampleMessage::default() };
        SampleMessages { request, ..SampleMessages::default() }
    }

    /// Returns a digest with periods that start one second after 1970.
    pub(in super::super) fn digest(requests: u64, samples: Vec<Arc<RequestSample>>) -> SampleDigest {
        let period = SampledPeriod { samples, requests, since_ms: 1_000 };
        SampleDigest::new(MINUTES.map(|_| period.clone()), |_| Some(Arc::new(message())))
    }

    #[test]
    fn a_digest_is_read_back_and_never_large() {
        let large = Arc::new(RequestSample { path: "x".repeat(900), ..RequestSample::default() });
        let full = digest(9_000, vec![large; 5_000]);
        let text = serde_json::to_string(&full).expect("it serialises");
        assert!(
            full.samples.len() > 50 && text.len() < 2 * (BYTES_MAX + MESSAGES_BYTES_MAX),
            "{} bytes",
            text.len()
        );
        assert!(full.messages.len() > 20 && full.messages.len() < full.samples.len());
        let read: SampleDigest = serde_json::from_str(&text).expect("it is read");
        assert_eq!((read.samples, read.windows, read.messages), (full.samples, full.windows, full.messages));
        assert!(SampleDigest::default().window(5).is_none());
    }
}
