//! Tables of measurements.

/// One row: the size, and its measurements in the order of the columns.
pub type Row = (usize, Vec<f64>);

/// Prints rows with their columns (name and unit), and the exponent of growth between the two
/// largest sizes: 0 for a constant, 1 for linear growth.
pub fn print(what: &str, columns: &[&str], rows: &[Row]) {
    println!("\n| {what} | {} |", columns.join(" | "));
    println!("|{}", "---|".repeat(columns.len() + 1));
    for (count, values) in rows {
        let values: Vec<String> = values.iter().map(|value| format!("{value:.2}")).collect();
        println!("| {count} | {} |", values.join(" | "));
    }
    let [.., before, last] = rows else { return };
    let sizes = (last.0 as f64 / before.0 as f64).ln();
    let grown = last.1.iter().zip(&before.1).map(|(last, before)| match *last > 0.0 && *before > 0.0 {
        true => format!("{:.2}", (last / before).ln() / sizes),
        false => "–".to_owned(),
    });
    println!("| grows as | {} |", grown.collect::<Vec<_>>().join(" | "));
}

/// Returns the value below which this share of all values lies.
pub fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values
        .get(((values.len() as f64 * part) as usize).min(values.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}
