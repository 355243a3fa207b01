//! The gateway as a layer around an axum router that implements the new version of an API. Clients
//! use the old version below `/old`.
//!
//! ```console
//! $ cargo run -p switchback-gateway --example axum
//! $ curl -H 'authorization: Bearer token-of-acme' \
//!     localhost:8080/old/apis/extensions/v1beta1/namespaces/cafe/ingresses/tea
//! $ curl localhost:8080/apis/networking.k8s.io/v1/namespaces/cafe/ingresses/tea
//! ```

use axum::extract::Path;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::error::Error;
use std::sync::Arc;
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;
use switchback_gateway::Gateway;
use switchback_plan::Pack;
use tower::Layer as _;

/// Builds the router with the gateway around it.
pub async fn app() -> Result<Router, Box<dyn Error + Send + Sync>> {
    let gateway = Gateway::builder()
        .pack(pack()?)
        .front("/old", "v1beta1")
        .client("acme", "token-of-acme", [("v1", "token-for-the-api")])
        .layer()
        .await?;
    let api = Router::new()
        .route("/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses/{name}", get(ingress));
    Ok(Router::new().fallback_service(gateway.layer(api)))
}

/// Returns an ingress of the new version.
async fn ingress(Path((namespace, name)): Path<(String, String)>) -> Json<Value> {
    Json(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"defaultBackend": {"service": {"name": name, "port": {"number": 80}}}},
    }))
}

/// Compiles the pack of ingresses.
fn pack() -> Result<Arc<Pack>, Box<dyn Error + Send + Sync>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../mappings/ingress");
    let compiled = compile(&PackSource::from_dir(folder.as_ref())?);
    compiled.pack.ok_or_else(|| "the pack has errors".into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    axum::serve(listener, app().await?).await?;
    Ok(())
}
