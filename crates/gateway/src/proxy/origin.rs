//! The origin of a call to an upstream.

/// The origin of a call: a client, or the shadow, which has its own connections and limits and must
/// not change any data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOrigin {
    /// A client waits for the response.
    Client,
    /// No client waits for the response.
    Shadow,
}

impl CallOrigin {
    /// Returns the label in metrics and traces.
    pub fn name(self) -> &'static str {
        match self {
            CallOrigin::Client => "client",
            CallOrigin::Shadow => "shadow",
        }
    }
}
