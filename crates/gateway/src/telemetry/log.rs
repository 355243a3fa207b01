//! Sets up `tracing`: text or JSON lines on standard error, filtered by level.

use super::non_blocking::NonBlockingWriter;
use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::{EnvFilter, util::SubscriberInitExt as _};

/// The environment variable that overrides the configured filter, in the syntax of `RUST_LOG`.
pub(crate) const FILTER_VARIABLE: &str = "SWITCHBACK_LOG";

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One line of text per event.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Settings of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// The format of lines.
    pub format: LogFormat,
    /// A level (`info`) or a list of directives (`info,switchback::access=off`).
    pub filter: String,
}

impl Default for LogSettings {
    fn default() -> LogSettings {
        LogSettings { format: LogFormat::Text, filter: "info".to_owned() }
    }
}

/// The filter levels, least verbose first.
pub(crate) const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// An invalid filter.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// A word that is no level; of a list, `a directive`.
    #[error("{0} is no level; levels are {levels}", levels = LEVELS.join(", "))]
    NoLevel(String),
    /// The text of the parser's error.
    #[error("{0}")]
    Syntax(String),
}

/// Checks a filter without applying it, so that mistakes are reported together with those in the
/// rest of the configuration. A single word must be a level or the start of one of our targets: the
/// filter syntax treats any other word as an unknown target, which would disable all logging.
///
/// # Errors
///
/// A directive is not a level or not in the filter syntax.
pub fn check_filter(filter: &str) -> Result<(), FilterError> {
    for directive in filter.split(',').map(str::trim) {
        let is_word = !directive.contains(['=', '[', ':']);
        let is_level = LEVELS.iter().any(|level| level.eq_ignore_ascii_case(directive));
        if is_word && !is_level && !directive.starts_with("switchback") {
            // Do not repeat a part of a list: it may be a secret entered under the wrong key.
            let what = if directive == filter { format!("`{filter}`") } else { "a directive".to_owned() };
            return Err(FilterError::NoLevel(what));
        }
    }
    let parsed = EnvFilter::builder().parse(filter).map(drop);
    parsed.map_err(|error| FilterError::Syntax(error.to_string()))
}

/// Installs the process-wide subscriber. `SWITCHBACK_LOG`, then `RUST_LOG`, override
/// `settings.filter`. Later calls in the same process have no effect.
pub fn init(settings: &LogSettings) {
    let builder = tracing_subscriber::fmt().with_env_filter(filter(settings)).with_writer(writer());
    let is_coloured = settings.format == LogFormat::Text && io::stderr().is_terminal();
    let (installed, change): (_, Box<ChangeFilter>) = match settings.format {
        LogFormat::Text => {
            let builder = builder.with_ansi(is_coloured).with_filter_reloading();
            let handle = builder.reload_handle();
            (builder.finish().try_init(), Box::new(move |filter| handle.reload(filter).is_ok()))
        }
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true).with_current_span(false).with_filter_reloading();
            let handle = builder.reload_handle();
            (builder.finish().try_init(), Box::new(move |filter| handle.reload(filter).is_ok()))
        }
    };
    if installed.is_err() {
        tracing::debug!("logging was set up before; its settings stay");
        return;
    }
    let _ = CHANGE_FILTER.set(change);
    if !is_coloured {
        let _ = FORMAT.set(settings.format);
    }
}

/// Replaces the filter at run time; the environment variables still override it. The format is
/// unchanged. Returns whether the filter was replaced.
pub fn refilter(settings: &LogSettings) -> bool {
    CHANGE_FILTER.get().is_some_and(|change| change(filter(settings)))
}

fn filter(settings: &LogSettings) -> EnvFilter {
    [FILTER_VARIABLE, EnvFilter::DEFAULT_ENV]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .chain([settings.filter.clone()])
        .find_map(|text| EnvFilter::builder().parse(text).ok())
        .unwrap_or_default()
}

type ChangeFilter = dyn Fn(EnvFilter) -> bool + Send + Sync;

/// Replaces the filter of the installed subscriber.
static CHANGE_FILTER: OnceLock<Box<ChangeFilter>> = OnceLock::new();

/// Returns the writer and format for lines that bypass the subscriber. Returns `None` if another
/// subscriber is installed or lines are coloured.
pub(super) fn direct() -> Option<(&'static NonBlockingWriter, LogFormat)> {
    Some((OUTLET.get()?, *FORMAT.get()?))
}

/// The writer of the process's log lines.
static OUTLET: OnceLock<NonBlockingWriter> = OnceLock::new();

/// The format of the installed subscriber, if it does not use colours.
static FORMAT: OnceLock<LogFormat> = OnceLock::new();

/// Returns the non-blocking writer, or standard error if its thread cannot be started.
fn writer() -> BoxMakeWriter {
    match NonBlockingWriter::start() {
        Ok(non_blocking) => BoxMakeWriter::new(OUTLET.get_or_init(|| non_blocking).clone()),
        Err(_) => BoxMakeWriter::new(io::stderr),
    }
}

/// Writes all buffered lines. Called before the program exits.
pub fn flush() {
    if let Some(non_blocking) = OUTLET.get() {
        non_blocking.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_level_or_directives() {
        for good in ["info", "warn,switchback::access=off", "switchback=debug"] {
            assert_eq!(check_filter(good), Ok(()), "{good}");
        }
        for bad in ["switchback=loud", "verbose", "", "info,verbose", "info,", "inof"] {
            assert!(check_filter(bad).is_err(), "{bad}");
        }
    }
}
