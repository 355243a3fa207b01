//! Who calls are made for.

/// Who a call is made for: a client, or the shadow, which has connections and limits of its own and may change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOrigin {
    Client,
    Shadow,
}
