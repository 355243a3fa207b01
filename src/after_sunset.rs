//! Joins usage with the report of the pack: the losses of each client once the old service is gone,
//! and the settings that would avoid them. Used by `switchback usage --after-sunset` and
//! `GET /api/usage?after_sunset`.
//!
//! A row reflects the route under the operator's settings, regardless of the current phase. Calls
//! rejected by a sunset or a brownout count, since their clients still make them.

use serde::Serialize;
use std::collections::BTreeMap;
use switchback_gateway::outcome::Outcome;
use switchback_gateway::retire::UsageInfo;
use switchback_plan::{LossReport, OperationReport, Report};

/// The verdict on an operation that no contract has: only the old service answers it.
const UNKNOWN: &str = "unknown";

/// The losses of one client at one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AfterSunset {
    /// The side that the client speaks.
    pub side: String,
    /// The client's name; empty for an unknown client.
    pub client: String,
    pub operation: String,
    /// All calls so far, with any outcome.
    pub calls: i64,
    /// The calls that the pack refused.
    pub refused: i64,
    /// The calls that the gateway rejected.
    #[serde(skip)]
    rejected: i64,
    /// Whether this row sums calls of several clients and operations.
    #[serde(skip)]
    pub is_overflow: bool,
    /// RFC 3339, UTC.
    pub last: String,
    /// The verdict of the pack's report, or `unknown`.
    pub verdict: &'static str,
    /// The losses as sentences; may be empty.
    pub loses: Vec<String>,
    /// Disabled settings that would select another route for the operation.
    pub settings: Vec<SettingThen>,
}

/// The effect of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingThen {
    /// Dotted name of a boolean setting.
    pub setting: String,
    /// The verdict with the setting enabled.
    pub verdict: &'static str,
    /// The remaining losses.
    pub loses: Vec<String>,
}

/// Joins calls with the report of the pack. `is_on` returns whether a boolean setting is enabled.
/// Rows are sorted by client, then side, then number of calls, descending.
pub fn after_sunset(usage: &[UsageInfo], report: &Report, is_on: impl Fn(&str) -> bool) -> Vec<AfterSunset> {
    let mut called: BTreeMap<(&str, &str, &str), AfterSunset> = BTreeMap::new();
    for one in usage {
        let row = called.entry((&one.side, &one.client, &one.operation)).or_insert_with(|| AfterSunset {
            side: one.side.clone(),
            client: one.client.clone(),
            operation: one.operation.clone(),
            calls: 0,
            refused: 0,
            rejected: 0,
            is_overflow: one.is_overflow(),
            last: String::new(),
            verdict: UNKNOWN,
            loses: Vec::new(),
            settings: Vec::new(),
        });
        row.calls += one.calls;
        if one.outcome == Outcome::Refused.as_str() {
            row.refused += one.calls;
        }
        if one.outcome == Outcome::Rejected.as_str() {
            row.rejected += one.calls;
        }
        if row.last < one.last {
            row.last.clone_from(&one.last);
        }
    }
    let mut rows: Vec<AfterSunset> = called.into_values().collect();
    for row in &mut rows {
        judge(row, report, &is_on);
    }
    rows.sort_by(|a, b| (&a.client, &a.side, -a.calls).cmp(&(&b.client, &b.side, -b.calls)));
    rows
}

fn judge(row: &mut AfterSunset, report: &Report, is_on: &impl Fn(&str) -> bool) {
    let side = report.sides.iter().find(|side| side.side == row.side);
    let found = side.and_then(|side| side.operations.iter().find(|one| one.operation == row.operation));
    let Some(declared) = found else {
        if row.is_overflow {
            row.loses
                .push("unknown: calls of several clients and operations were counted together".to_owned());
        // Rejected calls never reached the old service, so its end takes no answer from them.
        } else if row.calls > row.rejected {
            row.loses.push("no contract has it: only the old service answers it".to_owned());
        }
        return;
    };
    // The first enabled setting decides, as in the data path.
    let chosen = declared.instead.iter().find(|instead| is_on(&instead.setting));
    let operation = chosen.map_or(declared, |instead| &instead.operation);
    row.verdict = operation.verdict;
    row.loses = loses(&row.side, operation);
    // A setting has no effect while an earlier one is enabled.
    let before = declared.instead.iter().take_while(|instead| !is_on(&instead.setting));
    row.settings = before
        .map(|instead| SettingThen {
            setting: instead.setting.clone(),
            verdict: instead.operation.verdict,
            loses: loses(&row.side, &instead.operation),
        })
        .collect();
}

