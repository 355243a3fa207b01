//! Checks a pack and prints its findings. Fails if one of them is an error.
//!
//! ```console
//! $ cargo run -q -p switchback-compiler --example check -- mappings/ingress
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use switchback_compiler::diagnostic::{Colour, to_text};
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: check FOLDER")?);
    let compiled = compile(&PackSource::from_dir(&folder)?);
    print!("{}", to_text(&compiled.sources, &compiled.findings, Colour::Never));
    Ok(match &compiled.pack {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    })
}
