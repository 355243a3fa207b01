//! Formats rates as percentages without rounding to a false statement: an observed rate is rendered
//! as 0 or 100 % only if it is exactly that, a bound is rounded up, and a threshold has all its
//! digits.

/// Formats an observed rate with two decimals.
pub(super) fn percent(rate: f64) -> String {
    match rate * 100.0 {
        percent if percent > 0.0 && percent < 0.01 => "< 0.01 %".to_owned(),
        percent if percent < 100.0 && percent > 99.99 => "> 99.99 %".to_owned(),
        percent => format!("{percent:.2} %"),
    }
}

/// Formats an upper bound, rounded up to two decimals.
pub(super) fn bound(rate: f64) -> String {
    // Larger than the rounding error of the product, so that 7 % is not rounded up to 7.01 %.
    const ERROR: f64 = 1e-9;
    let rounded = (rate * 10_000.0 - ERROR).max(0.0).ceil() / 100.0;
    match rounded >= 100.0 && rate < 1.0 {
        true => "< 100 %".to_owned(),
        false => format!("{rounded:.2} %"),
    }
}

/// Formats an upper bound as a phrase, such as `at most 1.18 %`.
pub(super) fn at_most(rate: f64) -> String {
    match bound(rate) {
        below if below.starts_with('<') => "below 100 %".to_owned(),
        bound => format!("at most {bound}"),
    }
}

/// Formats a threshold with as many decimals as it has, at least two and at most ten.
pub(super) fn exact(rate: f64) -> String {
    let texts = (2..=10).map(|decimals| format!("{:.decimals$}", rate * 100.0));
    // The tolerance is below the precision of any threshold that an operator would write.
    let is_exact = |text: &String| text.parse::<f64>().is_ok_and(|read| (read / 100.0 - rate).abs() < 1e-13);
    let text = texts.clone().find(is_exact).or_else(|| texts.clone().next_back()).unwrap_or_default();
    format!("{text} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_rates_are_rendered_as_nothing_or_all() {
        let rates = [0.0, 0.000_01, 0.0001, 0.5, 0.9999, 0.999_96, 1.0];
        assert_eq!(
            rates.map(percent),
            ["0.00 %", "< 0.01 %", "0.01 %", "50.00 %", "99.99 %", "> 99.99 %", "100.00 %"]
        );
    }

    #[test]
    fn a_bound_is_never_less_than_its_number() {
        let bounds = [0.0, 0.000_01, 0.07, 0.011_71, 0.9999, 0.999_96, 1.0];
        assert_eq!(
            bounds.map(at_most),
            [
                "at most 0.00 %",
                "at most 0.01 %",
                "at most 7.00 %",
                "at most 1.18 %",
                "at most 99.99 %",
                "below 100 %",
                "at most 100.00 %"
            ]
        );
        assert_eq!(bounds.map(bound)[5], "< 100 %");
    }

    #[test]
    fn a_threshold_has_all_of_its_digits() {
        let thresholds = [0.01, 0.95, 0.000_01, 0.99999, 0.07, 1.0 / 3.0];
        assert_eq!(
            thresholds.map(exact),
            ["1.00 %", "95.00 %", "0.001 %", "99.999 %", "7.00 %", "33.3333333333 %"]
        );
    }
}
