//! The gateway as a service, served by hyper. Clients use the old version of an API; a server
//! elsewhere implements the new one.
//!
//! ```console
//! $ cargo run -p switchback-gateway --example hyper -- http://localhost:8001
//! $ curl -H 'authorization: Bearer token-of-acme' \
//!     localhost:8080/apis/extensions/v1beta1/namespaces/cafe/ingresses/tea
//! ```

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use std::error::Error;
use std::sync::Arc;
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;
use switchback_gateway::Gateway;
use switchback_plan::Pack;
use tokio::net::TcpListener;

/// Builds a gateway in front of the server at `address`.
pub async fn gateway(address: &str) -> Result<Gateway, Box<dyn Error + Send + Sync>> {
    let gateway = Gateway::builder()
        .pack(pack()?)
        .front("", "v1beta1")
        .upstream("v1", address.parse()?)
        .client("acme", "token-of-acme", [("v1", "token-for-the-api")]);
    Ok(gateway.build().await?)
}

/// Serves connections until the program exits.
pub async fn serve(listener: TcpListener, gateway: Gateway) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(gateway.clone());
        tokio::spawn(async move {
            let builder = Builder::new(TokioExecutor::new());
            if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
                eprintln!("a connection broke: {error}");
            }
        });
    }
}

/// Compiles the pack of ingresses.
pub fn pack() -> Result<Arc<Pack>, Box<dyn Error + Send + Sync>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../mappings/ingress");
    let compiled = compile(&PackSource::from_dir(folder.as_ref())?);
    compiled.pack.ok_or_else(|| "the pack has errors".into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let address = std::env::args().nth(1).ok_or("the address of the server is missing")?;
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    Ok(serve(listener, gateway(&address).await?).await?)
}
