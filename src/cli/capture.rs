//! `switchback capture`: live traffic of a running gateway into an HTTP Archive.

use super::stored::{Failure, SecretRef, block_on, configured};
use crate::config::Period;
use reqwest::{Client, Url};
use serde_json::json;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use switchback_gateway::secret::Secret;

/// Records live traffic of a running gateway as an HTTP Archive (HAR 1.2): what clients asked, which calls that became,
/// what came back. Credentials, and what the pack declares secret, do not leave the gateway. Ctrl-C ends it early and
/// leaves a whole archive; `switchback replay` runs it again.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  switchback capture --config switchback.yaml --out traffic.har --for 5m --share 0.1"
)]
pub struct Args {
    /// Configuration file of the gateway: gives the admin port and its token
    #[arg(long, value_name = "FILE", env = "SWITCHBACK_CONFIG", required_unless_present = "admin")]
    config: Option<PathBuf>,

    /// The admin port, instead of the configured one, such as http://127.0.0.1:9090
    #[arg(long, value_name = "URL")]
    admin: Option<Url>,

    /// Its token, instead of the configured one: env:NAME, file:PATH or - for standard input
    #[arg(long, value_name = "REF")]
    token: Option<SecretRef>,

    /// Where the archive goes; - for standard output
    #[arg(long, short, value_name = "FILE.har", default_value = "-")]
    out: PathBuf,

    /// Only this operation, such as 'GET /things/{id}'
    #[arg(long, value_name = "OPERATION")]
    operation: Option<String>,

    /// Only this client, by its enrolled name
    #[arg(long, value_name = "NAME")]
    client: Option<String>,

    /// Share of the requests, above 0 and at most 1
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    share: f64,

    /// Most exchanges
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    exchanges: u64,

    /// Longest time, such as 30s or 5m
    #[arg(long = "for", value_name = "PERIOD", default_value = "60s")]
    period: Period,

    /// Largest body that is kept, in bytes; of a larger one the archive says that it is missing
    #[arg(long, value_name = "N", default_value_t = 256 << 10)]
    body_bytes: usize,
}

/// How an archive that the gateway writes ends.
const END: &str = "]}}";

/// Runs the verb.
pub fn run(args: &Args) -> ExitCode {
    block_on(capture(args))
}

async fn capture(args: &Args) -> Result<(), Failure> {
    let (admin, token) = admin(args)?;
    let url = admin.join("api/capture").map_err(|error| Failure::Usage(format!("--admin: {error}")))?;
    let asked = json!({
        "operation": args.operation,
        "client": args.client,
        "share": args.share,
        "exchanges": args.exchanges,
        "seconds": args.period.0.as_secs().max(1),
        "body_bytes": args.body_bytes,
    });
    // The one provider this program is built with; whoever comes first installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client =
        Client::builder().build().map_err(|error| Failure::Run(format!("HTTP cannot be set up: {error}")))?;
    let response = client.post(url).bearer_auth(token.expose()).json(&asked).send().await;
    let response =
        response.map_err(|error| Failure::Run(format!("the admin port cannot be reached: {error}")))?;
    let status = response.status();
    if !status.is_success() {
        let said = response.text().await.unwrap_or_default();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
        let why = said["error"].as_str().unwrap_or("no reason given");
        return Err(Failure::Run(format!("the gateway answers {status}: {why}")));
    }
    let out = open(&args.out).map_err(|error| Failure::Usage(format!("{}: {error}", args.out.display())))?;
    let count = copy(response, out).await.map_err(|error| Failure::Run(error.to_string()))?;
    eprintln!("{count} exchanges");
    Ok(())
}

/// Address and token of the admin port.
fn admin(args: &Args) -> Result<(Url, Secret<String>), Failure> {
    let config = args.config.as_deref().map(configured).transpose()?;
    let token = match (&args.token, config.as_ref().and_then(|config| config.admin.token.clone())) {
        (Some(reference), _) => reference.read()?,
        (None, Some(token)) => token,
        (None, None) => {
            let what = "a capture needs the admin port's token: set admin.token, or give --token";
            return Err(Failure::Usage(what.to_owned()));
        }
    };
    let url = match (&args.admin, config) {
        (Some(url), _) => url.clone(),
        (None, Some(config)) => {
            let url = format!("http://{}", config.admin.listen);
            url.parse().map_err(|_| Failure::Usage(format!("{url} is no address")))?
        }
        (None, None) => {
            return Err(Failure::Usage("--config or --admin says where the gateway is".to_owned()));
        }
    };
    Ok((url, token))
}

fn open(path: &Path) -> io::Result<Box<dyn Write>> {
    if path.as_os_str() == "-" { Ok(Box::new(io::stdout())) } else { Ok(Box::new(File::create(path)?)) }
}

/// Copies the archive line by line; ends it properly wherever it is cut. Gives the number of its entries.
async fn copy(mut response: reqwest::Response, out: Box<dyn Write>) -> io::Result<u64> {
    let mut lines = Lines { out, pending: Vec::new(), entries: 0, has_begun: false, is_ended: false };
    let mut progress = Progress { is_shown: io::stderr().is_terminal(), told: Instant::now() };
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        let chunk = tokio::select! {
            chunk = response.chunk() => chunk,
            _ = &mut interrupted => break,
        };
        match chunk {
            Ok(Some(chunk)) => lines.push(&chunk)?,
            // A gateway that stops cuts the archive off; what came before is worth keeping.
            Ok(None) | Err(_) => break,
        }
        progress.tell(lines.entries);
    }
    progress.end();
    lines.finish()
}

/// The lines of an archive, each entry on one of its own.
struct Lines {
    out: Box<dyn Write>,
    /// The beginning of a line whose end has not come.
    pending: Vec<u8>,
    entries: u64,
    has_begun: bool,
    is_ended: bool,
}

impl Lines {
    fn push(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.pending.extend_from_slice(chunk);
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            self.line(line[..end].strip_suffix(b",").unwrap_or(&line[..end]))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        match () {
            () if line == END.as_bytes() => {
                self.is_ended = true;
                return Ok(());
            }
            () if !self.has_begun => self.has_begun = true,
            () => {
                self.out.write_all(if self.entries == 0 { b"\n" } else { b",\n" })?;
                self.entries += 1;
            }
        }
        self.out.write_all(line)
    }

    fn finish(mut self) -> io::Result<u64> {
        if !self.is_ended {
            eprintln!("the capture was cut short; what was recorded is kept");
        }
        if !self.has_begun {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the gateway sent no archive"));
        }
        write!(self.out, "\n{END}\n")?;
        self.out.flush()?;
        Ok(self.entries)
    }
}

/// Counts on a terminal, while it goes on.
struct Progress {
    is_shown: bool,
    told: Instant,
}

impl Progress {
    fn tell(&mut self, entries: u64) {
        if self.is_shown && self.told.elapsed() > Duration::from_millis(500) {
            self.told = Instant::now();
            eprint!("\r{entries} exchanges");
        }
    }

    fn end(&self) {
        if self.is_shown {
            eprint!("\r\x1b[K");
        }
    }
}
