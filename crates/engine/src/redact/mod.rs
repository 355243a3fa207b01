//! Making what came from outside fit to be kept: credentials out of texts, addresses, headers and JSON bodies, and samples
//! of values that tell their kind, length and shape instead of themselves. Values in, values out; the one way in which
//! anything of a message reaches the store, an export or a report.
//!
//! Two things mask a value: a **name** that tells (a member, parameter or field called like a credential, or declared as
//! secret by the pack) and its **looks** (a token, a key, an address of a person). Beside these, texts that the caller
//! knows to be secret (the credential of the very request) are taken out wherever they occur, whatever surrounds them.

mod looks;
mod redactor;
mod sample;
mod text;

pub use looks::{is_active, is_telling_name, looks_secret};
pub use redactor::{Redactor, Salt};
pub use sample::{Kind, Sample};
pub use text::without_credentials;

/// What stands in a text instead of a credential.
pub const MASK: &str = "***";
