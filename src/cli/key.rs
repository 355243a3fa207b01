//! `switchback key`: generates and rotates the sealing key.

use super::output::{count_noun, list};
use super::stored::{StoreArgs, VerbError, block_on};
use clap::Subcommand;
use std::process::ExitCode;
use switchback_gateway::store::seal::SealingKey;

/// Arguments of `switchback key`.
#[derive(clap::Args)]
pub struct KeyArgs {
    #[command(subcommand)]
    verb: KeyVerb,
}

#[derive(Subcommand)]
enum KeyVerb {
    /// Print a new random key; store it in a secret store or a separate file
    #[command(
        after_help = "Example:\n  switchback key generate > switchback.key && chmod 600 switchback.key\n  \
                            export SWITCHBACK_KEY=\"$(cat switchback.key)\""
    )]
    Generate,
    /// Encrypt all secrets in the store again with the first of the given keys
    #[command(after_help = "To rotate without a gap:\n  \
        1. switchback key generate, and put the new key first: key: [NEW, OLD] (or SWITCHBACK_KEY=NEW,OLD)\n  \
        2. restart the gateway: it seals with NEW and still reads OLD\n  \
        3. switchback key rotate with the same two keys\n  \
        4. remove OLD; nothing needs it any more\n\n\
        All is re-sealed in one transaction. A gateway that still seals with OLD alone stops refreshing, and says so.")]
    Rotate(RotateKeyArgs),
}

#[derive(clap::Args)]
struct RotateKeyArgs {
    #[command(flatten)]
    store: StoreArgs,
}

pub fn run(args: KeyArgs) -> ExitCode {
    match args.verb {
        KeyVerb::Generate => {
            println!("{}", SealingKey::generate().expose());
            ExitCode::SUCCESS
        }
        KeyVerb::Rotate(args) => block_on(rotate(args)),
    }
}

async fn rotate(args: RotateKeyArgs) -> Result<(), VerbError> {
    let opened = args.store.open().await?;
    let done = opened.store.reseal().await?;
    args.store.format().print(&done, || {
        let retired = |key| format!("Key {key} is no longer needed; remove it from the configuration.");
        let retired = list(done.retired.iter().map(retired), "It was the only key already.");
        format!("Sealed {} with key {}.\n{retired}", count_noun(done.values, "value"), done.key)
    });
    opened.store.close().await;
    Ok(())
}
