//! Renders the report as text and Markdown: both directions side by side, then the details of each.

use super::{
    ArchiveReport, EventReport, GapReport, LossReport, OperationReport, Report, SettingReport, SideReport,
};
use std::fmt::Write as _;

impl Report {
    /// Renders both directions side by side, then the details of the operations of each.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for side in &self.sides {
            let _ = writeln!(out, "{}", side.headline());
        }
        out.push_str("\nSide by side\n\n");
        let rows = self.side_by_side();
        // Count characters rather than bytes, to align the columns.
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..4).map(width).collect();
        for row in &rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            let _ = writeln!(out, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        for side in &self.sides {
            let _ = writeln!(out, "\n{}\n", side.headline());
            let width = side.operations.iter().map(|op| op.operation.chars().count()).max().unwrap_or(0);
            for op in &side.operations {
                let (verdict, calls, class) = (op.verdict(), op.calls(), op.class.unwrap_or("-"));
                let _ = writeln!(out, "  {:width$}  {verdict:19}  {calls:>13}  {class}", op.operation);
                for (what, text) in op.details() {
                    let _ = writeln!(out, "      {what}: {text}");
                }
                for instead in &op.instead {
                    let op = &instead.operation;
                    let calls = crate::explain::labelled_calls(op.calls_min, op.calls_max);
                    let _ = writeln!(out, "    while {} is on: {}, {calls}", instead.setting, op.verdict());
                    for (what, text) in op.details() {
                        let _ = writeln!(out, "      {what}: {text}");
                    }
                }
            }
        }
        if !self.settings.is_empty() {
            out.push_str("\nSettings\n\n");
        }
        for setting in &self.settings {
            let _ = writeln!(out, "  {}: {}", setting.setting, setting.form());
            let _ = writeln!(out, "      {}", setting.description());
        }
        if !self.archives.is_empty() {
            out.push_str("\nArchives\n\n");
        }
        for archive in &self.archives {
            let _ = writeln!(out, "  {}: {}", archive.archive, archive.description());
        }
        if !self.events.is_empty() {
            out.push_str("\nEvents\n\n");
        }
        for event in &self.events {
            let _ = writeln!(out, "  {}: {}", event.event, event.description());
        }
        out.push('\n');
        for shape in &self.shapes {
            let _ = writeln!(out, "shape {} ({}): {}", shape.shape, shape.law, lost(&shape.lost));
        }
        out
    }

    /// Renders a document for customers.
    pub fn markdown(&self) -> String {
        let mut out = format!("# What is kept, and what changes: `{}`\n\n", self.pack);
        for side in &self.sides {
            let _ = writeln!(out, "- {}", side.headline());
        }
        out.push_str("\n## Side by side\n\n");
        for (at, row) in self.side_by_side().iter().enumerate() {
            let _ = writeln!(out, "| {} |", row.join(" | "));
            if at == 0 {
                out.push_str("|---|---|---|---|\n");
            }
        }
        for side in &self.sides {
            let _ = writeln!(out, "\n## For clients of `{}`, answered by `{}`\n", side.side, side.backend);
            let _ = writeln!(out, "{}\n", side.headline());
            out.push_str("| Operation | Verdict | Calls | Held in memory |\n|---|---|---|---|\n");
            for op in &side.operations {
                let (verdict, calls, class) = (op.verdict(), op.calls(), op.class.unwrap_or("–"));
                let _ = writeln!(out, "| `{}` | {verdict} | {calls} | {class} |", op.operation);
            }
            // Refused operations have their own section.
            for op in side.operations.iter().filter(|op| op.route != "refuse" && !op.details().is_empty()) {
                let _ = writeln!(out, "\n### `{}`\n", op.operation);
                for (what, text) in op.details() {
                    let _ = writeln!(out, "- **{what}**: {text}");
                }
            }
            for (op, instead) in
                side.operations.iter().flat_map(|op| op.instead.iter().map(move |one| (op, one)))
            {
                let (name, verdict) = (&instead.setting, instead.operation.verdict());
                let _ = writeln!(out, "\n### `{}` while `{name}` is on: {verdict}\n", op.operation);
                for (what, text) in instead.operation.details() {
                    let _ = writeln!(out, "- **{what}**: {text}");
                }
            }
            let refused: Vec<_> = side.operations.iter().filter(|op| op.route == "refuse").collect();
            if !refused.is_empty() {
                out.push_str("\n### Refused\n\n");
                for op in refused {
                    let _ = writeln!(out, "- `{}`: {}", op.operation, op.refusals.join(" "));
                }
            }
        }
        if !self.settings.is_empty() {
            out.push_str("\n## Settings\n\n| Setting | Value | About |\n|---|---|---|\n");
        }
        for setting in &self.settings {
            // `|` separates the cells of a table.
            let (form, told) =
                (setting.form().replace('|', "\\|"), setting.description().replace('|', "\\|"));
            let _ = writeln!(out, "| `{}` | {form} | {told} |", setting.setting);
        }
        if !self.archives.is_empty() {
            out.push_str("\n## Archives\n\n");
        }
        for archive in &self.archives {
            let _ = writeln!(out, "- `{}`: {}", archive.archive, archive.description());
        }
        if !self.events.is_empty() {
            out.push_str("\n## Events\n\n");
        }
        for event in &self.events {
            let _ = writeln!(out, "- `{}`: {}", event.event, event.description());
        }
        out
    }

    /// Returns the rows of the comparison: a head, the operations of the first side with their
    /// counterparts, then the remaining operations of the second side. Each row has the operation
    /// and the verdict of both sides.
    fn side_by_side(&self) -> Vec<[String; 4]> {
        let [first, second] = self.sides.as_slice() else { return Vec::new() };
        let head = |side: &SideReport| format!("{} in front of {}", side.side, side.backend);
        let mut rows = vec![[head(first), String::new(), head(second), String::new()]];
        let mut shown = Vec::new();
        for op in &first.operations {
            let names = |other: &&OperationReport| Some(&other.operation) == op.counterpart.as_ref();
            let counterpart = second.operations.iter().find(names);
            let [name, verdict] = cells(counterpart);
            rows.push([op.operation.clone(), op.verdict(), name, verdict]);
            shown.extend(counterpart.map(|other| &other.operation));
        }
        // The operations of the second side without a counterpart.
        for op in second.operations.iter().filter(|op| !shown.contains(&&op.operation)) {
            let [name, verdict] = cells(Some(op));
            rows.push([String::new(), String::new(), name, verdict]);
        }
        rows
    }
}

