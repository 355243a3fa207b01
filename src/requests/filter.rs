//! The filter of the list of requests, from the query of the page or of the API.

use switchback_gateway::outcome::{OUTCOMES, Outcome};
use switchback_gateway::recent::RequestSample;
use switchback_gateway::shadow::PHASES;

/// The periods that can be listed, in minutes.
pub(crate) const MINUTES: [u64; 4] = [5, 15, 60, 1440];

/// The value that selects requests without a client, an operation, a phase or a status.
pub(crate) const NONE: &str = "(none)";

/// Conditions that a request must meet. Empty texts match all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestsFilter {
    /// One of [`MINUTES`].
    pub(crate) minutes: u64,
    pub(crate) client: String,
    pub(crate) operation: String,
    pub(crate) status: StatusFilter,
    pub(crate) outcome: String,
    pub(crate) phase: String,
    /// A part of the request id, in lower case.
    pub(crate) id: String,
}

/// A condition on the status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StatusFilter {
    #[default]
    Any,
    /// The first digit, such as 5 of `5xx`.
    Class(u16),
    Exact(u16),
    /// The client disconnected before the response.
    Missing,
}

/// An invalid parameter. The texts do not repeat it, since it may be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestsFilterError {
    #[error(
        "the parameters of this address are `minutes`, `client`, `operation`, `status`, `outcome`, `phase`, `id`, `page` and `limit`"
    )]
    Parameter,
    #[error("`minutes` must be 5, 15, 60 or 1440")]
    Minutes,
    #[error("`status` must be a status such as `404`, a class such as `5xx`, or `(none)`")]
    Status,
    #[error("`outcome` must be an outcome of the access log, such as `translated` or `upstream_error`")]
    Outcome,
    #[error("`phase` must be `legacy`, `shadow`, `canary`, `translated` or `(none)`")]
    Phase,
    #[error("`limit` must be a number from 1 to 1000")]
    Limit,
    #[error("`page` must be a number from 1")]
    Page,
}

impl Default for RequestsFilter {
    fn default() -> RequestsFilter {
        RequestsFilter {
            minutes: MINUTES[1],
            client: String::new(),
            operation: String::new(),
            status: StatusFilter::Any,
            outcome: String::new(),
            phase: String::new(),
            id: String::new(),
        }
    }
}

impl RequestsFilter {
    /// Parses decoded query parameters. Empty values match all; `page` and `limit` are left to the
    /// caller.
    ///
    /// # Errors
    ///
    /// A parameter is unknown, or its value is invalid.
    pub(crate) fn parse<'q>(
        pairs: impl IntoIterator<Item = (&'q str, &'q str)>,
    ) -> Result<RequestsFilter, RequestsFilterError> {
        let mut filter = RequestsFilter::default();
        for (name, value) in pairs {
            if value.is_empty() {
                continue;
            }
            let text = value.to_owned();
            match name {
                "minutes" => {
                    let minutes = value.parse().ok().filter(|minutes| MINUTES.contains(minutes));
                    filter.minutes = minutes.ok_or(RequestsFilterError::Minutes)?;
                }
                "client" => filter.client = text,
                "operation" => filter.operation = text,
                "status" => filter.status = StatusFilter::parse(value).ok_or(RequestsFilterError::Status)?,
                "outcome" if Outcome::parse(value).is_some() => filter.outcome = text,
                "outcome" => return Err(RequestsFilterError::Outcome),
                "phase" if value == NONE || PHASES.contains(&value) => filter.phase = text,
                "phase" => return Err(RequestsFilterError::Phase),
                "id" => filter.id = value.trim().to_ascii_lowercase(),
                "page" | "limit" => {}
                _ => return Err(RequestsFilterError::Parameter),
            }
        }
        Ok(filter)
    }

    /// Returns whether a request meets all conditions, except that of the period.
    pub(crate) fn fits(&self, sample: &RequestSample) -> bool {
        let is = |wanted: &str, text: &str| {
            wanted.is_empty() || wanted == text || (wanted == NONE && text.is_empty())
        };
        is(&self.client, &sample.client)
            && is(&self.operation, &sample.operation)
            && is(&self.outcome, &sample.end.outcome)
            && is(&self.phase, &sample.phase)
            && self.status.fits(sample.end.status)
            && sample.id.contains(&self.id)
    }

    /// Returns whether the filter selects all requests of its period.
    pub(crate) fn is_empty(&self) -> bool {
        *self == RequestsFilter { minutes: self.minutes, ..RequestsFilter::default() }
    }
}

impl StatusFilter {
    fn parse(text: &str) -> Option<StatusFilter> {
        if text == NONE {
            return Some(StatusFilter::Missing);
        }
        let is_valid =
            |digits: &str, count| digits.len() == count && digits.bytes().all(|b| b.is_ascii_digit());
        match text.strip_suffix("xx") {
            Some(class) if is_valid(class, 1) => class.parse().ok().map(StatusFilter::Class),
            None if is_valid(text, 3) => text.parse().ok().map(StatusFilter::Exact),
            _ => None,
        }
    }

    fn fits(self, status: Option<u16>) -> bool {
        match self {
            StatusFilter::Any => true,
            StatusFilter::Class(class) => status.is_some_and(|status| status / 100 == class),
            StatusFilter::Exact(exact) => status == Some(exact),
            StatusFilter::Missing => status.is_none(),
        }
    }
}

/// Returns the identifiers of all outcomes.
pub(crate) fn outcomes() -> impl Iterator<Item = &'static str> {
    OUTCOMES.into_iter().map(Outcome::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_gateway::recent::SampleEnd;

    fn sample() -> RequestSample {
        RequestSample {
            id: "00ab00000000cdef".to_owned(),
            client: "acme".to_owned(),
            operation: "GET /things/{id}".to_owned(),
            end: SampleEnd { status: Some(404), outcome: "translated".to_owned(), ..SampleEnd::default() },
            ..RequestSample::default()
        }
    }

    #[test]
    fn a_request_meets_all_conditions_or_is_left_out() {
        for (pairs, expected) in [
            (vec![], true),
            (vec![("client", "acme"), ("operation", "GET /things/{id}"), ("status", "404")], true),
            (vec![("client", "acme"), ("status", "5xx")], false),
            (vec![("client", NONE)], false),
            (vec![("phase", NONE), ("status", "4xx"), ("outcome", "translated")], true),
            (vec![("phase", "canary")], false),
            (vec![("status", NONE)], false),
            (vec![("id", " 00AB ")], true),
            (vec![("id", "cdef"), ("client", "")], true),
            (vec![("id", "ff")], false),
            (vec![("outcome", "forwarded")], false),
        ] {
            let filter = RequestsFilter::parse(pairs.clone()).expect("the parameters are valid");
            assert_eq!(filter.fits(&sample()), expected, "{pairs:?}");
        }
    }

    #[test]
    fn invalid_parameters_are_refused_with_the_valid_ones() {
        for (pair, expected) in [
            (("minutes", "7"), RequestsFilterError::Minutes),
            (("status", "4x"), RequestsFilterError::Status),
            (("status", "40"), RequestsFilterError::Status),
            (("outcome", "good"), RequestsFilterError::Outcome),
            (("phase", "old"), RequestsFilterError::Phase),
            (("token", "x"), RequestsFilterError::Parameter),
        ] {
            assert_eq!(RequestsFilter::parse([pair]), Err(expected), "{pair:?}");
        }
        assert!(RequestsFilter::parse([("minutes", "60")]).expect("it is valid").is_empty());
    }
}
