//! Formats of numbers and times as text, for pages and the command line. Numbers have units, and
//! times are relative to now.

use switchback_gateway::telemetry::reading::Quantile;

/// Formats a time difference. `relative` in `studio.js` must produce the same text.
pub(crate) fn relative(at_ms: i64, now_ms: i64) -> String {
    let seconds = now_ms.saturating_sub(at_ms).div_euclid(1000);
    let span = span(seconds.unsigned_abs());
    match seconds {
        0 => "now".to_owned(),
        1.. => format!("{span} ago"),
        _ => format!("in {span}"),
    }
}

/// Formats a duration in its largest unit.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min", seconds / 60),
        3_600..=86_399 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Formats a number with thousands separators.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            // A narrow space at which lines do not break.
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Joins names. An empty list becomes `all`.
pub(crate) fn names_or(names: &[String], all: &str) -> String {
    if names.is_empty() { all.to_owned() } else { names.join(", ") }
}

/// Formats a number with its noun: `1 operation`, `2 operations`.
pub(crate) fn count_noun(number: u64, thing: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{} {thing}{end}", count(number))
}

/// Formats a fraction as a percentage. Only exactly 0 and 1 are rendered as 0 % and 100 %.
pub(crate) fn percent(part: f64) -> String {
    let percent = part * 100.0;
    // Rounding must not claim that no answers, or all of them, are equal.
    let text = match percent {
        0.0 => "0".to_owned(),
        p if p < 0.01 => "< 0.01".to_owned(),
        p if p < 10.0 => format!("{p:.2}"),
        p if p < 100.0 && p > 99.9 => "> 99.9".to_owned(),
        100.0 => "100".to_owned(),
        p => format!("{p:.1}"),
    };
    format!("{text} %")
}

/// Formats a rate per second, without its unit.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        0.0 => "0".to_owned(),
        r if r < 10.0 => format!("{r:.2}"),
        r if r < 100.0 => format!("{r:.1}"),
        r => count(r.round() as u64),
    }
}

pub(crate) fn duration(seconds: f64) -> String {
    let ms = seconds * 1e3;
    match ms {
        ms if ms < 1.0 => format!("{:.0} µs", seconds * 1e6),
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1_000.0 => format!("{ms:.0} ms"),
        _ => format!("{seconds:.1} s"),
    }
}

pub(crate) fn quantile(quantile: Quantile) -> String {
    match quantile {
        Quantile::Seconds(seconds) => duration(seconds),
        Quantile::Beyond(seconds) => format!("more than {seconds:.0} s"),
    }
}

pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..=1_023 => format!("{bytes} B"),
        1_024..=1_048_575 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_thousands_stand_apart() {
        assert_eq!(
            ["0", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567"],
            [0, 999, 1_000, 1_234_567].map(count)[..]
        );
        assert_eq!(
            [percent(0.0), percent(0.00001), percent(0.0123), percent(0.99996), percent(1.0)],
            ["0 %", "< 0.01 %", "1.23 %", "> 99.9 %", "100 %"]
        );
        assert_eq!(
            [duration(0.0004), duration(0.0042), duration(0.25), duration(2.0)],
            ["400 µs", "4.2 ms", "250 ms", "2.0 s"]
        );
        assert_eq!(
            [rate(0.0), rate(1.234), rate(12.34), rate(5_000.4)],
            ["0", "1.23", "12.3", "5\u{202f}000"]
        );
        assert_eq!([bytes(12), bytes(2_048), bytes(3 << 20)], ["12 B", "2.0 KiB", "3.0 MiB"]);
        assert_eq!(
            [quantile(Quantile::Seconds(0.25)), quantile(Quantile::Beyond(30.0))],
            ["250 ms", "more than 30 s"]
        );
        assert_eq!([count_noun(1, "call"), count_noun(2, "call")], ["1 call", "2 calls"]);
    }

    /// The script is held against the same table by `tests/studio/times.test.mjs`.
    #[test]
    fn a_relative_time_is_the_same_as_that_of_the_script() {
        let table = include_str!("../tests/studio/times.json");
        let table: Vec<(i64, String)> = serde_json::from_str(table).expect("pairs");
        for (age_ms, words) in table {
            assert_eq!(relative(1_767_225_600_000 - age_ms, 1_767_225_600_000), words, "{age_ms}");
        }
    }
}
