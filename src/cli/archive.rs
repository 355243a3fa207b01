//! `switchback archive`: fills, counts and clears the gateway's archives.

use super::output::{count_noun, list};
use super::stored::{Format, SecretRef, StoreArgs, VerbError, block_on, suggesting};
use crate::app::{self, service_address};
use crate::config::Config;
use crate::harvest::{Harvester, new_harvest_row};
use crate::replay::Live;
use clap::Subcommand;
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use switchback_gateway::http_client::ServiceAddress;
use switchback_gateway::secret::Secret;
use switchback_gateway::store::{ArchiveOwner, ClientRow, HarvestRow, NewHistory, Store};
use switchback_plan::{self as plan, Harvest};

/// Arguments of `switchback archive`.
#[derive(clap::Args)]
pub struct ArchiveArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(subcommand)]
    verb: ArchiveVerb,
}

#[derive(Subcommand)]
enum ArchiveVerb {
    /// Read data that only the old side has and store it encrypted; an interrupted run continues where it
    /// stopped
    #[command(
        after_help = "Example:\n  switchback archive fill acme --config switchback.yaml --token env:ACME_OLD_TOKEN"
    )]
    Fill(FillArgs),
    /// Show the size of the archives and the progress of harvests
    Status(StatusArgs),
    /// Delete entries of an archive, such as the mark of a deleted record
    #[command(after_help = "Example:\n  switchback archive clear acme deleted_things --entry 7")]
    Clear(ClearArgs),
}

#[derive(clap::Args)]
struct FillArgs {
    /// Client whose data is read; only this client can use it
    client: String,
    /// Harvest of the pack; repeat for several [default: all]
    #[arg(long = "harvest", value_name = "NAME")]
    harvests: Vec<String>,
    /// Maximum number of calls per second
    #[arg(long, value_name = "CALLS", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,
    /// Read completed harvests again, to refresh the stored data
    #[arg(long)]
    again: bool,
    /// Token of the client for the side that is read: env:NAME, file:PATH or - [default: its credential for
    /// that side, else its configured token]
    #[arg(long, value_name = "REF")]
    token: Option<SecretRef>,
    /// Address of the side that is read [default: as configured under `upstreams`]
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
}

#[derive(clap::Args)]
struct StatusArgs {
    /// Name of a client [default: all]
    client: Option<String>,
}

#[derive(clap::Args)]
struct ClearArgs {
    /// Name of the client
    client: String,
    /// Name of the archive
    archive: String,
    /// Key of an entry; repeat for several [default: all entries]
    #[arg(long = "entry", value_name = "KEY")]
    entries: Vec<String>,
    /// Secondary account of the entries [default: the account of the client]
    #[arg(long)]
    account: Option<String>,
}

pub fn run(args: ArchiveArgs) -> ExitCode {
    block_on(manage(args))
}

async fn manage(args: ArchiveArgs) -> Result<(), VerbError> {
    let opened = args.store.open_existing().await?;
    let (store, format) = (&opened.store, args.store.format());
    match args.verb {
        ArchiveVerb::Fill(fill_args) => {
            let config = args.store.configuration()?;
            suggesting(store, fill(&config, &args.store, store, format, &fill_args)).await?;
        }
        ArchiveVerb::Status(of) => suggesting(store, status(store, format, of.client.as_deref())).await?,
        ArchiveVerb::Clear(of) => {
            let owner = owner(&suggesting(store, store.client(&of.client)).await?, of.account);
            let gone = store.archive_clear(&owner, &of.archive, &of.entries).await?;
            format.print(&json!({"cleared": gone}), || {
                format!("{} of {} removed from {}", count_noun(gone, "entry"), of.client, of.archive)
            });
        }
    }
    opened.store.close().await;
    Ok(())
}

fn owner(client: &ClientRow, account: Option<String>) -> ArchiveOwner {
    let account = account.or_else(|| client.company.clone()).unwrap_or_default();
    ArchiveOwner { client: client.id.clone(), account }
}

async fn fill(
    config: &Config,
    of_store: &StoreArgs,
    store: &Store,
    format: Format,
    args: &FillArgs,
) -> Result<(), VerbError> {
    let (pack, settings) = app::pack_with_settings(config, of_store.file().map(ToOwned::to_owned)).await?;
    let client = store.client(&args.client).await?;
    if client.revoked_ms.is_some() || client.is_damaged {
        return Err(VerbError::Usage(format!("the client {} is revoked or damaged", args.client)));
    }
    let owner = owner(&client, None);
    // Read once. A harvest that was interrupted continues at its page, and a finished one is skipped.
    let begun_before = store.harvests(Some(&client.id)).await?;
    let mut ended = Vec::new();
    for (at, harvest) in chosen(pack.as_ref(), &args.harvests)? {
        let before =
            begun_before.iter().find(|row| row.harvest == harvest.name && row.account == owner.account);
        let row = match before {
            Some(row) if row.finished_ms.is_some() && !args.again => {
                eprintln!("{}: read to its end before; --again reads it anew", harvest.name);
                ended.push(row.clone());
                continue;
            }
            Some(row) if row.finished_ms.is_none() => row.clone(),
            _ => new_harvest_row(&owner, harvest),
        };
        let known = before.cloned();
        let side = &pack.sides[harvest.from];
        let token = token(config, store, &client, &side.name, args).await?;
        let base = base(config, &side.name, args)?;
        let hosts = side.hosts.iter().map(|host| host_base(config, &side.name, host));
        // `false`: a harvest only reads.
        let live = Live::new(&base, &[], false)
            .and_then(|live| live.with_hosts(hosts))
            .and_then(|live| live.with_credential(&side.credential, &token))
            .map_err(|error| VerbError::Usage(error.to_string()))?;
        let harvester = Harvester {
            pack: Arc::clone(&pack),
            settings: Arc::clone(&settings),
            store: store.clone(),
            live,
            pace: Duration::from_secs(1) / args.rate,
        };
        let told = &mut |row: &HarvestRow| eprintln!("{}", line(row));
        let run = harvester.run(&owner, at, (row, known), told).await;
        let detail = match &run {
            Ok(row) => line(row),
            Err(error) => error.to_string(),
        };
        let scope = format!("harvest {}", harvest.name);
        let entry = NewHistory {
            kind: "archive filled",
            subject: &args.client,
            scope: &scope,
            detail: &detail,
            ..NewHistory::default()
        };
        // Also after a failure: the pages before it are stored.
        store.note(&entry).await?;
        ended.push(run.map_err(|error| VerbError::Run(format!("{}: {error}", harvest.name)))?);
    }
    format.print(&ended, || list(ended.iter().map(line), ""));
    Ok(())
}

