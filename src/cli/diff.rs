//! `switchback diff`: results of the dual run, read from the store.

use super::output::HAS_FINDINGS;
use super::stored::{Format, OpenedStore, StoreArgs, VerbError, block_on_verdict};
use crate::app;
use clap::Subcommand;
use std::process::ExitCode;
use switchback_engine::diff::{Proof, Report, Threshold, report};
use switchback_gateway::shadow::{Archive, PhasesError, Share};

/// Arguments of `switchback diff`.
#[derive(clap::Args)]
pub struct DiffArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(subcommand)]
    verb: DiffVerb,
}

#[derive(Subcommand)]
enum DiffVerb {
    /// Report per operation: comparisons, equal answers, differences and the mapping lines that cause them
    #[command(after_help = REPORT_EXIT_CODES)]
    Report(ReportArgs),
    /// Export the stored records as JSON Lines, oldest first
    Export {
        /// Only this operation, from `switchback phase list`
        #[arg(long)]
        operation: Option<String>,
        /// Maximum number of records, newest first
        #[arg(long, default_value_t = 10_000)]
        count: u32,
    },
}

/// The exit codes, for scripts.
const REPORT_EXIT_CODES: &str = "Exit codes: 0 every operation is within the threshold, 1 one is above it, 2 wrong use, \
    3 the store could not be read, 4 none is above it and too little was compared to prove it of all. Evidence of an earlier \
    period in a phase, or of another pack, proves nothing of the present one.";

/// No operation is above the threshold, but the evidence does not cover all.
const NOT_PROVED: u8 = 4;

#[derive(clap::Args)]
struct ReportArgs {
    /// Print Markdown instead of text
    #[arg(long)]
    markdown: bool,
    /// Accepted rate of differences
    #[arg(long, value_name = "SHARE", default_value = "0.01")]
    mismatch: Share,
    /// Confidence of the bounds
    #[arg(long, value_name = "SHARE", default_value = "0.95")]
    confidence: Share,
    /// Number of differences per operation
    #[arg(long, default_value_t = 5)]
    top: usize,
}

pub fn run(args: DiffArgs) -> ExitCode {
    block_on_verdict(show(args))
}

async fn show(args: DiffArgs) -> Result<ExitCode, VerbError> {
    let DiffArgs { store, verb } = args;
    let opened = store.open_existing().await?;
    let archive = Archive::new(opened.store.clone());
    let format = store.format();
    let (said, code) = match verb {
        DiffVerb::Report(args) => {
            let threshold = Threshold {
                mismatch_max: args.mismatch.part(),
                confidence: args.confidence.part(),
                top: args.top,
            };
            // With the phases, evidence of an earlier period or of another pack is reported as such.
            let phases = match store.configuration() {
                Ok(config) => {
                    let file = store.file().map(ToOwned::to_owned);
                    Some(app::phases(&config, opened.store.clone(), file).await?)
                }
                // Without a configuration the served pack is unknown.
                Err(_) => None,
            };
            let report = report(&archive.summaries(phases.as_ref()).await?, threshold);
            (render(&report, format, args.markdown), exit_code(report.verdict))
        }
        DiffVerb::Export { operation, count } => {
            let said = archive.export(operation.as_deref(), count).await?;
            if let Some(operation) = operation.filter(|_| said.is_empty()) {
                ensure_known(&store, &opened, &archive, &operation).await?;
                eprintln!("nothing is kept of `{operation}`");
            }
            (said, ExitCode::SUCCESS)
        }
    };
    opened.store.close().await;
    print!("{said}");
    Ok(code)
}

/// Reports an unknown operation: without records, its name may be misspelt.
async fn ensure_known(
    store: &StoreArgs,
    opened: &OpenedStore,
    archive: &Archive,
    operation: &str,
) -> Result<(), VerbError> {
    if archive.has_counted(operation).await? {
        return Ok(());
    }
    let Ok(config) = store.configuration() else {
        return Err(VerbError::Usage(format!("nothing was ever counted of an operation `{operation}`")));
    };
    let phases = app::phases(&config, opened.store.clone(), store.file().map(ToOwned::to_owned)).await?;
    match phases.get(None, operation) {
        Ok(_) | Err(PhasesError::WhichSide(..)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn exit_code(verdict: Proof) -> ExitCode {
    match verdict {
        Proof::Within => ExitCode::SUCCESS,
        Proof::NotEnough => ExitCode::from(NOT_PROVED),
        Proof::Above => ExitCode::from(HAS_FINDINGS),
    }
}

fn render(report: &Report, format: Format, markdown: bool) -> String {
    match format {
        Format::Text if markdown => report.markdown(),
        Format::Text => report.text(),
        Format::Json => {
            let json = serde_json::to_string_pretty(report);
            json.expect("numbers that are finite and texts serialise") + "\n"
        }
    }
}
