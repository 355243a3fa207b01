//! `switchback fmt`: the canonical layout of mapping files.

use super::output::{COULD_NOT_RUN, HAS_FINDINGS, count_noun, replace};
use super::pack::{could_not_use, fail};
use std::path::PathBuf;
use std::process::ExitCode;
use switchback_compiler::mapping::load::{MANIFEST, MAPPING_SUFFIX, PackSource};
use switchback_compiler::yaml;

/// Formats the manifest and the mapping files of a pack: two spaces per level, no blanks at the ends of
/// lines, single blank lines. Comments, quotes, brackets and the order of keys stay as they are.
#[derive(clap::Args)]
pub struct FmtArgs {
    /// Folder of the pack
    #[arg(value_name = "PACK", default_value = ".")]
    pack: PathBuf,

    /// Write nothing; fail if a file has another layout
    #[arg(long)]
    check: bool,
}

pub fn run(args: &FmtArgs) -> Result<ExitCode, ExitCode> {
    let source = PackSource::from_dir(&args.pack).map_err(|error| could_not_use(&args.pack, &error))?;
    let is_own = |name: &str| name == MANIFEST || name.ends_with(MAPPING_SUFFIX);
    let (mut changed, mut broken) = (0_u64, 0_u64);
    for (name, bytes) in source.files().iter().filter(|(name, _)| is_own(name)) {
        let path = args.pack.join(name);
        let text = str::from_utf8(bytes).ok();
        match text.and_then(|text| Some((text, yaml::format(text)?))) {
            None => {
                eprintln!(
                    "{}: not formatted, because it is not YAML that another layout keeps",
                    path.display()
                );
                broken += 1;
            }
            Some((text, formatted)) if formatted != text => {
                println!("{}", path.display());
                changed += 1;
                if !args.check {
                    replace(&path, formatted.as_bytes()).map_err(|error| could_not_use(&path, &error))?;
                }
            }
            Some(_) => {}
        }
    }
    if source.files().is_empty() {
        return Err(fail(COULD_NOT_RUN, format_args!("{}: no pack", args.pack.display())));
    }
    let done = if args.check { "with another layout" } else { "formatted" };
    println!("{} {done}", count_noun(changed, "file"));
    let has_findings = broken > 0 || (args.check && changed > 0);
    Ok(if has_findings { ExitCode::from(HAS_FINDINGS) } else { ExitCode::SUCCESS })
}
