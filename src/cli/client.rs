//! `switchback client`: enrolled clients, their tokens, and their credentials.

use super::output::list;
use super::stored::{
    Format, OAuthArgs, OpenedStore, SecretRef, StoreArgs, VerbError, block_on, confirm, suggesting,
};
use crate::app;
use crate::config::{DateOrTime, ScalarError};
use clap::Subcommand;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use switchback_gateway::clock::rfc3339;
use switchback_gateway::store::{GrantFlow, GrantState};
use switchback_gateway::token::{
    AddedClient, AppCredential, AppKey, ClientInfo, ConnectLink, NewClient, NewCredential, NewToken,
    OAuthApp, Registry, Revoked,
};

/// Arguments of `switchback client`.
#[derive(clap::Args)]
pub struct ClientArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(subcommand)]
    verb: ClientVerb,
}

#[derive(Subcommand)]
enum ClientVerb {
    /// Add a client; without --token, a token is generated and printed once
    #[command(after_help = "Examples:\n  \
        switchback client add acme --token env:ACME_OLD_TOKEN \\\n      \
        --app-id env:ACME_ID --app-secret env:ACME_SECRET --refresh-token env:ACME_REFRESH\n  \
        switchback client add acme --app-id env:ACME_ID --app-key file:acme.pem --client-credentials\n  \
        switchback client add acme --company 42        # makes a token; connect it afterwards\n  \
        switchback client add acme --side v3 --credential v2=env:ACME_V2_TOKEN   # v3 in front of v2")]
    Add(AddClientArgs),
    /// List clients and the state of their grants
    List,
    /// Print a link by which a person authorizes the client; single use, expires in ten minutes
    Connect(ConnectArgs),
    /// Give a client a new token and invalidate its other tokens of the same side
    Rotate(RotateTokenArgs),
    /// Set the token of the client's calls to a side without grants
    #[command(after_help = "Example:\n  switchback client credential acme v2=env:ACME_V2_TOKEN")]
    Credential(CredentialArgs),
    /// Set the date from which the client is rejected on fronts of a side; its answers announce it until then
    #[command(after_help = "Examples:\n  \
        switchback client sunset acme 2026-12-31\n  \
        switchback client sunset acme never")]
    Sunset(SunsetArgs),
    /// Request new tokens for a client's grant now, even if the grant has ended or waits after a failure
    #[command(
        after_help = "A running gateway fetches them within a second; `switchback client list` lists the outcome."
    )]
    Retry(ClientName),
    /// Revoke a client: invalidates its tokens, erases its grant and credentials, and revokes the tokens of
    /// its grant at the authorization server if a revocation address is known
    #[command(
        after_help = "A running gateway refuses the client within a second. With `POST /api/clients/NAME/revoke` or in the \
        studio that gateway refuses it at once."
    )]
    Revoke(RevokeArgs),
    /// Restore a revoked client. Its configured tokens are valid after the next reload; add others with
    /// `rotate`, and a grant with `connect`
    Restore(ClientName),
}

#[derive(clap::Args)]
struct RevokeArgs {
    /// Name of the client
    name: String,
    /// Skip the confirmation; erased data cannot be restored
    #[arg(long)]
    yes: bool,
}

#[derive(clap::Args)]
struct ClientName {
    /// Name of the client
    name: String,
}

#[derive(clap::Args)]
struct AddClientArgs {
    /// Name: 1 to 64 characters of a-z A-Z 0-9 . _ -; appears in logs and metrics
    name: String,
    /// Secondary company of its calls
    #[arg(long)]
    company: Option<String>,
    /// Its existing token: env:NAME, file:PATH or -
    #[arg(long, value_name = "REF")]
    token: Option<SecretRef>,
    /// Side whose fronts accept the token [default: all fronts]
    #[arg(long)]
    side: Option<String>,
    /// Token of its calls to a side: SIDE=env:NAME, SIDE=file:PATH or SIDE=-; repeat for several sides
    #[arg(long = "credential", value_name = "SIDE=REF")]
    credentials: Vec<CredentialRef>,
    #[command(flatten)]
    app: AppArgs,
    /// Use the client credentials flow, which needs no connection by a person
    #[arg(long, requires = "app_id", conflicts_with = "refresh_token")]
    client_credentials: bool,
    /// Initial refresh token, instead of connecting: env:NAME, file:PATH or -
    #[arg(long, value_name = "REF", requires = "app_id")]
    refresh_token: Option<SecretRef>,
}

