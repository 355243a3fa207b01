//! Who calls are made for.

/// Who a call is made for: a client, or the shadow, which has connections and limits of its own and
/// may change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOrigin {
    /// Its answer is waited for by a client.
    Client,
    /// Nobody waits for it.
    Shadow,
}

impl CallOrigin {
    /// Label in metrics and traces: the role that an upstream has for such calls.
    pub fn name(self) -> &'static str {
        match self {
            CallOrigin::Client => "client",
            CallOrigin::Shadow => "shadow",
        }
    }
}
