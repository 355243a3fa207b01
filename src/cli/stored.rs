//! Shared by the verbs that work on the store: selection of store and key, secret references, and
//! error reporting.

use super::output::COULD_NOT_RUN;
use super::pack::fail;
use crate::app::StartError;
use crate::config::{self, Config, Environment};
use crate::operate::{Refusal, RefusalKind, person, suggest_client};
use clap::ValueEnum;
use reqwest::Url;
use serde::Serialize;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use switchback_compiler::diagnostic::{self, Colour};
use switchback_gateway::clock::Clock;
use switchback_gateway::secret::Secret;
use switchback_gateway::store::seal::{KeyRing, SealError};
use switchback_gateway::store::{MissingStore, Store};
use switchback_gateway::token::{OAuth, OAuthConfigError, TokenEndpoint};
use switchback_plan::TokenRequests;

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text
    Text,
    /// One JSON document on standard output
    Json,
}

impl Format {
    /// Prints a result as JSON, or as text without its last line break.
    pub fn print(self, value: &impl Serialize, text: impl FnOnce() -> String) {
        match self {
            Format::Json => print_json(value),
            Format::Text => println!("{}", text()),
        }
    }
}

/// The output format of a verb.
#[derive(clap::Args, Clone, Copy)]
pub struct OutputArgs {
    /// Output format
    #[arg(long, value_enum, default_value = "text", global = true)]
    format: Format,
    /// One JSON document, as --format json
    #[arg(long, global = true, conflicts_with = "format")]
    json: bool,
}

