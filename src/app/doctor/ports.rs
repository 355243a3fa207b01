//! Checks of the ports: whether they can be bound, or which program uses them.

use super::DoctorCheck;
use crate::config::Config;
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

/// Time limit of a request to the own admin port.
const PATIENCE: Duration = Duration::from_secs(5);

/// A gateway that uses the admin port.
struct RunningGateway {
    is_ready: bool,
    /// SHA-256 of its pack.
    hash: Result<String, NoDigest>,
}

/// Why the pack of a running gateway is unknown.
#[derive(Debug, thiserror::Error)]
enum NoDigest {
    #[error("its admin port answers {0}")]
    Refused(u16),
    #[error("its answer has no digest")]
    NotAnswered,
    #[error("{0}")]
    Request(reqwest::Error),
}

pub(super) async fn examine_ports(config: &Config, hash: Option<&str>, offline: bool) -> Vec<DoctorCheck> {
    let callback = config.oauth.as_ref().and_then(|oauth| oauth.listen);
    let ports = [
        ("listen", Some(config.listen)),
        ("admin.listen", Some(config.admin.listen)),
        ("health.listen", config.health),
        ("oauth.listen", callback),
    ];
    let ports = ports.into_iter().filter_map(|(key, address)| Some((key, address?)));
    let bound: Vec<(&str, SocketAddr, io::Result<()>)> =
        ports.map(|(key, address)| (key, address, TcpListener::bind(address).map(drop))).collect();
    let is_used =
        |outcome: &io::Result<()>| matches!(outcome, Err(error) if error.kind() == ErrorKind::AddrInUse);
    let is_any_used = bound.iter().any(|(_, _, outcome)| is_used(outcome));
    let running = if is_any_used && !offline { running_gateway(config).await } else { None };
    let mut checks: Vec<DoctorCheck> = bound
        .into_iter()
        .map(|(key, address, outcome)| match outcome {
            Ok(()) if address.port() == 0 => DoctorCheck::ok(key, format!("{address}: any free port")),
            Ok(()) => DoctorCheck::ok(key, format!("{address} is free")),
            Err(error) if error.kind() == ErrorKind::AddrInUse => match (&running, offline) {
                (Some(_), _) => DoctorCheck::ok(key, format!("{address} is in use by the running gateway")),
                (None, true) => DoctorCheck::unknown(
                    key,
                    format!("{address} is in use (--offline: by which program is not examined)"),
                ),
                (None, false) => DoctorCheck::failed(
                    key,
                    format!("{address} is in use by another program"),
                    "stop that program, or set another port",
                ),
            },
            Err(error) => DoctorCheck::failed(
                key,
                format!("cannot listen on {address}: {error}"),
                "choose an address of this machine and a port that this user may use",
            ),
        })
        .collect();
    checks.extend(running.map(|running| compare(&running, hash)));
    checks
}

/// Looks for a gateway at the admin port.
async fn running_gateway(config: &Config) -> Option<RunningGateway> {
    let address = reachable(config.admin.listen);
    let _ = rustls::crypto::ring::default_provider().install_default();
    // No proxy may see the token.
    let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().ok()?;
    let health = client.get(format!("http://{address}/healthz/ready")).send().await.ok()?;
    let health: Value = health.json().await.ok()?;
    let is_ready = health["ready"].as_bool()?;
    health["pack"].as_str()?;
    let request = client.get(format!("http://{address}/api/pack"));
    let request = match &config.admin.token {
        Some(token) => request.bearer_auth(token.expose()),
        None => request,
    };
    let hash = match request.send().await {
        Ok(answer) if answer.status().is_success() => {
            let pack: Value = answer.json().await.unwrap_or_default();
            pack["hash"].as_str().map(str::to_owned).ok_or(NoDigest::NotAnswered)
        }
        Ok(answer) => Err(NoDigest::Refused(answer.status().as_u16())),
        Err(error) => Err(NoDigest::Request(error.without_url())),
    };
    Some(RunningGateway { is_ready, hash })
}

/// Returns an address at which this machine reaches a listener.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn compare(running: &RunningGateway, hash: Option<&str>) -> DoctorCheck {
    const NAME: &str = "running gateway";
    let digest = |hash: &str| hash.get(..12).unwrap_or(hash).to_owned();
    match (&running.hash, hash) {
        _ if !running.is_ready => {
            DoctorCheck::warning(NAME, "it is about to stop", "start it again after it has drained")
        }
        (Err(error), _) => DoctorCheck::unknown(NAME, format!("which pack it serves is unknown: {error}")),
        (Ok(_), None) => DoctorCheck::unknown(NAME, "the pack of the configuration cannot be read"),
        (Ok(served), Some(hash)) if served == hash => DoctorCheck::ok(
            NAME,
            format!("ready, and serves the pack of the configuration, digest {}", digest(hash)),
        ),
        (Ok(served), Some(hash)) => DoctorCheck::warning(
            NAME,
            format!(
                "serves another pack, digest {}; that of the configuration is {}",
                digest(served),
                digest(hash)
            ),
            "reload it (SIGHUP); `switchback status` displays the outcome of the last reload",
        ),
    }
}
