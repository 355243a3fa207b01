//! Changes by operators, for the command line, the admin API and the studio. Each surface reads its
//! own input and renders results. Shared are the checks of a change, its author, and its refusal,
//! and the list of conditions that need an operator.
//!
//! The gateway crate executes the changes (`Phases`, `Registry`, `Retirement`, `Store`) and writes
//! the history entry in the same transaction, with the author that a handle has (`by`).

pub(crate) mod attention;
mod capture;
mod clients;
mod history;
mod mapping;
mod names;
mod packs;
mod refusal;
mod remedy;
mod rollout;
mod sentence;

pub(crate) use capture::{CaptureRequest, begin_capture, end_capture, record};
pub(crate) use clients::{apply_clients, retry_grant};
pub(crate) use history::{note, person};
pub(crate) use mapping::save_mapping;
pub(crate) use names::{operation_name, operation_names, suggest_client};
pub use packs::PackRestoration;
pub(crate) use packs::{OperationChanges, PackList, RecordedPack, packs_in};
pub use refusal::Refusal;
pub(crate) use refusal::RefusalKind;
pub(crate) use remedy::{AttentionItem, Place, Remedy};
pub(crate) use rollout::{rollout_line, rollouts_json, wait_text};
pub(crate) use sentence::{Piece, Sentence};

use crate::config::DateOrTime;

/// Parses the value of the field `name`, a day or a moment, as Unix time in milliseconds.
pub(crate) fn moment(name: &str, text: &str) -> Result<i64, Refusal> {
    let parsed = text.parse::<DateOrTime>();
    parsed.map(DateOrTime::unix_ms).map_err(|what| Refusal::invalid(format!("{name}: {what}")))
}
