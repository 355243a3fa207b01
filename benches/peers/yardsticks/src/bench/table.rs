//! What a run has found, as Markdown for people and as JSON for programs.

use super::measure::{Cell, Setting, Span};
use super::peers::{Peer, Site};
use crate::load::Pace;
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// All that is to be told.
pub struct Report<'a> {
    pub site: &'a Site,
    pub cells: &'a [Cell],
    pub missing: &'a [(Peer, anyhow::Error)],
    pub rounds: usize,
    pub span: Span,
}

/// How the load was given.
pub fn pace(pace: Pace) -> String {
    match pace {
        Pace::Closed => "closed loop".to_owned(),
        Pace::Open { per_second } => format!("{per_second} requests/s"),
    }
}

impl Report<'_> {
    /// A table for each setting, and notes.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        for setting in self.settings() {
            // Writing to a string does not fail.
            self.write_setting(&mut out, setting).expect("a string takes whatever is written");
        }
        self.write_notes(&mut out).expect("a string takes whatever is written");
        out
    }

    /// The settings, in the order in which they were measured.
    fn settings(&self) -> Vec<Setting> {
        let mut settings: Vec<_> = self.cells.iter().map(|cell| cell.setting).collect();
        settings.dedup_by(|a, b| a == b);
        settings
    }

    fn write_setting(&self, out: &mut String, setting: Setting) -> std::fmt::Result {
        let cells: Vec<_> = self.cells.iter().filter(|cell| cell.setting == setting).collect();
        let find = |peer| cells.iter().find(|cell| cell.peer == peer);
        let (nginx, hyper) = (find(Peer::Nginx), find(Peer::Hyper));
        let Setting { call, connections, .. } = setting;
        writeln!(out, "### {}, {connections} connections, {}\n", call.title(), pace(setting.pace))?;
        writeln!(out, "| | CPU per request | ÷ nginx | ÷ hyper | requests/s | p50 | p99 | peak memory |")?;
        writeln!(out, "|---|---|---|---|---|---|---|---|")?;
        for cell in &cells {
            let ratio = |other: Option<&&Cell>| match other {
                Some(other) => format!("{:.2}", cell.ratio(other, |sample| sample.cpu_us)),
                None => "–".to_owned(),
            };
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {:.1} MB |",
                cell.peer.title(),
                time(cell.median(|sample| sample.cpu_us)),
                ratio(nginx),
                ratio(hyper),
                rate(cell.median(|sample| sample.per_second)),
                time(cell.median(|sample| sample.p50_us)),
                time(cell.median(|sample| sample.p99_us)),
                cell.median(|sample| sample.peak_bytes as f64) / 1e6,
            )?;
        }
        for (peer, _) in self.missing {
            writeln!(out, "| {} | not to be had | | | | | | |", peer.title())?;
        }
        writeln!(out)
    }

    fn write_notes(&self, out: &mut String) -> std::fmt::Result {
        let seconds = self.span.measured.as_secs_f64();
        writeln!(out, "Medians of {} rounds of {seconds} s each, all peers in turn.", self.rounds)?;
        let place =
            if self.site.core.is_some() { "on a core of its own" } else { "on the one core that there is" };
        writeln!(
            out,
            "Each peer {place}, with one worker; load generator and fixture on another core. Access logs are off, as \
             their packages have it or a bench would, but for Switchback's, which goes to a file as by default."
        )?;
        for (peer, reason) in self.missing {
            writeln!(out, "{peer:?}: {reason:#}.")?;
        }
        for cell in self.cells.iter().filter(|cell| cell.setting == self.cells[0].setting) {
            writeln!(out, "{:?}: {}.", cell.peer, cell.peer.version(self.site))?;
        }
        Ok(())
    }

    /// Everything, sample by sample.
    ///
    /// # Errors
    /// None that could happen to numbers and names.
    pub fn json(&self) -> Result<String> {
        let cell = |cell: &Cell| -> Result<Value> {
            Ok(json!({
                "call": format!("{:?}", cell.setting.call),
                "connections": cell.setting.connections,
                "pace": pace(cell.setting.pace),
                "peer": format!("{:?}", cell.peer),
                "samples": serde_json::to_value(&cell.samples)?,
            }))
        };
        let cells = self.cells.iter().map(cell).collect::<Result<Vec<_>>>()?;
        let missing: Vec<_> = self
            .missing
            .iter()
            .map(|(peer, reason)| json!({"peer": format!("{peer:?}"), "reason": format!("{reason:#}")}))
            .collect();
        Ok(serde_json::to_string_pretty(&json!({"cells": cells, "missing": missing}))?)
    }
}

/// Microseconds, in the unit that reads best.
fn time(microseconds: f64) -> String {
    match microseconds {
        large if large >= 100_000.0 => format!("{:.0} ms", large / 1e3),
        large if large >= 10_000.0 => format!("{:.1} ms", large / 1e3),
        large if large >= 1000.0 => format!("{:.2} ms", large / 1e3),
        small => format!("{small:.1} µs"),
    }
}

fn rate(per_second: f64) -> String {
    if per_second >= 100.0 { format!("{per_second:.0}") } else { format!("{per_second:.1}") }
}
