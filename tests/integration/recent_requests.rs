//! The sample of recent requests through the real program: requests of clients appear in the admin
//! API with their calls and times, without secrets, within bounds, and of all replicas.

use crate::support::dual::{ADMIN_TOKEN, Dual, Running, Upstreams, administrator, ask, eventually, started};
use crate::support::postgres;
use crate::support::raw::{Answer, Client, exchange};
use crate::support::studio::page;
use serde_json::{Value, json};
use std::fs;
use switchback_gateway::store::seal::SealingKey;
use switchback_sandbox::{Options, Sandbox};

/// Planted where clients carelessly put credentials; must be nowhere in a sample.
const PLANTED: &str = "sk_live_Zx81Qm2Lp04Nv7Rk55Tb";
const TRANSLATED: &str = "phases: { default: translated }\n";

async fn sandbox() -> Sandbox {
    Sandbox::start(Options::default()).await.expect("a loopback address")
}

/// Returns the list of requests once it fits: a request is sampled when its response has ended.
async fn listed(gateway: &Running, query: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    eventually(&format!("the list of {query} fits"), async || {
        let (status, list) = gateway.admin(&format!("GET /api/requests{query}"), &Value::Null).await;
        assert_eq!(status, 200, "{list}");
        last = list;
        fits(&last)
    })
    .await;
    last
}