#[derive(clap::Args)]
struct AppArgs {
    /// Client id at the authorization server: env:NAME, file:PATH or -
    #[arg(long, value_name = "REF", requires = "app_credential")]
    app_id: Option<SecretRef>,
    /// Client secret: env:NAME, file:PATH or -
    #[arg(long, value_name = "REF", requires = "app_id", group = "app_credential")]
    app_secret: Option<SecretRef>,
    /// Private key in PEM, in place of a secret (private_key_jwt): env:NAME, file:PATH or -
    #[arg(long, value_name = "REF", requires = "app_id", group = "app_credential")]
    app_key: Option<SecretRef>,
    /// Id of the private key at the authorization server, if it needs one
    #[arg(long, value_name = "ID", requires = "app_key")]
    app_key_id: Option<String>,
}

impl AppArgs {
    fn parse(&self) -> Result<Option<OAuthApp>, VerbError> {
        let Some(id) = &self.app_id else { return Ok(None) };
        Ok(match (&self.app_secret, &self.app_key) {
            (Some(secret), _) => Some(OAuthApp::with_secret(id.load()?, secret.load()?)),
            (None, Some(key)) => {
                let key = AppKey::new(key.load()?, self.app_key_id.clone());
                let key = key.map_err(|error| VerbError::Usage(format!("--app-key: {error}")))?;
                Some(OAuthApp { id: id.load()?, credential: AppCredential::Key(key) })
            }
            (None, None) => None,
        })
    }
}

#[derive(clap::Args)]
struct ConnectArgs {
    /// Name of the client
    name: String,
    #[command(flatten)]
    app: AppArgs,
    #[command(flatten)]
    oauth: OAuthArgs,
}

#[derive(clap::Args)]
struct RotateTokenArgs {
    /// Name of the client
    name: String,
    /// New token: env:NAME, file:PATH or - [default: generated and printed once]
    #[arg(long, value_name = "REF")]
    token: Option<SecretRef>,
    /// Side whose fronts accept the token; required if the client has tokens for several
    #[arg(long)]
    side: Option<String>,
    /// Seconds for which the old tokens stay valid
    #[arg(long, value_name = "SECONDS")]
    grace: Option<u32>,
}

#[derive(clap::Args)]
struct CredentialArgs {
    /// Name of the client
    name: String,
    /// Side and token: SIDE=env:NAME, SIDE=file:PATH or SIDE=-
    #[arg(value_name = "SIDE=REF")]
    credential: CredentialRef,
}

#[derive(clap::Args)]
struct SunsetArgs {
    /// Name of the client
    name: String,
    /// A date or a time such as 2026-12-31T23:00:00Z; `never` overrides the configuration
    #[arg(value_name = "TIME")]
    at: SunsetDate,
    /// Side; required if clients use several
    #[arg(long)]
    side: Option<String>,
    /// Date of the field `Deprecation`
    #[arg(long, value_name = "TIME")]
    deprecated: Option<DateOrTime>,
    /// Do not announce it in answers
    #[arg(long)]
    silent: bool,
}

/// The end of a side; `None`: never.
#[derive(Clone, Copy, Debug)]
struct SunsetDate(Option<DateOrTime>);

impl std::str::FromStr for SunsetDate {
    type Err = ScalarError;

    fn from_str(text: &str) -> Result<Self, ScalarError> {
        if text == "never" {
            Ok(SunsetDate(None))
        } else {
            text.parse().map(|moment| SunsetDate(Some(moment)))
        }
    }
}

/// A side and the reference to its token.
#[derive(Clone, Debug)]
struct CredentialRef {
    side: String,
    token: SecretRef,
}

impl std::str::FromStr for CredentialRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (side, token) = text.split_once('=').ok_or("expected SIDE=env:NAME, SIDE=file:PATH or SIDE=-")?;
        Ok(CredentialRef { side: side.to_owned(), token: token.parse()? })
    }
}

impl CredentialRef {
    fn parse(&self) -> Result<NewCredential, VerbError> {
        Ok(NewCredential { side: self.side.clone(), token: self.token.load()? })
    }
}

pub fn run(args: ClientArgs) -> ExitCode {
    block_on(manage(args))
}

async fn manage(args: ClientArgs) -> Result<(), VerbError> {
    // Before the store is opened, since `add` creates a missing one.
    check_sides(&args).await?;
    let opened = match &args.verb {
        ClientVerb::Add(_) => args.store.open().await?,
        _ => args.store.open_existing().await?,
    };
    let endpoint = match &args.verb {
        ClientVerb::Connect(args) => Some(opened.endpoint(&args.oauth)?),
        // The tokens are revoked at the authorization server, too.
        ClientVerb::Revoke(_) if args.store.file().is_some() => {
            app::authorization_server(&args.store.configuration()?).await?
        }
        _ => None,
    };
    let registry = Registry::new(opened.store.clone(), endpoint);
    if args.store.file().is_some() {
        // Without the names, `list` could not report the clients that have left the configuration.
        let configured = args.store.configuration()?.clients;
        registry.set_configured(configured.into_iter().map(|client| client.name.value));
    }
    suggesting(&opened.store, apply(args, &opened, &registry)).await?;
    opened.store.close().await;
    Ok(())
}

