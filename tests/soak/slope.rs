//! A line through samples of memory by least squares, and a confidence interval of its slope that
//! minds that samples near one another are alike (Newey and West 1987): memory moves in steps, and
//! a plain interval would be sure of anything.

/// Slope of a line through samples, in units of y per unit of x, with a confidence interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    pub slope: f64,
    pub low: f64,
    pub high: f64,
    pub samples: usize,
}

/// Quantile of the normal distribution for 95 %, both sides.
const NORMAL_95: f64 = 1.959_963_984_540_054;

/// Returns the line through these points; none for fewer than 20, which are not significant.
pub fn slope(points: &[(f64, f64)]) -> Option<Slope> {
    if points.len() < 20 {
        return None;
    }
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread;
    // The weight of each sample in the slope.
    let pull: Vec<f64> =
        points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y - slope * (x - mean_x))).collect();
    let reach = (points.len() / 10).max(1);
    let product = |lag: usize| pull.iter().zip(&pull[lag..]).map(|(a, b)| a * b).sum::<f64>();
    let weighted = |lag: usize| 2.0 * (1.0 - lag as f64 / (reach + 1) as f64) * product(lag);
    let variance = product(0) + (1..=reach).map(weighted).sum::<f64>();
    let error = variance.max(0.0).sqrt() / spread * NORMAL_95;
    Some(Slope { slope, low: slope - error, high: slope + error, samples: points.len() })
}
