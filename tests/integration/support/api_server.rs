//! A Kubernetes API server with one version of ingresses: it stores objects, validates every body
//! against that version's contract without undeclared members, and answers errors like the real
//! one. Written from the public API conventions; it reads only the contract of the pack.

use crate::contract_walk::document::read_yaml;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The token of the server's clients.
pub const TOKEN: &str = "token-at-the-server";

/// A running server; stopped when dropped.
pub struct ApiServer {
    pub address: SocketAddr,
    api: Arc<Api>,
    serving: JoinHandle<()>,
}

struct Api {
    /// `v1` or `v1beta1`.
    side: &'static str,
    group: &'static str,
    judge: jsonschema::Validator,
    state: Mutex<State>,
}

/// The stored objects.
#[derive(Default)]
pub struct State {
    /// By namespace and name, as they are answered.
    pub ingresses: BTreeMap<(String, String), Value>,
    /// Methods and targets of all requests, in their order.
    pub requests: Vec<String>,
    /// Violations in bodies.
    pub complaints: Vec<String>,
    revision: u64,
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl ApiServer {
    /// A server of this side of the pack.
    pub async fn start(side: &'static str) -> ApiServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let group = if side == "v1" { "networking.k8s.io" } else { "extensions" };
        let api = Arc::new(Api { side, group, judge: judge(side), state: Mutex::default() });
        let serving = tokio::spawn({
            let api = Arc::clone(&api);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let api = Arc::clone(&api);
                    let service = service_fn(move |request| {
                        let api = Arc::clone(&api);
                        async move { Ok::<_, Infallible>(api.answer(request).await) }
                    });
                    let http = hyper::server::conn::http1::Builder::new();
                    tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
                }
            }
        });
        ApiServer { address, api, serving }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.api.state()
    }

    /// The ingress of this name, as the server has it.
    pub fn ingress(&self, namespace: &str, name: &str) -> Option<Value> {
        self.state().ingresses.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }
}

