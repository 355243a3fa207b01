//! The configuration file. `sections` defines it as typed, `check` checks it, and [`Config`] is the
//! form that the program uses. One run reports all mistakes, each with its place and a remedy. Only
//! this module reads configuration files; `app` connects the parts that they describe.
//!
//! Values may contain `${NAME}` and `${NAME:-default}` from the environment; secrets may also be
//! `file:PATH`. Relative paths are resolved from the working directory.

mod against_pack;
mod check;
mod checked;
mod cors;
mod dual;
mod events;
mod front_limits;
mod notices;
mod quoting;
mod ranges;
mod read;
mod references;
mod rollout;
mod scalars;
mod sections;
#[cfg(test)]
mod tests;

pub use against_pack::{PackFacts, SettingFacts, SettingType, SideFacts, WaitFacts, against_pack};
pub use checked::{
    AdminConfig, BrownoutConfig, ClientConfig, Config, EventReceiver, EventsConfig, FrontConfig, GrantConfig,
    LimitsConfig, NoticesConfig, OAuthConfig, OwnEventsConfig, OwnLimits, PhasesConfig, Reload, Sunset,
    SunsetConfig, TlsFilesConfig, UpstreamConfig, ValueSpans, service_key,
};
pub use front_limits::{ReplacedLimit, replaced_limits};
pub use quoting::without_secrets;
pub use read::Placed;
pub use scalars::{ByteSize, DateOrTime, PathPrefix, Period, ScalarError, StoreUrl, WebUrl};

use read::{FromYaml, ReadContext};
use std::cell::RefCell;
use std::path::Path;
use switchback_compiler::diagnostic::{Code, Findings, Sources};
use switchback_compiler::yaml;

/// Sources of values outside the file.
pub struct Environment<'a> {
    /// Looks up an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file that a secret refers to.
    pub read_file: &'a dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
}

impl Environment<'static> {
    /// Returns the environment and files of this process.
    pub fn process() -> Environment<'static> {
        Environment { variable: &|name| std::env::var(name).ok(), read_file: &|path| std::fs::read(path) }
    }
}

/// The result of reading a configuration file.
#[derive(Debug)]
pub struct ConfigOutcome {
    /// The configuration; `None` if the findings include an error.
    pub config: Option<Config>,
    /// Errors and warnings.
    pub findings: Findings,
    /// The text that the findings point into.
    pub sources: Sources,
}

/// Reads and checks the text of a configuration file; `name` identifies it in findings.
pub fn parse(name: &str, text: &str, environment: &Environment<'_>) -> ConfigOutcome {
    let mut findings = Findings::new();
    let file = Sources::new().add(name, text);
    let (references, replaced) = references::References::take_out(text, file, &mut findings);
    // Each text below is the only file of its `Sources` and has the same length, so spans are valid
    // in all of them.
    let mut stand_ins = Sources::new();
    let tree = yaml::parse(&mut stand_ins, name, replaced.as_bytes(), &mut findings);
    let Some(tree) = tree else {
        let quotable = quoting::unread(text, &references);
        findings.for_each(|finding| quoting::without_values(finding, text, None));
        let mut sources = Sources::new();
        sources.add(name, quotable);
        return ConfigOutcome { config: None, findings, sources };
    };
    let references::ResolvedTree { tree, unset } =
        references.resolve(tree, environment.variable, &mut findings);
    let files = RefCell::new(Vec::new());
    let read_file = |path: &Path| {
        files.borrow_mut().push(path.to_owned());
        (environment.read_file)(path)
    };
    let mut reading =
        ReadContext { findings: &mut findings, read_file: &read_file, text, quotable: Vec::new() };
    let raw = sections::RawConfig::parse(&tree, &mut reading);
    let shown = quoting::QuotableText::new(&tree, reading.quotable, &references);
    let config = raw.and_then(|raw| check::check(raw, &mut findings)).filter(|_| !findings.has_errors());
    let config = config.map(|config| Config { files: config.files_with(files.into_inner()), ..config });
    // An unset variable is one error. Drop the errors that its empty value causes.
    findings.retain(|finding| finding.code == Code::Reference || !unset.contains(&finding.span));
    findings.for_each(|finding| quoting::without_values(finding, text, Some(&shown)));
    let mut sources = Sources::new();
    sources.add(name, shown.quotable(text));
    ConfigOutcome { config, findings, sources }
}

/// Reads and checks a configuration file.
pub fn load(path: &Path, environment: &Environment<'_>) -> std::io::Result<ConfigOutcome> {
    let bytes = std::fs::read(path)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| std::io::Error::new(std::io::ErrorKind::InvalidData, "the file is not UTF-8"))?;
    Ok(parse(&path.display().to_string(), &text, environment))
}

/// Returns the JSON Schema (2020-12) of the configuration file, for editors. References are
/// strings, so scalar keys accept strings, too.
pub fn schema() -> serde_json::Value {
    let mut schema = sections::RawConfig::schema();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Configuration of Switchback".into();
    schema
}
