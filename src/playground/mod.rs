//! Dry runs of requests and mapping files: the calls, the context of every step, the client's
//! answer, and for each field the mapping line and the message that it originates from.
//!
//! This module has the pack under test ([`PlaygroundSession`]), a dry run ([`DryRunRequest`],
//! [`Ran`]), recorded exchanges replayed through a changed pack ([`WhatIf`]), edited files with their
//! patch ([`Edits`]), and the migration notice. Plans are executed in `translate`, values traced in
//! `translate::sources`, answers compared in `replay`, traffic recorded in `capture`.
//!
//! A dry run never sends a call with an effect. It sends reads to a service only on request.
//! Recordings and replies are masked before they are used, so that no page can display a secret.

mod checked;
mod edits;
mod files;
mod letter;
mod recorded;
mod replies;
mod run;
mod tried;
mod what_if;

pub use checked::FailedExample;
pub use edits::{Edits, FileEdit, texts};
pub use files::{KeptContracts, KeptFiles, PackFile};
pub use letter::Letter;
pub(crate) use letter::ends_for;
pub use recorded::{EXCHANGES_MAX, RecordedExchanges, RecordedSummary};
pub use run::{DryRunRequest, FieldOrigin, Ran, RanAnswer, RanCall, RanStep, TracedField, TriedRequest};
pub use switchback_engine::translate::sources::member_place;
pub use tried::{ExampleRequest, PlaygroundSession, ServedPack, TryError};
pub use what_if::{ChangeGroup, WhatIf};
