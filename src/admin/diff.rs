//! Results of the dual run in the admin API: the report of `switchback diff report`, and the stored
//! records. Records are redacted before they are stored.

use super::AdminParts;
use super::answer::{AdminResponse, Answer};
use crate::operate::{Refusal, RefusalKind, operation_name};
use http::StatusCode;
use percent_encoding::percent_decode_str;
use switchback_compiler::diagnostic::did_you_mean;
use switchback_engine::diff::{Threshold, report as report_on};

/// Most records of one export.
const RECORDS_MAX: u32 = 100_000;

/// Returns the report per operation: number of comparisons, rate of differences, the most frequent
/// differences and the mapping lines that cause them.
pub(super) async fn report(parts: &AdminParts) -> Answer {
    let summaries = parts.archive.summaries(Some(&parts.phases)).await?;
    AdminResponse::ok(&report_on(&summaries, Threshold::default()))
}

/// Returns the stored records as JSON Lines, oldest first. `?operation=` selects one operation.
pub(super) async fn export(parts: &AdminParts, query: &str) -> Answer {
    let operation = query.split('&').find_map(|pair| pair.strip_prefix("operation="));
    let operation = operation.map(|text| text.replace('+', " "));
    let operation =
        operation.as_deref().map(|text| percent_decode_str(text).decode_utf8_lossy().into_owned());
    let operation = operation.as_deref().map(|text| operation_name(None, text).1.to_owned());
    if let Some(asked) = &operation {
        let known = parts.phases.list();
        let known: Vec<&str> = known.iter().map(|info| info.operation.as_str()).collect();
        if !parts.archive.has_counted(asked).await? && !known.contains(&asked.as_str()) {
            let hint = did_you_mean(asked, known).map(|hint| format!("; {hint}")).unwrap_or_default();
            let text = format!("no front serves an operation `{asked}`{hint}");
            return Err(Refusal::Request(RefusalKind::NotFound, text).into());
        }
    }
    let lines = parts.archive.export(operation.as_deref(), RECORDS_MAX).await?;
    Ok(AdminResponse::text(StatusCode::OK, "application/x-ndjson", lines))
}
