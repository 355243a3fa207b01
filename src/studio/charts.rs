//! Charts as inline SVG: line charts, sparklines, stacked bars. Each has a text alternative. The
//! script reads the values under the pointer from `data-chart`.

use super::traffic::{ChartLine, ChartSpan, SlotCounter, errors_of, requests_of};
use super::words::{count_noun, duration, moment, rate};
use maud::{Markup, html};
use serde_json::json;
use std::fmt::Write as _;
use switchback_gateway::clock::rfc3339;
use switchback_gateway::telemetry::reading::Quantile;

/// A line of a chart. `None` values are gaps.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    /// A class of the style sheet: `s-requests`, `s-errors`, `s-second`, `s-third`.
    pub(crate) class: &'static str,
    pub(crate) is_filled: bool,
    pub(crate) values: Vec<Option<f64>>,
}

/// A change in the time of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChartMark {
    /// Unix time in milliseconds.
    pub(crate) at_ms: i64,
    pub(crate) text: String,
}

/// A line chart over time.
pub(crate) struct Chart<'c> {
    pub(crate) id: &'c str,
    /// The text alternative.
    pub(crate) label: String,
    /// Unix time in milliseconds, one per value.
    pub(crate) times: Vec<i64>,
    /// Whether the time of the label has no data before the first value.
    pub(crate) is_cropped: bool,
    pub(crate) series: Vec<Series>,
    /// A horizontal line for an upper limit, with its name.
    pub(crate) threshold: Option<(f64, &'static str)>,
    /// Formats a value of the axis.
    pub(crate) axis: fn(f64) -> String,
    /// Changes in the time of the chart.
    pub(crate) marks: Vec<ChartMark>,
}

impl Series {
    pub(crate) fn new(
        name: &'static str,
        unit: &'static str,
        class: &'static str,
        is_filled: bool,
        values: Vec<Option<f64>>,
    ) -> Series {
        Series { name, unit, class, is_filled, values }
    }
}

/// Builds the chart of requests and errors per second.
pub(crate) fn traffic<P: SlotCounter>(line: &ChartLine<P>, span: ChartSpan) -> Chart<'static> {
    let per_second = |number: u64| Some(number as f64 / line.seconds);
    let requests = line.values(|point| per_second(requests_of(point.outcomes())));
    let errors = line.values(|point| per_second(errors_of(point.outcomes())));
    Chart {
        id: "chart-traffic",
        label: format!("Requests and errors per second over {}", span.words()),
        times: line.times(),
        is_cropped: line.is_cropped,
        series: vec![
            Series::new("requests", "/s", "s-requests", true, requests),
            Series::new("errors", "/s", "s-errors", true, errors),
        ],
        threshold: None,
        axis: |value| format!("{}/s", rate(value)),
        marks: Vec::new(),
    }
}

/// Builds the chart of the median and the 99th percentile of latency.
pub(crate) fn latency<P: SlotCounter>(line: &ChartLine<P>, label: String) -> Chart<'static> {
    let quantile = |share: f64| line.values(|point| Some(point.durations().quantile(share)?.seconds() * 1e3));
    // The last bucket of the histogram has no upper bound, so its values are minimums.
    let is_beyond = |point: &P| matches!(point.durations().quantile(0.99), Some(Quantile::Beyond(_)));
    let slow = match line.slots.iter().any(|(_, point)| point.as_ref().is_some_and(is_beyond)) {
        true => "99 % (from 30 s on: or more)",
        false => "99 %",
    };
    Chart {
        id: "chart-latency",
        label,
        times: line.times(),
        is_cropped: line.is_cropped,
        series: vec![
            Series::new("median", "ms", "s-requests", false, quantile(0.5)),
            Series::new(slow, "ms", "s-second", false, quantile(0.99)),
        ],
        threshold: None,
        axis: |value| duration(value / 1e3),
        marks: Vec::new(),
    }
}

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 130.0;

