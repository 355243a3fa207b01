//! The origin of tokens and credentials of clients.

/// The origin of a token: the configuration file, where it must be changed, or a command at run
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenOrigin {
    /// Set in the configuration file.
    Configured,
    /// Set or generated at run time.
    Managed,
}

impl TokenOrigin {
    pub(super) fn name(self) -> &'static str {
        match self {
            TokenOrigin::Configured => "configured",
            TokenOrigin::Managed => "managed",
        }
    }

    pub(super) fn parse(name: &str) -> TokenOrigin {
        match name {
            "configured" => TokenOrigin::Configured,
            _ => TokenOrigin::Managed,
        }
    }
}
