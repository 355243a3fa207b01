//! The promises of streaming: the same text as the reference whatever the plan, the body and the cuts;
//! bounds; faults noticed.

mod laws;
mod plans;
mod situations;
mod suite;

use super::{Bounds, Program, Transcoder, Values};
use crate::translate::{Cause, Env, document};
use std::sync::Arc;
use switchback_json::Limits;
use switchback_json::scan::Level;
use switchback_plan::ValueOp;

/// What became of a body.
type Outcome = Result<String, Cause>;

/// Runs `op` over `chunks`.
fn run<'c>(
    program: &Arc<Program>,
    values: &Arc<Values>,
    bounds: Bounds,
    level: Level,
    chunks: impl IntoIterator<Item = &'c [u8]>,
) -> Outcome {
    let mut transcoder = Transcoder::new(program.clone(), values.clone(), bounds).at_level(level);
    let mut out = Vec::new();
    for chunk in chunks {
        transcoder.push_into(chunk, &mut out).map_err(|error| error.cause)?;
    }
    transcoder.finish(&mut out).map_err(|error| error.cause)?;
    Ok(String::from_utf8(out).expect("UTF-8 in, UTF-8 out"))
}

/// What the slow reference makes of a body.
fn reference(op: &ValueOp, values: &Values, body: &[u8]) -> Outcome {
    let env = Env { settings: &values.settings, supplied: &values.supplied };
    let mut out = Vec::new();
    document(op, body, &env, &Limits::STREAM, &mut out).map_err(|error| error.cause)?;
    Ok(String::from_utf8(out).expect("UTF-8 in, UTF-8 out"))
}

/// [`run`] in every simple cut and at every level, which must all agree.
fn translate(op: &ValueOp, bounds: Bounds, body: &str) -> Outcome {
    let program = Arc::new(Program::compile(op));
    let values = Arc::new(plans::values());
    let whole = run(&program, &values, bounds, Level::Portable, [body.as_bytes()]);
    for level in Level::ALL {
        for size in [1, 2, 3, 7, 33, 64, 100] {
            let cut = run(&program, &values, bounds, level, body.as_bytes().chunks(size));
            let same = match (&cut, &whole) {
                (Ok(cut), Ok(whole)) => cut == whole,
                (Err(_), Err(_)) => true,
                _ => false,
            };
            assert!(same, "{level:?} in chunks of {size}: {cut:?}\nwhole: {whole:?}\nof {body}");
        }
        // Again with all that the first bodies have taught.
        assert_eq!(run(&program, &values, bounds, level, [body.as_bytes()]), whole, "{body}");
    }
    whole
}