async fn apply(args: ClientArgs, opened: &OpenedStore, registry: &Registry) -> Result<(), VerbError> {
    let format = args.store.format();
    match args.verb {
        ClientVerb::Add(args) => show_added(format, "Added", &registry.add(new_client(args)?).await?),
        ClientVerb::List => {
            let clients = registry.list().await?;
            format.print(&clients, || list(clients.iter().map(line), "No clients."));
        }
        ClientVerb::Connect(args) => {
            let link = registry.connect(&args.name, args.app.parse()?).await?;
            format.print(&link, || {
                let ConnectLink { client, expires_at, url, .. } = &link;
                format!("Open this link to connect {client}, once, before {expires_at}:\n{url}")
            });
        }
        ClientVerb::Rotate(args) => {
            let token = args.token.as_ref().map(SecretRef::load).transpose()?;
            let grace = args.grace.map(|seconds| Duration::from_secs(seconds.into()));
            let new = NewToken { side: args.side, token };
            show_added(format, "Rotated", &registry.rotate(&args.name, new, grace).await?);
        }
        ClientVerb::Credential(args) => {
            let client = registry.set_credential(&args.name, args.credential.parse()?).await?;
            let side = args.credential.side;
            format.print(&client, || format!("Calls of {} to {side} go out with it.", client.name));
        }
        ClientVerb::Sunset(sunset) => {
            let config = args.store.configuration()?;
            let file = args.store.file().map(ToOwned::to_owned);
            let retirement = app::retirement(&config, opened.store.clone(), file).await?;
            let (at, deprecated) =
                (sunset.at.0.map(DateOrTime::unix_ms), sunset.deprecated.map(DateOrTime::unix_ms));
            let side = sunset.side.as_deref();
            let set = retirement.set_sunset(&sunset.name, side, at, deprecated, !sunset.silent, None).await?;
            format.print(&set, || match set.at_ms {
                Some(at) => format!("{} ends for {} at {}.", set.side, set.client, rfc3339(at)),
                None => format!("{} does not end for {}.", set.side, set.client),
            });
        }
        ClientVerb::Revoke(args) => {
            // Report an unknown client before the confirmation.
            registry.get(&args.name).await?;
            if !args.yes {
                let name = &args.name;
                let erases = format!("Revoking {name} erases its tokens, its grant and its credentials");
                confirm(&erases, name)?;
            }
            let Revoked { client, at_server } = registry.revoke(&args.name).await?;
            let mut value = json!(client);
            value["at_server"] = json!(at_server);
            format.print(&value, || {
                let name = client.name;
                format!("Revoked {name}. A running gateway refuses its tokens within a second. {at_server}")
            });
        }
        ClientVerb::Retry(args) => {
            let client = registry.retry(&args.name).await?;
            format.print(&client, || {
                format!(
                    "Requested new tokens for {}. A running gateway fetches them within a second; `switchback client list` \
                     lists the outcome.",
                    client.name
                )
            });
        }
        ClientVerb::Restore(args) => {
            let client = registry.restore(&args.name).await?;
            format.print(&client, || {
                format!(
                    "Restored {}. What the configuration gives it comes back with the next reload; give other tokens with \
                     `switchback client rotate`, and connect it with `switchback client connect`.",
                    client.name
                )
            });
        }
    }
    Ok(())
}

/// Checks that named sides exist in the configured pack: settings for another side would never be
/// used.
async fn check_sides(args: &ClientArgs) -> Result<(), VerbError> {
    let named: Vec<&str> = match &args.verb {
        ClientVerb::Add(add) => {
            let credentials = add.credentials.iter().map(|credential| credential.side.as_str());
            add.side.as_deref().into_iter().chain(credentials).collect()
        }
        ClientVerb::Rotate(rotate) => rotate.side.as_deref().into_iter().collect(),
        ClientVerb::Credential(credential) => vec![&credential.credential.side],
        _ => Vec::new(),
    };
    // Without a configuration there is no pack that defines the sides.
    if named.is_empty() || args.store.file().is_none() {
        return Ok(());
    }
    let [old, new] = app::sides(&args.store.configuration()?).await?;
    match named.into_iter().find(|side| *side != old && *side != new) {
        Some(side) => {
            Err(VerbError::Usage(format!("the pack has no side `{side}`; it has `{old}` and `{new}`")))
        }
        None => Ok(()),
    }
}

