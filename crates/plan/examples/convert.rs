//! Applies a conversion in both directions.
//!
//! ```console
//! $ cargo run -q -p switchback-plan --example convert
//! 42 -> "42" -> 42
//! ```

use std::error::Error;
use switchback_plan::convert::{Conversion, ConversionKind, Otherwise};

fn main() -> Result<(), Box<dyn Error>> {
    let convert = |forward, json: &[u8]| -> Result<Vec<u8>, Box<dyn Error>> {
        let kind = ConversionKind::IntegerToString;
        let mut out = Vec::new();
        Conversion { kind, forward, otherwise: Otherwise::Error }
            .apply(json, &mut out)
            .map_err(|error| format!("{error:?}"))?;
        Ok(out)
    };
    let old = b"42";
    let new = convert(true, old)?;
    let back = convert(false, &new)?;
    let [old, new, back] = [old, &new[..], &back].map(String::from_utf8_lossy);
    println!("{old} -> {new} -> {back}");
    Ok(())
}
