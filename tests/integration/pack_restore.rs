//! Back to a previous pack: what is recorded, how it is restored and ends, and what other gateways
//! of the store do.

use crate::support::dual::{Dual, Running, Upstreams, ask, eventually};
use crate::support::editor::copy;
use crate::support::postgres;
use crate::support::studio::Session;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use switchback_gateway::store::NewPackRecord;
use switchback_sandbox::{Options, Sandbox};

/// The text of a refusal, which the tests change.
const REASON: &str = "Survey results cannot be read through API v3.";
const REFUSED: &str = "v2 GET /chats/{id}/feedback";

fn folder(dual: &Dual) -> PathBuf {
    dual.folder.path().join("pack")
}

/// A gateway on files of its own.
fn configure(dual: &Dual, service: &Sandbox) {
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging"), &folder(dual));
    let more = format!("mapping: '{}'\nreload: {{ settle: 20ms }}\n", folder(dual).display());
    dual.configure(service, Upstreams::of(service), &["administrator"], &more);
    // Without the old service, which would answer what the pack refuses.
    let text = std::fs::read_to_string(dual.file()).expect("it was written");
    let old = format!(", v2: {{ url: 'http://{}/v2' }}", service.address());
    assert!(text.contains(&old), "{text}");
    std::fs::write(dual.file(), text.replace(&old, "")).expect("it is written");
}

/// Replaces the text of the refusal on disk.
fn edit(dual: &Dual, old: &str, new: &str) {
    let entries = std::fs::read_dir(folder(dual)).expect("the pack was copied");
    for path in entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()) {
        let text = std::fs::read_to_string(&path).expect("it is text");
        if text.contains(old) {
            std::fs::write(&path, text.replace(old, new)).expect("it is written");
        }
    }
}

/// Waits until clients read this text.
async fn refuses_with(service: &Sandbox, gateway: &Running, reason: &str) {
    eventually(reason, async || {
        let answer = ask(gateway, service, "GET /v2/chats/7/feedback", "").await;
        let answer: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        answer["reason"] == reason
    })
    .await;
}

/// The recorded packs, once there are so many.
async fn recorded(gateway: &Running, count: usize) -> Value {
    let mut list = Value::Null;
    eventually("the packs are recorded", async || {
        list = gateway.admin("GET /api/packs", &Value::Null).await.1;
        list["packs"].as_array().is_some_and(|packs| packs.len() == count)
    })
    .await;
    list
}

/// The status of the pack, once it is or is not a restored one: clients are served a moment before
/// the status is published.
async fn status(gateway: &Running, is_restored: bool) -> Value {
    let mut pack = Value::Null;
    eventually("the status of the pack", async || {
        pack = gateway.admin("GET /api/pack", &Value::Null).await.1;
        pack["restored"].is_null() != is_restored
    })
    .await;
    pack
}

