//! Redaction: removes credentials from texts, addresses, headers and JSON bodies, and reduces
//! values to samples of their kind, length and shape. All data of a message passes through here
//! before it reaches the store, an export or a report.
//!
//! A value is disclosed only if it is known to be harmless ([`Disclosed`]). Texts are masked unless
//! the contract lists them, the pack declares them harmless, or they have the form of a number or a
//! time. Numbers and booleans are disclosed unless the pack declares them secret. Three rules
//! override this and always mask: a **name** that indicates a credential (of a member, parameter or
//! field), the **appearance** of a value (a token, a key, an email address), and texts that the
//! caller knows to be secret (the credential of the current request), at any place and inside any
//! other text.

mod names;
mod redactor;
mod sample;
mod secret_heuristics;
mod text;

pub use names::{is_harmless_header, is_telling_name};
pub use redactor::{Masked, Redactor, Salt};
pub use sample::{Kind, Sample};
pub use secret_heuristics::{is_moment, is_plain, looks_secret};
pub use text::{is_active, without_credentials};

#[cfg(doc)]
use switchback_plan::Disclosed;

/// Replaces a credential in a text. In stored messages, the start of a hash follows it, so that
/// equal texts remain equal.
pub const MASK: &str = "***";
