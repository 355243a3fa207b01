//! The outcome of a call: a closed list shared by the access log, metrics, spans, usage statistics
//! and the studio.
//!
//! An outcome describes how the gateway handled the call, not the service's verdict. A `404` of the
//! service is a `translated` or `forwarded` call; log lines and metrics record its status
//! separately.

/// Declares the outcomes in the order of tables, each with its identifier and a description for
/// people.
macro_rules! outcomes {
    ($($name:ident $word:literal $meaning:literal;)+) => {
        /// The outcome of a call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Outcome {
            $(#[doc = $meaning] $name,)+
        }

        /// All outcomes, indexed by discriminant.
        pub const OUTCOMES: [Outcome; [$($word),+].len()] = [$(Outcome::$name),+];

        impl Outcome {
            /// Returns the identifier used in log lines, metric labels and the API.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Outcome::$name => $word,)+
                }
            }

            /// Returns a description for people, as a sentence.
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
    /// Parses an outcome's identifier.
    pub fn parse(word: &str) -> Option<Outcome> {
        OUTCOMES.into_iter().find(|outcome| outcome.as_str() == word)
    }

    /// Returns whether the client received a service's response, translated or forwarded.
    pub fn is_answered(self) -> bool {
        matches!(self, Outcome::Translated | Outcome::Forwarded)
    }

    /// Returns whether the call failed for a reason that an operator can mend, in a service or in
    /// the gateway.
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
