//! The results of a run, as Markdown and as JSON.

use super::calls::Call;
use super::goals::GOALS;
use super::growth::{self, Axis, Point};
use super::measure::{Cell, Setting, Span, median};
use super::memory::Memory;
use super::peers::{Peer, Site};
use super::shadow::{self, Asked, Shadowed};
use crate::load::Pace;
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::{self, Write as _};
use std::time::Duration;

/// Maximum share of the time that peers may wait for their core on an idle machine.
const WAITED_MAX: f64 = 0.05;

/// All results.
pub struct Report<'a> {
    pub site: &'a Site,
    pub peers: &'a [Peer],
    pub cells: &'a [Cell],
    pub memories: &'a [Memory],
    pub shadows: &'a [Shadowed],
    pub growth: &'a [Point],
    /// Peers that could not be measured, with the reason.
    pub missing: &'a [(Peer, String)],
    pub rounds: usize,
    pub span: Span,
    /// The delay to the service, in each direction.
    pub delay: Option<Duration>,
}

/// The parameters of the load.
pub fn pace(pace: Pace) -> String {
    match pace {
        Pace::Closed => "closed loop".to_owned(),
        Pace::Open { per_second } => format!("{per_second} requests/s"),
    }
}

impl Report<'_> {
    /// Whether all requested measurements are present.
    pub fn is_complete(&self) -> bool {
        let known = |memory: &Memory| {
            let [one, ten, hundred] = memory.growth;
            [memory.idle, memory.connections, memory.left, memory.stalled, one, ten, hundred]
                .iter()
                .all(Option::is_some)
        };
        self.missing.is_empty()
            && self.cells.iter().all(|cell| cell.failure.is_none())
            && self.memories.iter().all(known)
            && self.growth.iter().all(|point| point.seen.is_some())
    }

    /// Returns the goals, a table for each setting, one of memory, and notes.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        self.write(&mut out).expect("a string takes whatever is written");
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "### Machine\n\n{}.\n", machine())?;
        self.write_goals(out)?;
        for setting in self.settings() {
            self.write_setting(out, setting)?;
        }
        if !self.memories.is_empty() {
            self.write_memories(out)?;
        }
        if !self.shadows.is_empty() {
            self.write_shadows(out)?;
        }
        if !self.growth.is_empty() {
            self.write_growth(out)?;
        }
        self.write_notes(out)
    }

    fn write_goals(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "### Goals\n\n| | good | goal | measured | met |\n|---|---|---|---|---|")?;
        for goal in &GOALS {
            let sign = if goal.is_least() { '≥' } else { '≤' };
            let (measured, met) = match goal.measured(self.cells, self.memories) {
                Some(measured) => (format!("{measured:.2}"), goal.met(measured).title()),
                None => ("–".to_owned(), ""),
            };
            let [good, aim] =
                [goal.good, goal.goal].map(|value| format!("{sign} {}", (value * 100.0).round() / 100.0));
            writeln!(out, "| {} | {good} | {aim} | {measured} | {met} |", goal.title)?;
        }
        writeln!(out)
    }

    /// Returns the settings, in the order of the measurements.
    fn settings(&self) -> Vec<Setting> {
        let mut settings: Vec<_> = self.cells.iter().map(|cell| cell.setting).collect();
        settings.dedup_by(|a, b| a == b);
        settings
    }

    fn write_setting(&self, out: &mut String, setting: Setting) -> fmt::Result {
        let cells: Vec<_> = self.cells.iter().filter(|cell| cell.setting == setting).collect();
        let find = |peer| cells.iter().find(|cell| cell.peer == peer && cell.failure.is_none());
        let references = [find(Peer::Nginx), find(Peer::Hyper), find(Peer::Envoy)];
        writeln!(
            out,
            "### {}{}, {} connections, {}\n",
            setting.call.title(),
            setting.transport.title(),
            setting.connections,
            pace(setting.pace)
        )?;
        writeln!(
            out,
            "| | CPU per request | ÷ nginx | ÷ hyper | ÷ Envoy | requests/s | p50 | p99 | peak memory |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|---|---|")?;
        for cell in &cells {
            if cell.failure.is_some() {
                writeln!(out, "| {} | fails | | | | | | | |", cell.peer.title())?;
                continue;
            }
            let [nginx, hyper, envoy] = references.map(|other| match other {
                Some(other) => format!("{:.2}", cell.ratio(other, |sample| sample.cpu_us)),
                None => "–".to_owned(),
            });
            writeln!(
                out,
                "| {} | {} | {nginx} | {hyper} | {envoy} | {} | {} | {} | {} |",
                cell.peer.title(),
                time(cell.median(|sample| sample.cpu_us)),
                rate(cell.median(|sample| sample.per_second)),
                time(cell.median(|sample| sample.p50_us)),
                time(cell.median(|sample| sample.p99_us)),
                megabytes(Some(cell.median(|sample| sample.peak_bytes as f64))),
            )?;
        }
        for (peer, _) in self.missing.iter().filter(|(peer, _)| setting.transport.is_for(*peer)) {
            writeln!(out, "| {} | not to be had | | | | | | | |", peer.title())?;
        }
        writeln!(out)
    }

    fn write_memories(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "### Anonymous memory\n")?;
        writeln!(
            out,
            "| | idle | 256 connections | afterwards | per stalled reader of 20 MB | per body of 1 MB | 10 MB | 100 MB |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|---|")?;
        for memory in self.memories {
            let [one, ten, hundred] = memory.growth;
            let of = [memory.idle, memory.connections, memory.left, memory.stalled, one, ten, hundred];
            let shown = of.map(|bytes| megabytes(bytes.map(|bytes| bytes as f64)));
            writeln!(out, "| {} | {} |", memory.peer.title(), shown.join(" | "))?;
        }
        writeln!(out)
    }

    fn write_shadows(&self, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "### Switchback in the shadow phase, {}, 64 connections, fixed rate\n",
            Call::List.title()
        )?;
        writeln!(
            out,
            "| | p50 | p99 | p99, least to most of a round | p99 ÷ no shadow | CPU per request | peak memory | candidate called |"
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|---|")?;
        let none = self.shadows.iter().find(|shadowed| shadowed.asked == Asked::Nobody);
        for shadowed in self.shadows {
            let ratio = none.map_or(f64::NAN, |none| shadowed.ratio(none, |seen| seen.p99_us));
            writeln!(
                out,
                "| {} | {} | {} | {} to {} | {ratio:.2} | {} | {} | {:.1} % |",
                shadow::title(shadowed.asked),
                time(shadowed.median(|seen| seen.p50_us)),
                time(shadowed.median(|seen| seen.p99_us)),
                time(shadowed.range(|seen| seen.p99_us).0),
                time(shadowed.range(|seen| seen.p99_us).1),
                time(shadowed.median(|seen| seen.cpu_us)),
                megabytes(Some(shadowed.median(|seen| seen.peak_bytes as f64))),
                shadowed.median(|seen| seen.calls) * 100.0,
            )?;
        }
        writeln!(out)
    }

    fn write_growth(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "### Switchback as work grows, 2,000 requests/s\n")?;
        let names = growth::MEASURES.map(|(name, _)| name).join(" | ");
        writeln!(out, "| | how many | {names} |\n|---|---|---|---|---|---|")?;
        for axis in Axis::ALL {
            let points: Vec<_> = self.growth.iter().filter(|point| point.axis == axis).collect();
            let name = format!("{axis:?}").to_lowercase();
            for point in &points {
                let shown = point.seen.map_or("fails | | | ".to_owned(), |seen| {
                    let memory = megabytes(Some(seen.resident_bytes as f64));
                    let [ready, cpu, p99] = [seen.ready_ms * 1e3, seen.cpu_us, seen.p99_us].map(time);
                    [ready, cpu, p99, memory].join(" | ")
                });
                writeln!(out, "| {name} | {} | {shown} |", point.count)?;
            }
            let seen: Vec<_> = points.iter().filter_map(|point| Some((point.count, point.seen?))).collect();
            let [.., one, other] = &seen[..] else { continue };
            let slope = |(_, of): growth::Measure| {
                let (exponent, is_worse) = growth::slope((one.0, of(&one.1)), (other.0, of(&other.1)));
                let remark = if is_worse { ", worse than n log n" } else { "" };
                format!("n^{exponent:.2}{remark}")
            };
            let slopes = growth::MEASURES.map(slope).join(" | ");
            writeln!(out, "| {name}, slope | {} to {} | {slopes} |", one.0, other.0)?;
        }
        writeln!(out)
    }

    fn write_notes(&self, out: &mut String) -> fmt::Result {
        let seconds = self.span.measured.as_secs_f64();
        writeln!(
            out,
            "Medians of {} rounds of {seconds} s each, all peers in turn; ratios are medians of the rounds' ratios. A MB is a \
             million bytes.\n",
            self.rounds,
        )?;
        let place =
            if self.site.core.is_some() { "on a core of its own" } else { "on the one core that there is" };
        writeln!(
            out,
            "- Each peer {place}, with one worker; load generator and fixture on another core. nginx has buffers for answers of \
             the usual sizes (`proxy_buffer_size 16k; proxy_buffers 8 32k; proxy_busy_buffers_size 64k`), is told to log no \
             requests and to keep large answers off the disk; all that have connections to the upstream keep them. TLS is 1.3 \
             with a verified certificate. Switchback logs each request to a file, as it does by default, and so does Lua with \
             equal duties."
        )?;
        if let Some(delay) = self.delay {
            let milliseconds = delay.as_secs_f64() * 1e3;
            writeln!(out, "- The service is {milliseconds} ms away, in each direction.")?;
        }
        let samples = self.cells.iter().flat_map(|cell| &cell.samples);
        let waited = median(samples.map(|sample| sample.waited).collect());
        if waited > WAITED_MAX {
            let percent = waited * 100.0;
            writeln!(
                out,
                "- **The machine was not quiet**: in the median, peers waited {percent:.0} % of the time for a core."
            )?;
        }
        for cell in self.cells.iter().filter(|cell| cell.failure.is_some()) {
            let reason = cell.failure.as_deref().unwrap_or_default();
            writeln!(
                out,
                "- {}{} at {} connections: {:?} fails: {reason}",
                cell.setting.call.title(),
                cell.setting.transport.title(),
                cell.setting.connections,
                cell.peer
            )?;
        }
        for (peer, reason) in self.missing {
            writeln!(out, "- {peer:?} is not to be had: {reason}")?;
        }
        for peer in self.peers {
            writeln!(out, "- {}: {}", peer.title(), peer.version(self.site))?;
        }
        Ok(())
    }

    /// Returns all numbers, by sample.
    ///
    /// # Errors
    /// None that could happen to numbers and names.
    pub fn json(&self) -> Result<String> {
        let cell = |cell: &Cell| {
            json!({
                "transport": format!("{:?}", cell.setting.transport),
                "call": format!("{:?}", cell.setting.call),
                "connections": cell.setting.connections,
                "pace": pace(cell.setting.pace),
                "peer": format!("{:?}", cell.peer),
                "samples": cell.samples,
                "failure": cell.failure,
            })
        };
        let goal = |goal: &super::goals::Goal| {
            let measured = goal.measured(self.cells, self.memories);
            let met = measured.map(|measured| goal.met(measured).title());
            json!({"title": goal.title, "good": goal.good, "goal": goal.goal, "measured": measured, "met": met})
        };
        let all: Value = json!({
            "machine": machine(),
            "peers": self.peers.iter().map(|peer| (format!("{peer:?}"), peer.version(self.site))).collect::<Vec<_>>(),
            "missing": self.missing.iter().map(|(peer, reason)| (format!("{peer:?}"), reason)).collect::<Vec<_>>(),
            "rounds": self.rounds,
            "seconds": self.span.measured.as_secs_f64(),
            "delay_seconds": self.delay.map(|delay| delay.as_secs_f64()),
            "goals": GOALS.iter().map(goal).collect::<Vec<_>>(),
            "cells": self.cells.iter().map(cell).collect::<Vec<_>>(),
            "memory": self.memories.iter().map(|memory| (format!("{:?}", memory.peer), memory)).collect::<Vec<_>>(),
            "shadow": self.shadows,
            "growth": self.growth,
        });
        Ok(serde_json::to_string_pretty(&all)?)
    }
}

