//! `switchback schema`: prints JSON Schemas, for completion and checks in editors.

use super::output::HAS_FINDINGS;
use super::pack::{could_not_use, fail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use switchback_compiler::mapping::load::{self, PackSource};
use switchback_compiler::mapping::schema;

/// Prints the JSON Schema (2020-12) of one kind of file.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    switchback schema > mapping.schema.json\n  \
    switchback schema pack --pack mappings/things > pack.schema.json\n\n\
    At the top of a mapping file, for editors with the YAML language server:\n  \
    # yaml-language-server: $schema=../mapping.schema.json")]
pub struct SchemaArgs {
    /// Kind of file
    #[arg(value_enum, default_value = "mapping")]
    of: Of,

    /// Folder of a pack, whose side names become keys of the schema
    #[arg(long, value_name = "PACK")]
    pack: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Of {
    /// `*.map.yaml`
    Mapping,
    /// `pack.yaml`
    Pack,
    /// The gateway's configuration
    Config,
}

pub fn run(args: &SchemaArgs) -> Result<ExitCode, ExitCode> {
    let sides = args.pack.as_deref().map(sides).transpose()?;
    let sides = sides.as_ref().map(|sides| sides.each_ref().map(String::as_str));
    let schema = match args.of {
        Of::Mapping => schema::mapping(sides),
        Of::Pack => schema::pack(sides),
        Of::Config => crate::config::schema(),
    };
    println!("{schema:#}");
    Ok(ExitCode::SUCCESS)
}

/// Returns the names of a pack's sides.
fn sides(folder: &Path) -> Result<[String; 2], ExitCode> {
    let source = PackSource::from_dir(folder).map_err(|error| could_not_use(folder, &error))?;
    load::sides(&source).ok_or_else(|| {
        let why = format!("{}: the sides cannot be read; `switchback check` says why", folder.display());
        fail(HAS_FINDINGS, why)
    })
}
