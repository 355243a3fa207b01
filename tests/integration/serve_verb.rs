//! `switchback serve` from an operator's view: messages about a configuration, start, reload and
//! stop.

use crate::support::program::Program;
use crate::support::raw::{Act, Upstream, exchange};
use crate::support::serving::{self, start as serve};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use switchback_gateway::store::seal::SealingKey;

/// A configuration with an unreachable service, which no test here calls.
fn write(folder: &Path, more: &str) -> PathBuf {
    serving::write(folder, "127.0.0.1:9", more)
}

#[test]
fn it_serves_reloads_on_sighup_and_stops_on_sigterm() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = serve(&write(folder.path(), ""), &[]);
    program.stderr_until("serving");
    program.signal("HUP");
    program.stderr_until("reloaded");
    program.signal("TERM");
    let (status, log) = program.ended();
    assert!(status.success(), "{status}: {log}");
    assert!(log.contains("draining") && log.contains("stopped"), "{log}");
}

#[test]
fn a_right_configuration_is_said_to_be_right_and_nothing_is_opened() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = serve(&write(folder.path(), ""), &["--check"]);
    program.stdout_until("ready to serve");
    let (status, log) = program.ended();
    assert!(status.success(), "{log}");
    assert!(!folder.path().join("store.db").exists());
}

#[test]
fn a_wrong_configuration_is_shown_with_all_its_mistakes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "realod: { watch: false }\nlimits: { body_bytes: 1MB }\n");
    let (status, log) = serve(&file, &[]).ended();
    assert_eq!(status.code(), Some(1), "{log}");
    for part in ["switchback.yaml:7:1", "did you mean `reload`?", "switchback.yaml:8:23", "10MiB"] {
        assert!(log.contains(part), "{part} in {log}");
    }
}

#[test]
fn what_the_pack_does_not_have_is_shown_in_the_configuration() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "fronts: { /v2: { speaks: v22 } }\n");
    let (status, log) = serve(&file, &["--check"]).ended();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("`v22` is not a side of the pack") && log.contains("switchback.yaml:7:26"), "{log}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let (status, log) = serve(Path::new("/nowhere/switchback.yaml"), &[]).ended();
    assert_eq!(status.code(), Some(3), "{log}");
    assert!(log.contains("/nowhere/switchback.yaml cannot be read"), "{log}");
}

/// The service returns the agents, with an escape that is invalid in JSON in a field unknown to v2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_no_line_reads_is_checked_too() {
    let token = r#"{"token_type":"Bearer","expires_in":2592000,"access_token":"a-1","refresh_token":"r-1"}"#;
    let agents = r#"[{"id":1,"name":"Ana","unheard_of":"\q"}]"#;
    let service = Upstream::start(vec![Act::json(200, token), Act::json(200, agents)]).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = service.address;
    let more = format!(
        "oauth: {{ authorize_url: 'http://{at}/a', token_url: 'http://{at}/t', redirect_url: 'http://{at}/r' }}\n\
         clients: [{{ name: acme, v2_token: old-token-of-acme, \
         grant: {{ client_id: app, client_secret: secret-of-app, refresh_token: r-0 }} }}]\n"
    );
    let program = serve(&serving::write(folder.path(), &at.to_string(), &more), &[]);
    let gateway = serving::address(&program);
    assert_eq!(asked(gateway, "GET /v2/agents", "old-token-of-acme").await, 502);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_no_warning_and_a_client_without_a_grant_is_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "clients: [{ name: acme, v2_token: old-token-of-acme }]\n");
    let program = serve(&file, &[]);
    let gateway = serving::address(&program);
    for (line, token, status) in [
        ("GET /v2/agents", "of-nobody", 401),
        ("GET /v2/nothing", "old-token-of-acme", 404),
        ("GET /v2/chats/1/feedback", "old-token-of-acme", 501),
        ("GET /v2/agents", "old-token-of-acme", 503),
    ] {
        assert_eq!(asked(gateway, line, token).await, status, "{line}");
    }
    program.signal("TERM");
    let (_, log) = program.ended();
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("a request failed")).collect();
    assert_eq!(warnings.len(), 1, "{log}");
    assert!(warnings[0].contains("WARN") && warnings[0].contains("needs_reconnect"), "{log}");
}