/// Returns the losses of a client of `side` as sentences. Members that only the other side has do
/// not count; values that the client's contract rejects do.
fn loses(side: &str, operation: &OperationReport) -> Vec<String> {
    let mut texts = Vec::new();
    texts.extend(operation.refusals.iter().map(|reason| format!("refused: {reason}")));
    texts.extend(operation.differs.iter().map(|text| format!("differs: {text}")));
    texts.extend(operation.approximate.iter().map(|text| format!("approximate: {text}")));
    texts.extend(operation.despite.iter().map(|text| format!("despite the contract: {text}")));
    for gap in &operation.without_source {
        let when = if gap.always { "" } else { " where nothing is found" };
        texts.push(format!("{} is {}{when}", gap.place, gap.value));
    }
    let own = operation.lost.iter().filter(|loss| loss.side == side || loss.values.is_some());
    texts.extend(own.map(LossReport::sentence));
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use switchback_compiler::mapping::{compile, load::PackSource};

    fn usage(client: &str, operation: &str, outcome: Outcome, calls: i64) -> UsageInfo {
        UsageInfo {
            side: "v2".to_owned(),
            client: client.to_owned(),
            operation: operation.to_owned(),
            unknown: false,
            outcome: outcome.as_str(),
            calls,
            first: "2026-01-01T00:00:00Z".to_owned(),
            last: format!("2026-01-0{calls}T00:00:00Z"),
        }
    }

    fn report() -> Report {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging");
        let source = PackSource::from_dir(&folder).expect("the pack is in the repository");
        switchback_plan::report(&compile(&source).pack.expect("the pack compiles"))
    }

    #[test]
    fn what_is_lost_is_named_with_its_direction_and_its_values() {
        let loss = |values: Option<&str>, to: Option<&str>, partly| LossReport {
            side: "v2".to_owned(),
            place: "$.limit".to_owned(),
            to: to.map(str::to_owned),
            instead: to.is_none().then(|| "null".to_owned()),
            partly,
            values: values.map(str::to_owned),
        };
        for (loss, sentence) in [
            (loss(None, Some("v3"), false), "$.limit of v2 does not reach v3"),
            (loss(None, Some("v3"), true), "$.limit of v2 reaches v3 in part"),
            (
                loss(Some("values above 100"), Some("v3"), true),
                "$.limit of v2 does not reach v3 in full: values above 100",
            ),
            (loss(None, None, false), "$.limit of v2: always null"),
        ] {
            assert_eq!(loss.sentence(), sentence);
        }
        // Every verdict other than exact must have a sentence that explains it.
        let report = report();
        for side in &report.sides {
            for one in side.operations.iter().filter(|one| one.paging.is_none()) {
                assert_eq!(loses(&side.side, one).is_empty(), one.verdict == "exact", "{}", one.operation);
            }
        }
    }

    #[test]
    fn a_row_sums_all_outcomes_and_has_the_report_s_verdict_with_the_setting_that_would_serve() {
        let report = report();
        let switched = report.sides[0].operations.iter().find(|one| one.verdict == "not possible");
        let switched = switched.expect("the pack refuses operations that a setting serves");
        let with_setting = report.sides[0]
            .operations
            .iter()
            .find(|one| !one.instead.is_empty())
            .expect("settings choose routes");
        let calls = [
            usage("b", &switched.operation, Outcome::Forwarded, 3),
            usage("b", &switched.operation, Outcome::Refused, 2),
            usage("a", &with_setting.operation, Outcome::Translated, 1),
            usage("a", "GET /v2/nothing", Outcome::Forwarded, 4),
            usage("a", "GET /v2/rejected", Outcome::Rejected, 3),
            usage("", "other", Outcome::Translated, 6),
        ];
        let rows = after_sunset(&calls, &report, |_| false);
        let shown: Vec<_> =
            rows.iter().map(|row| (row.client.as_str(), row.verdict, row.calls, row.refused)).collect();
        assert_eq!(
            shown,
            [
                ("", "unknown", 6, 0),
                ("a", "unknown", 4, 0),
                ("a", "unknown", 3, 0),
                ("a", with_setting.verdict, 1, 0),
                ("b", "not possible", 5, 2)
            ]
        );
        let loses: Vec<_> = rows[..3].iter().map(|row| row.loses.join("; ")).collect();
        let overflow = "unknown: calls of several clients and operations were counted together";
        assert_eq!(loses, [overflow, "no contract has it: only the old service answers it", ""]);
        let rows = &rows[2..];
        assert_eq!(rows[2].last, "2026-01-03T00:00:00Z");
        assert!(rows[2].loses.iter().any(|text| text.starts_with("refused: ")), "{rows:?}");
        let instead = &with_setting.instead[0];
        assert_eq!(
            (rows[1].settings[0].setting.as_str(), rows[1].settings[0].verdict),
            (instead.setting.as_str(), instead.operation.verdict)
        );
        let rows = &after_sunset(&calls, &report, |name| name == instead.setting)[2..];
        assert_eq!(rows[1].verdict, instead.operation.verdict);
        assert!(rows[1].settings.iter().all(|then| then.setting != instead.setting), "it is on already");
    }
}
