//! Starts a sandbox on a free port, prints its addresses and credentials, and serves until interrupted.
//!
//! ```console
//! $ cargo run -p switchback-sandbox --example serve
//! ```

use switchback_sandbox::{Options, Sandbox};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let sandbox = Sandbox::start(Options::default()).await?;
    println!("{}", sandbox.welcome());
    std::future::pending().await
}