impl Chart<'_> {
    pub(crate) fn draw(&self) -> Markup {
        let values = self.series.iter().flat_map(|series| series.values.iter().flatten());
        let top = values.fold(0.0_f64, |top, value| top.max(*value));
        // The threshold must be visible even if all values are far below it.
        let top = nice(top.max(self.threshold.map_or(0.0, |(at, _)| at)));
        let y = |value: f64| HEIGHT - value / top * (HEIGHT - 4.0);
        let data = json!({
            "times": self.times,
            "series": self.series.iter().map(|series| json!({
                "name": series.name,
                "unit": series.unit,
                "values": series.values.iter().map(|value| value.map(short)).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        });
        let (first, last) = (self.times.first().copied(), self.times.last().copied());
        html! {
            figure.figure {
                ul.legend {
                    @for series in &self.series { li { (sign(series.class)) (series.name) } }
                    @if let Some((_, name)) = self.threshold { li { (sign("threshold")) (name) } }
                    li.top { "up to " ((self.axis)(top)) }
                }
                svg.chart id=(self.id) role="img" aria-label=(self.text()) tabindex="0" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) }
                    preserveAspectRatio="none" height=(HEIGHT) data-chart=(data) {
                    line.axis x1="0" x2=(WIDTH) y1=(HEIGHT) y2=(HEIGHT) {}
                    line.axis x1="0" x2=(WIDTH) y1=(y(top / 2.0)) y2=(y(top / 2.0)) {}
                    line.axis x1="0" x2=(WIDTH) y1=(y(top)) y2=(y(top)) {}
                    @for series in &self.series {
                        @if series.is_filled { path.area.(series.class) d=(area(&series.values, &y)) {} }
                        path.(series.class) d=(line(&series.values, &y)) {}
                    }
                    @if let Some((at, _)) = self.threshold { line.threshold x1="0" x2=(WIDTH) y1=(y(at)) y2=(y(at)) {} }
                    @for mark in &self.marks {
                        @let x = short(self.place(mark.at_ms));
                        line.mark x1=(x) x2=(x) y1="0" y2=(HEIGHT) { title { (mark.text) } }
                    }
                    line.cursor x1="0" x2="0" y1="0" y2=(HEIGHT) {}
                }
                @if let (Some(first), Some(last)) = (first, last) {
                    div.chart-axis {
                        span { @if self.is_cropped { "no data before " } (moment(first, last)) }
                        (moment(last, last))
                    }
                }
            }
        }
    }
}

impl Chart<'_> {
    /// Returns the text alternative, with the start of the data and the number of marks; the page
    /// lists them.
    fn text(&self) -> String {
        let mut text = self.label.clone();
        if let Some(first) = self.times.first().filter(|_| self.is_cropped) {
            text += &format!(", no data before {}", rfc3339(*first));
        }
        if !self.marks.is_empty() {
            text += &format!(", with {}", count_noun(self.marks.len() as u64, "mark"));
        }
        text
    }

    /// Returns the place of a moment on the axis.
    fn place(&self, at_ms: i64) -> f64 {
        let (Some(first), Some(last)) = (self.times.first(), self.times.last()) else { return 0.0 };
        // The newest slot begins at the end of the axis.
        ((at_ms - first) as f64 / (last - first).max(1) as f64).clamp(0.0, 1.0) * WIDTH
    }
}

/// Renders a sparkline for a table row.
pub(crate) fn spark(values: &[Option<f64>], label: &str) -> Markup {
    let top = nice(values.iter().flatten().fold(0.0_f64, |top, value| top.max(*value)));
    let y = |value: f64| HEIGHT - value / top * (HEIGHT - 10.0) - 2.0;
    html! {
        svg.spark role="img" aria-label=(label) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" {
            path.area.s-requests d=(area(values, &y)) {}
            path.s-requests d=(line(values, &y)) {}
        }
    }
}

