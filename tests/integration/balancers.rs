//! The configurations of HAProxy and nginx in `docs/BALANCERS.md`: each is valid, and clients reach
//! a gateway through those for certificates, JWT and rate limits.

use crate::support::raw::{Act, Upstream};
use crate::support::serving::Serving;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// Returns the blocks of the page in this language.
fn blocks(language: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/BALANCERS.md");
    let page = fs::read_to_string(page).expect("the page is here when tests run");
    let open = format!("```{language}\n");
    let blocks = page.split(open.as_str()).skip(1).filter_map(|rest| rest.split("```").next());
    let blocks: Vec<String> = blocks.map(str::to_owned).collect();
    assert!(blocks.len() >= 3, "{blocks:?}");
    blocks
}

/// Returns the path of a program, or `None` with a message if it is absent.
fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: {name} is not installed");
    }
    found
}

fn done(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    output.stdout
}

/// The files that the configurations name, in a folder of their own.
struct Files {
    folder: TempDir,
    openssl: PathBuf,
}

impl Files {
    fn new() -> Option<Files> {
        let openssl = installed("openssl")?;
        let files = Files { folder: tempfile::tempdir().expect("a temporary folder"), openssl };
        for (name, subject) in
            [("site", "/CN=gateway.test"), ("client", "/CN=acme"), ("stranger", "/CN=evil")]
        {
            let [key, certificate] = ["key", "crt"].map(|end| files.path(&format!("{name}.{end}")));
            let words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", subject];
            done(Command::new(&files.openssl).args(words).args(["-keyout", &key, "-out", &certificate]));
        }
        let read = |name: &str| fs::read_to_string(files.path(name)).expect("it was made");
        files.write("site.pem", &(read("site.crt") + &read("site.key")));
        files.write("clients-ca.pem", &read("client.crt"));
        done(Command::new(&files.openssl).args(["genrsa", "-out", &files.path("issuer.key"), "2048"]));
        let words = ["rsa", "-pubout", "-in", &files.path("issuer.key"), "-out", &files.path("issuer.pem")];
        done(Command::new(&files.openssl).args(words));
        files.write("tokens.map", "acme old-token-of-acme\n");
        Some(files)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("temporary folders have plain names").to_owned()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.path().join(name);
        fs::write(&file, text).expect("the folder is ours");
        file
    }

    /// Replaces the folder of the page by this one.
    fn here(&self, block: &str) -> String {
        let folder = format!("{}/", self.folder.path().display());
        block.replace("/etc/haproxy/", &folder).replace("/etc/nginx/", &folder)
    }

