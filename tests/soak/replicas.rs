//! The gateways in production form: processes of one configuration on one PostgreSQL. Their logs
//! are files, one per life, and all of their output is stored, in order to be searched for secrets.

use crate::Args;
use crate::slope::Slope;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use switchback_gateway::store::seal::SealingKey;
use switchback_sandbox::Sandbox;

/// How long a replica may take to serve, and to end.
const PATIENCE: Duration = Duration::from_secs(90);
pub const ADMIN_TOKEN: &str = "admin-token-canary-of-the-soak";
pub const V3_TOKEN: &str = "v3-token-canary-of-the-soak";

/// The common properties of all replicas.
pub struct Setting {
    pub folder: PathBuf,
    pub key: String,
    pub store: String,
    pub http: reqwest::Client,
    /// A text of customers, which must not appear elsewhere.
    pub canary: String,
    program: String,
    /// Removes the folder, unless it should be retained.
    _folder: Option<tempfile::TempDir>,
    configuration: String,
}

impl Setting {
    pub fn new(
        args: &Args,
        service: &Sandbox,
        proxies: [SocketAddr; 2],
        store: String,
        dice: &mut fastrand::Rng,
    ) -> Result<Setting, String> {
        let told = |error: std::io::Error| format!("a folder: {error}");
        let (folder, temporary) = match &args.keep {
            Some(folder) => {
                std::fs::create_dir_all(folder).map_err(told)?;
                (folder.clone(), None)
            }
            None => {
                let folder = tempfile::tempdir().map_err(told)?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build();
        let canary = format!("KANARIENVOGEL{:016x}", dice.u64(..));
        Ok(Setting {
            folder,
            key: SealingKey::generate().expose().clone(),
            http: http.map_err(|error| error.to_string())?,
            canary,
            program: args.program.clone().unwrap_or_else(|| env!("CARGO_BIN_EXE_switchback").to_owned()),
            _folder: temporary,
            configuration: configuration(service, proxies, &store),
            store,
        })
    }
}

fn configuration(service: &Sandbox, [v2, v3]: [SocketAddr; 2], store: &str) -> String {
    let (at, app) = (service.address(), service.credentials());
    let mut text = format!(
        "admin: {{ listen: '$ADMIN', token: {ADMIN_TOKEN} }}\nlisten: '$CLIENTS'\nstore: '{store}'\nkey: ${{SOAK_KEY}}\n\
         upstreams: {{ v3: {{ url: 'http://{v3}/v3' }}, v2: {{ url: 'http://{v2}/v2' }} }}\n\
         fronts: {{ /v2: {{ speaks: v2 }}, /v3: {{ speaks: v3 }} }}\n\
         settings: {{ agents: {{ max_chats: 5 }} }}\n\
         oauth: {{ authorize_url: 'http://{at}/oauth/authorize', token_url: 'http://{at}/oauth/access_token', \
         redirect_url: '{}' }}\n\
         phases:\n  default: translated\n  'v2 GET /contacts/{{id}}': shadow\n  'v2 GET /agents': shadow\n  \
         'v2 GET /chats/{{id}}': {{ phase: canary, share: 0.5 }}\n  \
         'v2 PUT /contacts/{{id}}': {{ phase: canary, share: 0.5 }}\n  'v2 POST /chats/{{id}}/messages': shadow\n\
         shadow: {{ read_back: 0.2 }}\n\
         gate: {{ default: {{ mismatch: 0.02, compared: 300, min_period: 2m, share: 0.5, check: 0.2 }} }}\nclients:\n",
        app.redirect_uri
    );
    for account in &app.accounts {
        let _ = writeln!(
            text,
            "- {{ name: {}, v2_token: '{}', grant: {{ client_id: '{}', client_secret: '{}', refresh_token: '{}' }} }}",
            account.role, account.v2_token, app.client_id, app.client_secret, account.refresh_token
        );
    }
    let manager = app.account("manager").expect("every sandbox has one");
    let _ = writeln!(
        text,
        "- {{ name: modern, v3_token: {V3_TOKEN}, credentials: {{ v2: '{}' }} }}",
        manager.v2_token
    );
    text
}

/// One gateway, through all its lives.
pub struct Replica {
    pub name: &'static str,
    pub clients: SocketAddr,
    pub admin: SocketAddr,
    file: PathBuf,
    life: Mutex<Life>,
    /// Samples of its memory: life, seconds since its start, bytes.
    pub memory: Mutex<Vec<(u32, f64, f64)>>,
}

struct Life {
    number: u32,
    began: Instant,
    child: Option<Child>,
    pid: Option<u32>,
}

impl Replica {
    pub async fn start(setting: &Setting, name: &'static str) -> Result<Replica, String> {
        let free = || TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let ports = free().and_then(|clients| Ok((clients, free()?)));
        let (clients, admin) = ports.map_err(|error| error.to_string())?;
        let file = setting.folder.join(format!("{name}.yaml"));
        let text = setting
            .configuration
            .replace("$ADMIN", &admin.to_string())
            .replace("$CLIENTS", &clients.to_string());
        std::fs::write(&file, text).map_err(|error| error.to_string())?;
        let life = Life { number: 0, began: Instant::now(), child: None, pid: None };
        let replica =
            Replica { name, clients, admin, file, life: Mutex::new(life), memory: Mutex::default() };
        replica.begin(setting).await?;
        Ok(replica)
    }

    /// Starts a life. Returns when the replica reports that it is ready.
    pub async fn begin(&self, setting: &Setting) -> Result<(), String> {
        let number = self.life().number + 1;
        let log = setting.folder.join(format!("{}-{number}.log", self.name));
        let log = File::create(log).map_err(|error| error.to_string())?;
        let child = Command::new(&setting.program)
            .args(["serve", "--config"])
            .arg(&self.file)
            .env("SOAK_KEY", &setting.key)
            .env_remove("RUST_LOG")
            .env_remove("SWITCHBACK_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{}: {error}", setting.program))?;
        {
            let mut life = self.life();
            *life = Life { number, began: Instant::now(), pid: Some(child.id()), child: Some(child) };
        }
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let url = format!("http://{}/healthz/ready", self.admin);
            if setting.http.get(url).send().await.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            if let Some(child) = &mut self.life().child
                && let Ok(Some(status)) = child.try_wait()
            {
                return Err(format!("replica {} ended at its start: {status}", self.name));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err(format!("replica {} is not ready after {PATIENCE:?}", self.name))
    }

    /// Stops it with a signal, as a service manager does, and waits. Returns the duration.
    pub async fn end(&self) -> Result<Duration, String> {
        let (child, pid) = {
            let mut life = self.life();
            (life.child.take(), life.pid.take())
        };
        let (Some(mut child), Some(pid)) = (child, pid) else { return Err("it does not run".to_owned()) };
        let began = Instant::now();
        let sent = Command::new("kill").args(["-TERM", &pid.to_string()]).status();
        sent.map_err(|error| error.to_string())?;
        while began.elapsed() < PATIENCE {
            match child.try_wait() {
                Ok(None) => tokio::time::sleep(Duration::from_millis(20)).await,
                Ok(Some(status)) if status.success() => return Ok(began.elapsed()),
                ended => return Err(format!("replica {} ended with {ended:?}", self.name)),
            }
        }
        let _ = child.kill();
        let _ = child.wait();
        Err(format!("replica {} did not end within {PATIENCE:?}", self.name))
    }

    /// Whether it ended by itself.
    pub fn has_died(&self) -> Option<String> {
        let mut life = self.life();
        let status = life.child.as_mut()?.try_wait().ok()??;
        Some(format!("replica {} ended by itself: {status}", self.name))
    }

    /// Calls the admin port.
    pub async fn admin(&self, setting: &Setting, path: &str) -> Option<String> {
        let asked = setting
            .http
            .get(format!("http://{}{path}", self.admin))
            .bearer_auth(ADMIN_TOKEN)
            .send()
            .await
            .ok()?;
        asked.text().await.ok()
    }

    pub async fn json(&self, setting: &Setting, path: &str) -> Value {
        let text = self.admin(setting, path).await.unwrap_or_default();
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    pub async fn reload(&self, setting: &Setting) {
        let url = format!("http://{}/api/reload", self.admin);
        // Refused while it stops, which is acceptable here.
        let _ = setting.http.post(url).bearer_auth(ADMIN_TOKEN).json(&serde_json::json!({})).send().await;
    }

    /// Changes the configuration file, without an effect.
    pub fn touch(&self, number: u64) {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with("# change")).collect();
        let _ = std::fs::write(&self.file, format!("{}\n# change {number}\n", kept.join("\n")));
    }

    /// Looks at its memory.
    pub fn sample(&self) -> Option<u64> {
        let (number, age, pid) = {
            let life = self.life();
            (life.number, life.began.elapsed().as_secs_f64(), life.pid?)
        };
        let bytes = anonymous(pid)?;
        let mut memory = self.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        memory.push((number, age, bytes as f64));
        Some(bytes)
    }

    /// How its memory grew in its longest life, in MiB an hour, after the warm-up, in which caches
    /// and pools fill: so many minutes, or without them the first quarter of that life.
    pub fn growth(&self, warm_up: Option<f64>) -> Option<(u32, Slope)> {
        let memory = self.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (longest, age, _) = memory.iter().max_by(|a, b| a.1.total_cmp(&b.1)).copied()?;
        let warm = warm_up.map_or(age / 4.0, |minutes| minutes * 60.0);
        let of_it = memory.iter().filter(|(life, at, _)| *life == longest && *at > warm);
        let points: Vec<(f64, f64)> =
            of_it.map(|(_, at, bytes)| (at / 3600.0, bytes / f64::from(1 << 20))).collect();
        Some((longest, crate::slope::slope(&points)?))
    }

    /// Its samples of memory, one a line: life, seconds since that began, bytes.
    pub fn samples(&self) -> String {
        let memory = self.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        memory.iter().map(|(life, at, bytes)| format!("{life},{at:.1},{bytes}\n")).collect()
    }

    fn life(&self) -> std::sync::MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(child) = &mut self.life().child {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the anonymous memory of a process in bytes. It excludes pages of its program, which the
/// kernel loads and discards at will.
fn anonymous(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
}
