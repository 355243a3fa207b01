//! The pack `ingress` through the real binary, between real sockets: clients of either version of
//! the Kubernetes API use a server that has only the other one. The server validates every body
//! against its own contract, member by member.

use crate::support::api_server::{ApiServer, TOKEN};
use crate::support::program::Program;
use crate::support::raw::exchange;
use crate::support::serving;
use serde_json::{Value, json};
use std::net::SocketAddr;
use switchback_gateway::store::seal::SealingKey;
use tempfile::TempDir;

/// The token of the client at the front of either version.
const OLD_TOKEN: &str = "token-of-an-old-client";
const NEW_TOKEN: &str = "token-of-a-new-client";

const EXTENSIONS: &str = "/old/apis/extensions/v1beta1";
const NETWORKING_BETA: &str = "/old/apis/networking.k8s.io/v1beta1";
const NETWORKING: &str = "/new/apis/networking.k8s.io/v1";

/// A gateway with a front for each version, each before the server of the other one.
struct Cluster {
    gateway: SocketAddr,
    old: ApiServer,
    new: ApiServer,
    _program: Program,
    _folder: TempDir,
}

impl Cluster {
    async fn start() -> Cluster {
        let (old, new) = (ApiServer::start("v1beta1").await, ApiServer::start("v1").await);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("switchback.yaml");
        let pack = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings/ingress");
        let text = format!(
            "listen: 127.0.0.1:0\nadmin: {{ listen: 127.0.0.1:0 }}\nstore: sqlite:{}/store.db\nkey: ${{TEST_KEY}}\n\
             mapping: {pack}\nfronts: {{ /old: {{ speaks: v1beta1, unknown: refuse }}, /new: {{ speaks: v1, unknown: refuse }} }}\n\
             upstreams: {{ v1beta1: {{ url: 'http://{}' }}, v1: {{ url: 'http://{}' }} }}\n\
             clients: [{{ name: ci, v1beta1_token: {OLD_TOKEN}, v1_token: {NEW_TOKEN}, \
             credentials: {{ v1beta1: {TOKEN}, v1: {TOKEN} }} }}]\n",
            folder.path().display(),
            old.address,
            new.address
        );
        std::fs::write(&file, text).expect("the file is written");
        let (program, gateway, _) = serving::serve(&file, &SealingKey::generate()).await;
        Cluster { gateway, old, new, _program: program, _folder: folder }
    }

    /// Status and body of an answer. `line` is method and path; the token is that of the front.
    async fn ask(&self, line: &str, body: Option<&Value>) -> (u16, Value) {
        let token = if line.contains(" /old") { OLD_TOKEN } else { NEW_TOKEN };
        self.ask_as(line, token, body).await
    }

    async fn ask_as(&self, line: &str, token: &str, body: Option<&Value>) -> (u16, Value) {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{line} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = exchange(self.gateway, request).await.expect("an answer");
        assert!(answer.is_complete, "{line}: {}", answer.text());
        assert_eq!(answer.value("content-type"), "application/json", "{line}");
        let body =
            serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{line}: {}", answer.text()));
        (answer.status, body)
    }
}

#[test]
fn the_verbs_find_the_pack_by_its_folder_and_have_nothing_to_say_against_it() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings/ingress");
    for (verb, said) in [
        ("check", "ingress: 14 operations of v1beta1, 7 of v1, 11 shapes; 0 errors, 0 warnings"),
        ("test", " examples passed; every outcome is covered"),
        ("report", "v1 in front of v1beta1: 7 operations; 2 exact, 2 different, 2 partly, 1 not possible"),
    ] {
        let program = Program::start(&[verb, folder], &[]);
        program.stdout_until(said);
        let (status, log) = program.ended();
        assert!(status.success(), "{verb}: {log}");
    }
}

/// Ingresses by how their backends are named, in the words of a version.
struct Words {
    version: &'static str,
    default_backend: &'static str,
    service: fn(&str, Value) -> Value,
}

const OLD: Words = Words {
    version: "extensions/v1beta1",
    default_backend: "backend",
    service: |name, port| json!({"serviceName": name, "servicePort": port}),
};

const NEW: Words = Words {
    version: "networking.k8s.io/v1",
    default_backend: "defaultBackend",
    service: |name, port| {
        let kind = if port.is_string() { "name" } else { "number" };
        json!({"service": {"name": name, "port": {kind: port}}})
    },
};

