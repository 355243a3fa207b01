//! Making what came from outside fit to be kept: credentials out of texts, addresses, headers and JSON bodies, and samples
//! of values that tell their kind, length and shape instead of themselves. Values in, values out; the one way in which
//! anything of a message reaches the store, an export or a report.
//!
//! A value is shown only where that is known to be harmless ([`Disclosed`]): texts are masked unless the contract lists them,
//! the pack declares them harmless, or their form is that of a number or a moment. Numbers and booleans are shown unless the
//! pack declares them secret. Over all of that, three things mask: a **name** that tells (a member, parameter or field called
//! like a credential), **looks** (a token, a key, an address of a person), and texts that the caller knows to be secret (the
//! credential of the very request), wherever they occur and whatever surrounds them.

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

/// What stands in a text instead of a credential. In messages that are kept, the start of a hash follows it, so that equal
/// texts stay equal.
pub const MASK: &str = "***";