impl OutputArgs {
    pub fn format(self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

/// The store. A running gateway applies changes within a second.
#[derive(clap::Args, Clone)]
pub struct StoreArgs {
    /// Configuration file of the gateway, with store, key and authorization server
    #[arg(long, value_name = "FILE", env = "SWITCHBACK_CONFIG", global = true)]
    config: Option<PathBuf>,
    /// Store, instead of the configured one: sqlite:FILE or postgres://USER:PASSWORD@HOST/DATABASE
    #[arg(long, value_name = "URL", env = "SWITCHBACK_STORE", hide_env_values = true, global = true)]
    store: Option<String>,
    /// Encryption key, instead of the configured one: env:NAME, file:PATH or - for standard input; to rotate,
    /// several keys separated by commas, newest first [default: env:SWITCHBACK_KEY]
    #[arg(long, value_name = "REF", global = true)]
    key: Option<SecretRef>,
    /// Author for the history [default: the user of the operating system]
    #[arg(long, value_name = "NAME", global = true)]
    by: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// The authorization server, if the configuration does not define it.
#[derive(clap::Args, Clone)]
pub struct OAuthArgs {
    /// Issuer; its metadata provide missing addresses (RFC 8414)
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    /// Authorization address
    #[arg(long, value_name = "URL")]
    authorize_url: Option<Url>,
    /// Token address
    #[arg(long, value_name = "URL")]
    token_url: Option<Url>,
    /// Callback on the gateway's admin port, exactly as registered with the application
    #[arg(long, value_name = "URL")]
    redirect_url: Option<Url>,
    /// Requested scope; repeat for several
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
}

/// An open store with the OAuth settings of the configuration.
pub struct OpenedStore {
    /// The store.
    pub store: Store,
    oauth: Option<config::OAuthConfig>,
}

const STORE_DEFAULT: &str = "sqlite:switchback.db";
const KEY_DEFAULT: &str = "SWITCHBACK_KEY";
/// The error if `client connect` has no authorization server.
const NO_SERVER: &str = "connecting needs --config with oauth, or --redirect-url with --issuer or with --authorize-url and --token-url";
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);

impl StoreArgs {
    /// Opens the store. Creates a missing SQLite file.
    pub async fn open(&self) -> Result<OpenedStore, VerbError> {
        self.open_as(MissingStore::Create).await
    }

    pub fn file(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Reads the configuration, for verbs that need one.
    pub fn configuration(&self) -> Result<Config, VerbError> {
        let file = self.config.as_deref();
        load_config(file.ok_or_else(|| VerbError::Usage("this verb needs --config".to_owned()))?)
    }

    pub fn format(&self) -> Format {
        self.output.format()
    }

    /// Opens the store. Fails if it does not exist.
    pub async fn open_existing(&self) -> Result<OpenedStore, VerbError> {
        self.open_as(MissingStore::Refuse).await
    }

    /// Returns the author that the history records for changes.
    pub fn author(&self) -> String {
        let given = self.by.as_deref().map(person).filter(|name| !name.is_empty());
        format!("{} (command line)", given.unwrap_or_else(system_user))
    }

    async fn open_as(&self, missing: MissingStore) -> Result<OpenedStore, VerbError> {
        let config = self.config.as_deref().map(load_config).transpose()?;
        // An option takes precedence over the file, so that a copy of a store can be inspected with the
        // same file.
        let url = match (&self.store, &config) {
            (Some(url), _) => url.as_str(),
            (None, Some(config)) => config.store.as_str(),
            (None, None) => STORE_DEFAULT,
        };
        let keys = match (&self.key, &config) {
            (Some(key), _) => several(&key.load()?),
            (None, Some(config)) => config.keys.clone(),
            (None, None) => several(&SecretRef::Env(KEY_DEFAULT.to_owned()).load()?),
        };
        let keys = KeyRing::parse(&keys).map_err(VerbError::Key)?;
        let store = Store::open(url, keys, Clock::machine(), missing).await;
        let store = store.map(|store| store.by(&self.author()));
        // Only the masked address is displayed: the URL may contain a password.
        let address =
            || url.parse::<config::StoreUrl>().map_or_else(|_| "the store".to_owned(), |url| url.to_masked());
        let store =
            store.map_err(|error| VerbError::OpenStore { address: address(), error: error.into() })?;
        Ok(OpenedStore { store, oauth: config.and_then(|config| config.oauth) })
    }
}

/// Reads a configuration. The error contains all findings.
pub(super) fn load_config(path: &Path) -> Result<Config, VerbError> {
    let outcome = config::load(path, &Environment::process())
        .map_err(|error| VerbError::Usage(format!("cannot read {}: {error}", path.display())))?;
    match outcome.config {
        Some(config) => Ok(config),
        None => Err(VerbError::Usage(format!(
            "{} is not usable:\n{}",
            path.display(),
            diagnostic::to_text(&outcome.sources, &outcome.findings, Colour::Never)
        ))),
    }
}

fn several(text: &Secret<String>) -> Vec<Secret<String>> {
    text.expose().split(',').map(Secret::from).collect()
}

impl OpenedStore {
    /// Builds the authorization server: from the arguments, else the configuration.
    pub fn endpoint(&self, args: &OAuthArgs) -> Result<TokenEndpoint, VerbError> {
        let configured = self.oauth.as_ref();
        let parsed = |url: &config::WebUrl| url.uri().to_string().parse::<Url>().ok();
        let url = |given: &Option<Url>, of: fn(&config::OAuthConfig) -> Option<&config::WebUrl>| {
            given.clone().or_else(|| configured.and_then(of).and_then(parsed))
        };
        let redirect_url = url(&args.redirect_url, |oauth| Some(&oauth.redirect_url))
            .ok_or_else(|| VerbError::Usage(NO_SERVER.to_owned()))?;
        let issuer = configured.and_then(|oauth| oauth.issuer.clone());
        let scopes = match configured {
            Some(oauth) if args.scopes.is_empty() => oauth.scopes.clone(),
            _ => args.scopes.clone(),
        };
        let endpoint = TokenEndpoint::new(OAuth {
            issuer: args.issuer.clone().or(issuer),
            authorize_url: url(&args.authorize_url, |oauth| oauth.authorize_url.as_ref()),
            token_url: url(&args.token_url, |oauth| oauth.token_url.as_ref()),
            // A link needs neither a revocation nor additional token fields.
            revocation_url: None,
            redirect_url,
            scopes,
            parameters: Vec::new(),
            authorize_parameters: configured
                .map(|oauth| oauth.authorize_parameters.clone())
                .unwrap_or_default(),
            timeout: configured.map_or(EXCHANGE_TIMEOUT, |oauth| oauth.timeout),
            // This process only creates links; the running gateway exchanges the codes.
            requests: TokenRequests::default(),
            assertion_audience: None,
            is_state_optional: false,
            tls: configured.map(|oauth| oauth.tls.value.clone()).unwrap_or_default(),
        });
        endpoint.map_err(|error| match error {
            OAuthConfigError::NoAddress(_) => VerbError::Usage(NO_SERVER.to_owned()),
            error => error.into(),
        })
    }
}

/// Runs a part of a verb. Adds the nearest known name to an error about an unknown client.
pub async fn suggesting<T, E: Into<VerbError>>(
    store: &Store,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, VerbError> {
    match work.await.map_err(E::into) {
        Err(VerbError::Refused(refusal)) => Err(VerbError::Refused(suggest_client(refusal, store).await)),
        outcome => outcome,
    }
}

/// Returns the name of the operating system's user, or its number if `/etc/passwd` lacks it.
pub fn system_user() -> String {
    // From the user id, because `$USER` is absent in many containers and outdated after `su`.
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1) == Some(&uid)).then(|| person(name))
    });
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("uid {uid}"))
}

