//! `switchback capture`: records live traffic of a running gateway as an HTTP Archive.

use super::admin_port::{AdminArgs, http};
use super::output::{Progress, count_noun};
use super::stored::{VerbError, block_on, system_user};
use crate::admin::OPERATOR;
use crate::config::Period;
use serde_json::json;
use std::fmt;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use switchback_engine::har;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Records live traffic of a running gateway as an HTTP Archive (HAR 1.2): requests of clients, the resulting
/// calls, and all responses. The gateway masks credentials, texts that the pack does not declare harmless,
/// and values that it declares secret. Ctrl-C stops the recording; the file is a valid archive at any time
/// and readable by its owner only. `switchback replay` runs it again.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  switchback capture --config switchback.yaml --out traffic.har --for 5m --share 0.1"
)]
pub struct CaptureArgs {
    #[command(flatten)]
    port: AdminArgs,

    /// Output file; - for standard output
    #[arg(long, short, value_name = "FILE.har", default_value = "-")]
    out: PathBuf,

    /// Only this operation, such as 'GET /things/{id}'
    #[arg(long, value_name = "OPERATION")]
    operation: Option<String>,

    /// Only this client
    #[arg(long, value_name = "NAME")]
    client: Option<String>,

    /// Share of requests to record, above 0 and at most 1
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    share: f64,

    /// Maximum number of exchanges
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    exchanges: u64,

    /// Maximum duration, such as 30s or 5m
    #[arg(long = "for", value_name = "PERIOD", default_value = "60s")]
    period: Period,

    /// Maximum body size in bytes; larger bodies are marked as missing
    #[arg(long, value_name = "N", default_value_t = 256 << 10)]
    body_bytes: usize,
}

/// The closing line of an archive, valid after any entry.
const END: &str = "]}}";

pub fn run(args: &CaptureArgs) -> ExitCode {
    block_on(capture(args))
}

async fn capture(args: &CaptureArgs) -> Result<(), VerbError> {
    let (admin, token) = args.port.address_and_token()?;
    let url = admin.join("api/capture").map_err(|error| VerbError::Usage(format!("--admin: {error}")))?;
    let wanted = json!({
        "operation": args.operation,
        "client": args.client,
        "share": args.share,
        "exchanges": args.exchanges,
        // The API counts seconds, and 0 would end the capture at once.
        "seconds": args.period.0.as_secs().max(1),
        "body_bytes": args.body_bytes,
    });
    // Install the handlers first: from here on, these signals end the capture instead of the
    // process.
    let signals = StopSignals::new().map_err(|error| VerbError::Run(error.to_string()))?;
    let client = http()?;
    let by = system_user();
    let request = client.post(url.clone()).bearer_auth(token.expose()).header(OPERATOR, &by);
    let response = request.json(&wanted).send().await;
    let response =
        response.map_err(|error| VerbError::Run(format!("the admin port cannot be reached: {error}")))?;
    let status = response.status();
    if !status.is_success() {
        let said = response.text().await.unwrap_or_default();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
        let why = said["error"].as_str().unwrap_or("no reason given");
        return Err(VerbError::Run(format!("the gateway answers {status}: {why}")));
    }
    let out =
        open(&args.out).map_err(|error| VerbError::Usage(format!("{}: {error}", args.out.display())))?;
    // The admin port rejects a change that is not sent as JSON, even one without a value.
    let end = client.post(format!("{url}/end")).bearer_auth(token.expose()).header(OPERATOR, &by);
    let end = end.json(&json!({})).send();
    match copy(response, out, signals, async move { drop(end.await) }).await {
        Ok(recorded) => eprintln!("{recorded}"),
        // The reader has closed the pipe, and the gateway stops the capture with the connection.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => return Err(VerbError::Run(error.to_string())),
    }
    Ok(())
}

/// Number of recorded and omitted exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CaptureSummary {
    exchanges: u64,
    /// Requests that exceeded the recording buffer of the gateway.
    left_out: u64,
}

impl fmt::Display for CaptureSummary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", count_noun(self.exchanges, "exchange"))?;
        match self.left_out {
            0 => Ok(()),
            left_out => {
                let requests = count_noun(left_out, "request");
                write!(out, "; {requests} left out: the gateway had no room to record more at once")
            }
        }
    }
}

/// The destination of an archive.
enum Out {
    /// Append only: written text cannot be replaced.
    Stream(Box<dyn Write>),
    File {
        file: File,
        /// Offset of the closing line, which the next entry overwrites.
        end: u64,
    },
}

fn open(path: &Path) -> io::Result<Out> {
    if path.as_os_str() == "-" {
        return Ok(Out::Stream(Box::new(io::stdout())));
    }
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(Out::Stream(Box::new(file)));
    }
    // `mode` applies only to new files; an existing one keeps its mode.
    file.set_permissions(Permissions::from_mode(0o600))?;
    // Write a valid empty archive until the gateway's first line replaces it.
    file.write_all_at(&har::Writer::new(Vec::new())?.finish()?, 0)?;
    Ok(Out::File { file, end: 0 })
}

