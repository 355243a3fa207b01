//! W3C Trace Context (Recommendation of 2021-11-23): parses the `traceparent` of a request and
//! builds that of the upstream call, so that a call can be followed across the gateway. The module
//! `otlp` records spans.

use http::{HeaderName, HeaderValue};
use std::fmt;

/// The header that carries the trace.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The header with vendor data, forwarded unchanged if the accompanying `traceparent` is valid
/// (section 3.3).
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// A position in a trace: the trace id, the parent span and the sampling flag.
///
/// ```
/// use switchback_gateway::telemetry::trace::TraceParent;
/// let incoming = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
/// let outgoing = incoming.child(0x1234);
/// assert_eq!(outgoing.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000001234-01");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    trace_id: u128,
    parent_id: u64,
    flags: u8,
}

#[cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "no span is recorded"))]
impl TraceParent {
    /// Parses a header value (section 3.2). Returns `None` if it is malformed, all zero, or of the
    /// forbidden version `ff`; the receiver then starts its own trace. Fields of later versions are
    /// ignored.
    pub fn parse(value: &str) -> Option<TraceParent> {
        let mut fields = value.trim_matches([' ', '\t']).split('-');
        let version = hex(fields.next()?, 2)?;
        let trace_id = hex(fields.next()?, 32)?;
        let parent_id = hex(fields.next()?, 16)?;
        let flags = hex(fields.next()?, 2)?;
        let has_more = fields.next().is_some();
        if version == 0xff || (version == 0 && has_more) || trace_id == 0 || parent_id == 0 {
            return None;
        }
        Some(TraceParent {
            trace_id,
            parent_id: u64::try_from(parent_id).ok()?,
            flags: u8::try_from(flags).ok()? & 1,
        })
    }

    /// Starts a new trace that is not sampled. Ids of zero, which the format forbids, become one.
    pub fn start(trace_id: u128, parent_id: u64) -> TraceParent {
        TraceParent { trace_id: trace_id.max(1), parent_id: parent_id.max(1), flags: 0 }
    }

    /// Returns whether the sender records the trace.
    pub(crate) fn is_sampled(self) -> bool {
        self.flags & 1 == 1
    }

    /// Returns the same position with the sampling flag set.
    pub(crate) fn with_sampling(self) -> TraceParent {
        TraceParent { flags: self.flags | 1, ..self }
    }

    pub(crate) fn trace_number(self) -> u128 {
        self.trace_id
    }

    pub(crate) fn parent_number(self) -> u64 {
        self.parent_id
    }

    /// Returns a position in the same trace with another parent span.
    pub fn child(self, parent_id: u64) -> TraceParent {
        TraceParent { parent_id: parent_id.max(1), ..self }
    }

    /// Returns the header value, identical to the [`fmt::Display`] output.
    pub(crate) fn header_value(self) -> HeaderValue {
        let mut text = *b"00-________________________________-________________-0_";
        text[3..35].copy_from_slice(&self.trace_digits());
        text[36..52].copy_from_slice(&hex_digits(self.parent_id));
        text[54] = b'0' + (self.flags & 1);
        HeaderValue::from_bytes(&text).expect("hexadecimal digits and dashes are a header value")
    }

    /// Returns the trace id as 32 hexadecimal digits in ASCII.
    pub(crate) fn trace_digits(self) -> [u8; 32] {
        let mut digits = [0; 32];
        digits[..16].copy_from_slice(&hex_digits((self.trace_id >> 64) as u64));
        digits[16..].copy_from_slice(&hex_digits(self.trace_id as u64));
        digits
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.parent_id, self.flags)
    }
}

/// Writes 16 lower-case hexadecimal digits, much faster than the formatting macros.
pub(crate) fn hex_digits(number: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    digits[..8].copy_from_slice(&eight_digits((number >> 32) as u32));
    digits[8..].copy_from_slice(&eight_digits(number as u32));
    digits
}

/// Eight digits at once: each nibble moves into a byte of its own, and becomes its digit there.
fn eight_digits(number: u32) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let mut nibbles = u64::from(number);
    nibbles = (nibbles | nibbles << 16) & 0x0000_ffff_0000_ffff;
    nibbles = (nibbles | nibbles << 8) & 0x00ff_00ff_00ff_00ff;
    nibbles = (nibbles | nibbles << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // Ten and more reach the fifth bit when six is added.
    let letters = (nibbles + 6 * EACH) >> 4 & EACH;
    (nibbles + u64::from(b'0') * EACH + letters * u64::from(b'a' - b'0' - 10)).to_be_bytes()
}

/// Parses exactly `digits` lower-case hexadecimal digits; the format allows no other spelling.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn a_valid_header_comes_out_as_it_came_in() {
        let value = format!("00-{TRACE}-b7ad6b7169203331-01");
        assert_eq!(TraceParent::parse(&value).unwrap().to_string(), value);
        assert_eq!(TraceParent::parse(&value).unwrap().header_value(), value);
        assert_eq!(TraceParent::parse(&value).unwrap().trace_digits(), *TRACE.as_bytes());
    }

    #[test]
    fn a_later_version_is_read_and_answered_as_ours() {
        let parsed = TraceParent::parse(&format!("cc-{TRACE}-b7ad6b7169203331-03-what-ever")).unwrap();
        assert_eq!(parsed.to_string(), format!("00-{TRACE}-b7ad6b7169203331-01"));
    }

    #[test]
    fn what_the_format_forbids_is_not_a_trace() {
        for value in [
            String::new(),
            format!("ff-{TRACE}-b7ad6b7169203331-01"),
            format!("00-{TRACE}-b7ad6b7169203331-01-extra"),
            format!("00-{}-b7ad6b7169203331-01", TRACE.to_uppercase()),
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}-b7ad6b7169203331-1"),
            format!("00-+{}-b7ad6b7169203331-01", &TRACE[1..]),
            format!("00-{TRACE}-b7ad6b7169203331"),
        ] {
            assert_eq!(TraceParent::parse(&value), None, "{value:?}");
        }
    }

    #[test]
    fn ids_of_our_own_are_never_zero() {
        let own = TraceParent::start(0, 0);
        assert_eq!(TraceParent::parse(&own.to_string()), Some(own));
    }
}