/// Requires the user to type a word before an action with a wide effect. Without a terminal, fails
/// and refers to `--yes`.
pub fn confirm(consequence: &str, word: &str) -> Result<(), VerbError> {
    // A script must not hang at a question, nor answer it with its next line of input.
    if !std::io::stdin().is_terminal() {
        return Err(VerbError::Usage(format!("{consequence}; if that is meant, add --yes")));
    }
    eprint!("{consequence}. Type {word} to go on: ");
    match read_line()?.trim() == word {
        true => Ok(()),
        false => Err(VerbError::Usage("nothing was changed".to_owned())),
    }
}

fn read_line() -> Result<String, VerbError> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    read.map_err(|error| VerbError::Usage(format!("cannot read standard input: {error}")))?;
    Ok(line)
}

/// A reference to a secret, so that secrets appear neither in the shell's history nor in the
/// process list.
#[derive(Clone, Debug)]
pub enum SecretRef {
    Env(String),
    File(String),
    Stdin,
}

impl std::str::FromStr for SecretRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "-" {
            Ok(SecretRef::Stdin)
        } else if let Some(name) = text.strip_prefix("env:") {
            Ok(SecretRef::Env(name.to_owned()))
        } else if let Some(path) = text.strip_prefix("file:") {
            Ok(SecretRef::File(path.to_owned()))
        } else {
            Err("expected env:NAME, file:PATH or - (standard input); the secret itself does not belong on a command line"
                .to_owned())
        }
    }
}

impl SecretRef {
    /// Reads the secret, without surrounding white space: files and pipes usually end with a line
    /// break.
    pub fn load(&self) -> Result<Secret<String>, VerbError> {
        let text = match self {
            SecretRef::Env(name) => std::env::var(name)
                .map_err(|_| VerbError::Usage(format!("{name} is not set in the environment")))?,
            SecretRef::File(path) => std::fs::read_to_string(path)
                .map_err(|error| VerbError::Usage(format!("cannot read the secret in {path}: {error}")))?,
            SecretRef::Stdin => read_line()?,
        };
        let text = Secret::new(text);
        // Files and here-documents usually end with a line break, which is not part of a token.
        let trimmed = text.expose().trim();
        if trimmed.is_empty() {
            Err(VerbError::Usage("the secret is empty".to_owned()))
        } else {
            Ok(trimmed.into())
        }
    }
}

/// Why a verb failed.
#[derive(Debug, thiserror::Error)]
pub enum VerbError {
    #[error("{0}")]
    Usage(String),
    /// The work failed after the arguments were accepted.
    #[error("{0}")]
    Run(String),
    #[error("sealing key: {0}")]
    Key(SealError),
    #[error("{address} cannot be opened: {error}")]
    OpenStore { address: String, error: Refusal },
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    OAuth(#[from] OAuthConfigError),
    #[error(transparent)]
    Start(#[from] StartError),
}

impl VerbError {
    /// Returns 2 for errors that the caller can correct on the command line, 3 for others.
    fn exit_code(&self) -> u8 {
        match self {
            // Exit code 2 means that the command cannot succeed as given, so that scripts do not retry it.
            VerbError::Usage(_) | VerbError::Key(_) | VerbError::OAuth(_) | VerbError::Start(_) => 2,
            VerbError::Run(_) => COULD_NOT_RUN,
            VerbError::Refused(refusal) | VerbError::OpenStore { error: refusal, .. } => {
                match refusal.kind() {
                    RefusalKind::Failed | RefusalKind::Store => COULD_NOT_RUN,
                    _ => 2,
                }
            }
        }
    }
}

impl<E> From<E> for VerbError
where
    Refusal: From<E>,
{
    fn from(error: E) -> VerbError {
        VerbError::Refused(error.into())
    }
}

pub fn block_on(verb: impl Future<Output = Result<(), VerbError>>) -> ExitCode {
    block_on_verdict(async { verb.await.map(|()| ExitCode::SUCCESS) })
}

/// Runs a verb that determines its own exit code.
pub fn block_on_verdict(verb: impl Future<Output = Result<ExitCode, VerbError>>) -> ExitCode {
    // One thread suffices for a verb, and the pool of a machine with many cores would take longer to
    // start.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(COULD_NOT_RUN, format_args!("error: cannot start: {error}")),
    };
    match runtime.block_on(verb) {
        Ok(code) => code,
        Err(failure) => fail(failure.exit_code(), format_args!("error: {failure}")),
    }
}

pub fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value)
        .expect("plain data without maps of other than text keys serialises");
    println!("{text}");
}
