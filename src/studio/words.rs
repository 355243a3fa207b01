//! Markup of times, names and phases on pages. Times are relative, with the exact time in a tooltip.

pub(crate) use crate::figures::{
    bytes, count, count_noun, duration, names_or, percent, quantile, rate, relative, span,
};
use crate::operate::{Piece, Sentence};
use maud::{Markup, html};
use switchback_gateway::clock::rfc3339;
pub(crate) use switchback_gateway::clock::unix_ms;

/// Renders a moment relative to now, with the exact time in a tooltip. The script keeps it current.
pub(crate) fn moment(at_ms: i64, now_ms: i64) -> Markup {
    let exact = rfc3339(at_ms);
    html! { time datetime=(exact) title=(exact) data-ms=(at_ms) { (relative(at_ms, now_ms)) } }
}

/// Renders a moment given as text; an invalid one is rendered unchanged.
pub(crate) fn moment_text(text: &str, now_ms: i64) -> Markup {
    match unix_ms(text) {
        Some(at) => moment(at, now_ms),
        None => html! { (text) },
    }
}

/// Renders a sentence with its emphasis and times.
pub(crate) fn sentence(sentence: &Sentence, now_ms: i64) -> Markup {
    html! { @for piece in sentence.pieces() {
        @match piece {
            Piece::Plain(text) => (text),
            Piece::Strong(text) => { strong { (text) } },
            Piece::Code(text) => { code { (text) } },
            Piece::Operation(name) => (operation(name)),
            Piece::Moment(at_ms) => (moment(*at_ms, now_ms)),
        }
    } }
}

/// Renders `GET /things/{id}` with its method highlighted.
pub(crate) fn operation(name: &str) -> Markup {
    let (method, path) = name.split_once(' ').unwrap_or(("", name));
    html! {
        span.operation {
            @if !method.is_empty() { span.method { (method) } " " }
            span.path { (path) }
        }
    }
}

/// The severity of a badge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Quiet,
    Good,
    Busy,
    Warn,
    Bad,
}

impl Tone {
    pub(crate) fn class(self) -> &'static str {
        match self {
            Tone::Quiet => "quiet",
            Tone::Good => "good",
            Tone::Busy => "busy",
            Tone::Warn => "warn",
            Tone::Bad => "bad",
        }
    }
}

/// Renders a badge. The text carries the meaning; the colour only supports it.
pub(crate) fn badge(tone: Tone, text: &str) -> Markup {
    html! { span.badge.(tone.class()) { (text) } }
}

/// Renders the phase of an operation, with its share.
pub(crate) fn phase(name: &str, share: Option<f64>) -> Markup {
    html! {
        span.phase.{ "phase-" (name) } {
            (name)
            @if let Some(share) = share { " " span.share { (percent(share)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_both_ways_and_exact_on_hover() {
        let at = |ms| moment(ms, 100_000_000).into_string();
        assert!(at(100_000_000).contains(">now<"));
        assert!(at(99_990_000).contains(">10 s ago<"));
        assert!(at(100_000_000 + 7_300_000).contains(">in 2 h<"));
        assert!(at(0).contains("title=\"1970-01-01T00:00:00Z\"") && at(0).contains(">1 d ago<"));
        assert_eq!(unix_ms("1970-01-01T00:00:01Z"), Some(1_000));
    }

    #[test]
    fn hostile_names_stay_text() {
        let html = operation("GET \"><script>alert(1)</script>").into_string();
        assert!(!html.contains("<script") && html.contains("&lt;script&gt;"), "{html}");
    }
}