async fn asked(gateway: SocketAddr, line: &str, token: &str) -> u16 {
    let request = format!("{line} HTTP/1.1\r\nhost: g\r\nx-authorization: Bearer {token}\r\n\r\n");
    exchange(gateway, request).await.expect("an answer").status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_not_there_is_waited_for_and_the_log_says_so_in_its_own_form() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let with = |wait: &str| {
        let file =
            write(folder.path(), &format!("limits: {{ store_wait: {wait} }}\nlog: {{ format: json }}\n"));
        let text = std::fs::read_to_string(&file).expect("written");
        let (before, after) = text.split_once("store:").expect("there is one");
        let rest = after.split_once('\n').map_or("", |(_, rest)| rest);
        let url = format!("store: 'postgres://u:hunter2@{nobody}/d'\n");
        std::fs::write(&file, format!("{before}{url}{rest}")).expect("written");
        file
    };
    let program = serve(&with("1ms"), &[]);
    let (status, log) = program.ended();
    assert_eq!(status.code(), Some(3), "{log}");
    for line in log.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    }
    let last = log.lines().last().unwrap_or_default();
    assert!(last.contains("the gateway did not start") && last.contains("limits.store_wait"), "{last}");
    assert!(last.contains("refused"), "why it does not answer: {last}");
    assert!(!log.contains("hunter2"));

    // While it waits it can be stopped.
    let program = serve(&with("10m"), &[]);
    program.stderr_until("the store does not answer");
    assert!(program.stop().success());
}

#[test]
fn keys_and_files_that_are_none_are_found_in_one_run_with_their_places() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "tls: { certificate: /nowhere/c.pem, private_key: /nowhere/k.pem }\n");
    for arguments in [&["--check"][..], &[]] {
        let arguments = [&["serve", "--config", file.to_str().expect("a plain name")], arguments].concat();
        let (status, log) = Program::start(&arguments, &[("TEST_KEY", "hunter2")]).ended();
        assert_eq!(status.code(), Some(1), "{log}");
        for part in [
            "switchback.yaml:4:",
            "not a sealing key",
            "switchback.yaml:7:",
            "/nowhere/c.pem",
            "/nowhere/k.pem",
        ] {
            assert!(log.contains(part), "{part} in {log}");
        }
        assert!(!log.contains("hunter2"), "{log}");
    }
}

/// Of several keys, as in a rotation, the invalid or repeated one is reported.
#[test]
fn of_several_keys_the_wrong_one_is_pointed_at() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "");
    let text = std::fs::read_to_string(&file).expect("it was written");
    let right = SealingKey::generate();
    for (second, said) in [("hunter2", "not a sealing key"), (right.expose(), "is given twice")] {
        let keys = text.replace("key: ${TEST_KEY}", "key:\n  - ${TEST_KEY}\n  - ${SECOND_KEY}");
        std::fs::write(&file, keys).expect("written");
        let arguments = ["serve", "--check", "--config", file.to_str().expect("a plain name")];
        let variables = [("TEST_KEY", right.expose().as_str()), ("SECOND_KEY", second)];
        let (status, log) = Program::start(&arguments, &variables).ended();
        assert_eq!(status.code(), Some(1), "{log}");
        assert!(log.contains("switchback.yaml:6:5") && log.contains(said), "{log}");
        assert!(!log.contains("switchback.yaml:5:") && !log.contains("hunter2"), "{log}");
    }
}

