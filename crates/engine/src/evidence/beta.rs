//! The gamma and beta functions that the bounds are computed from.

/// Returns the natural logarithm of the gamma function for a positive argument (Lanczos
/// approximation, g = 7, nine terms). The relative error is below 1e-13.
pub(super) fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let base = x + 7.5;
    let series = (1u8..).zip(&TERMS[1..]).fold(TERMS[0], |sum, (at, term)| sum + term / (x + f64::from(at)));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * base.ln() - base + series.ln()
}

/// Returns the natural logarithm of the beta function.
pub(super) fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// Returns the regularized incomplete beta function I_x(a, b) for 0 ≤ x ≤ 1 and positive a and b:
/// the probability that a Beta(a, b) variable is at most x. Uses the continued fraction of DLMF
/// 8.17.22 on the side that converges fast.
pub(super) fn incomplete(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast only below the mean. Above it, use I_x(a, b) = 1 - I_{1-x}(b, a).
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete(b, a, 1.0 - x);
    }
    let front = (a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b)).exp() / a;
    front * fraction(a, b, x)
}

/// Evaluates the continued fraction by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const CLOSE: f64 = 1e-15;
    const STEPS_MAX: u32 = 10_000;
    // Lentz's method divides by these values, so replace zeros by a tiny number.
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for step in 1..STEPS_MAX {
        let m = f64::from(step);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away(1.0 + numerator * d);
            c = away(1.0 + numerator / c);
            value *= c * d;
        }
        if (c * d - 1.0).abs() < CLOSE {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_is_the_factorial() {
        for (x, factorial) in [(1.0, 1.0f64), (2.0, 1.0), (5.0, 24.0), (11.0, 3_628_800.0)] {
            assert!((ln_gamma(x) - factorial.ln()).abs() < 1e-10, "{x}");
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-10);
    }

    /// For integers a and b, I_x(a, b) is the probability of at least a heads in a + b - 1 throws.
    #[test]
    fn the_incomplete_beta_function_is_the_tail_of_a_binomial() {
        for (a, b) in [(1u32, 1u32), (1, 9), (3, 4), (8, 2), (20, 31)] {
            for x in [0.01, 0.2, 0.5, 0.77, 0.999] {
                let n = a + b - 1;
                let tail: f64 = (a..=n)
                    .map(|k| {
                        let choose = ln_gamma(f64::from(n) + 1.0)
                            - ln_gamma(f64::from(k) + 1.0)
                            - ln_gamma(f64::from(n - k) + 1.0);
                        (choose + f64::from(k) * f64::ln(x) + f64::from(n - k) * f64::ln_1p(-x)).exp()
                    })
                    .sum();
                let found = incomplete(f64::from(a), f64::from(b), x);
                assert!((found - tail).abs() < 1e-10, "I_{x}({a}, {b}): {found}, not {tail}");
            }
        }
    }
}
