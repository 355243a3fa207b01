//! Errors of the machine. They are boxed to keep results small on the hot path;
//! [`Machine::locate`](super::machine::Machine::locate) adds the position.

use crate::translate::Cause;
use switchback_json::{Error, ErrorKind, Limit};

/// The cause of an error, without its position.
pub(super) type Fault = Box<Cause>;

/// Returns an error of the JSON text.
#[cold]
pub(super) fn json(offset: u64, kind: ErrorKind) -> Fault {
    Box::new(Cause::Json(Error::new(offset, kind)))
}

/// Returns the error for a buffered value that ends at `offset` and exceeds its bound.
#[cold]
pub(super) fn too_long(offset: u64) -> Fault {
    json(offset, ErrorKind::Limit(Limit::HeldBytes))
}
