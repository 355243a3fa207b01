//! Certificates and keys in files: those for clients, replaced while clients connect, and those for
//! calls to services and the authorization server.

use crate::support::program::Program;
use crate::support::raw::{self, Act, Upstream, exchange};
use crate::support::serving;
use crate::support::tls::file;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use switchback_gateway::store::seal::SealingKey;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_rustls::{TlsAcceptor, TlsConnector};

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file(name)).expect("it is one")
}

/// A client that trusts both certificates of `gateway.test`, without session resumption.
fn connector() -> TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate("certificate.pem")).expect("it is one");
    roots.add(certificate("renewed.pem")).expect("it is one");
    let builder = rustls::ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().expect("ours are");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}

/// Sends a request on a separate connection. Returns the server's certificate and the first line of
/// the answer.
async fn ask(connector: &TlsConnector, at: SocketAddr) -> std::io::Result<(CertificateDer<'static>, String)> {
    let stream = TcpStream::connect(at).await?;
    let mut stream = connector.connect(ServerName::try_from("gateway.test").expect("a name"), stream).await?;
    let shown = stream.get_ref().1.peer_certificates().expect("servers show one")[0].clone().into_owned();
    stream.write_all(b"GET /v2/nothing HTTP/1.1\r\nhost: gateway.test\r\nconnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok((shown, String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()))
}

fn put(name: &str, folder: &Path, own: &str) {
    let next = folder.join("next");
    std::fs::copy(file(name), &next).expect("it is copied");
    std::fs::rename(next, folder.join(own)).expect("it is put in place at once");
}

async fn waiting(program: &Arc<Program>, mark: &'static str) -> String {
    let program = Arc::clone(program);
    spawn_blocking(move || program.stderr_until(mark)).await.expect("it says so")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_renewed_under_load_and_a_broken_one_is_not_taken() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    put("certificate.pem", folder.path(), "own.pem");
    put("key.pem", folder.path(), "own-key.pem");
    let at = folder.path().display();
    let more = format!("tls: {{ certificate: {at}/own.pem, private_key: {at}/own-key.pem }}\n");
    let config = serving::write(folder.path(), "127.0.0.1:9", &more);
    let program = Arc::new(spawn_blocking(move || serving::start(&config, &[])).await.expect("it starts"));
    let serving = Arc::clone(&program);
    let (clients, admin) = spawn_blocking(move || serving::addresses(&serving)).await.expect("it serves");

    let (connector, is_over) = (connector(), Arc::new(AtomicBool::new(false)));
    let asked = Arc::new(AtomicUsize::new(0));
    let load: Vec<JoinHandle<()>> = (0..4)
        .map(|_| {
            let (connector, is_over, asked) = (connector.clone(), Arc::clone(&is_over), Arc::clone(&asked));
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let (_, line) = ask(&connector, clients).await.expect("nobody is turned away");
                    assert_eq!(line, "HTTP/1.1 404 Not Found");
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let goes_on = async || {
        let until = asked.load(Ordering::Relaxed) + 50;
        raw::until(|| asked.load(Ordering::Relaxed) >= until).await;
    };
    goes_on().await;
    assert_eq!(ask(&connector, clients).await.expect("it answers").0, certificate("certificate.pem"));

    put("renewed-key.pem", folder.path(), "own-key.pem");
    put("renewed.pem", folder.path(), "own.pem");
    waiting(&program, "reloaded").await;
    assert_eq!(ask(&connector, clients).await.expect("it answers").0, certificate("renewed.pem"));
    let metrics = format!("GET /metrics HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
    let metrics = exchange(admin, metrics).await.expect("the admin port answers").text();
    let ends = "switchback_tls_certificate_expiry_timestamp_seconds{key=\"tls\"} 4387";
    assert!(metrics.contains(ends), "{metrics}");
    goes_on().await;

    put("key.pem", folder.path(), "own-key.pem");
    let log = waiting(&program, "the reload failed").await;
    assert!(log.contains("certificate and key do not serve"), "{log}");
    assert_eq!(ask(&connector, clients).await.expect("it answers").0, certificate("renewed.pem"));
    goes_on().await;
    is_over.store(true, Ordering::Relaxed);
    for asking in load {
        asking.await.expect("no request failed");
    }
}

/// A server for `gateway.test` that requires client certificates, in front of another without TLS.
struct Secured {
    address: SocketAddr,
    /// The requested server names.
    names: Arc<Mutex<Vec<Option<String>>>>,
    _accepting: JoinHandle<()>,
}

impl Secured {
    async fn before(plain: SocketAddr) -> Secured {
        let mut callers = rustls::RootCertStore::empty();
        callers.add(certificate("renewed.pem")).expect("it is one");
        let verifier =
            rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(callers), provider());
        let config = rustls::ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("ours are")
            .with_client_cert_verifier(verifier.build().expect("there is a root"))
            .with_single_cert(
                vec![certificate("certificate.pem")],
                PrivateKeyDer::from_pem_file(file("key.pem")).expect("it is one"),
            )
            .expect("they belong together");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let names = Arc::<Mutex<Vec<_>>>::default();
        let heard = Arc::clone(&names);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, heard) = (acceptor.clone(), Arc::clone(&heard));
                tokio::spawn(async move {
                    let Ok(mut near) = acceptor.accept(stream).await else { return };
                    heard
                        .lock()
                        .expect("nobody panics")
                        .push(near.get_ref().1.server_name().map(str::to_owned));
                    let mut far = TcpStream::connect(plain).await.expect("it listens");
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        Secured { address, names, _accepting: accepting }
    }
}

/// Client settings: trust in it, its name, and a client certificate.
fn towards_it() -> String {
    format!(
        "tls: {{ ca_file: {}, certificate: {}, private_key: {}, server_name: gateway.test }}",
        file("certificate.pem").display(),
        file("renewed.pem").display(),
        file("renewed-key.pem").display()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_and_the_authorization_server_are_called_with_the_tls_that_is_configured() {
    let token = r#"{"token_type":"Bearer","expires_in":2592000,"access_token":"a-1","refresh_token":"r-1"}"#;
    let service = Upstream::answering(move |_, seen| match seen.line().starts_with("POST /t ") {
        true => Act::json(200, token),
        false => Act::json(200, "[]"),
    })
    .await;
    let secured = Secured::before(service.address).await;
    let at = secured.address;
    for (tls, status) in [(towards_it(), 200), (String::new(), 503)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let comma = if tls.is_empty() { "" } else { ", " };
        let more = format!(
            "oauth: {{ authorize_url: 'https://{at}/a', token_url: 'https://{at}/t', redirect_url: 'http://127.0.0.1/r'{comma}{tls} }}\n\
             clients: [{{ name: acme, v2_token: old-token-of-acme, \
             grant: {{ client_id: app, client_secret: secret-of-app, refresh_token: r-0 }} }}]\n"
        );
        let config = serving::write(folder.path(), "127.0.0.1:9", &more);
        let text = std::fs::read_to_string(&config).expect("it was written");
        let text = text.replace(
            "{ url: 'http://127.0.0.1:9/v3' }",
            &format!("{{ url: 'https://{at}/v3'{comma}{tls} }}"),
        );
        std::fs::write(&config, text).expect("written");
        let start = move |more: &'static [&'static str]| {
            let config = config.clone();
            spawn_blocking(move || {
                serving::start_trusting(&config, &SealingKey::generate(), &file("upstream.pem"), more)
            })
        };
        if status == 200 {
            let checked = start(&["--check=online"]).await.expect("it runs");
            let (ended, out, log) = spawn_blocking(move || checked.all()).await.expect("it ends");
            assert!(
                ended.success() && out.contains("upstreams.v3: ") && out.contains("answers"),
                "{out}{log}"
            );
        }
        let program = start(&[]).await.expect("it starts");
        let clients = spawn_blocking(move || (serving::address(&program), program)).await.expect("it serves");
        let request =
            "GET /v2/agents HTTP/1.1\r\nhost: g\r\nx-authorization: Bearer old-token-of-acme\r\n\r\n";
        let answer = exchange(clients.0, request).await.expect("an answer");
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    let names = secured.names.lock().expect("nobody panics").clone();
    assert!(
        names.len() >= 4 && names.iter().all(|name| name.as_deref() == Some("gateway.test")),
        "{names:?}"
    );
    let seen = service.seen();
    let hosts = |line: &str| -> Vec<String> {
        let of = seen.iter().filter(|seen| seen.line().starts_with(line));
        of.flat_map(|seen| seen.values("host").into_iter().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    assert_eq!(hosts("POST /t "), [at.to_string()], "the request is for the address all the same");
    assert_eq!(hosts("GET /v3/"), [at.to_string()]);
}

#[test]
fn what_is_wrong_with_files_of_a_service_is_found_with_its_place() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = serving::write(folder.path(), "127.0.0.1:9", "");
    let right = std::fs::read_to_string(&config).expect("it was written");
    for (tls, said) in [
        ("ca_file: /nowhere/ca.pem", "/nowhere/ca.pem"),
        ("certificate: /nowhere/c.pem", "`certificate` and `private_key` belong together"),
        ("server_name: 'a b'", "`a b` is no name of a server"),
    ] {
        let with = format!("{{ url: 'https://127.0.0.1:9/v3', tls: {{ {tls} }} }}");
        std::fs::write(&config, right.replace("{ url: 'http://127.0.0.1:9/v3' }", &with)).expect("written");
        let (status, log) = serving::start(&config, &["--check"]).ended();
        assert_eq!(status.code(), Some(1), "{tls}: {log}");
        assert!(log.contains(said) && log.contains("switchback.yaml:5:"), "{tls}: {log}");
    }
    let plain = "{ url: 'http://127.0.0.1:9/v3', tls: { server_name: a.example } }";
    std::fs::write(&config, right.replace("{ url: 'http://127.0.0.1:9/v3' }", plain)).expect("written");
    let (status, log) = serving::start(&config, &["--check"]).ended();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("this URL is `http`"), "{log}");
}