/// The machine.
fn machine() -> String {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let processor = processor(&read("/proc/cpuinfo"));
    format!("{processor}, Linux {}", read("/proc/sys/kernel/osrelease").trim())
}

/// Returns cores, model, and the instruction sets that determine the speed of parsing.
fn processor(info: &str) -> String {
    let values = |name: &str| {
        let value = move |line: &'_ str| {
            let (found, value) = line.split_once(':')?;
            (found.trim() == name).then(|| value.trim().to_owned())
        };
        info.lines().filter_map(value).collect::<Vec<_>>()
    };
    let first = |name: &str| values(name).into_iter().next();
    let model = first("model name").unwrap_or_else(|| "unknown processor".to_owned());
    let numbers =
        ["cpu family", "model", "stepping"].map(|name| first(name).unwrap_or_else(|| "?".to_owned()));
    let flags = first("flags").unwrap_or_default();
    let wanted =
        ["sse4_2", "avx2", "bmi2", "avx512f", "avx512bw", "avx512vl", "avx512_vbmi", "vaes", "vpclmulqdq"];
    let flags: Vec<_> =
        wanted.into_iter().filter(|name| flags.split(' ').any(|flag| flag == *name)).collect();
    let flags = if flags.is_empty() { "none of AVX2 and AVX-512".to_owned() } else { flags.join(" ") };
    let cores = values("processor").len();
    format!("{cores} × {model} (family {}; {flags})", numbers.join("/"))
}

/// Formats microseconds in the most readable unit.
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

fn megabytes(bytes: Option<f64>) -> String {
    match bytes.map(|bytes| bytes / 1e6) {
        None => "fails".to_owned(),
        Some(large) if large >= 100.0 => format!("{large:.0} MB"),
        Some(middle) if middle >= 10.0 => format!("{middle:.1} MB"),
        Some(small) => format!("{small:.2} MB"),
    }
}

#[cfg(test)]
mod tests {
    use super::processor;

    #[test]
    fn a_processor_is_told_by_model_cores_and_instructions() {
        let core = |at: usize| {
            format!(
                "processor\t: {at}\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\nflags\t\t: fpu avx2 avx avx512f\n\n"
            )
        };
        assert_eq!(processor(&[core(0), core(1)].concat()), "2 × AMD EPYC (family 25/17/1; avx2 avx512f)");
        assert_eq!(processor(""), "0 × unknown processor (family ?/?/?; none of AVX2 and AVX-512)");
    }
}
