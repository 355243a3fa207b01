//! Why a body stops, in a form small enough for the hot path; the place is found when it is told.

use crate::translate::Cause;
use switchback_json::{Error, ErrorKind, Limit};

/// A cause on its way out of the machine.
pub(super) type Fault = Box<Cause>;

/// The text is not acceptable JSON.
#[cold]
pub(super) fn json(offset: u64, kind: ErrorKind) -> Fault {
    Box::new(Cause::Json(Error::new(offset, kind)))
}

/// A value that must be kept for a while, and ends at `offset`, is longer than the bound on kept bytes.
#[cold]
pub(super) fn too_long(offset: u64) -> Fault {
    json(offset, ErrorKind::Limit(Limit::HeldBytes))
}
