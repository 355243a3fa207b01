//! Setting up `tracing`: text for people or JSON lines for machines, on standard error, filtered by level.
//! What is logged where is decided by whoever logs.

use super::non_blocking::NonBlockingWriter;
use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::{EnvFilter, util::SubscriberInitExt as _};

/// The environment variable that overrides the configured filter, in the syntax of `RUST_LOG`.
pub(crate) const FILTER_VARIABLE: &str = "SWITCHBACK_LOG";

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One line of text per event.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// What to log and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Lines for people, or JSON for programs.
    pub format: LogFormat,
    /// A level (`info`) or a list of directives (`info,switchback::access=off`).
    pub filter: String,
}

impl Default for LogSettings {
    fn default() -> LogSettings {
        LogSettings { format: LogFormat::Text, filter: "info".to_owned() }
    }
}

/// The levels of a filter, least first.
pub(crate) const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Checks a filter without using it, so that a mistake in the configuration is found with the others. A word alone must be a
/// level or the beginning of a target of ours: the syntax takes any other word for a target, of which there is none, and
/// then nothing is logged at all.
///
/// # Errors
///
/// What is wrong with the filter, as a sentence.
pub fn check_filter(filter: &str) -> Result<(), String> {
    for directive in filter.split(',').map(str::trim) {
        let is_word = !directive.contains(['=', '[', ':']);
        let is_level = LEVELS.iter().any(|level| level.eq_ignore_ascii_case(directive));
        if is_word && !is_level && !directive.starts_with("switchback") {
            // A part of a list is not repeated: it may be a secret that was meant for another key.
            let what = if directive == filter { format!("`{filter}`") } else { "a directive".to_owned() };
            return Err(format!("{what} is no level; levels are {}", LEVELS.join(", ")));
        }
    }
    EnvFilter::builder().parse(filter).map(drop).map_err(|error| error.to_string())
}

/// Installs the process-wide subscriber. `SWITCHBACK_LOG`, then `RUST_LOG`, win over `settings.filter`. A second call in
/// one process changes nothing: the first subscriber stays.
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

/// Filters by the settings from here on; whether that could be done. The format stays. The variables win here too.
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

/// Replaces the filter of our subscriber.
static CHANGE_FILTER: OnceLock<Box<ChangeFilter>> = OnceLock::new();

/// Where lines can be put that are made without the subscriber, and how they must look; none where the subscriber is not
/// ours or colours them.
pub(super) fn direct() -> Option<(&'static NonBlockingWriter, LogFormat)> {
    Some((OUTLET.get()?, *FORMAT.get()?))
}

/// Where the process's log lines wait to be written.
static OUTLET: OnceLock<NonBlockingWriter> = OnceLock::new();

/// How our subscriber writes them, where it does so without colours.
static FORMAT: OnceLock<LogFormat> = OnceLock::new();

/// The non-blocking writer, or standard error itself where no thread can be had for it.
fn writer() -> BoxMakeWriter {
    match NonBlockingWriter::start() {
        Ok(non_blocking) => BoxMakeWriter::new(OUTLET.get_or_init(|| non_blocking).clone()),
        Err(_) => BoxMakeWriter::new(io::stderr),
    }
}

/// Writes out the lines that still wait. Called before the program ends.
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