/// The contract's ingress, with no members that the contract does not know.
fn judge(side: &str) -> jsonschema::Validator {
    let contract = read_yaml(&format!("mappings/ingress/contracts/{side}.openapi.yaml"));
    let mut components = contract["components"].clone();
    close(&mut components["schemas"]);
    let schema = json!({"$ref": "#/components/schemas/Ingress", "components": components});
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
    options.build(&schema).expect("schemas of the contract are schemas")
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("properties") && !members.contains_key("additionalProperties") {
                members.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            members.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// An answer before it is sent.
type Answer = (StatusCode, Value);

impl Api {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while holding it")
    }

    fn version(&self) -> String {
        format!("{}/{}", self.group, self.side)
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let target = head.uri.path_and_query().map_or("", |target| target.as_str());
        self.state().requests.push(format!("{} {target}", head.method));
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let shown = head.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (status, body) = if shown == Some(&format!("Bearer {TOKEN}")) {
            self.served(&head.method, head.uri.path(), &body)
        } else {
            self.failure(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized", None)
        };
        let mut response = Response::new(Full::new(body.to_string().into()));
        *response.status_mut() = status;
        let json = header::HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    }

    fn served(&self, method: &Method, path: &str, body: &[u8]) -> Answer {
        let base = format!("/apis/{}/", self.version());
        let Some(below) = path.strip_prefix(&base) else { return self.nothing_there() };
        match (method.as_str(), below.split('/').collect::<Vec<_>>().as_slice()) {
            ("GET", ["ingresses"]) => self.list(None),
            ("GET", ["namespaces", namespace, "ingresses"]) => self.list(Some(namespace)),
            ("POST", ["namespaces", namespace, "ingresses"]) => self.create(namespace, body),
            ("GET", ["namespaces", namespace, "ingresses", name]) => match self.find(namespace, name) {
                Some(found) => (StatusCode::OK, found),
                None => self.not_found(name),
            },
            ("PUT", ["namespaces", namespace, "ingresses", name]) => self.replace(namespace, name, body),
            ("DELETE", ["namespaces", namespace, "ingresses", name]) => self.delete(namespace, name),
            _ => self.nothing_there(),
        }
    }

    fn find(&self, namespace: &str, name: &str) -> Option<Value> {
        self.state().ingresses.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    /// Items of a list have no kind of their own: the list has it.
    fn list(&self, namespace: Option<&str>) -> Answer {
        let state = self.state();
        let wanted =
            state.ingresses.iter().filter(|((of, _), _)| namespace.is_none_or(|wanted| wanted == of));
        let items = wanted.map(|(_, ingress)| {
            let mut item = ingress.clone();
            let members = item.as_object_mut().expect("ingresses are objects");
            members.remove("apiVersion");
            members.remove("kind");
            item
        });
        let list = json!({
            "kind": "IngressList", "apiVersion": self.version(),
            "metadata": {"resourceVersion": state.revision.to_string()}, "items": items.collect::<Vec<_>>(),
        });
        (StatusCode::OK, list)
    }

    fn create(&self, namespace: &str, body: &[u8]) -> Answer {
        let ingress = match self.read(body) {
            Ok(ingress) => ingress,
            Err(refused) => return refused,
        };
        let name = ingress["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if self.find(namespace, &name).is_some() {
            let message = format!("ingresses.{} \"{name}\" already exists", self.group);
            return self.failure(StatusCode::CONFLICT, "AlreadyExists", &message, Some(&name));
        }
        (StatusCode::CREATED, self.keep(namespace, &name, ingress))
    }

    fn replace(&self, namespace: &str, name: &str, body: &[u8]) -> Answer {
        let ingress = match self.read(body) {
            Ok(ingress) => ingress,
            Err(refused) => return refused,
        };
        let Some(old) = self.find(namespace, name) else { return self.not_found(name) };
        let (had, has) = (&old["metadata"]["resourceVersion"], &ingress["metadata"]["resourceVersion"]);
        if !has.is_null() && has != had {
            let message = format!("Operation cannot be fulfilled on ingresses.{} \"{name}\"", self.group);
            return self.failure(StatusCode::CONFLICT, "Conflict", &message, Some(name));
        }
        (StatusCode::OK, self.keep(namespace, name, ingress))
    }

    fn delete(&self, namespace: &str, name: &str) -> Answer {
        let removed = self.state().ingresses.remove(&(namespace.to_owned(), name.to_owned()));
        let Some(removed) = removed else { return self.not_found(name) };
        let details = json!({"name": name, "group": self.group, "kind": "ingresses", "uid": removed["metadata"]["uid"]});
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
        });
        (StatusCode::OK, status)
    }

    /// A body that is an ingress of this version to the letter.
    fn read(&self, body: &[u8]) -> Result<Value, Answer> {
        let ingress: Value = serde_json::from_slice(body)
            .map_err(|error| self.failure(StatusCode::BAD_REQUEST, "BadRequest", &error.to_string(), None))?;
        let wrong: Vec<String> = self
            .judge
            .iter_errors(&ingress)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        if wrong.is_empty() {
            return Ok(ingress);
        }
        self.state().complaints.extend(wrong.iter().cloned());
        let message = wrong.join("; ");
        Err(self.failure(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", &message, None))
    }

    /// Stores an ingress with the additions of a server, and returns it.
    fn keep(&self, namespace: &str, name: &str, mut ingress: Value) -> Value {
        let mut state = self.state();
        state.revision += 1;
        ingress["apiVersion"] = json!(self.version());
        ingress["kind"] = json!("Ingress");
        ingress["metadata"]["namespace"] = json!(namespace);
        ingress["metadata"]["uid"] = json!(format!("uid-of-{name}"));
        ingress["metadata"]["resourceVersion"] = json!(state.revision.to_string());
        if self.side == "v1beta1" {
            as_the_old_server_writes(&mut ingress["spec"]);
        }
        state.ingresses.insert((namespace.to_owned(), name.to_owned()), ingress.clone());
        ingress
    }

    fn nothing_there(&self) -> Answer {
        self.failure(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
            None,
        )
    }

    fn not_found(&self, name: &str) -> Answer {
        let message = format!("ingresses.{} \"{name}\" not found", self.group);
        self.failure(StatusCode::NOT_FOUND, "NotFound", &message, Some(name))
    }

    fn failure(&self, status: StatusCode, reason: &str, message: &str, name: Option<&str>) -> Answer {
        let mut failure = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": status.as_u16(),
        });
        if let Some(name) = name {
            failure["details"] = json!({"name": name, "group": self.group, "kind": "ingresses"});
        }
        (status, failure)
    }
}

/// Absent types of paths get a default; and because the old type requires a port, each resource has
/// one: the number 0.
fn as_the_old_server_writes(spec: &mut Value) {
    let rules = items(spec, "rules").filter_map(|rule| rule.get_mut("http"));
    for path in rules.flat_map(|http| items(http, "paths")) {
        let members = path.as_object_mut().expect("paths are objects");
        members.entry("pathType").or_insert(json!("ImplementationSpecific"));
        a_port_in_any_case(&mut path["backend"]);
    }
    if let Some(backend) = spec.get_mut("backend") {
        a_port_in_any_case(backend);
    }
}

fn a_port_in_any_case(backend: &mut Value) {
    backend.as_object_mut().expect("backends are objects").entry("servicePort").or_insert(json!(0));
}

fn items<'v>(value: &'v mut Value, name: &str) -> impl Iterator<Item = &'v mut Value> {
    value.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}