impl ArchiveReport {
    /// Describes its purpose, its readers, and the harvests that fill it.
    fn description(&self) -> String {
        let read = match self.read_by.as_slice() {
            [] => " Read by no operation.".to_owned(),
            operations => format!(" Read by {}.", operations.join(", ")),
        };
        let filled = (!self.filled_by.is_empty())
            .then(|| format!(" Filled by the harvest {}.", self.filled_by.join(", ")));
        self.about.clone() + &read + &filled.unwrap_or_default()
    }
}

impl SettingReport {
    /// Describes the type and the default.
    fn form(&self) -> String {
        let kind = match self.values.as_slice() {
            [] => self.kind.to_owned(),
            values => values.join(" or "),
        };
        match &self.default {
            Some(default) => format!("{kind}, {default} unless set"),
            None if self.required => {
                format!("{kind}, must be set where clients speak {}", self.read_by.join(" or "))
            }
            None => format!("{kind}, nothing unless set"),
        }
    }

    /// Describes the purpose.
    fn description(&self) -> String {
        let reading = self.reading.iter().map(|reading| format!(" Settles {reading}."));
        let switches =
            (!self.switches.is_empty()).then(|| format!(" Switches {}.", self.switches.join(", ")));
        self.about.clone() + &reading.chain(switches).collect::<String>()
    }
}

fn cells(op: Option<&OperationReport>) -> [String; 2] {
    op.map(|op| [op.operation.clone(), op.verdict()]).unwrap_or_default()
}

impl SideReport {
    fn headline(&self) -> String {
        format!(
            "{} in front of {}: {} operations; {} exact, {} different, {} partly, {} not possible; {} degraded",
            self.side,
            self.backend,
            self.operations.len(),
            self.exact,
            self.different,
            self.partly,
            self.refused,
            self.degraded,
        )
    }
}

impl OperationReport {
    fn verdict(&self) -> String {
        format!("{}{}", self.verdict, if self.degraded { ", degraded" } else { "" })
    }

