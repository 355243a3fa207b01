//! Translates one message by one plan, without I/O: bodies, heads, and routes of several calls.
//!
//! Contents: [`document()`], the reference implementation that every streaming class must equal;
//! [`Run`], the state machine of a request; [`PairHeads`] for pairs with streamed bodies; texts in
//! the client's language; the runner of a pack's examples. Sockets, clocks, credentials and the
//! syntax of mapping files live elsewhere.
//!
//! Decisions to know before editing: every error names the responsible party; error texts never
//! contain values; client data is always encoded before it becomes part of a URL or template.

mod archive;
mod blocks;
mod condition;
mod context;
mod coverage;
mod difference;
mod document;
mod error;
pub mod example;
mod expected;
mod failure;
mod fault;
mod form;
mod gather;
pub mod head;
mod language;
mod links;
pub mod multipart;
pub mod overlay;
pub mod paging;
pub mod parts;
pub mod passed;
mod pieces;
mod read_back;
mod reply;
mod request;
mod run;
mod settings;
pub mod sources;
pub mod stream;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod text;
mod turn;
pub mod urlencoded;
mod value;

pub use coverage::{Mark, Reach, ends};
pub use difference::{Difference, Place};
pub use document::{Env, document};
pub use error::{Cause, TranslateError, kind_name};
pub use failure::{ErrorAnswer, ErrorTranslator, failure_status};
pub use fault::{Fault, FaultKind, Sender};
pub use head::PairHeads;
pub use language::negotiate;
pub use links::link_target;
pub use read_back::read_back;
pub use reply::{body_type, foreign_success, is_foreign_type, is_usable_redirect, redirect, unlisted_part};
pub use request::{Arrival, Request, RequestHead, undeclared_parameters};
pub use run::Run;
pub use settings::{SettingError, Settings};
pub use text::{error_body, gateway_error, text};
pub use turn::{Answer, Call, Entries, Entry, Event, FailKind, Failed, Lookup, Next, Refused, Reply, Wait};
