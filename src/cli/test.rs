//! `switchback test`: runs the examples of a pack.

use super::pack::{COULD_NOT_RUN, HAS_FINDINGS, PackArg, shown};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use switchback_compiler::mapping::Compiled;
use switchback_compiler::mapping::examples::blessed;
use switchback_compiler::mapping::kept;
use switchback_engine::translate::example::{Outcome, Report, Unreached, run_with};
use switchback_json::Value;
use switchback_plan::Pack;

/// Runs the examples of a pack: every request with its scripted replies, every shape there and back. Fails when one of
/// them does not hold, and when an end of a route is reached by none.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pack: PackArg,

    /// Write what was found where an example says '?'
    #[arg(long)]
    bless: bool,

    /// How to say what was found
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

pub fn run(args: &Args) -> ExitCode {
    let compiled = match args.pack.compile() {
        Ok(compiled) => compiled,
        Err(code) => return code,
    };
    let Some(pack) = &compiled.pack else {
        eprint!("{}", shown(&compiled, io::stderr().is_terminal()));
        return ExitCode::from(HAS_FINDINGS);
    };
    let contracts = compiled.contracts.as_ref();
    let made = contracts.map(|contracts| kept::examples(pack, contracts)).unwrap_or_default();
    let report = run_with(pack, &made);
    let said = match args.format {
        Format::Text => text(pack, &report),
        Format::Json => format!("{:#}\n", to_json(pack, &report)),
    };
    // A closed pipe is the reader's choice; the exit code still tells.
    let _ = io::stdout().write_all(said.as_bytes());
    if args.bless {
        let Some(folder) = args.pack.folder() else {
            eprintln!("the pack that is built in cannot be filled in: name a folder");
            return ExitCode::from(COULD_NOT_RUN);
        };
        if let Err(error) = bless(&compiled, &report, folder) {
            eprintln!("{error}");
            return ExitCode::from(COULD_NOT_RUN);
        }
    }
    if report.is_good() { ExitCode::SUCCESS } else { ExitCode::from(HAS_FINDINGS) }
}

/// Fills in the open places of all examples that hold.
fn bless(compiled: &Compiled, report: &Report, folder: &Path) -> io::Result<()> {
    let holds = |outcome: &Outcome| outcome.problems.is_empty();
    let found: Vec<Vec<Value>> = report
        .outcomes
        .iter()
        .map(|outcome| if holds(outcome) { outcome.found.clone() } else { Vec::new() })
        .collect();
    for (file, text) in blessed(compiled, &found) {
        let path = folder.join(compiled.sources.name(file));
        std::fs::write(&path, text)?;
        eprintln!("filled in {}", path.display());
    }
    Ok(())
}

fn text(pack: &Pack, report: &Report) -> String {
    let mut out = String::new();
    for problem in report.all().flat_map(|outcome| &outcome.problems) {
        let _ = writeln!(out, "{problem}");
    }
    for end in &report.unreached {
        let origin = &end.reach.origin;
        let _ = writeln!(
            out,
            "{}:{}: no example reaches {} of {}",
            origin.file,
            origin.line,
            end.reach,
            name(pack, end)
        );
    }
    let open: usize = report.outcomes.iter().map(|outcome| outcome.found.len()).sum();
    let _ = write!(out, "{}: {} examples, {} do not hold", pack.name, report.outcomes.len(), failed(report));
    let _ = write!(out, ", {} ends without one", report.unreached.len());
    if !report.made.is_empty() {
        let _ = write!(out, ", {} made of the contracts", report.made.len());
    }
    let _ = match open {
        0 => writeln!(out),
        open => writeln!(out, ", {open} open (`--bless` fills them in)"),
    };
    out
}

fn failed(report: &Report) -> usize {
    report.all().filter(|outcome| !outcome.problems.is_empty()).count()
}

/// `v1 GET /things/{id}`
fn name(pack: &Pack, end: &Unreached) -> String {
    let side = end.serves;
    let route = &pack.directions[side].routes[end.route];
    format!("{} {}", pack.sides[side].name, route.operation.key)
}

fn to_json(pack: &Pack, report: &Report) -> serde_json::Value {
    let problems = report.all().flat_map(|outcome| &outcome.problems).map(|problem| {
        let differences = problem.differences.iter().map(|difference| {
            json!({
                "place": difference.place.to_string(),
                "expected": difference.expected.as_ref().map(Value::to_serde),
                "found": difference.found.as_ref().map(Value::to_serde),
            })
        });
        json!({
            "file": &*problem.origin.file,
            "line": problem.origin.line,
            "what": problem.what,
            "differences": differences.collect::<Vec<_>>(),
        })
    });
    let unreached = report.unreached.iter().map(|end| {
        json!({
            "file": &*end.reach.origin.file,
            "line": end.reach.origin.line,
            "operation": name(pack, end),
            "end": end.reach.what,
        })
    });
    json!({
        "pack": pack.name,
        "examples": report.outcomes.len(),
        "made": report.made.len(),
        "failed": failed(report),
        "problems": problems.collect::<Vec<_>>(),
        "unreached": unreached.collect::<Vec<_>>(),
        "open": report.outcomes.iter().map(|outcome| outcome.found.len()).sum::<usize>(),
    })
}