    /// Returns a JWT of the issuer with these claims.
    fn jwt(&self, algorithm: &str, claims: &serde_json::Value) -> String {
        let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({"alg": algorithm})), part(claims));
        let mut signing = Command::new(&self.openssl)
            .args(["dgst", "-sha256", "-sign", &self.path("issuer.key")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("openssl starts");
        signing.stdin.take().expect("it is piped").write_all(signed.as_bytes()).expect("it reads");
        let signature = signing.wait_with_output().expect("it ends").stdout;
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

#[test]
fn the_configurations_are_valid() {
    let Some(files) = Files::new() else { return };
    if let Some(haproxy) = installed("haproxy") {
        let blocks = blocks("haproxy");
        for block in &blocks[1..] {
            let file = files.write("haproxy.cfg", &files.here(&format!("{}{block}", blocks[0])));
            done(Command::new(&haproxy).arg("-c").arg("-f").arg(&file));
            // It is examined: with another word it is not valid.
            let wrong = fs::read_to_string(&file).expect("it is here").replacen("bind", "bnd", 1);
            let wrong = files.write("wrong.cfg", &wrong);
            let output = Command::new(&haproxy).arg("-c").arg("-f").arg(wrong).output().expect("it starts");
            assert!(!output.status.success(), "{block}");
        }
    }
    if let Some(nginx) = installed("nginx") {
        files.write("tokens.map", "\"CN=acme\" \"Bearer old-token-of-acme\";\n");
        for block in blocks("nginx") {
            let pid = files.path("nginx.pid");
            let text =
                format!("pid {pid};\nevents {{}}\nhttp {{\naccess_log off;\n{}}}\n", files.here(&block));
            let file = files.write("nginx.conf", &text);
            let folder = files.folder.path();
            done(Command::new(&nginx).args(["-t", "-e", "stderr", "-p"]).arg(folder).arg("-c").arg(file));
        }
    }
}

/// A running HAProxy, stopped when dropped.
struct Haproxy(Child);

impl Drop for Haproxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has room");
    listener.local_addr().expect("it listens").port()
}

/// Starts HAProxy with the frontends of the page in front of a gateway. Returns their ports.
fn start(haproxy: &Path, files: &Files, gateway: &Serving) -> (Haproxy, BTreeMap<String, u16>) {
    let blocks = blocks("haproxy");
    let mut text = blocks[0].replace("127.0.0.1:8080", &gateway.address.to_string());
    let mut ports = BTreeMap::new();
    for block in blocks.iter().filter(|block| block.contains(":8443")) {
        let port = free_port();
        text += &block.replace(":8443", &format!("127.0.0.1:{port}"));
        ports.insert(block.split_whitespace().nth(1).expect("a name").to_owned(), port);
    }
    let file = files.write("running.cfg", &files.here(&text));
    let child = Command::new(haproxy).arg("-db").arg("-f").arg(file).stdin(Stdio::null()).spawn();
    let running = Haproxy(child.expect("it starts"));
    let begun = Instant::now();
    while ports.values().any(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_err()) {
        assert!(begun.elapsed() < Duration::from_secs(30), "HAProxy does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    (running, ports)
}

/// Sends `count` requests over one connection. Returns their statuses; `000` without a response.
async fn ask(port: u16, count: usize, more: &[&str]) -> Vec<String> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--insecure", "--noproxy", "*", "--write-out", "%{http_code}\n"]).args(more);
    for _ in 0..count {
        command.args(["--output", "/dev/null", &format!("https://127.0.0.1:{port}/v2/agents")]);
    }
    let output = tokio::task::spawn_blocking(move || command.output().expect("curl starts")).await;
    let printed = String::from_utf8(output.expect("it ends").stdout).expect("digits");
    printed.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_reach_the_gateway_by_certificate_and_jwt_and_within_a_rate() {
    let (Some(haproxy), Some(_)) = (installed("haproxy"), installed("curl")) else { return };
    let Some(files) = Files::new() else { return };
    let service = Upstream::answering(|_, _| Act::json(200, r#"[{"id":1,"name":"Ana"}]"#)).await;
    let more = "proxy_protocol: [127.0.0.1]\nclients: [{ name: acme, v2_token: old-token-of-acme, \
                credentials: { v3: new-token-of-acme } }]\n";
    let gateway = Serving::configured(service.address, &["v3"], more).await;
    let (_running, ports) = start(&haproxy, &files, &gateway);
    let forged = "X-Authorization: Bearer another-token-of-acme";

    let certificate = |name: &str| {
        [
            "--cert".to_owned(),
            files.path(&format!("{name}.crt")),
            "--key".to_owned(),
            files.path(&format!("{name}.key")),
        ]
    };
    let with = certificate("client");
    let with: Vec<&str> = with.iter().map(String::as_str).chain(["--header", forged]).collect();
    assert_eq!(ask(ports["certificates"], 1, &with).await, ["200"]);
    let stranger = certificate("stranger");
    let stranger: Vec<&str> = stranger.iter().map(String::as_str).collect();
    assert_eq!(ask(ports["certificates"], 1, &stranger).await, ["000"]);
    assert_eq!(ask(ports["certificates"], 1, &[]).await, ["000"]);

    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs();
    let good =
        json!({"iss": "https://auth.example.com", "aud": "switchback", "sub": "acme", "exp": now + 600});
    let but = |name: &str, value: serde_json::Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    let tampered = {
        let token = files.jwt("RS256", &good);
        let (signed, _) = token.rsplit_once('.').expect("a signature");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode([7; 256]))
    };
    for (token, status) in [
        (files.jwt("RS256", &good), "200"),
        (tampered, "401"),
        (files.jwt("HS256", &good), "401"),
        (files.jwt("RS256", &but("iss", json!("https://other.example.com"))), "401"),
        (files.jwt("RS256", &but("aud", json!("another"))), "401"),
        (files.jwt("RS256", &but("exp", json!(now - 600))), "401"),
        (files.jwt("RS256", &but("exp", json!(null))), "401"),
        (files.jwt("RS256", &but("sub", json!("nobody"))), "403"),
    ] {
        let field = format!("Authorization: Bearer {token}");
        let got = ask(ports["jwt"], 1, &["--header", &field, "--header", forged]).await;
        assert_eq!(got, [status], "{token}");
    }
    assert_eq!(ask(ports["jwt"], 1, &["--header", forged]).await, ["401"]);

    let own = ["--header", "X-Authorization: Bearer old-token-of-acme"];
    let statuses = ask(ports["limited"], 610, &own).await;
    let count = |status: &str| statuses.iter().filter(|got| *got == status).count();
    // More than 600 pass if they take longer than a minute.
    assert!(count("200") >= 600 && count("200") + count("429") == 610, "{statuses:?}");
    assert!(count("429") > 0, "{statuses:?}");
    // The limit is of the token, not of the address.
    assert_eq!(ask(ports["limited"], 1, &["--header", forged]).await, ["401"]);

    let seen = service.seen();
    assert_eq!(seen.len(), 2 + count("200"));
    assert!(seen.iter().all(|call| call.values("authorization") == ["Bearer new-token-of-acme"]));
    assert!(seen.iter().all(|call| call.values("x-authorization").is_empty()));
}
