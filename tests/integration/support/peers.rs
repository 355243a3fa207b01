//! Servers that are common in front of a service in production, from their packages: nginx, HAProxy
//! and Envoy. Each is started by the test that needs it, if it is installed, and stopped with the
//! test. Their TLS certificates must be trusted explicitly by a gateway.

use super::tls;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take to listen before a test has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// The protocol between a server and the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    #[default]
    Plain,
    /// TLS with HTTP/1.1.
    Tls1,
    /// TLS with HTTP/2.
    Tls2,
}

impl Wire {
    pub const ALL: [Wire; 3] = [Wire::Plain, Wire::Tls1, Wire::Tls2];
}

/// The servers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Nginx,
    Haproxy,
    Envoy,
}

/// A running server. Ended when dropped.
pub struct Peer {
    child: Child,
    wire: Wire,
    address: SocketAddr,
    folder: TempDir,
}

impl Peer {
    /// Starts a server that forwards everything to `service`; none, with a message, if it is not
    /// installed.
    pub fn before(kind: Kind, wire: Wire, service: SocketAddr) -> Option<Peer> {
        Peer::configured(kind, wire, service, "")
    }

    /// The same; for nginx, `more` is added to the lines of its server, for HAProxy to the line of the
    /// service.
    pub fn configured(kind: Kind, wire: Wire, service: SocketAddr, more: &str) -> Option<Peer> {
        let name = match kind {
            Kind::Nginx => "nginx",
            Kind::Haproxy => "haproxy",
            Kind::Envoy => "envoy",
        };
        let Some(program) = installed(name) else {
            eprintln!("SKIPPED: {name} is not installed");
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let address = free();
        let at = folder.path();
        let mut command = Command::new(program);
        match kind {
            Kind::Nginx => {
                let file = write(at, "nginx.conf", &nginx(at, wire, address, service, more));
                command.arg("-p").arg(at).arg("-c").arg(file).args(["-e", "stderr"]);
            }
            Kind::Haproxy => {
                let pem = [tls::upstream_certificate(), tls::upstream_key()]
                    .map(|file| fs::read(file).expect("it is here"));
                fs::write(at.join("both.pem"), pem.concat()).expect("the folder is ours");
                command.arg("-db").arg("-f").arg(write(
                    at,
                    "haproxy.cfg",
                    &haproxy(at, wire, address, service, more),
                ));
            }
            Kind::Envoy => {
                let file = write(at, "envoy.yaml", &envoy(wire, address, service));
                command.arg("-c").arg(file).args([
                    "--use-dynamic-base-id",
                    "-l",
                    "error",
                    "--concurrency",
                    "1",
                ]);
            }
        }
        let log = fs::File::create(at.join("log")).expect("the folder is ours");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let mut peer = Peer { child: child.expect("it is installed"), wire, address, folder };
        peer.wait();
        Some(peer)
    }

    /// The address of one side of the service behind it.
    pub fn url(&self, side: &str) -> String {
        let scheme = if self.wire == Wire::Plain { "http" } else { "https" };
        format!("{scheme}://{}/{side}", self.address)
    }

    /// Has it read its configuration again: old workers end once their connections have.
    pub fn reload(&self) {
        self.signal("HUP");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    fn wait(&mut self) {
        let started = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            let ended = self.child.try_wait().expect("it is our child");
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(ended.is_none() && started.elapsed() < PATIENCE, "{ended:?}: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // nginx has workers, which stop with it on a signal, and remain after a kill.
        self.signal("TERM");
        let _ = self.child.wait();
    }
}

fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Returns an unused address. It is bound a moment later, so that a conflict is unlikely.
fn free() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has room");
    listener.local_addr().expect("it listens")
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let file = folder.join(name);
    fs::write(&file, text).expect("the folder is ours");
    file
}

fn nginx(at: &Path, wire: Wire, address: SocketAddr, service: SocketAddr, more: &str) -> String {
    let listen = match wire {
        Wire::Plain => "",
        Wire::Tls1 => "ssl",
        Wire::Tls2 => "ssl http2",
    };
    let tls = match wire {
        Wire::Plain => String::new(),
        _ => format!(
            "ssl_certificate {}; ssl_certificate_key {};",
            tls::upstream_certificate().display(),
            tls::upstream_key().display()
        ),
    };
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("{what}_temp_path {}/{what};", at.display()))
        .join(" ");
    // Its workers would run as a user without write access here.
    let user = if at.starts_with("/root") || is_root() { "user root;" } else { "" };
    format!(
        "daemon off; {user} worker_processes 1; pid {at}/pid; error_log stderr error;\n\
         events {{ worker_connections 512; }}\n\
         http {{ access_log off; {temporary}\n\
         server {{ listen {address} {listen}; {tls}\n\
         {more}\n\
         location / {{ proxy_pass http://{service}; proxy_http_version 1.1; proxy_set_header Connection ''; }} }} }}\n",
        at = at.display()
    )
}

fn is_root() -> bool {
    let user = Command::new("id").arg("-u").output().expect("id runs");
    user.stdout.trim_ascii() == b"0"
}

fn haproxy(at: &Path, wire: Wire, address: SocketAddr, service: SocketAddr, more: &str) -> String {
    let tls = |alpn| format!("ssl crt {}/both.pem alpn {alpn}", at.display());
    let bind = match wire {
        Wire::Plain => String::new(),
        Wire::Tls1 => tls("http/1.1"),
        Wire::Tls2 => tls("h2"),
    };
    format!(
        "global\n  maxconn 512\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n\
         frontend front\n  bind {address} {bind}\n  default_backend back\nbackend back\n  server service {service} {more}\n"
    )
}

fn envoy(wire: Wire, address: SocketAddr, service: SocketAddr) -> String {
    let socket = |address: SocketAddr| {
        format!("socket_address: {{ address: {}, port_value: {} }}", address.ip(), address.port())
    };
    let tls = |alpn: &str| {
        format!(
            "\n    transport_socket:\n      name: tls\n      typed_config:\n        \
             '@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext\n        \
             common_tls_context:\n          alpn_protocols: [{alpn}]\n          \
             tls_certificates: [{{ certificate_chain: {{ filename: '{}' }}, private_key: {{ filename: '{}' }} }}]",
            tls::upstream_certificate().display(),
            tls::upstream_key().display()
        )
    };
    let tls = match wire {
        Wire::Plain => String::new(),
        Wire::Tls1 => tls("http/1.1"),
        Wire::Tls2 => tls("h2"),
    };
    format!(
        "static_resources:
  listeners:
  - address: {{ {listen} }}
    filter_chains:
    - filters:
      - name: http
        typed_config:
          '@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: front
          route_config:
            virtual_hosts: [{{ name: all, domains: ['*'], routes: [{{ match: {{ prefix: / }}, route: {{ cluster: back }} }}] }}]
          http_filters:
          - name: router
            typed_config: {{ '@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }}{tls}
  clusters:
  - name: back
    connect_timeout: 5s
    load_assignment:
      cluster_name: back
      endpoints: [{{ lb_endpoints: [{{ endpoint: {{ address: {{ {to} }} }} }}] }}]
",
        listen = socket(address),
        to = socket(service),
        tls = tls.replace("\n    ", "\n      "),
    )
}