async fn kinds(gateway: &Running) -> Vec<(String, String)> {
    let (_, all) = gateway.admin("GET /history/export.json", &Value::Null).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.as_array().into_iter().flatten().map(|one| (text(&one["kind"]), text(&one["by"]))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_previous_pack_serves_until_the_files_change() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    configure(&dual, &service);
    let gateway = dual.start().await;
    refuses_with(&service, &gateway, REASON).await;
    recorded(&gateway, 1).await;
    edit(&dual, REASON, "Not any more.");
    refuses_with(&service, &gateway, "Not any more.").await;
    let list = recorded(&gateway, 2).await;
    let (bad, good) = (&list["packs"][0], &list["packs"][1]);
    let changes = json!({"added": [], "removed": [], "changed": [REFUSED]});
    assert_eq!((&bad["changes"], &good["changes"]), (&changes, &Value::Null), "{list}");
    assert_eq!(
        [&bad["by"], &good["by"], &list["restored"]],
        [&json!("files"), &json!("start"), &Value::Null]
    );

    // The verb restores it, and the gateway follows.
    let id = good["id"].as_str().expect("an id").to_owned();
    let (code, out, err) = dual.cli(&["pack", "restore", &id[..10], "--yes", "--by", "Ada"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    refuses_with(&service, &gateway, REASON).await;
    let pack = status(&gateway, true).await;
    assert_eq!((&pack["hash"], &pack["restored"]["instead_of"]), (&good["id"], &bad["id"]), "{pack}");
    assert_eq!(pack["restored"]["by"], "Ada (command line)");
    let (_, attention) = gateway.admin("GET /api/attention", &Value::Null).await;
    let item = attention["items"].as_array().into_iter().flatten().find(|item| item["id"] == "restored");
    assert!(item.is_some_and(|item| item["page"] == "/pack?show=recorded"), "{attention}");
    let admin = format!("http://{}", gateway.admin);
    let (code, out, err) = dual.cli(&["status", "--admin", &admin]).await;
    assert!(code == Some(1) && out.contains("it is not the pack on disk: Ada"), "{out}{err}");
    let page = gateway.admin_text("GET /pack?show=recorded", &Value::Null).await.text();
    assert!(page.contains("The served pack is not the one on disk.") && page.contains(">on disk<"), "{page}");
    let (code, out, err) = dual.cli(&["pack", "list"]).await;
    assert!(
        code == Some(0) && out.contains("restored") && out.contains("operations: 1 changed"),
        "{out}{err}"
    );

    // It does so after a restart, until the files change.
    gateway.stop().await;
    let gateway = dual.start().await;
    refuses_with(&service, &gateway, REASON).await;
    edit(&dual, "Not any more.", "Yet another.");
    refuses_with(&service, &gateway, "Yet another.").await;
    status(&gateway, false).await;
    // The files of before are not the restored pack's concern any more.
    edit(&dual, "Yet another.", "Not any more.");
    refuses_with(&service, &gateway, "Not any more.").await;

    // The API restores it, and so does the page, unless the pack was reloaded since it was read. A
    // restoration of the pack on disk ends it, and so does a requested reload.
    let restore = |id: &str| format!("POST /api/packs/{id}/restore");
    let (status, pack) = gateway.admin(&restore(&id), &json!({})).await;
    assert_eq!((status, &pack["hash"]), (200, &json!(id)), "{pack}");
    refuses_with(&service, &gateway, REASON).await;
    let on_disk = pack["restored"]["instead_of"].as_str().expect("a hash").to_owned();
    let (status, pack) = gateway.admin(&restore(&on_disk), &json!({})).await;
    assert_eq!((status, &pack["hash"], &pack["restored"]), (200, &json!(on_disk), &Value::Null), "{pack}");
    refuses_with(&service, &gateway, "Not any more.").await;
    let session = Session::open(&gateway).await;
    let outdated = session.submit(&gateway, "/pack/restore", &[("id", &id), ("seen", "0 never")]).await;
    assert_eq!(outdated.status, 409, "{}", outdated.text());
    let page = session.page(&gateway, "/pack?show=recorded").await;
    let seen = page.split("name=\"seen\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let fields = [("id", id.as_str()), ("seen", seen.expect("a form"))];
    assert_eq!(session.submit(&gateway, "/pack/restore", &fields).await.status, 303);
    refuses_with(&service, &gateway, REASON).await;
    assert_eq!(gateway.admin("POST /api/reload", &json!({})).await.0, 202);
    refuses_with(&service, &gateway, "Not any more.").await;
    let kinds = kinds(&gateway).await;
    for (kind, by) in [
        ("pack restored", "Ada (command line)"),
        ("pack restored", "admin.token (admin API)"),
        ("pack restored", "Ada"),
        ("restoration ended", "admin.token (admin API)"),
    ] {
        assert!(kinds.contains(&(kind.to_owned(), by.to_owned())), "{kind} by {by}: {kinds:?}");
    }
}

/// Compresses files as the program records them. Returns them with their hash.
fn packed(files: &[(&str, &str)]) -> (String, Vec<u8>) {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let mut digest = Sha256::new();
    for part in files.iter().flat_map(|(name, content)| [name.as_bytes(), content.as_bytes()]) {
        for bytes in [&(part.len() as u64).to_be_bytes()[..], part] {
            encoder.write_all(bytes).expect("memory");
            digest.update(bytes);
        }
    }
    let hash = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    (hash, encoder.finish().expect("memory"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_pack_that_does_not_compile_is_refused_with_its_findings() {
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let dual = Dual::new();
    configure(&dual, &service);
    let gateway = dual.start().await;
    let (hash, files) = packed(&[("pack.yaml", "mapping: 999\npack: old\n")]);
    let store = dual.opened_store().await;
    let new = NewPackRecord { hash: &hash, name: "old", who: "start", operations: "{}", files: &files };
    store.record_pack(&new).await.expect("it is written");
    store.close().await;
    let (status, refused) = gateway.admin(&format!("POST /api/packs/{hash}/restore"), &json!({})).await;
    let text = refused["error"].as_str().unwrap_or_default();
    assert!(status == 409 && text.contains("pack.yaml"), "{status} {refused}");
    let (code, _, err) = dual.cli(&["pack", "restore", &hash, "--yes"]).await;
    assert!(code == Some(2) && err.contains("pack.yaml"), "{code:?} {err}");
    // Files that are not those of the hash are no recorded pack, and an id names one.
    let store = dual.opened_store().await;
    let changed = format!("x{}", &hash[1..]);
    let (_, files) = packed(&[("pack.yaml", "mapping: 1\n")]);
    for hash in [&changed, "twice-1", "twice-2"] {
        let new = NewPackRecord { hash, name: "old", who: "start", operations: "{}", files: &files };
        store.record_pack(&new).await.expect("it is written");
    }
    store.close().await;
    for (id, status, part) in [(changed.as_str(), 409, "damaged"), ("twice", 400, "give more characters")] {
        let (answered, refused) = gateway.admin(&format!("POST /api/packs/{id}/restore"), &json!({})).await;
        let text = refused["error"].as_str().unwrap_or_default();
        assert!(answered == status && text.contains(part), "{id}: {answered} {refused}");
    }
    let (status, refused) = gateway.admin("POST /api/packs/none/restore", &json!({})).await;
    assert_eq!(status, 404, "{refused}");
    let (_, pack) = gateway.admin("GET /api/pack", &Value::Null).await;
    assert_eq!((&pack["restored"], &pack["generation"]), (&Value::Null, &json!(1)), "{pack}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_with_the_replaced_files_follow_and_others_serve_their_own() {
    let Some(url) = postgres::database() else { return };
    let service = Sandbox::start(Options::default()).await.expect("a loopback address");
    let mut dual = Dual::new();
    dual.store = url;
    let other = dual.beside();
    for one in [&dual, &other] {
        configure(one, &service);
    }
    let (first, second) = (dual.start().await, other.start().await);
    recorded(&first, 1).await;
    for one in [&dual, &other] {
        edit(one, REASON, "Not any more.");
    }
    for one in [&first, &second] {
        refuses_with(&service, one, "Not any more.").await;
    }
    let id = recorded(&first, 2).await["packs"][1]["id"].as_str().expect("an id").to_owned();
    assert_eq!(first.admin(&format!("POST /api/packs/{id}/restore"), &json!({})).await.0, 200);
    for one in [&first, &second] {
        refuses_with(&service, one, REASON).await;
    }
    // A deployment that has reached one of them.
    edit(&dual, "Not any more.", "Mended.");
    refuses_with(&service, &first, "Mended.").await;
    let pack = status(&second, true).await;
    assert_eq!(pack["hash"], json!(id), "the other goes on with the restored one: {pack}");
    edit(&other, "Not any more.", "Mended.");
    refuses_with(&service, &second, "Mended.").await;
    // A reload on request ends it for all.
    edit(&other, "Mended.", "Not any more.");
    refuses_with(&service, &second, REASON).await;
    assert_eq!(first.admin("POST /api/reload", &json!({})).await.0, 202);
    refuses_with(&service, &second, "Not any more.").await;
}
