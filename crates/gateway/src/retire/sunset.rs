//! The date from which a client is rejected on a side, and the header fields that announce it.

use crate::clock::rfc3339;
use crate::store::SunsetRow;
use http::{HeaderName, HeaderValue};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Header fields in responses to one client: `Deprecation` (RFC 9745) and `Sunset` (RFC 8594).
pub(crate) type Notice = Arc<[(HeaderName, HeaderValue)]>;

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");
/// First second of the year 10000, which HTTP dates cannot represent.
const HTTP_DATE_END: u64 = 253_402_300_800;

/// The sunset of a side for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSunset {
    /// The client's registered name.
    pub client: String,
    /// The name of the side that clients use, such as `v2`.
    pub side: String,
    /// Wall time in milliseconds since 1970. `None`: never, even if the configuration sets a date.
    pub at_ms: Option<i64>,
    /// Wall time in milliseconds since 1970, for `Deprecation` (RFC 9745). `None`: no such field.
    pub deprecated_ms: Option<i64>,
    /// Whether responses announce the sunset in advance.
    pub announce: bool,
    /// `configuration` or `operator`.
    pub by: String,
    /// Wall time of an operator's change in milliseconds since 1970; 0 for a configured sunset.
    pub set_ms: i64,
}

impl Serialize for ClientSunset {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut shown = serializer.serialize_struct("ClientSunset", 6)?;
        shown.serialize_field("client", &self.client)?;
        shown.serialize_field("side", &self.side)?;
        shown.serialize_field("at", &self.at_ms.map(rfc3339))?;
        shown.serialize_field("deprecated", &self.deprecated_ms.map(rfc3339))?;
        shown.serialize_field("announce", &self.announce)?;
        shown.serialize_field("by", &self.by)?;
        shown.end()
    }
}

impl ClientSunset {
    /// Converts a stored row.
    pub(super) fn of_row(row: SunsetRow) -> ClientSunset {
        ClientSunset {
            client: row.client,
            side: row.side,
            at_ms: row.at_ms,
            deprecated_ms: row.deprecated_ms,
            announce: row.announce,
            by: row.set_by,
            set_ms: row.set_ms,
        }
    }
}

/// Returns the header fields for a sunset at this time and an optional deprecation.
pub(super) fn notice(at_ms: i64, deprecated_ms: Option<i64>) -> Notice {
    let mut fields = Vec::new();
    if let Some(at) = deprecated_ms {
        fields.push((DEPRECATION, format!("@{}", at.div_euclid(1000))));
    }
    let seconds = u64::try_from(at_ms.div_euclid(1000)).ok().filter(|seconds| *seconds < HTTP_DATE_END);
    if let Some(seconds) = seconds {
        fields.push((SUNSET, httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))));
    }
    fields.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?))).collect()
}
