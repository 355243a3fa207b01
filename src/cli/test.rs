//! `switchback test`: runs the examples of a pack.

use super::output::{COULD_NOT_RUN, HAS_FINDINGS, count_noun};
use super::pack::{PackArg, fail, render_findings};
use super::stored::{Format, OutputArgs};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use switchback_compiler::mapping::Compiled;
use switchback_compiler::mapping::kept;
use switchback_engine::translate::example::{Outcome, Report, Unreached, run_with};
use switchback_json::Value;
use switchback_plan::Pack;

/// Runs the examples of a pack: every request with its scripted replies, every shape there and
/// back, and examples that are generated from the contracts for operations that the pack keeps.
/// Fails if an example fails, or if no example covers an outcome of a route.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pack: PackArg,

    /// Write what was found where an example says '?'
    #[arg(long)]
    bless: bool,

    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: &Args) -> Result<ExitCode, ExitCode> {
    let compiled = args.pack.compile()?;
    let Some(pack) = &compiled.pack else {
        eprint!("{}", render_findings(&compiled, io::stderr().is_terminal()));
        return Err(ExitCode::from(HAS_FINDINGS));
    };
    let contracts = compiled.contracts.as_ref();
    let made = contracts.map(|contracts| kept::examples(pack, contracts)).unwrap_or_default();
    let report = run_with(pack, &made);
    let said = match args.output.format() {
        Format::Text => text(pack, &report),
        Format::Json => format!("{:#}\n", to_json(pack, &report)),
    };
    print!("{said}");
    // After the report, so that it is complete even if a file cannot be written.
    if args.bless {
        let built_in = "the pack that is built in cannot be filled in: name a folder";
        let folder = args.pack.folder().ok_or_else(|| fail(COULD_NOT_RUN, built_in))?;
        bless(&compiled, &report, folder).map_err(|error| fail(COULD_NOT_RUN, error))?;
    }
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::from(HAS_FINDINGS) })
}

/// Fills in the open values of all examples that pass.
fn bless(compiled: &Compiled, report: &Report, folder: &Path) -> io::Result<()> {
    let holds = |outcome: &Outcome| outcome.problems.is_empty();
    let found: Vec<Vec<Value>> = report
        .outcomes
        .iter()
        // The values that a failing example finds may be the defect.
        .map(|outcome| if holds(outcome) { outcome.found.clone() } else { Vec::new() })
        .collect();
    for (file, text) in compiled.fill_open_places(&found) {
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
    let _ = writeln!(out, "{}: {}", pack.name, summary(report));
    out
}

/// Renders the summary:
/// `245 examples passed, 12 generated examples passed; every outcome is covered`.
fn summary(report: &Report) -> String {
    let mut text = result(&report.outcomes, "example");
    if !report.made.is_empty() {
        let _ = write!(text, ", {}", result(&report.made, "generated example"));
    }
    let _ = match report.unreached.len() {
        0 => write!(text, "; every outcome is covered"),
        1 => write!(text, "; 1 outcome is covered by no example"),
        uncovered => write!(text, "; {uncovered} outcomes are covered by no example"),
    };
    if let open @ 1.. = open(report) {
        let _ = write!(text, "; {} open (`--bless` fills in open values)", count_noun(open as u64, "value"));
    }
    text
}

fn result(outcomes: &[Outcome], noun: &str) -> String {
    let all = outcomes.len() as u64;
    match (all, failed(outcomes)) {
        (0, _) => format!("no {noun}s"),
        (_, 0) => format!("{} passed", count_noun(all, noun)),
        (_, failed) => format!("{failed} of {} failed", count_noun(all, noun)),
    }
}

fn failed(outcomes: &[Outcome]) -> usize {
    outcomes.iter().filter(|outcome| !outcome.problems.is_empty()).count()
}

fn open(report: &Report) -> usize {
    report.outcomes.iter().map(|outcome| outcome.found.len()).sum()
}

/// Returns the operation of an outcome: `v1 GET /things/{id}`.
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
        "examples_failed": failed(&report.outcomes),
        "made": report.made.len(),
        "made_failed": failed(&report.made),
        "failed": failed(&report.outcomes) + failed(&report.made),
        "problems": problems.collect::<Vec<_>>(),
        "unreached": unreached.collect::<Vec<_>>(),
        "open": open(report),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_engine::translate::example::Problem;
    use switchback_engine::translate::{Mark, Reach};
    use switchback_plan::{Origin, RouteId, SideId};

    fn outcomes(passed: usize, failed: usize) -> Vec<Outcome> {
        let origin = Origin { file: "a".into(), line: 1 };
        let mut wrong = Outcome::default();
        wrong.problems.push(Problem { what: "it differs".to_owned(), differences: Vec::new(), origin });
        [vec![Outcome::default(); passed], vec![wrong; failed]].concat()
    }

    fn unreached(count: usize) -> Vec<Unreached> {
        let reach = Reach {
            mark: Mark::Answered,
            what: "an end".to_owned(),
            origin: Origin { file: "a".into(), line: 1 },
        };
        vec![Unreached { serves: SideId::OLD, route: RouteId(0), reach }; count]
    }

    #[test]
    fn written_and_generated_examples_are_counted_apart() {
        let report = |outcomes, made, ends| Report { outcomes, made, unreached: unreached(ends) };
        for (report, wanted) in [
            (report(outcomes(245, 0), Vec::new(), 0), "245 examples passed; every outcome is covered"),
            (
                report(outcomes(1, 0), outcomes(12, 0), 0),
                "1 example passed, 12 generated examples passed; every outcome is covered",
            ),
            (
                report(outcomes(1, 1), outcomes(3, 2), 1),
                "1 of 2 examples failed, 2 of 5 generated examples failed; 1 outcome is covered by no example",
            ),
            (
                report(Vec::new(), outcomes(1, 0), 2),
                "no examples, 1 generated example passed; 2 outcomes are covered by no example",
            ),
        ] {
            assert_eq!(summary(&report), wanted);
        }
        let mut open = report(outcomes(1, 0), Vec::new(), 0);
        open.outcomes[0].found.push(Value::Null);
        assert!(summary(&open).ends_with("; 1 value open (`--bless` fills in open values)"));
    }
}
