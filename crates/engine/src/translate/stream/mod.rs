//! Translates bodies while they are streamed: a [`Program`] runs over chunks of any size and writes
//! the other side's text, mostly as spans of the input. It builds no tree. Captured members and
//! values of conversions are buffered as bytes, up to a bound.
//!
//! This module executes every [`ValueOp`](switchback_plan::ValueOp) over a stream. It handles
//! neither heads and statuses nor ops over several bodies.
//!
//! | Files | Purpose |
//! |---|---|
//! | `program` | lays out the ops of a plan |
//! | `machine`, `naming`, `pass`, `close` | run ops: structure, names, skipped values, ends of objects |
//! | `follow`, `learned`, `edge`, `record` | the fast path |
//! | `scalar` | finds the end of a value |
//! | `output`, `span`, `slot`, `frame`, `names` | output and state |
//!
//! Decisions to know before editing:
//!
//! - The reference is [`document`](super::document()), and the output must equal its output byte
//!   for byte. Tests compare both over generated documents, plans and cuts. Change the meaning of
//!   an op in the reference first.
//! - The machine can stop after every byte. The fast path compares the text between two scalars
//!   with texts that the machine read at the same position before, and repeats the machine's
//!   recorded work. It has no rules of its own. A text that is cut into single bytes never takes
//!   the fast path, so tests that compare cuts compare both.
//! - The machine checks the structure that it reads, and a [`Grammar`](switchback_json::Grammar) the
//!   values that it skips. The fast path accepts valid scalars only and leaves any other to the
//!   machine, which reports the error.

mod close;
mod edge;
mod fault;
mod follow;
mod frame;
mod learned;
mod machine;
mod names;
mod naming;
mod output;
mod pass;
mod program;
mod record;
mod scalar;
mod slot;
mod span;
#[cfg(test)]
mod tests;

pub use program::Program;

use super::expected::RootCheck;
use super::{Cause, Settings, TranslateError};
use bytes::Bytes;
use fault::Fault;
use machine::{Machine, Run};
use std::sync::Arc;
use switchback_json::scan::{self, Level, Scan, Task};
use switchback_json::{Limits, Utf8Checker};

/// Limits for one body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Limits for the text: depth, lengths, numbers of values.
    pub json: Limits,
    /// Maximum bytes of a value that is buffered until its object closes or until it is converted.
    pub capture_bytes: usize,
    /// Maximum bytes of an object that is buffered to choose between alternatives, or to decide
    /// whether to write it.
    pub choice_bytes: usize,
    /// Maximum bytes of names in open objects, without the names of the plan and of the learned layout.
    pub names_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            json: Limits::STREAM,
            capture_bytes: 64 * 1024,
            choice_bytes: 1024 * 1024,
            names_bytes: 256 * 1024,
        }
    }
}

/// Values that a plan reads from outside the body.
#[derive(Debug, Clone, Default)]
pub struct Values {
    /// The settings of the operator.
    pub settings: Arc<Settings>,
    /// JSON text by the index of `CloseFrom::Supplied`; `None` writes no member.
    pub supplied: Vec<Option<Vec<u8>>>,
}

/// The translation of one body. Checks the grammar of RFC 8259, UTF-8 and [`Bounds`]. Duplicate names
/// and the limit on names are checked only in objects that the plan reads member by member.
#[derive(Debug)]
pub struct Transcoder {
    program: Arc<Program>,
    machine: Machine,
    root: RootCheck,
    level: Level,
    utf8: Utf8Checker,
    failed: Option<TranslateError>,
}

impl Transcoder {
    /// Creates the state for one body.
    pub fn new(program: Arc<Program>, values: Arc<Values>, bounds: Bounds) -> Transcoder {
        Transcoder {
            machine: Machine::new(&program, values, bounds),
            root: RootCheck::new(program.whole),
            program,
            level: Level::best(),
            utf8: Utf8Checker::default(),
            failed: None,
        }
    }

    /// Uses another scan level than the best one of this processor, for tests and measurements.
    pub fn at_level(mut self, level: Level) -> Transcoder {
        self.level = level;
        self
    }

    /// Translates the next chunk and returns the output that is ready. Returns the chunk itself if
    /// the plan changes no body. After an error, every further call returns the same error.
    pub fn push(&mut self, chunk: Bytes) -> Result<Bytes, TranslateError> {
        if self.program.is_identity() {
            self.run(&chunk, &mut Vec::new())?;
            return Ok(chunk);
        }
        let mut out = Vec::with_capacity(chunk.len() + chunk.len() / 8 + 64);
        self.run(&chunk, &mut out)?;
        Ok(Bytes::from(out))
    }

    /// [`Transcoder::push`] that appends to `out`.
    pub fn push_into(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), TranslateError> {
        self.run(chunk, out)?;
        if self.program.is_identity() {
            out.extend_from_slice(chunk);
        }
        Ok(())
    }

    /// Finishes the body and appends the rest of the output: null, if the plan writes no value. A
    /// truncated body is an error.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), TranslateError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.utf8.finish()?;
        if !self.machine.finish(&self.program, out).map_err(|fault| TranslateError::new(*fault))? {
            out.extend_from_slice(b"null");
        }
        Ok(())
    }

    /// Returns the current position and its mapping line, if known, for the log.
    pub fn place(&self) -> String {
        let TranslateError { place, origin, .. } = self.machine.locate(&self.program, Cause::NotOne);
        match origin {
            Some(origin) => format!("{place} ({}:{})", origin.file, origin.line),
            None => place,
        }
    }

    /// Returns the bytes that are buffered between chunks.
    pub fn held_bytes(&self) -> usize {
        self.machine.held_bytes()
    }

    fn run(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), TranslateError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.check_and_run(chunk, out).inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn check_and_run(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), TranslateError> {
        self.root.feed(chunk)?;
        self.utf8.feed(chunk)?;
        let work = Work { program: &self.program, machine: &mut self.machine, chunk, out };
        let done = scan::run(self.level, work);
        done.map_err(|fault| self.machine.locate(&self.program, *fault))
    }
}

/// Translates a captured value. Appends to `out` and returns whether it wrote a value.
fn translate_whole(
    program: &Arc<Program>,
    values: &Arc<Values>,
    bounds: Bounds,
    text: &[u8],
    out: &mut Vec<u8>,
) -> Result<bool, Fault> {
    let mut machine = Machine::new(program, values.clone(), bounds);
    scan::run(Level::Baseline, Work { program, machine: &mut machine, chunk: text, out })?;
    machine.finish(program, out)
}

struct Work<'a> {
    program: &'a Program,
    machine: &'a mut Machine,
    chunk: &'a [u8],
    out: &'a mut Vec<u8>,
}

impl Task for Work<'_> {
    type Output = Result<(), Fault>;

    fn run<S: Scan>(self, scan: S) -> Result<(), Fault> {
        Run::new(self.machine, self.program, scan, self.chunk, self.out).chunk()
    }
}
