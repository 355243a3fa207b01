//! The examples, started and asked: what they show is what others build on.

#[path = "../examples/axum.rs"]
#[expect(dead_code, reason = "its own main")]
mod layer;
#[path = "../examples/hyper.rs"]
#[expect(dead_code, reason = "its own main")]
mod service;

use serde_json::{Value, json};
use std::net::SocketAddr;
use switchback_compiler::mapping::{compile, load::PackSource};
use switchback_gateway::{BuildError, Gateway};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const OLD: &str = "/apis/extensions/v1beta1/namespaces/cafe/ingresses/tea";
const NEW: &str = "/apis/networking.k8s.io/v1/namespaces/cafe/ingresses/tea";

/// Status and body of an answer.
async fn ask(address: SocketAddr, path: &str, token: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: gateway.test\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn old_ingress() -> Value {
    json!({
        "apiVersion": "extensions/v1beta1",
        "kind": "Ingress",
        "metadata": {"name": "tea", "namespace": "cafe"},
        "spec": {"backend": {"serviceName": "tea", "servicePort": 80}},
    })
}

#[tokio::test]
async fn the_layer_translates_below_its_front_and_passes_on_everything_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = layer::app().await.unwrap();
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    assert_eq!(ask(address, &format!("/old{OLD}"), "token-of-acme").await, (200, old_ingress()));
    let (status, own) = ask(address, NEW, "any").await;
    assert_eq!((status, &own["apiVersion"]), (200, &json!("networking.k8s.io/v1")));
    let (status, refused) = ask(address, &format!("/old{OLD}"), "nobodys").await;
    assert_eq!((status, &refused["reason"]), (401, &json!("Unauthorized")));
    assert_eq!(ask(address, "/elsewhere", "any").await.0, 404);
    serving.abort();
}

#[tokio::test]
async fn the_service_makes_its_calls_over_the_network() {
    let api = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = api.local_addr().unwrap();
    let answering = tokio::spawn(async move {
        let (mut stream, _) = api.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert!(stream.read_buf(&mut head).await.unwrap() > 0);
        }
        let body = json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "tea", "namespace": "cafe"},
            "spec": {"defaultBackend": {"service": {"name": "tea", "port": {"number": 80}}}},
        });
        let body = body.to_string();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(head).unwrap()
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gateway = service::gateway(&format!("http://{upstream}")).await.unwrap();
    let serving = tokio::spawn(service::serve(listener, gateway));
    assert_eq!(ask(address, OLD, "token-of-acme").await, (200, old_ingress()));
    let head = answering.await.unwrap();
    assert!(head.starts_with(&format!("GET {NEW} HTTP/1.1\r\n")), "{head}");
    assert!(head.to_ascii_lowercase().contains("authorization: bearer token-for-the-api\r\n"), "{head}");
    serving.abort();
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let pack = || service::pack().unwrap();
    let nothing = Gateway::builder().build().await.unwrap_err();
    assert!(matches!(nothing, BuildError::NoPack), "{nothing}");
    let no_front = Gateway::builder().pack(pack()).build().await.unwrap_err();
    assert!(matches!(no_front, BuildError::NoFront), "{no_front}");
    let unknown = Gateway::builder().pack(pack()).front("/old", "v2").build().await.unwrap_err();
    assert_eq!(unknown.to_string(), "the pack has no side `v2`; its sides are `v1beta1` and `v1`");
    let prefix = Gateway::builder().pack(pack()).front("old/", "v1beta1").build().await.unwrap_err();
    assert!(matches!(prefix, BuildError::Prefix(_)), "{prefix}");
    let nowhere = Gateway::builder().pack(pack()).front("/old", "v1beta1").build().await.unwrap_err();
    assert_eq!(nowhere.to_string(), "calls go to side `v1`, which has no address: call `upstream`");
}

#[tokio::test]
async fn each_host_that_the_pack_names_wants_an_address() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/integration/hosts");
    let source = PackSource::from_dir(folder.as_ref()).unwrap();
    let pack = compile(&source).pack.unwrap();
    let at = |path: &str| format!("http://127.0.0.1:9/{path}").parse().unwrap();
    let builder = || Gateway::builder().pack(pack.clone()).front("/old", "v1").upstream("v2", at("v2"));
    let missing = builder().build().await.unwrap_err();
    assert!(matches!(&missing, BuildError::NoHost { host, .. } if host == "files"), "{missing}");
    let unknown = builder().host("v2", "fils", at("files")).build().await.unwrap_err();
    assert!(matches!(&unknown, BuildError::UnknownHost { host, .. } if host == "fils"), "{unknown}");
    let side = builder().host("v3", "files", at("files")).build().await.unwrap_err();
    assert!(matches!(side, BuildError::UnknownSide { .. }), "{side}");
    assert!(builder().host("v2", "files", at("files")).build().await.is_ok());
}
