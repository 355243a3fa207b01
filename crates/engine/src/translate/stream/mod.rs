//! Bodies translated while they pass: a [`Program`] runs over chunks cut anywhere and gives the other
//! side's text, mostly as spans of the input. Nothing is built; what must wait for its place (captured
//! members, values of conversions) is kept as bytes within a bound.
//!
//! What lives here: the run time of every [`ValueOp`](switchback_plan::ValueOp) over a stream. What does
//! not: ops over several bodies, heads, statuses.
//!
//! `machine` runs an op over a value that passes, `close` over one that had to be complete first (a conversion's, an object's
//! end); `program` lays the ops out. `learned`, `record` and `follow` are the short cut, `scalar` and `skip` find where a value
//! ends, `pass` forwards values that no op changes, `naming` reads the names of members, `output` writes. A change of what an op
//! does starts in the reference, [`document`](super::document()).
//!
//! Decisions to know before editing:
//!
//! - The slow reference is [`document`](super::document()); this must equal it byte for byte. It is tested
//!   over generated documents, plans and cuts.
//! - There is one machine (`machine`) that can stop after every byte, and one short cut through it (`follow`): the text between
//!   two scalars is compared with texts that the machine has read in the same place before, and what the machine did there is
//!   done again. Only scalars are looked at. The machine's work is recorded while it runs (`record`), so that the short cut has
//!   no rules of its own. Cutting a text into single bytes never takes the short cut, so comparing cuts compares the two.
//! - Where the grammar of a body is checked, the machine checks
//!   what it looks at anyway, and reads the values that it passes over with a [`Grammar`]. The short cut takes a scalar only
//!   where it is in order, and leaves the rest to the machine, which reports the fault. Lenient bodies are checked where the
//!   plan looks: brackets are counted everywhere, members and names are read in objects that the plan rewrites, UTF-8 is
//!   checked throughout, and a text cut short is always noticed.

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
mod skip;
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
use switchback_json::{Grammar, Limits, Utf8Checker};

/// How much of a body is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The whole grammar of RFC 8259, UTF-8 and what the plan reads: for bodies of an upstream. A member that is named
    /// twice is found where the plan reads names; limits hold as in lenient reading.
    Grammar,
    /// UTF-8, brackets, and what the plan reads: for bodies of an upstream that is trusted. Of the limits, those on
    /// depth and total bytes hold everywhere, the one on names where names are read; values that pass
    /// by cost no memory and are not counted.
    Lenient,
}

/// Bounds on one body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// For the text itself: depth, lengths, numbers of values.
    pub json: Limits,
    /// Bytes of one value that is kept until its object closes or until it is converted.
    pub capture_bytes: usize,
    /// Bytes of one object that is kept until it is known which of several it is, or whether it is taken.
    pub choice_bytes: usize,
    /// Bytes of the names, in objects that are rewritten, that are too many to be expected.
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

/// Values that a plan takes from elsewhere than the body.
#[derive(Debug, Clone, Default)]
pub struct Values {
    /// What the operator has set.
    pub settings: Arc<Settings>,
    /// JSON text by the index of `CloseFrom::Supplied`; none = nothing is supplied.
    pub supplied: Vec<Option<Vec<u8>>>,
}

/// One body on its way.
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
    /// A body at its beginning, to be taken through this program. `check` says how much of its grammar is looked at.
    pub fn new(program: Arc<Program>, values: Arc<Values>, check: Check, bounds: Bounds) -> Transcoder {
        let grammar = (check == Check::Grammar).then(|| Grammar::new(bounds.json.depth));
        Transcoder {
            machine: Machine { grammar, ..Machine::new(&program, values, bounds) },
            root: RootCheck::new(program.whole),
            program,
            level: Level::best(),
            utf8: Utf8Checker::default(),
            failed: None,
        }
    }

    /// The same, looking at bytes in another way than the best of this processor; for tests and
    /// measurements.
    pub fn at_level(mut self, level: Level) -> Transcoder {
        self.level = level;
        self
    }

    /// Takes the next bytes and gives what can be sent of the translation. The chunk itself comes back
    /// when nothing is to be changed. After an error every further call returns the same error.
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

    /// The body has ended; appends what is still to be sent: null, if the plan yields nothing for the
    /// body. A body cut short is an error.
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

    /// The place that has been reached, and the mapping line at work there, where one is known: for the log.
    pub fn place(&self) -> String {
        let TranslateError { place, origin, .. } = self.machine.locate(&self.program, Cause::NotOne);
        match origin {
            Some(origin) => format!("{place} ({}:{})", origin.file, origin.line),
            None => place,
        }
    }

    /// Bytes that are held between chunks, beside the fixed state.
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

/// Translates one whole text, appending to `out`; whether anything was written. For captured values,
/// which have been checked on their way in.
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
