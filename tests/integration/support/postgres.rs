//! A PostgreSQL cluster for the tests: created in a temporary folder, on a socket in that folder,
//! as an unprivileged user, and removed with the test process. One cluster serves all tests of the
//! process; each test has a database of its own. For a full disk, a test has a cluster of its own
//! with its data or log on that disk.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

struct Cluster {
    folder: PathBuf,
    bin: PathBuf,
    user: Option<(u32, u32)>,
    /// Its standard input closes with the end of this process, for any reason; it then stops the
    /// server and removes the folder.
    _watcher: Child,
}

/// Runs the server and stops it immediately when standard input ends.
const WATCHER: &str =
    r#"folder=$1; shift; "$@" & server=$!; read -r _; kill -QUIT $server; wait $server; rm -rf "$folder""#;

/// The same for a server that starts again whenever it has ended, as a service manager has it.
const KEEPER: &str = r#"folder=$1; shift
(trap 'kill -QUIT $server; wait $server; exit' TERM; while :; do "$@" & server=$!; wait $server; sleep 0.1; done) & keeper=$!
read -r _; kill -TERM $keeper; wait $keeper; rm -rf "$folder""#;

static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// Returns the address of an empty database, or `None`, with a message, if PostgreSQL is not
/// installed.
pub fn database() -> Option<String> {
    let cluster = CLUSTER.get_or_init(start).as_ref();
    let Some(cluster) = cluster else {
        eprintln!("SKIPPED: PostgreSQL is not installed (no /usr/lib/postgresql/*/bin/initdb)");
        return None;
    };
    let name = format!("switchback_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    let done = cluster.run(&["createdb", "-U", "switchback", &name]);
    assert!(done.status.success(), "createdb: {}", String::from_utf8_lossy(&done.stderr));
    Some(format!("postgres://switchback@localhost/{name}?host={}", cluster.folder.display()))
}

fn start() -> Option<Cluster> {
    start_in(WATCHER, None, &[])
}

/// The part of a cluster on a disk of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Data,
    /// The write-ahead log.
    Log,
}

/// A cluster of one test, which is restarted when it ends.
pub struct Own(Cluster);

impl Own {
    /// Starts a cluster with one part in `disk`; `None`, with a message, if PostgreSQL is not
    /// installed.
    pub fn on(disk: &Path, part: Part) -> Option<Own> {
        // The complete log is retained, in small segments, so that a full disk has an early effect.
        let settings = ["-c", "wal_keep_size=1GB", "-c", "max_wal_size=2MB", "-c", "min_wal_size=2MB"];
        let cluster = start_in(KEEPER, Some((disk, part)), &settings);
        if cluster.is_none() {
            eprintln!("SKIPPED: PostgreSQL is not installed (no /usr/lib/postgresql/*/bin/initdb)");
        }
        cluster.map(Own)
    }

    pub fn url(&self) -> String {
        format!("postgres://switchback@localhost/postgres?host={}", self.0.folder.display())
    }

    /// Runs statements to their end. The error is PostgreSQL's.
    pub fn sql(&self, statements: &str) -> Result<(), String> {
        let done = self.0.run(&["psql", "-X", "-q", "-U", "switchback", "-d", "postgres", "-c", statements]);
        match done.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        }
    }

    /// A transaction with a snapshot until it is dropped, so that no row version is removed in
    /// between.
    pub fn snapshot(&self) -> Snapshot {
        use std::io::{BufRead as _, Write as _};
        let mut psql = command(&self.0.bin, "psql", self.0.user)
            .args(["-X", "-q", "-t", "-A", "-U", "switchback", "-d", "postgres", "-h"])
            .arg(&self.0.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("psql runs");
        let input = psql.stdin.as_mut().expect("it is piped");
        input
            .write_all(b"BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 'held' FROM pg_class LIMIT 1;\n")
            .expect("it reads");
        let mut said = String::new();
        let output = psql.stdout.as_mut().expect("it is piped");
        std::io::BufReader::new(output).read_line(&mut said).expect("it answers");
        assert_eq!(said.trim(), "held");
        Snapshot(psql)
    }
}

/// See [`Own::snapshot`].
pub struct Snapshot(Child);

impl Drop for Snapshot {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_in(watcher: &str, on_disk: Option<(&Path, Part)>, settings: &[&str]) -> Option<Cluster> {
    let bin = newest_bin()?;
    let folder = tempfile::tempdir().expect("a temporary folder").keep();
    let user = unprivileged();
    if let Some((uid, gid)) = user {
        std::os::unix::fs::chown(&folder, Some(uid), Some(gid)).expect("root may chown");
    }
    let mut data = folder.join("data");
    let mut init = command(&bin, "initdb", user);
    init.args(["-A", "trust", "-U", "switchback", "--no-sync", "-E", "UTF8", "--locale=C"]);
    match on_disk {
        Some((disk, Part::Data)) => {
            data = disk.join("data");
            init.arg("--wal-segsize=1").arg("--waldir").arg(folder.join("log"));
        }
        Some((disk, Part::Log)) => {
            init.arg("--wal-segsize=1").arg("--waldir").arg(disk.join("log"));
        }
        None => {}
    }
    let made = init.arg("-D").arg(&data).output().expect("initdb runs");
    assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
    let watcher = command(Path::new("/bin"), "sh", user)
        .args(["-c", watcher, "sh"])
        .arg(&folder)
        .arg(bin.join("postgres"))
        .arg("-D")
        .arg(&data)
        .args(["-c", "listen_addresses=", "-c", "fsync=off"])
        .args(settings)
        .arg("-k")
        .arg(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh runs");
    let cluster = Cluster { folder, bin, user, _watcher: watcher };
    for _ in 0..200 {
        if cluster.run(&["pg_isready", "-q"]).status.success() {
            return Some(cluster);
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("PostgreSQL did not come up in 10 seconds");
}

impl Cluster {
    fn run(&self, words: &[&str]) -> std::process::Output {
        let mut tool = command(&self.bin, words[0], self.user);
        tool.args(&words[1..]).arg("-h").arg(&self.folder).output().expect("PostgreSQL's tools run")
    }
}

fn newest_bin() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    found.sort();
    found.pop()
}

/// PostgreSQL refuses to run as root, so it runs as `postgres` or as `nobody`.
fn unprivileged() -> Option<(u32, u32)> {
    let ours = std::fs::metadata("/proc/self").ok()?;
    if std::os::unix::fs::MetadataExt::uid(&ours) != 0 {
        return None;
    }
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    let of = |name: &str| {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    of("postgres").or_else(|| of("nobody"))
}

fn command(bin: &Path, tool: &str, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(bin.join(tool));
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command.current_dir("/");
    command
}