#[test]
fn what_cannot_be_opened_is_named_with_its_key() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    // A file is not waited for.
    let file = write(folder.path(), "limits: { store_wait: 1h }\n");
    let right = std::fs::read_to_string(&file).expect("it was written");
    for (from, to, said) in [
        (
            "listen: 127.0.0.1:0\nadmin",
            format!("listen: {address}\nadmin"),
            format!("`listen`: cannot listen on {address}"),
        ),
        (
            "{ listen: 127.0.0.1:0 }",
            format!("{{ listen: {address} }}"),
            format!("`admin.listen`: cannot listen on {address}"),
        ),
        ("sqlite:", "sqlite:/nowhere".to_owned(), "/nowhere".to_owned()),
    ] {
        std::fs::write(&file, right.replace(from, &to)).expect("it is written");
        // Each start has a key of its own.
        let _ = std::fs::remove_file(folder.path().join("store.db"));
        let (status, log) = serve(&file, &[]).ended();
        assert_eq!(status.code(), Some(3), "{log}");
        assert!(log.contains(&said), "{said} in {log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_asks_finds_out_who_does_not_answer() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let service = Upstream::start(vec![Act::json(404, "{}")]).await;
    // Bound without listening: connections are refused, and no other test gets the port.
    let bound = tokio::net::TcpSocket::new_v4().expect("a socket");
    bound.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    let gone = bound.local_addr().expect("it is bound").to_string();
    let check = async |address: &str, how: &str, format: &str| {
        let file = serving::write(folder.path(), address, "");
        let arguments = [how.to_owned(), "--format".to_owned(), format.to_owned()];
        let running = tokio::task::spawn_blocking(move || {
            let program = serve(&file, &arguments.each_ref().map(String::as_str));
            program.all()
        });
        running.await.expect("it ends")
    };
    let (status, out, _) = check(&service.address.to_string(), "--check=online", "json").await;
    let said: serde_json::Value = serde_json::from_str(&out).expect("one document");
    assert!(status.success() && said["ready"] == true, "{said:#}");
    assert_eq!(said["tries"].as_array().map(Vec::len), Some(2), "{said:#}");
    assert!(!folder.path().join("store.db").exists(), "nothing is made");
    assert!(service.seen().iter().all(|seen| seen.values("x-authorization").is_empty()));

    let (status, out, _) = check(&gone, "--check=online", "json").await;
    let said: serde_json::Value = serde_json::from_str(&out).expect("one document");
    assert_eq!((status.code(), &said["ready"]), (Some(1), &false.into()), "{said:#}");
    let tries = said["tries"].as_array().expect("a list");
    let v3 = tries.iter().find(|one| one["key"] == "upstreams.v3").expect("it was tried");
    assert!(v3["error"].as_str().is_some_and(|error| error.contains("refused")), "{v3}");
    let (status, out, error) = check(&gone, "--check=online", "text").await;
    assert_eq!(status.code(), Some(1), "{out}{error}");
    assert!(error.contains("upstreams.v3: ") && !out.contains("ready to serve"), "{out}{error}");
    let (status, out, _) = check(&gone, "--check", "text").await;
    assert!(status.success() && out.contains("ready to serve"), "{out}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_asks_reads_the_metadata_of_the_issuer() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (more, slash, wanted, is_ready) in [
        (r#""code_challenge_methods_supported":["S256"]"#, "", "", true),
        (
            r#""grant_types_supported":["authorization_code"]"#,
            "",
            "`grant_types_supported` lacks `refresh_token`",
            false,
        ),
        (
            r#""code_challenge_methods_supported":["plain"]"#,
            "",
            "`code_challenge_methods_supported` lacks `S256`",
            false,
        ),
        (
            r#""scopes_supported":[]"#,
            "",
            "warning: the metadata have no `code_challenge_methods_supported`",
            true,
        ),
        (r#""code_challenge_methods_supported":["S256"]"#, "/", "of another issuer, `http://", false),
    ] {
        let server = Upstream::answering(move |_, seen| {
            let host = seen.values("host").first().map(|host| host.to_string()).unwrap_or_default();
            let at = format!("http://{host}");
            let body = format!(
                r#"{{"issuer":"{at}{slash}","token_endpoint":"{at}/t","authorization_endpoint":"{at}/a",{more}}}"#
            );
            match seen.line() {
                line if line.contains("oauth-authorization-server") => Act::json(200, &body),
                _ => Act::json(404, "{}"),
            }
        })
        .await;
        let oauth = format!(
            "oauth: {{ issuer: 'http://{}', redirect_url: 'http://127.0.0.1:9/cb' }}\n",
            server.address
        );
        let file = serving::write(folder.path(), &server.address.to_string(), &oauth);
        let running = tokio::task::spawn_blocking(move || serve(&file, &["--check=online"]).all());
        let (status, out, error) = running.await.expect("it ends");
        assert_eq!(status.success(), is_ready, "{more}: {out}{error}");
        assert_eq!(out.contains("oauth.issuer: http://"), is_ready, "{more}: {out}{error}");
        assert!(error.contains(wanted), "{wanted}: {out}{error}");
    }
    let oauth = "oauth: { issuer: 'http://127.0.0.1:9', redirect_url: 'http://127.0.0.1:9/cb' }\n";
    let file = write(folder.path(), oauth);
    let running = tokio::task::spawn_blocking(move || serve(&file, &["--check=online"]).all());
    let (_, out, error) = running.await.expect("it ends");
    let said = ["oauth.issuer: http://127.0.0.1:9", "its metadata cannot be read", "cannot connect"];
    assert!(said.iter().all(|said| error.contains(said)), "{out}{error}");
}

#[test]
fn findings_are_json_for_programs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "realod: { watch: false }\n");
    let (status, out, _) = serve(&file, &["--check", "--format", "json"]).all();
    let said: serde_json::Value = serde_json::from_str(&out).expect("one document");
    assert_eq!((status.code(), &said["ready"]), (Some(1), &false.into()), "{said:#}");
    let finding = &said["configuration"]["findings"][0];
    assert_eq!(
        (&finding["line"], &finding["help"]),
        (&7.into(), &"did you mean `reload`?".into()),
        "{said:#}"
    );
}