fn number(of: &Value) -> u64 {
    of.as_u64().unwrap_or_else(|| panic!("{of} is no number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_listed_with_its_calls_and_their_times_in_order() {
    let service = sandbox().await;
    let (_dual, gateway) = started(&service, Upstreams::of(&service), TRANSLATED).await;
    let answer = ask(&gateway, &service, "GET /v2/chats/7", "").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = answer.value("x-request-id");
    let list = listed(&gateway, &format!("?id={id}"), |list| list["matching"] == 1).await;
    let sample = &list["samples"][0];
    for (name, expected) in [
        ("id", json!(id)),
        ("client", json!("administrator")),
        ("side", json!("v2")),
        ("operation", json!("GET /chats/{id}")),
        ("method", json!("GET")),
        ("path", json!("/v2/chats/7")),
        ("phase", json!("translated")),
        ("status", json!(200)),
        ("outcome", json!("translated")),
        ("error", json!("")),
        ("answered_by", json!("v3")),
        ("bytes_in", json!(0)),
        ("bytes_out", json!(answer.body.len())),
        ("attempts_left_out", json!(0)),
    ] {
        assert_eq!(sample[name], expected, "{name} of {sample}");
    }
    let calls = sample["calls"].as_array().expect("the calls are a list");
    assert!(!calls.is_empty(), "{sample}");
    let mut before = 0;
    for call in calls {
        let (start, took) = (number(&call["start_us"]), number(&call["took_us"]));
        assert!(start >= before, "calls are in order: {sample}");
        assert!(start + took <= number(&sample["head_us"]), "{sample}");
        assert_eq!(
            (&call["side"], &call["status"], &call["attempts"]),
            (&json!("v3"), &json!(200), &json!(1))
        );
        assert!(call["path"].as_str().is_some_and(|path| path.starts_with('/')), "{call}");
        before = start;
    }
    assert!(number(&sample["head_us"]) <= number(&sample["took_us"]), "{sample}");
    assert!(number(&sample["waited_us"]) <= number(&sample["head_us"]), "{sample}");

    let (status, mut one) = gateway.admin(&format!("GET /api/requests/{id}"), &Value::Null).await;
    let messages = one["messages"].take();
    one.as_object_mut().expect("an object").remove("messages");
    assert_eq!((status, &one), (200, sample));
    let recorded = messages["calls"].as_array().expect("the calls are recorded");
    assert_eq!(recorded.len(), calls.len(), "{messages}");
    assert_eq!((&recorded[0]["path"], &recorded[0]["status"]), (&calls[0]["path"], &json!(200)));
    let body = messages["response"]["body"].as_str().expect("the response is recorded");
    let masked: Value = serde_json::from_str(body).expect("it is JSON");
    let sent: Value = serde_json::from_str(&answer.text()).expect("it is JSON");
    assert_eq!(masked["id"], sent["id"], "{masked}");
    let (status, error) = gateway.admin("GET /api/requests/0123456789abcdef", &Value::Null).await;
    assert_eq!((status, error["error"].is_string()), (404, true), "{error}");
    assert!(number(&list["sampled"]) <= number(&list["requests"]), "{list}");
    assert_eq!(list["replicas"].as_array().map(Vec::len), Some(1), "{list}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forwarded_refused_and_unknown_requests_are_found_by_filters() {
    let service = sandbox().await;
    let phases = "phases: { default: translated, 'GET /contacts': legacy }\n";
    let (dual, gateway) = started(&service, Upstreams::of(&service), phases).await;
    ask(&gateway, &service, "GET /v2/contacts", "").await;
    ask(&gateway, &service, "GET /v2/chats/999999", "").await;
    let stranger = "GET /v2/chats HTTP/1.1\r\nhost: service.test\r\n\r\n";
    exchange(gateway.address, stranger).await.expect("an answer");
    let matching = async |query: &str, count: u64| {
        listed(&gateway, query, |list| list["matching"] == count).await["samples"].clone()
    };
    let all = matching("?minutes=60", 3).await;
    let forwarded = matching("?outcome=forwarded&operation=GET+%2Fcontacts&status=2xx", 1).await;
    assert_eq!(
        (&forwarded[0]["answered_by"], &forwarded[0]["calls"][0]["side"]),
        (&json!("v2"), &json!("v2"))
    );
    assert_eq!(forwarded[0]["calls"][0]["path"], "/contacts");
    assert_eq!(matching("?phase=legacy", 1).await, forwarded);
    let missing = matching("?status=404&client=administrator", 1).await;
    assert_eq!(missing[0]["calls"][0]["status"], 404, "{missing}");
    let unknown = matching("?client=(none)&status=4xx", 1).await;
    assert_eq!((&unknown[0]["status"], &unknown[0]["outcome"]), (&json!(401), &json!("rejected")));
    assert_eq!(unknown[0]["calls"], json!([]));
    matching("?status=5xx", 0).await;
    let page = matching("?limit=1&page=2", 3).await;
    assert_eq!(page, json!([all[1]]));
    for query in ["?minutes=7", "?status=many", "?outcome=good", "?token=x", "?limit=0", "?page=0"] {
        let (status, error) = gateway.admin(&format!("GET /api/requests{query}"), &Value::Null).await;
        assert_eq!((status, error["error"].is_string()), (400, true), "{query}: {error}");
    }
    let admin = format!("http://{}", gateway.admin);
    let printed = dual.cli_json(&["requests", "--admin", &admin, "--status", "404", "--limit", "5"]).await;
    assert_eq!((&printed["matching"], &printed["samples"]), (&json!(1), &missing));
    let (code, _, error) = dual.cli(&["requests", "--admin", &admin, "--status", "many"]).await;
    assert!(code == Some(2) && error.contains("`404`"), "{error}");
    let open = exchange(gateway.admin, "GET /api/requests HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert_eq!(open.expect("an answer").status, 401, "samples need a token");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn samples_have_neither_credentials_nor_texts_of_people() {
    let service = sandbox().await;
    let (_dual, gateway) = started(&service, Upstreams::of(&service), TRANSLATED).await;
    let token = &administrator(&service).v2_token;
    let lines = [
        format!("GET /v2/chats?api_key={PLANTED}"),
        format!("GET /v2/{PLANTED}/chats"),
        format!("GET /v2/contacts?q=Ana+Lovelace&x={token}"),
        format!("GET /{PLANTED}/elsewhere?Ana+Lovelace"),
        format!("GET /v2/chats/{token}/messages"),
        "POST /v2/contacts?note=Ana+Lovelace".to_owned(),
        format!("{PLANTED} /v2/chats"),
    ];
    for line in &lines {
        let fields = format!("x-api-key: {PLANTED}\r\nx-note: Ana Lovelace\r\n");
        let body = if line.starts_with("POST") { r#"{"name":"Ana Lovelace","note":"PLANTED"}"# } else { "" };
        let fields = format!("{fields}content-type: application/json\r\n");
        gateway.ask(administrator(&service), line, &fields, &body.replace("PLANTED", PLANTED)).await;
    }
    let count = lines.len();
    listed(&gateway, "", |list| list["matching"] == count).await;
    let mut text = gateway.admin_text("GET /api/requests", &Value::Null).await.text();
    let list: Value = serde_json::from_str(&text).expect("it is JSON");
    for sample in list["samples"].as_array().expect("a list") {
        let id = sample["id"].as_str().expect("an id");
        text += &gateway.admin_text(&format!("GET /api/requests/{id}"), &Value::Null).await.text();
        text += &page(&gateway, &format!("/requests/{id}")).await;
    }
    assert!(text.contains("x-api-key"), "header fields are recorded: {text}");
    for secret in [PLANTED, token, "Lovelace", ADMIN_TOKEN] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_successes_are_sampled_and_a_failure_among_them_is_there() {
    let service = sandbox().await;
    let (dual, gateway) = started(&service, Upstreams::of(&service), TRANSLATED).await;
    const REQUESTS: u64 = 400;
    let account = administrator(&service);
    let mut client = Client::connect(gateway.address).await;
    for _ in 0..REQUESTS {
        client.send(crate::support::dual::request(account, "GET /v2/chats/7", "", "")).await;
        assert_eq!(client.answer().await.expect("an answer").status, 200);
    }
    let failed = ask(&gateway, &service, "GET /v2/chats/999999", "").await;
    let id = failed.value("x-request-id");
    listed(&gateway, &format!("?id={id}"), |list| list["matching"] == 1).await;
    let list = listed(&gateway, "", |list| list["requests"] == REQUESTS + 1).await;
    assert!(number(&list["sampled"]) < REQUESTS, "{list}");

    // A reload disables the sample, and what it had is gone.
    let file = dual.file();
    let text = fs::read_to_string(&file).expect("it was written");
    let off = text.replace("token: admin-token", "recent_requests: 0, token: admin-token");
    assert_ne!(off, text);
    fs::write(&file, off).expect("it is written");
    assert_eq!(gateway.admin("POST /api/reload", &json!({})).await.0, 202);
    listed(&gateway, "", |list| list["matching"] == 0).await;
    assert_eq!(ask(&gateway, &service, "GET /v2/chats/7", "").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_all_replicas_are_listed_while_they_are_read() {
    let Some(database) = postgres::database() else { return };
    let service = sandbox().await;
    let one = Dual::sealed_with(SealingKey::generate(), &database);
    let other = one.beside();
    for dual in [&one, &other] {
        dual.configure(&service, Upstreams::of(&service), &["administrator"], TRANSLATED);
    }
    let (first, second) = (one.started().await, other.started().await);
    let ours = ask(&first, &service, "GET /v2/chats/7", "").await;
    let theirs = ask(&second, &service, "GET /v2/chats/999999", "").await;
    let list = listed(&first, "", |list| list["matching"] == 2).await;
    let replicas = list["replicas"].as_array().expect("they are listed");
    assert_eq!(replicas.len(), 2, "{list}");
    for replica in replicas {
        assert_eq!((&replica["sampled"], &replica["requests"]), (&json!(1), &json!(1)), "{replica}");
    }
    let samples = list["samples"].as_array().expect("they are listed");
    let found = |answer: &Answer| samples.iter().find(|sample| sample["id"] == answer.value("x-request-id"));
    let (own, others) = (found(&ours).expect("its own"), found(&theirs).expect("of the other one"));
    assert_eq!(own["replica"], replicas[0]["replica"]);
    assert_eq!((&others["replica"], &others["status"]), (&replicas[1]["replica"], &json!(404)));
    let path = format!("/requests/{}", theirs.value("x-request-id"));
    let page = page(&first, &path).await;
    assert!(page.contains("/chats/{id}") && page.contains("404"), "{page}");

    // A replica that leaves takes its requests with it.
    second.stop().await;
    listed(&first, "", |list| list["matching"] == 1).await;
    let store = one.opened_store().await;
    for replica in store.replicas().await.expect("the replicas") {
        let is_left = replica.left_ms.is_some();
        let sampled = store.replica_requests(&replica.id).await.expect("it is read");
        assert!(!is_left || sampled.is_none(), "{sampled:?}");
    }
}
