//! The description of one request, with every text masked.

use serde::{Deserialize, Serialize};

/// A sampled request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestSample {
    /// The request id of logs and `x-request-id`: 16 hexadecimal digits.
    pub id: String,
    /// Time of arrival in milliseconds since 1970.
    pub at_ms: i64,
    /// The enrolled name; empty if unknown.
    pub client: String,
    /// The side of the front; empty outside all fronts.
    pub side: String,
    /// As written in the contract; empty if none matched.
    pub operation: String,
    /// `OTHER` for a method that is not a standard one.
    pub method: String,
    /// Path and query, masked as in captures.
    pub path: String,
    /// The phase of the operation on arrival; empty if it was not determined.
    pub phase: String,
    /// The end of the request.
    #[serde(flatten)]
    pub end: SampleEnd,
    /// Durations.
    #[serde(flatten)]
    pub times: SampleTimes,
    /// The first 32 upstream calls that ended, in the order of their ends.
    pub calls: Vec<CallSample>,
    /// Number of attempts that are not in `calls`: those of further calls, and of calls that had not
    /// ended when the request ended.
    pub attempts_left_out: u32,
}

/// The end of a sampled request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleEnd {
    /// The status as sent; `None` if the client disconnected before.
    pub status: Option<u16>,
    /// The identifier of the [outcome](crate::outcome::Outcome).
    pub outcome: String,
    /// The kind of the gateway's own error; empty without one.
    pub error: String,
    /// The service that answered, or `gateway`.
    pub answered_by: String,
    /// Bytes of the request body, if its length is known from the head.
    pub bytes_in: Option<u64>,
    /// Bytes of the response body.
    pub bytes_out: u64,
}

/// Durations of a sampled request, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleTimes {
    /// From arrival to the end of the response.
    pub took_us: u64,
    /// From arrival to the head of the response; `None` without one.
    pub head_us: Option<u64>,
    /// Total time that calls waited for response heads. Concurrent calls count several times.
    pub waited_us: u64,
    /// Total time of waiting for bodies and of pauses in the plan, before the response head.
    pub paused_us: u64,
}

/// An upstream call of a sampled request, with its retries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallSample {
    /// Microseconds from the arrival of the request to the first attempt; `None` if the call was
    /// never sent.
    pub start_us: Option<u64>,
    /// Microseconds from the first attempt to the response head, or to the failure of the last
    /// attempt.
    pub took_us: Option<u64>,
    /// The side that was called.
    pub side: String,
    /// `OTHER` for a method that is not a standard one.
    pub method: String,
    /// Path and query below the upstream's base, masked as in captures.
    pub path: String,
    /// The status of the response; `None` without one.
    pub status: Option<u16>,
    /// The kind of the error; empty if there was a response.
    pub error: String,
    /// Number of attempts.
    pub attempts: u32,
}

/// Bytes that an allocation costs in addition to its content.
const ALLOCATION_BYTES: usize = 16;

impl RequestSample {
    /// Returns the time of the end of the response, in milliseconds since 1970.
    pub fn ended_ms(&self) -> i64 {
        self.at_ms.saturating_add(i64::try_from(self.times.took_us / 1_000).unwrap_or(i64::MAX))
    }

    /// Returns the memory of the sample in bytes, including its allocations.
    pub fn bytes(&self) -> usize {
        let texts = [
            &self.id,
            &self.client,
            &self.side,
            &self.operation,
            &self.method,
            &self.path,
            &self.phase,
            &self.end.outcome,
            &self.end.error,
            &self.end.answered_by,
        ];
        let calls: usize = self.calls.iter().map(CallSample::bytes).sum();
        size_of::<RequestSample>()
            + 2 * ALLOCATION_BYTES
            + texts.into_iter().map(text_bytes).sum::<usize>()
            + calls
    }
}

impl CallSample {
    fn bytes(&self) -> usize {
        let texts = [&self.side, &self.method, &self.path, &self.error];
        size_of::<CallSample>() + texts.into_iter().map(text_bytes).sum::<usize>()
    }
}

pub(super) fn text_bytes(text: &String) -> usize {
    text.capacity() + ALLOCATION_BYTES
}