    fn calls(&self) -> String {
        crate::explain::calls(self.calls_min, self.calls_max)
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        let mut all = |what, texts: &[String]| lines.extend(texts.iter().map(|text| (what, text.clone())));
        all("differs", &self.differs);
        all("approximate", &self.approximate);
        all("refused", &self.refusals);
        all("in its own words", &self.own_words);
        if !self.despite.is_empty() {
            lines.push(("despite the contract", self.despite.join("; ")));
        }
        lines.extend(self.paging.clone().map(|paging| ("paging", paging)));
        lines.extend(self.read_back.clone().map(|read_back| ("read back by", read_back)));
        for (what, always) in [("without a source", true), ("without a source where nothing is found", false)]
        {
            let gaps: Vec<&GapReport> =
                self.without_source.iter().filter(|gap| gap.always == always).collect();
            if !gaps.is_empty() {
                lines.push((what, without_source(&gaps)));
            }
        }
        if !self.lost.is_empty() {
            lines.push(("lost", lost(&self.lost)));
        }
        lines
    }
}

/// Returns a description such as `null: $.a, $.b; 0: $.c`.
fn without_source(gaps: &[&GapReport]) -> String {
    let mut values: Vec<&str> = Vec::new();
    for gap in gaps {
        if !values.contains(&gap.value.as_str()) {
            values.push(&gap.value);
        }
    }
    let with = |value: &str| {
        let places = gaps.iter().filter(|gap| gap.value == value).map(|gap| gap.place.as_str());
        format!("{value}: {}", places.collect::<Vec<_>>().join(", "))
    };
    values.into_iter().map(with).collect::<Vec<_>>().join("; ")
}

impl EventReport {
    /// Describes the events that receivers get.
    fn description(&self) -> String {
        let Some(becomes) = &self.becomes else {
            return format!("nobody is told: {}", self.dropped.as_deref().unwrap_or_default());
        };
        let order =
            self.key.as_ref().map_or_else(|| "in order".to_owned(), |key| format!("in order by {key}"));
        let compared = self.correlate.as_ref().map_or_else(String::new, |by| format!(", compared {by}"));
        format!("{becomes}, {order}{compared}; {}", lost(&self.lost))
    }
}

impl LossReport {
    /// Returns the loss as a sentence, such as `$.a of v2 does not reach v3`.
    pub fn sentence(&self) -> String {
        let LossReport { side, place, to, .. } = self;
        match (to, self.extent()) {
            (Some(to), None) => format!("{place} of {side} does not reach {to}"),
            (Some(to), Some(_)) if self.values.is_none() => format!("{place} of {side} reaches {to} in part"),
            (Some(to), Some(extent)) => format!("{place} of {side} does not reach {to} in full: {extent}"),
            (None, extent) => format!("{place} of {side}: {}", extent.unwrap_or_default()),
        }
    }

    /// Returns the values that are lost if only some are, or the constant value of the place.
    fn extent(&self) -> Option<String> {
        match (&self.values, &self.instead) {
            (Some(values), _) => Some(values.clone()),
            (None, Some(instead)) => Some(format!("always {instead}")),
            (None, None) => self.partly.then(|| "in part".to_owned()),
        }
    }

    /// Returns the direction of the loss, `v2 → v3`, or the side whose place has no source.
    fn way(&self) -> String {
        match &self.to {
            Some(to) => format!("{} → {to}", self.side),
            None => self.side.clone(),
        }
    }
}

/// Returns a description such as `v3 $.a (always null); v2 → v3 $.b, $.c (values above 100)`.
fn lost(losses: &[LossReport]) -> String {
    if losses.is_empty() {
        return "nothing is lost".to_owned();
    }
    // Group the places by direction.
    let mut ways: Vec<String> = losses.iter().map(LossReport::way).collect();
    ways.sort_unstable();
    ways.dedup();
    let of_way = |way: &String| {
        let places = losses.iter().filter(|loss| loss.way() == *way).map(|loss| match loss.extent() {
            Some(extent) => format!("{} ({extent})", loss.place),
            None => loss.place.clone(),
        });
        format!("{way} {}", places.collect::<Vec<_>>().join(", "))
    };
    ways.iter().map(of_way).collect::<Vec<_>>().join("; ")
}