impl Out {
    /// Appends a line. A file is closed as a valid archive after every line, so that it can be read
    /// even if the process is killed.
    fn line(&mut self, line: &str) -> io::Result<()> {
        match self {
            Out::Stream(out) => {
                writeln!(out, "{line}")?;
                out.flush()
            }
            Out::File { file, end } => {
                // In one write, so that the archive is valid at any moment.
                let text = format!("{line}\n{END}\n");
                file.write_all_at(text.as_bytes(), *end)?;
                let is_first = *end == 0;
                *end += line.len() as u64 + 1;
                if is_first { file.set_len(text.len() as u64) } else { Ok(()) }
            }
        }
    }

    /// Closes the archive with this line.
    fn finish(&mut self, line: &str) -> io::Result<()> {
        match self {
            Out::Stream(out) => {
                writeln!(out, "{line}")?;
                out.flush()
            }
            Out::File { file, end } => {
                file.write_all_at(format!("{line}\n").as_bytes(), *end)?;
                file.sync_all()
            }
        }
    }
}

/// Copies the archive line by line until it is complete or a signal stops the capture.
async fn copy(
    mut response: reqwest::Response,
    out: Out,
    mut signals: StopSignals,
    end: impl Future<Output = ()>,
) -> io::Result<CaptureSummary> {
    let mut lines = ArchiveLines::new(out);
    let mut progress = Progress::new();
    let mut ending = StopRequest::No;
    tokio::pin!(end);
    let until = tokio::time::sleep(END_WAIT);
    tokio::pin!(until);
    loop {
        let chunk = tokio::select! {
            // Signals first: a fast archive must not starve them.
            biased;
            // The first signal requests the end of the capture; a second one stops at once.
            () = signals.next() => match ending {
                StopRequest::No => {
                    ending = StopRequest::Requested;
                    until.as_mut().reset(tokio::time::Instant::now() + END_WAIT);
                    continue;
                }
                StopRequest::Requested | StopRequest::Accepted => break,
            },
            chunk = response.chunk() => chunk,
            () = &mut end, if matches!(ending, StopRequest::Requested) => {
                ending = StopRequest::Accepted;
                continue;
            }
            () = &mut until, if !matches!(ending, StopRequest::No) => break,
        };
        match chunk {
            Ok(Some(chunk)) => lines.push(&chunk)?,
            // If the gateway stops, the archive is cut off. Keep the entries so far.
            Ok(None) | Err(_) => break,
        }
        progress.show(format_args!("{} exchanges", lines.entries));
    }
    progress.end();
    lines.finish(!matches!(ending, StopRequest::No))
}

/// Progress of the request to end the capture.
enum StopRequest {
    No,
    Requested,
    Accepted,
}

const END_WAIT: Duration = Duration::from_secs(5);

struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    fn new() -> io::Result<StopSignals> {
        Ok(StopSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Splits an archive into lines. Each entry has a line of its own.
struct ArchiveLines {
    out: Out,
    /// An incomplete line.
    pending: Vec<u8>,
    entries: u64,
    has_begun: bool,
    /// The closing line, once received.
    end: Option<String>,
}

impl ArchiveLines {
    fn new(out: Out) -> ArchiveLines {
        ArchiveLines { out, pending: Vec::new(), entries: 0, has_begun: false, end: None }
    }

    fn push(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.pending.extend_from_slice(chunk);
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            self.line(&String::from_utf8_lossy(&line[..end]))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        // Entries start with a comma or a brace; only the closing line starts with a bracket.
        if line.starts_with(']') {
            self.end = Some(line.to_owned());
            return Ok(());
        }
        self.out.line(line)?;
        self.entries += u64::from(self.has_begun);
        self.has_begun = true;
        Ok(())
    }

    fn finish(mut self, was_asked: bool) -> io::Result<CaptureSummary> {
        if self.end.is_none() && !was_asked {
            eprintln!("the capture was cut short; what was recorded is kept");
        }
        if !self.has_begun {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the gateway sent no archive"));
        }
        // Also for a capture that was cut off: the entries so far are then a valid archive.
        let end = self.end.as_deref().unwrap_or(END);
        self.out.finish(end)?;
        Ok(CaptureSummary { exchanges: self.entries, left_out: har::left_out(end) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_engine::har::{Exchange, Writer};

    #[test]
    fn the_verb_says_how_many_requests_an_archive_lacks() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (left_out, wanted) in [
            (0, "1 exchange"),
            (3, "1 exchange; 3 requests left out: the gateway had no room to record more at once"),
        ] {
            let file = folder.path().join("traffic.har");
            let mut writer = Writer::new(Vec::new()).expect("it is written");
            writer.entry(&Exchange::default()).expect("it is written");
            let sent = writer.finish_without(left_out).expect("it is written");
            let mut lines = ArchiveLines::new(open(&file).expect("a file"));
            lines.push(&sent).expect("it is written");
            assert_eq!(lines.finish(false).expect("it ends").to_string(), wanted);
            let text = std::fs::read_to_string(&file).expect("it is there");
            let har: serde_json::Value = serde_json::from_str(&text).expect("an archive is JSON");
            assert_eq!(har["log"]["entries"].as_array().map(Vec::len), Some(1));
            assert_eq!(har["log"]["_left_out"].as_u64().unwrap_or(0), left_out);
        }
    }
}
