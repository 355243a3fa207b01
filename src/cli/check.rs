//! `switchback check`: compiles a pack and prints all findings.

mod fix;

use super::output::{COULD_NOT_RUN, HAS_FINDINGS, count_noun};
use super::pack::{PackArg, fail, render_findings};
use super::stored::{Format, OutputArgs};
use crate::app::FolderWatch;
use serde_json::json;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use switchback_compiler::diagnostic::{Severity, to_json};
use switchback_compiler::mapping::Compiled;

/// Compiles a pack and prints all findings, with file, line, column and a suggestion. Fails if one of them is
/// an error.
#[derive(clap::Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pack: PackArg,

    #[command(flatten)]
    output: OutputArgs,

    /// Fail on warnings, too
    #[arg(long)]
    deny_warnings: bool,

    /// Correct what the compiler is sure about, print the corrections, and check again
    #[arg(long)]
    fix: bool,

    /// Check again after each change of a file, until interrupted
    #[arg(long, conflicts_with_all = ["fix", "format", "json"])]
    watch: bool,
}

/// Time without changes before the files are read again. Editors write in several steps.
const SETTLE: Duration = Duration::from_millis(100);

pub fn run(args: &CheckArgs) -> Result<ExitCode, ExitCode> {
    if args.fix {
        let built_in = || fail(COULD_NOT_RUN, "the built-in pack has no files; export it first");
        fix::fix(args.pack.folder().ok_or_else(built_in)?)?;
    }
    if args.watch { watch(args) } else { check(args) }
}

/// Checks after each change.
fn watch(args: &CheckArgs) -> Result<ExitCode, ExitCode> {
    let folder = args.pack.folder();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| fail(COULD_NOT_RUN, error))?;
    // Before the first check: a change during it must lead to another one.
    let watch = FolderWatch::new(None, &[], folder, SETTLE);
    if folder.is_none() || !watch.is_active() {
        return Err(fail(COULD_NOT_RUN, "the files of this pack cannot be watched"));
    }
    loop {
        if io::stdout().is_terminal() {
            print!("\x1b[2J\x1b[H");
        }
        // A folder that cannot be read for a moment is read again after the next change.
        let _ = check(args);
        runtime.block_on(watch.wait_until_quiet());
    }
}

fn check(args: &CheckArgs) -> Result<ExitCode, ExitCode> {
    let start = Instant::now();
    let compiled = args.pack.compile()?;
    let took = start.elapsed();
    let said = match args.output.format() {
        Format::Text => {
            let findings = render_findings(&compiled, io::stdout().is_terminal());
            let gap = if findings.is_empty() { "" } else { "\n" };
            format!("{findings}{gap}{}\n", summary(&compiled, took))
        }
        Format::Json => format!("{:#}\n", as_json(&compiled, took)),
    };
    print!("{said}");
    let warned = args.deny_warnings && compiled.findings.count(Severity::Warning) > 0;
    let has_findings = compiled.findings.has_errors() || warned;
    Ok(if has_findings { ExitCode::from(HAS_FINDINGS) } else { ExitCode::SUCCESS })
}

/// Renders the summary:
/// `messaging: 22 operations of v2, 37 of v3, 11 shapes; 0 errors, 0 warnings; 5 ms`.
fn summary(compiled: &Compiled, took: Duration) -> String {
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(|s| compiled.findings.count(s));
    let counts = counts(compiled);
    let [errors, warnings] =
        [(errors, "error"), (warnings, "warning")].map(|(count, noun)| count_noun(count as u64, noun));
    let found = format!("{errors}, {warnings}; {} ms", took.as_millis());
    match counts {
        Some(CheckCounts { name, operations: [(old, olds), (new, news)], shapes }) => {
            let [olds, shapes] =
                [(olds, "operation"), (shapes, "shape")].map(|(count, noun)| count_noun(count as u64, noun));
            format!("{name}: {olds} of {old}, {news} of {new}, {shapes}; {found}")
        }
        None => format!("no pack; {found}"),
    }
}

struct CheckCounts<'c> {
    name: &'c str,
    /// The name of each side and the number of operations in its contract.
    operations: [(&'c str, usize); 2],
    shapes: usize,
}

fn counts(compiled: &Compiled) -> Option<CheckCounts<'_>> {
    let [old, new] = compiled.contracts.as_ref()?;
    Some(CheckCounts {
        name: compiled.name()?,
        operations: [old, new].map(|side| (side.name.as_str(), side.operations.len())),
        shapes: compiled.shapes_declared()?,
    })
}

fn as_json(compiled: &Compiled, took: Duration) -> serde_json::Value {
    let counts = counts(compiled);
    let operations: serde_json::Map<String, serde_json::Value> = counts
        .iter()
        .flat_map(|counts| counts.operations.map(|(side, count)| (side.to_owned(), json!(count))))
        .collect();
    json!({
        "pack": counts.as_ref().map(|counts| counts.name),
        "operations": operations,
        "shapes": counts.as_ref().map(|counts| counts.shapes),
        "errors": compiled.findings.count(Severity::Error),
        "warnings": compiled.findings.count(Severity::Warning),
        "milliseconds": took.as_secs_f64() * 1e3,
        "findings": to_json(&compiled.sources, &compiled.findings),
    })
}