fn new_client(args: AddClientArgs) -> Result<NewClient, VerbError> {
    Ok(NewClient {
        name: args.name,
        company: args.company,
        tokens: vec![NewToken {
            side: args.side,
            token: args.token.as_ref().map(SecretRef::load).transpose()?,
        }],
        credentials: args.credentials.iter().map(CredentialRef::parse).collect::<Result<_, _>>()?,
        flow: match args.client_credentials {
            true => GrantFlow::ClientCredentials,
            false => GrantFlow::AuthorizationCode,
        },
        app: args.app.parse()?,
        refresh_token: args.refresh_token.as_ref().map(SecretRef::load).transpose()?,
    })
}

/// Prints a generated token. This is the only time that it is shown.
fn show_added(format: Format, done: &str, added: &AddedClient) {
    // Present only if it was generated here. A given token is known to the caller and is not printed.
    let token = added.token.as_ref().map(|token| token.expose().as_str());
    format.print(&json!({ "client": added.client, "token": token }), || {
        let token = token.map(|token| format!("\nToken (shown this once): {token}")).unwrap_or_default();
        format!("{done} {}. {}{token}", added.client.name, goes_out(&added.client))
    });
}

fn line(client: &ClientInfo) -> String {
    let state = match &client.revoked_at {
        Some(at) => format!("revoked {at}"),
        None if client.damaged => "damaged: its row was changed outside of Switchback".to_owned(),
        None if client.left_configuration => {
            format!("{}  not in the configuration any more, and known all the same", standing(client))
        }
        None => standing(client),
    };
    let company = client.company.as_deref().map(|id| format!("  company {id}")).unwrap_or_default();
    let warning = client.grant.warning.map(|warning| format!("\n{:<24} warning: {warning}", ""));
    format!("{:<24} {state}{company}{}", client.name, warning.unwrap_or_default())
}

/// Describes the credentials of a client in a sentence.
fn goes_out(client: &ClientInfo) -> String {
    let sides: Vec<&str> = client.credentials.iter().map(|credential| credential.side.as_str()).collect();
    match (sides.as_slice(), client.grant.state) {
        ([], state) => format!("Its grant is {}.", state.name()),
        (sides, GrantState::Unconnected) => format!("It has a credential for {}.", sides.join(" and ")),
        (sides, state) => {
            format!("It has a credential for {}; its grant is {}.", sides.join(" and "), state.name())
        }
    }
}

/// Describes the state of a client's grant and credentials. An unconnected grant is omitted if the
/// client has fixed credentials.
fn standing(client: &ClientInfo) -> String {
    let grant = &client.grant;
    let ends = if grant.expired { "token ended" } else { "token until" };
    let until = grant.expires_at.as_deref().map(|at| format!("  {ends} {at}")).unwrap_or_default();
    let reason = grant.reason.as_deref().map(|why| format!("  ({why})")).unwrap_or_default();
    // A client with fixed credentials needs no grant, so its absence is no news.
    let is_used = grant.state != GrantState::Unconnected || client.credentials.is_empty();
    let grant = is_used.then(|| format!("{}{reason}{until}", grant.state.name()));
    let credentials = client.credentials.iter().map(|credential| {
        let since = credential.refused_at.as_deref().map(|at| format!(" since {at}")).unwrap_or_default();
        format!("{} {}{since}", credential.side, credential.state.name())
    });
    grant.into_iter().chain(credentials).collect::<Vec<_>>().join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchback_gateway::token::GrantInfo;

    #[test]
    fn a_token_that_has_ended_is_said_to() {
        let client = |expired| ClientInfo {
            name: "acme".to_owned(),
            company: None,
            created_at: String::new(),
            revoked_at: None,
            damaged: false,
            left_configuration: false,
            tokens: 1,
            token_sides: Vec::new(),
            version: 0,
            grant: GrantInfo {
                state: GrantState::Active,
                reason: None,
                generation: 1,
                issued_at: None,
                expires_at: Some("2026-01-01T00:00:00Z".to_owned()),
                expired,
                warning: None,
            },
            credentials: Vec::new(),
        };
        assert_eq!(standing(&client(false)), "active  token until 2026-01-01T00:00:00Z");
        assert_eq!(standing(&client(true)), "active  token ended 2026-01-01T00:00:00Z");
    }
}
