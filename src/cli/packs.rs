//! `switchback pack`: exports the built-in pack, lists the packs that served, and restores one.

use super::export;
use super::stored::{StoreArgs, VerbError, block_on, confirm};
use crate::app;
use crate::operate::{OperationChanges, PackList, RecordedPack, packs_in};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `switchback pack`.
#[derive(clap::Args)]
pub struct PacksArgs {
    #[command(subcommand)]
    verb: PacksVerb,
}

#[derive(clap::Subcommand)]
enum PacksVerb {
    /// Writes the built-in pack to a folder, for `mapping:` in a configuration, so that it can be changed
    Export {
        /// Empty or missing folder
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// List the last ten packs that served, with what each changed in operations
    List {
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Serve a recorded pack instead of the one on disk, until that changes or is reloaded
    #[command(after_help = "Examples:\n  \
        switchback pack list --config switchback.yaml\n  \
        switchback pack restore 3f2a9c --config switchback.yaml\n\n\
        Every gateway of the store whose pack on disk is that of this configuration serves the recorded pack within a\n\
        second. A gateway with other files serves those. A reload on request (SIGHUP, POST /api/reload) ends it.")]
    Restore(RestoreArgs),
}

#[derive(clap::Args)]
struct RestoreArgs {
    /// Id from `switchback pack list`, or its beginning
    id: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    store: StoreArgs,
}

pub fn run(args: PacksArgs) -> ExitCode {
    match args.verb {
        PacksVerb::Export { folder } => export::export(&folder).unwrap_or_else(|failed| failed),
        PacksVerb::List { store } => block_on(list(store)),
        PacksVerb::Restore(args) => block_on(restore(args)),
    }
}

async fn list(args: StoreArgs) -> Result<(), VerbError> {
    let opened = args.open_existing().await?;
    let list = packs_in(&opened.store).await?;
    args.format().print(&list, || text(&list).trim_end().to_owned());
    opened.store.close().await;
    Ok(())
}

async fn restore(args: RestoreArgs) -> Result<(), VerbError> {
    let config = args.store.configuration()?;
    let opened = args.store.open_existing().await?;
    if !args.yes {
        confirm(
            "All gateways with the pack of this configuration serve the recorded pack instead",
            "restore",
        )?;
    }
    let row = app::restore_pack(&config, args.store.file(), &opened.store, &args.id).await?;
    let list = packs_in(&opened.store).await?;
    args.store.format().print(&list, || match &list.restoration {
        Some(_) => {
            format!("Restored pack {} {}. The served pack is not the one on disk.", row.name, row.hash)
        }
        None => format!("The pack on disk, {} {}, serves.", row.name, row.hash),
    });
    opened.store.close().await;
    Ok(())
}

fn text(list: &PackList) -> String {
    let mut out = String::new();
    if list.packs.is_empty() {
        out.push_str("No pack is recorded.\n");
    }
    for one in &list.packs {
        let _ = writeln!(out, "{}", line(one, list.restored.as_deref() == Some(one.id.as_str())));
    }
    if let Some(restoration) = &list.restoration {
        let on_disk = restoration.instead_of.get(..12).unwrap_or(&restoration.instead_of);
        let (since, by) = (&restoration.since, &restoration.by);
        let _ =
            writeln!(out, "The served pack is not the one on disk, {on_disk}: {by} restored it at {since}.");
    }
    out
}

fn line(one: &RecordedPack, is_restored: bool) -> String {
    let changes = one.changes.as_ref().map_or_else(|| "unknown".to_owned(), OperationChanges::summary);
    let mark = if is_restored { "  restored" } else { "" };
    format!("{}  {}  {:<24} operations: {changes}{mark}", one.short_id(), one.served_at, one.by)
}