impl Words {
    /// Ports by number and by name, a resource, TLS, labels and annotations with keys of any form.
    fn cafe(&self) -> Value {
        let path =
            |path: &str, backend: Value| json!({"path": path, "pathType": "Prefix", "backend": backend});
        json!({
            "apiVersion": self.version,
            "kind": "Ingress",
            "metadata": {
                "name": "cafe-ingress",
                "labels": {"app.kubernetes.io/name": "cafe", "": "no name"},
                "annotations": {"nginx.ingress.kubernetes.io/rewrite-target": "/$1", "serviceName": "not one"},
            },
            "spec": {
                "ingressClassName": "nginx",
                "tls": [{"hosts": ["cafe.example.com"], "secretName": "cafe-secret"}],
                (self.default_backend): (self.service)("default-http-backend", json!(80)),
                "rules": [
                    {"host": "cafe.example.com", "http": {"paths": [
                        path("/tea", (self.service)("tea-svc", json!(80))),
                        path("/coffee", (self.service)("coffee-svc", json!("http"))),
                    ]}},
                    {"host": "*.example.com"},
                ],
            },
        })
    }
}

/// Both versions of a call on one cluster: every operation, in the form of `client`, on a server
/// with the form of `kept`.
async fn lives_and_dies(cluster: &Cluster, server: &ApiServer, base: &str, client: &Words, kept: &Words) {
    let (all, here) = (format!("{base}/ingresses"), format!("{base}/namespaces/cafe/ingresses"));
    let one = format!("{here}/cafe-ingress");
    let cafe = client.cafe();

    let (status, created) = cluster.ask(&format!("POST {here}?fieldManager=test"), Some(&cafe)).await;
    assert_eq!(status, 201, "{created}");
    assert_eq!(server.state().complaints, Vec::<String>::new());
    let in_server = server.ingress("cafe", "cafe-ingress").expect("it was created");
    assert_eq!((&in_server["apiVersion"], &in_server["spec"]), (&json!(kept.version), &kept.cafe()["spec"]));
    assert_eq!((&created["apiVersion"], &created["spec"]), (&json!(client.version), &cafe["spec"]));
    assert_eq!(created["metadata"]["annotations"], cafe["metadata"]["annotations"]);
    assert_eq!(created["metadata"]["labels"], cafe["metadata"]["labels"]);
    assert_eq!(created["metadata"]["uid"], "uid-of-cafe-ingress");

    assert_eq!(cluster.ask(&format!("GET {one}"), None).await, (200, created.clone()));
    for list in [format!("GET {all}"), format!("GET {here}?limit=500&watch=false")] {
        let (status, list) = cluster.ask(&list, None).await;
        assert_eq!(
            (status, &list["kind"], &list["apiVersion"]),
            (200, &json!("IngressList"), &json!(client.version))
        );
        let items = list["items"].as_array().expect("a list has items");
        assert_eq!((items.len(), &items[0]["spec"]), (1, &cafe["spec"]));
        assert!(items[0].get("kind").is_none() && items[0].get("apiVersion").is_none());
    }
    let (status, empty) = cluster.ask(&format!("GET {base}/namespaces/other/ingresses"), None).await;
    assert_eq!((status, &empty["items"]), (200, &json!([])));

    let (status, again) = cluster.ask(&format!("POST {here}"), Some(&cafe)).await;
    assert_eq!((status, &again["kind"], &again["reason"]), (409, &json!("Status"), &json!("AlreadyExists")));
    let group = client.version.split('/').next().expect("a version has a group");
    let group = if base == NETWORKING_BETA { "extensions" } else { group };
    assert_eq!(again["details"], json!({"name": "cafe-ingress", "group": group, "kind": "ingresses"}));

    let mut changed = created.clone();
    changed["spec"]["rules"][0]["http"]["paths"][0]["backend"] = (client.service)("tea-svc", json!("https"));
    let (status, replaced) = cluster.ask(&format!("PUT {one}"), Some(&changed)).await;
    assert_eq!((status, &replaced["spec"]), (200, &changed["spec"]), "{replaced}");
    assert_ne!(replaced["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    let (status, stale) = cluster.ask(&format!("PUT {one}"), Some(&changed)).await;
    assert_eq!((status, &stale["reason"], &stale["code"]), (409, &json!("Conflict"), &json!(409)));

    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
    let (status, gone) = cluster.ask(&format!("DELETE {one}"), Some(&options)).await;
    assert_eq!((status, &gone["status"], &gone["details"]["group"]), (200, &json!("Success"), &json!(group)));
    let (status, missing) = cluster.ask(&format!("GET {one}"), None).await;
    assert_eq!(
        (status, &missing["reason"], &missing["details"]["group"]),
        (404, &json!("NotFound"), &json!(group))
    );
    assert!(server.ingress("cafe", "cafe-ingress").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_the_old_version_work_on_a_server_of_the_new_one() {
    let cluster = Cluster::start().await;
    lives_and_dies(&cluster, &cluster.new, EXTENSIONS, &OLD, &NEW).await;
    assert!(cluster.old.state().requests.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_the_new_version_work_on_a_server_of_the_old_one() {
    let cluster = Cluster::start().await;
    lives_and_dies(&cluster, &cluster.old, NETWORKING, &NEW, &OLD).await;
    assert!(cluster.new.state().requests.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_group_that_ingresses_had_moved_to_is_served_too() {
    let cluster = Cluster::start().await;
    let client = Words { version: "networking.k8s.io/v1beta1", ..OLD };
    lives_and_dies(&cluster, &cluster.new, NETWORKING_BETA, &client, &NEW).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_without_a_type_gets_the_one_that_it_always_had() {
    let cluster = Cluster::start().await;
    let mut minimal =
        json!({"metadata": {"name": "minimal"}, "spec": {"rules": [{"http": {"paths": [{}]}}]}});
    minimal["spec"]["rules"][0]["http"]["paths"][0]["backend"] = (OLD.service)("test", json!(80));
    let (status, created) =
        cluster.ask(&format!("POST {EXTENSIONS}/namespaces/default/ingresses"), Some(&minimal)).await;
    assert_eq!(status, 201, "{created}");
    let kept = cluster.new.ingress("default", "minimal").expect("it was created");
    assert_eq!(kept["spec"]["rules"][0]["http"]["paths"][0]["pathType"], "ImplementationSpecific");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_port_that_the_old_server_shows_beside_a_resource_is_the_port_of_no_service() {
    let cluster = Cluster::start().await;
    let resource =
        json!({"resource": {"apiGroup": "k8s.example.com", "kind": "StorageBucket", "name": "assets"}});
    let ingress = json!({
        "apiVersion": NEW.version, "kind": "Ingress", "metadata": {"name": "static"},
        "spec": {"defaultBackend": resource},
    });
    let here = format!("{NETWORKING}/namespaces/default/ingresses");
    let (status, created) = cluster.ask(&format!("POST {here}"), Some(&ingress)).await;
    assert_eq!((status, &created["spec"]["defaultBackend"]), (201, &resource));
    let kept = cluster.old.ingress("default", "static").expect("it was created");
    assert_eq!(kept["spec"]["backend"]["servicePort"], 0);
    let (_, read) = cluster.ask(&format!("GET {here}/static"), None).await;
    assert_eq!(read["spec"]["defaultBackend"], resource);
}

/// A Status of the gateway itself.
fn failure(code: u16, reason: &str, message: &Value) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_gateway_refuses_is_told_as_the_server_tells_it() {
    let cluster = Cluster::start().await;
    for (front, other) in [(EXTENSIONS, &NEW), (NETWORKING, &OLD)] {
        let here = format!("{front}/namespaces/cafe/ingresses");
        let one = format!("{here}/cafe-ingress");
        for (line, body, code, reason) in [
            (format!("GET {here}?watch=true&resourceVersion=7"), None, 501, "NotImplemented"),
            (format!("PATCH {one}"), Some(json!({"spec": {}})), 501, "NotImplemented"),
            (format!("POST {here}"), Some(other.cafe()), 400, "BadRequest"),
            (format!("POST {here}"), Some(json!([])), 400, "BadRequest"),
            (format!("GET {front}/ingressclasses"), None, 404, "NotFound"),
            (format!("DELETE {here}"), None, 405, "MethodNotAllowed"),
        ] {
            let (status, said) = cluster.ask(&line, body.as_ref()).await;
            assert_eq!((status, &said), (code, &failure(code, reason, &said["message"])), "{line}");
        }
        for token in ["nobodys-token", if front == EXTENSIONS { NEW_TOKEN } else { OLD_TOKEN }] {
            let (status, said) = cluster.ask_as(&format!("GET {one}"), token, None).await;
            assert_eq!((status, &said), (401, &failure(401, "Unauthorized", &said["message"])));
        }
    }
    assert!(cluster.old.state().requests.is_empty() && cluster.new.state().requests.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_refuses_comes_back_in_its_words() {
    let cluster = Cluster::start().await;
    let here = format!("{EXTENSIONS}/namespaces/cafe/ingresses");
    let nameless =
        json!({"metadata": {"name": "x"}, "spec": {"backend": {"serviceName": 7, "servicePort": 80}}});
    let (status, said) = cluster.ask(&format!("POST {here}"), Some(&nameless)).await;
    assert_eq!((status, &said["reason"], &said["code"]), (422, &json!("Invalid"), &json!(422)));
    assert!(
        said["message"].as_str().is_some_and(|text| text.contains("/spec/defaultBackend/service/name")),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_gone_is_a_status_too() {
    let mut cluster = Cluster::start().await;
    // Another one takes its place, at another address.
    cluster.new = ApiServer::start("v1").await;
    let (status, said) = cluster.ask(&format!("GET {EXTENSIONS}/ingresses"), None).await;
    assert_eq!((status, &said), (502, &failure(502, "ServiceUnavailable", &said["message"])));
}