fn line(row: &HarvestRow) -> String {
    let HarvestRow { harvest, page, elements, kept, .. } = row;
    let end = if row.finished_ms.is_some() { ", to its end" } else { "" };
    format!("{harvest}: {elements} read, {kept} kept, next page {page}{end}")
}

/// Returns the named harvests, or all.
fn chosen<'p>(pack: &'p plan::Pack, names: &[String]) -> Result<Vec<(usize, &'p Harvest)>, VerbError> {
    let known = || pack.harvests.iter().map(|harvest| harvest.name.as_str()).collect::<Vec<_>>().join(", ");
    if pack.harvests.is_empty() {
        return Err(VerbError::Usage("the pack has no harvests".to_owned()));
    }
    if let Some(name) = names.iter().find(|name| !pack.harvests.iter().any(|harvest| harvest.name == **name))
    {
        return Err(VerbError::Usage(format!("the pack has no harvest `{name}`; it has {}", known())));
    }
    let wanted = |harvest: &Harvest| names.is_empty() || names.contains(&harvest.name);
    Ok(pack.harvests.iter().enumerate().filter(|(_, harvest)| wanted(harvest)).collect())
}

/// Returns the token for calls to the side: `--token`, else the stored credential, else the
/// configured token.
async fn token(
    config: &Config,
    store: &Store,
    client: &ClientRow,
    side: &str,
    args: &FillArgs,
) -> Result<Secret<String>, VerbError> {
    if let Some(given) = &args.token {
        return given.load();
    }
    if let Some(credential) = store.credential_of(&client.id, side).await? {
        return Ok(credential);
    }
    let configured = config.clients.iter().find(|known| known.name.value == client.name);
    let own = configured.and_then(|known| known.tokens.iter().find(|(of, _)| of.value == side));
    own.map(|(_, token)| token.clone()).ok_or_else(|| {
        let name = &client.name;
        VerbError::Usage(format!(
            "{name} has no token for {side} here: give one with --token, or `switchback client credential {name} {side}=REF`"
        ))
    })
}

/// Returns the address of the side: `--upstream`, else the configured one, with the TLS settings of
/// its upstream.
fn base(config: &Config, side: &str, args: &FillArgs) -> Result<ServiceAddress, VerbError> {
    let configured = config.upstream(side);
    let tls = configured.map(|upstream| upstream.tls.value.clone()).unwrap_or_default();
    if let Some(url) = &args.upstream {
        return Ok(ServiceAddress { url: url.clone(), tls });
    }
    configured.map(|upstream| service_address(&upstream.url, &tls)).ok_or_else(|| {
        VerbError::Usage(format!("`upstreams` names no {side}: say where it is with --upstream URL"))
    })
}

/// Returns the address of a host of the side.
fn host_base(config: &Config, side: &str, host: &str) -> Option<ServiceAddress> {
    let name = format!("{side}/{host}");
    config.services().find(|(known, ..)| *known == name).map(|(_, url, tls)| service_address(url, tls))
}

async fn status(store: &Store, format: Format, client: Option<&str>) -> Result<(), VerbError> {
    let clients = store.clients_since(0).await?;
    let only = match client {
        Some(name) => Some(store.client(name).await?.id),
        None => None,
    };
    let name = |id: &str| {
        let known = clients.iter().find(|client| client.id == id);
        known.map_or_else(|| id.to_owned(), |client| client.name.clone())
    };
    let mut counts = store.archive_counts(only.as_deref()).await?;
    let mut harvests = store.harvests(only.as_deref()).await?;
    counts.iter_mut().for_each(|count| count.client = name(&count.client));
    harvests.iter_mut().for_each(|row| row.client = name(&row.client));
    format.print(&json!({"archives": counts, "harvests": harvests}), || {
        let of = |client: &str, account: &str| match account {
            "" => client.to_owned(),
            account => format!("{client} ({account})"),
        };
        let counts = counts.iter().map(|count| {
            let entries = count_noun(count.entries.unsigned_abs(), "entry");
            format!("{} {}: {entries}", of(&count.client, &count.account), count.archive)
        });
        let harvests = harvests.iter().map(|row| format!("{} {}", of(&row.client, &row.account), line(row)));
        list(counts.chain(harvests), "No entries.")
    });
    Ok(())
}
