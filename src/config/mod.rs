//! The configuration file: read as typed (`sections`), checked as a whole (`check`), handed out as [`Config`], which is what
//! the program uses. All mistakes are found in one run, each with its place and what to do. Only this module reads
//! configuration files; joining what they describe is the business of `app`.
//!
//! Values may hold `${NAME}` and `${NAME:-default}` from the environment; secrets may also be `file:PATH`. Relative paths
//! are seen from the working directory.

mod against_pack;
mod check;
mod checked;
mod dual;
mod read;
mod references;
mod scalars;
mod sections;
#[cfg(test)]
mod tests;

pub use against_pack::{PackFacts, SettingFacts, SettingKind, SideFacts, against_pack};
pub use checked::{
    Admin, Client, Config, Front, Grant, Limits, OAuth, Phases, Reload, Shadow, Sunset, TlsFiles, Upstream,
};
pub use read::Placed;
pub use scalars::{Moment, Period, Prefix, Size, StoreUrl, WebUrl};

use read::{FromYaml, Reading};
use std::path::Path;
use switchback_compiler::diagnostic::{Findings, Sources, Span};
use switchback_compiler::yaml;

/// Where values come from that are not in the file.
pub struct Surroundings<'a> {
    /// A variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The content of a file that a secret refers to.
    pub read_file: &'a dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
}

impl Surroundings<'static> {
    /// Those of this process.
    pub fn process() -> Surroundings<'static> {
        Surroundings { variable: &|name| std::env::var(name).ok(), read_file: &|path| std::fs::read(path) }
    }
}

/// What came of reading a configuration file.
#[derive(Debug)]
pub struct Outcome {
    /// The configuration; `None` when there is an error among the findings.
    pub config: Option<Config>,
    /// What was found, warnings included.
    pub findings: Findings,
    /// The text that the findings point into.
    pub sources: Sources,
}

/// Reads and checks the text of a configuration file; `name` is what findings call it.
pub fn parse(name: &str, text: &str, surroundings: &Surroundings<'_>) -> Outcome {
    let mut findings = Findings::new();
    let file = Sources::new().add(name, text);
    let (references, replaced) = references::References::take_out(text, file, &mut findings);
    // Each text below is the one file of its own sources and has the same length, so places in one are places in all.
    let mut stand_ins = Sources::new();
    let tree = yaml::read(&mut stand_ins, name, replaced.as_bytes(), &mut findings);
    let mut reading =
        Reading { findings: &mut findings, read_file: surroundings.read_file, secret_places: Vec::new() };
    let raw = tree.and_then(|tree| {
        let tree = references.resolve(tree, surroundings.variable, reading.findings);
        sections::RawConfig::read(&tree, &mut reading)
    });
    let quotable = match &raw {
        Some(_) => quotable(text, &reading.secret_places),
        None => quotable_unread(text),
    };
    let config = raw.and_then(|raw| check::check(raw, &mut findings)).filter(|_| !findings.has_errors());
    let mut sources = Sources::new();
    sources.add(name, quotable);
    Outcome { config, findings, sources }
}

/// The text as findings may quote it: secrets that stand in it are starred out, references to secrets are not.
fn quotable(text: &str, secret_places: &[Span]) -> String {
    let mut quotable = text.to_owned();
    for place in secret_places {
        let range = place.start as usize..place.end as usize;
        let Some(secret) = text.get(range.clone()).filter(|typed| !is_reference(typed)) else { continue };
        quotable.replace_range(range, &"*".repeat(secret.len()));
    }
    quotable
}

/// The same for a text that could not be read, so that it is not known what is a secret: what follows the colons of lines
/// with a telling word is starred out.
fn quotable_unread(text: &str) -> String {
    const TELLING: [&str; 5] = ["key", "token", "secret", "store", "password"];
    let hide = |line: &str| {
        let lower = line.to_ascii_lowercase();
        let colon = line.find(':').filter(|_| TELLING.iter().any(|word| lower.contains(word)));
        let (shown, hidden) = line.split_at(colon.unwrap_or(line.len()));
        shown.to_owned() + &hidden.replace(|c: char| c.is_ascii_alphanumeric(), "*")
    };
    text.split_inclusive('\n').map(hide).collect()
}

fn is_reference(typed: &str) -> bool {
    let bare = typed.trim_matches(['\'', '"']);
    bare.starts_with("${") && bare.find('}') == Some(bare.len() - 1)
        || bare.starts_with("file:")
        || bare.starts_with("sqlite:")
}

/// Reads and checks a configuration file.
pub fn load(path: &Path, surroundings: &Surroundings<'_>) -> std::io::Result<Outcome> {
    let bytes = std::fs::read(path)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| std::io::Error::new(std::io::ErrorKind::InvalidData, "the file is not UTF-8"))?;
    Ok(parse(&path.display().to_string(), &text, surroundings))
}

/// JSON Schema (2020-12) of the configuration file, for editors. References are texts, so scalar keys also take those.
pub fn schema() -> serde_json::Value {
    let mut schema = sections::RawConfig::schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Configuration of Switchback".into();
    schema
}
