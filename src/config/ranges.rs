//! Bounds that several sections share.

use super::read::Placed;
use super::scalars::{ByteSize, Period};
use std::time::Duration;
use switchback_compiler::diagnostic::{Code, Finding, Findings};

/// Upper bound of every timeout.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(86_400);
/// Room for a page of an ordinary list.
pub(super) const HELD_BYTES_MIN: u64 = 64 << 10;

/// Checks that a timeout is neither zero nor longer than any use has.
pub(super) fn check_wait(name: &str, wait: &Placed<Period>, findings: &mut Findings) {
    if wait.0 == Duration::ZERO || wait.0 > WAIT_MAX {
        let what = format!("`{name}` is between 1ms and 1d");
        findings.push(Finding::error(Code::OutOfRange, wait.span, what));
    }
}

/// Checks that a size has at least `floor` bytes.
pub(super) fn check_floor(name: &str, size: &Placed<ByteSize>, floor: u64, findings: &mut Findings) {
    if size.0 < floor {
        let what = format!("`{name}` is at least {}", ByteSize(floor));
        findings.push(Finding::error(Code::OutOfRange, size.span, what));
    }
}
