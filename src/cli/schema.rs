//! `switchback schema`: prints JSON Schemas, for completion and checks in editors.

use super::output::HAS_FINDINGS;
use super::pack::{could_not_use, fail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use switchback_compiler::mapping::load::{self, PackSource};
use switchback_compiler::mapping::{compile, named_schema, schema};

/// Prints the JSON Schema (2020-12) of one kind of file.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    switchback schema > mapping.schema.json\n  \
    switchback schema --pack mappings/things > things.schema.json\n\n\
    At the top of a mapping file, for editors with the YAML language server:\n  \
    # yaml-language-server: $schema=../mapping.schema.json")]
pub struct SchemaArgs {
    /// Kind of file
    #[arg(value_enum, default_value = "mapping")]
    of: Of,

    /// Folder of a pack, whose names the schema contains: sides, shapes, and the types, operations and
    /// fields of both contracts
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
    let source = args.pack.as_deref().map(source).transpose()?;
    let sides = args.pack.as_deref().zip(source.as_ref());
    let sides = sides.map(|(folder, source)| read_sides(folder, source)).transpose()?;
    let sides = sides.as_ref().map(|sides| sides.each_ref().map(String::as_str));
    let schema = match (args.of, &source) {
        (Of::Mapping, None) => schema::mapping(None),
        (Of::Mapping, Some(source)) => named_schema(&compile(source)),
        (Of::Pack, _) => schema::pack(sides),
        (Of::Config, _) => crate::config::schema(),
    };
    println!("{schema:#}");
    Ok(ExitCode::SUCCESS)
}

fn source(folder: &Path) -> Result<PackSource, ExitCode> {
    PackSource::from_dir(folder).map_err(|error| could_not_use(folder, &error))
}

/// Returns the names of a pack's sides.
fn read_sides(folder: &Path, source: &PackSource) -> Result<[String; 2], ExitCode> {
    load::sides(source).ok_or_else(|| {
        let why = format!("{}: the sides cannot be read; `switchback check` says why", folder.display());
        fail(HAS_FINDINGS, why)
    })
}
