//! How a call ends: one closed list, which the access log, the metrics, the spans, the usage and the studio share.
//!
//! Decision to know: an outcome says what became of the call and not how the service judged it. A `404` of the service is a
//! `translated` or a `forwarded` call; its status stands next to the outcome in the log line and in the metric.

/// Declares the outcomes, in the order in which tables list them, each with its word and its meaning for people.
macro_rules! outcomes {
    ($($name:ident $word:literal $meaning:literal;)+) => {
        /// What became of a call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Outcome {
            $(#[doc = $meaning] $name,)+
        }

        /// All outcomes, each at its discriminant.
        pub const OUTCOMES: [Outcome; [$($word),+].len()] = [$(Outcome::$name),+];

        impl Outcome {
            /// The word for it in log lines, labels of metrics, and the API.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Outcome::$name => $word,)+
                }
            }

            /// What it means, as a sentence for people.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Outcome::$name => $meaning,)+
                }
            }
        }
    };
}

outcomes! {
    Translated "translated" "The gateway answered by the plan of the operation, and the answer is no server error.";
    Forwarded "forwarded" "The service of the side that the client speaks answered, and the answer is no server error.";
    Refused "refused" "The pack refuses the operation, or this request of it.";
    Rejected "rejected" "The gateway rejected the request for its token, address, form or size.";
    Brownout "brownout" "A brownout was open for the call.";
    Retired "retired" "The call came after the sunset of its client.";
    UpstreamError "upstream_error" "A service answered with a server error, or gave no usable answer.";
    GatewayError "gateway_error" "The gateway could not answer: a limit, no usable credential, or an error of its own.";
    Cancelled "cancelled" "The client went away before it had the whole answer.";
}

impl Outcome {
    /// The outcome that has this word.
    pub fn parse(word: &str) -> Option<Outcome> {
        OUTCOMES.into_iter().find(|outcome| outcome.as_str() == word)
    }

    /// Whether the client got the answer of a service: translated, or as it came.
    pub fn is_answered(self) -> bool {
        matches!(self, Outcome::Translated | Outcome::Forwarded)
    }

    /// Whether the call failed for a reason that its operator can mend: a service or the gateway.
    pub fn is_failed(self) -> bool {
        matches!(self, Outcome::UpstreamError | Outcome::GatewayError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_at_its_discriminant_and_has_a_word_of_its_own() {
        for (at, outcome) in OUTCOMES.into_iter().enumerate() {
            assert_eq!((outcome as usize, Outcome::parse(outcome.as_str())), (at, Some(outcome)));
        }
    }
}
