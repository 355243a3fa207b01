//! `switchback report`: prints the operations, fields and values that a pack preserves, changes,
//! loses and refuses.

use super::output::{COULD_NOT_RUN, HAS_FINDINGS};
use super::pack::{PackArg, SettingsArg, fail};
use std::process::ExitCode;
use std::sync::Arc;
use switchback_plan as plan;

/// Shows for each operation of both sides its verdict, losses, differences, number of calls and buffered part
/// of the body, and the settings of the pack. With settings, shows only the routes that these select. The
/// Markdown format is a document for owners of integrations.
#[derive(clap::Args)]
pub struct ReportArgs {
    #[command(flatten)]
    pack: PackArg,

    #[command(flatten)]
    settings: SettingsArg,

    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: ReportFormat,
    /// One JSON document, as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ReportFormat {
    Text,
    Markdown,
    Json,
}

pub fn run(args: &ReportArgs) -> Result<ExitCode, ExitCode> {
    let mut pack = args.pack.pack()?;
    if !args.settings.is_empty() {
        let settings = args.settings.resolve(&pack).map_err(|why| fail(HAS_FINDINGS, why))?;
        let own = Arc::get_mut(&mut pack).ok_or(ExitCode::from(COULD_NOT_RUN))?;
        drop(settings.choose(own));
    }
    let report = plan::report(&pack);
    let format = if args.json { ReportFormat::Json } else { args.format };
    let said = match format {
        ReportFormat::Text => report.text(),
        ReportFormat::Markdown => report.markdown(),
        ReportFormat::Json => {
            serde_json::to_string_pretty(&report).map_err(|_| ExitCode::from(COULD_NOT_RUN))? + "\n"
        }
    };
    print!("{said}");
    Ok(ExitCode::SUCCESS)
}