/// Renders a stacked bar. Each part has a class; empty parts are omitted.
pub(crate) fn bar(parts: &[(&'static str, u64)], label: &str) -> Markup {
    let whole: u64 = parts.iter().map(|(_, part)| part).sum();
    let mut at = 0.0;
    let placed: Vec<(&str, f64, f64)> = parts
        .iter()
        .filter(|(_, part)| *part > 0)
        .map(|(class, part)| {
            let width = *part as f64 / whole as f64 * 100.0;
            at += width;
            (*class, at - width, width)
        })
        .collect();
    html! {
        svg.bar role="img" aria-label=(label) viewBox="0 0 100 10" preserveAspectRatio="none" {
            @if placed.is_empty() { rect.b-none x="0" y="0" width="100" height="10" {} }
            @for (class, x, width) in placed { rect.(class) x=(short(x)) y="0" width=(short(width)) height="10" {} }
        }
    }
}

fn sign(class: &str) -> Markup {
    html! {
        svg viewBox="0 0 18 6" width="18" height="6" aria-hidden="true" focusable="false" {
            path.(class) d="M0 3h18" fill="none" stroke-width="2.500" {}
        }
    }
}

fn x(at: usize, count: usize) -> f64 {
    // A single value would divide by zero.
    at as f64 / (count.max(2) - 1) as f64 * WIDTH
}

/// Returns the SVG path of a line. A value between two gaps becomes a short stroke.
fn line(values: &[Option<f64>], y: &impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        let is_first = at == 0 || values[at - 1].is_none();
        let _ = write!(
            path,
            "{}{} {}",
            if is_first { 'M' } else { 'L' },
            short(x(at, values.len())),
            short(y(*value))
        );
        if is_first && values.get(at + 1).is_none_or(Option::is_none) {
            path.push_str("h1");
        }
    }
    path
}

/// Returns the SVG path of the area below a line.
fn area(values: &[Option<f64>], y: &impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    for run in runs(values) {
        let (first, last) = (x(run.start, values.len()), x(run.end - 1, values.len()));
        let _ = write!(path, "M{} {HEIGHT}", short(first));
        for at in run {
            let _ = write!(path, "L{} {}", short(x(at, values.len())), short(y(values[at].unwrap_or(0.0))));
        }
        let _ = write!(path, "L{} {HEIGHT}Z", short(last));
    }
    path
}

/// Returns the ranges of consecutive values.
fn runs(values: &[Option<f64>]) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for at in (0..values.len()).filter(|at| values[*at].is_some()) {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

/// Rounds up to 1, 2 or 5 times a power of ten.
fn nice(top: f64) -> f64 {
    if top <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(top.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    // The tolerance absorbs the rounding of `log10`.
    steps.into_iter().map(|step| step * power).find(|step| *step >= top * 0.999).unwrap_or(top)
}

/// Rounds to three decimals, which keeps pages small.
fn short(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_break_a_line_and_stay_gaps() {
        let values = [Some(1.0), Some(2.0), None, Some(4.0), None];
        let y = |value: f64| value;
        assert_eq!(line(&values, &y), "M0 1L150 2M450 4h1");
        assert_eq!(runs(&values), [0..2, 3..4]);
        assert_eq!(area(&values, &y), "M0 130L0 1L150 2L150 130ZM450 130L450 4L450 130Z");
    }

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!([0.0, 0.7, 1.0, 3.2, 61.0, 480.0].map(nice), [1.0, 1.0, 1.0, 5.0, 100.0, 500.0]);
    }

    #[test]
    fn parts_of_a_bar_fill_it() {
        let html = bar(&[("b-legacy", 1), ("b-canary", 0), ("b-shadow", 3)], "one").into_string();
        assert!(
            html.contains("x=\"25\"") && html.contains("width=\"75\"") && !html.contains("b-canary"),
            "{html}"
        );
        assert!(bar(&[], "none").into_string().contains("b-none"));
    }

    #[test]
    fn a_chart_carries_its_values_as_data_and_no_markup_of_others() {
        let chart = Chart {
            id: "c",
            label: "\"><script>".to_owned(),
            times: vec![0, 1_000],
            is_cropped: false,
            series: vec![Series {
                name: "requests",
                unit: "/s",
                class: "s-requests",
                is_filled: true,
                values: vec![Some(1.0), None],
            }],
            threshold: None,
            axis: |value| value.to_string(),
            marks: Vec::new(),
        };
        let html = chart.draw().into_string();
        assert!(html.contains("&quot;values&quot;:[1.0,null]") && !html.contains("<script>"), "{html}");
    }

    #[test]
    fn a_mark_is_at_its_time_and_in_the_text() {
        let mark = |at_ms| ChartMark { at_ms, text: "reload <p>".to_owned() };
        let chart = Chart {
            id: "c",
            label: "Requests".to_owned(),
            times: vec![0, 1_000, 2_000],
            is_cropped: true,
            series: Vec::new(),
            threshold: None,
            axis: |value| value.to_string(),
            marks: vec![mark(500), mark(9_000)],
        };
        let html = chart.draw().into_string();
        assert!(
            html.contains("aria-label=\"Requests, no data before 1970-01-01T00:00:00Z, with 2 marks\""),
            "{html}"
        );
        assert!(
            html.contains("<line class=\"mark\" x1=\"150\" x2=\"150\"") && html.contains("x1=\"600\""),
            "{html}"
        );
        assert!(html.contains("<title>reload &lt;p&gt;</title>"), "{html}");
    }

    #[test]
    fn the_value_of_a_slot_is_what_came_in_it_per_second() {
        use crate::studio::traffic::Point;
        use switchback_gateway::outcome::{OUTCOMES, Outcome};

        let point = |translated, failed| {
            let mut outcomes = [0; OUTCOMES.len()];
            outcomes[Outcome::Translated as usize] = translated;
            outcomes[Outcome::UpstreamError as usize] = failed;
            Some(Point { outcomes, ..Point::default() })
        };
        for (seconds, requests, errors) in [(20.0, 2.5, 0.5), (300.0, 50.0 / 300.0, 10.0 / 300.0)] {
            let slots = vec![(0, point(40, 10)), (1, None), (2, point(0, 0))];
            let chart = traffic(&ChartLine::new(seconds, slots), ChartSpan::Hour);
            let values: Vec<_> = chart.series.iter().map(|series| series.values.clone()).collect();
            assert_eq!(values, [[Some(requests), None, Some(0.0)], [Some(errors), None, Some(0.0)]]);
            assert_eq!(chart.series.iter().map(|series| series.unit).collect::<Vec<_>>(), ["/s", "/s"]);
        }
    }
}
