//! Checks of files: permissions, and the certificate of the client listener.

use super::DoctorCheck;
use crate::app::tls_files;
use crate::config::{Config, TlsFilesConfig};
use crate::figures::relative;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use switchback_gateway::clock::Clock;
use switchback_gateway::tls::ServerCertificate;
use switchback_gateway::token::AppCredential;

/// Remaining lifetime below which a certificate is reported.
pub(super) const CERTIFICATE_NEAR_MS: i64 = 30 * 24 * 3_600_000;
/// Permission of everyone to read.
const WORLD_READABLE: u32 = 0o004;

/// Reports files with secrets that every user of the machine can read.
pub(super) fn permissions(file: &Path, config: &Config) -> DoctorCheck {
    const NAME: &str = "permissions";
    let public = public_files(config);
    let mut private: Vec<PathBuf> =
        config.files.iter().filter(|file| !public.contains(&file.as_path())).cloned().collect();
    private.extend(database(config));
    if has_literal_secret(file, config) {
        private.push(file.to_owned());
    }
    private.sort();
    private.dedup();
    let is_open = |path: &PathBuf| {
        // A missing file is reported by the check that needs it.
        std::fs::metadata(path).is_ok_and(|data| data.permissions().mode() & WORLD_READABLE != 0)
    };
    let open: Vec<String> =
        private.iter().filter(|path| is_open(path)).map(|path| path.display().to_string()).collect();
    if open.is_empty() {
        let number = private.len();
        return DoctorCheck::ok(NAME, format!("none of {number} files with secrets is readable by everyone"));
    }
    let found = format!("readable by every user of this machine: {}", open.join(", "));
    DoctorCheck::warning(NAME, found, "take the permission away: `chmod 600 FILE`")
}

/// Returns the files that hold certificates only.
fn public_files(config: &Config) -> Vec<&Path> {
    let own = config.tls.iter().map(|tls| &tls.certificate);
    let services = config.services().map(|(_, _, tls)| &tls.value);
    let services = services.chain(config.oauth.iter().map(|oauth| &oauth.tls.value));
    let services =
        services.flat_map(|tls| tls.authorities.iter().chain(tls.own.iter().map(|own| &own.certificates)));
    own.chain(services).map(PathBuf::as_path).collect()
}

/// Returns the files of a SQLite store.
fn database(config: &Config) -> Vec<PathBuf> {
    let Some(file) = sqlite_file(config) else { return Vec::new() };
    let with = |end: &str| {
        let mut name = file.clone().into_os_string();
        name.push(end);
        PathBuf::from(name)
    };
    let files = [file.clone(), with("-wal"), with("-shm")];
    files.into_iter().filter(|file| file.exists()).collect()
}

/// Returns the path of a SQLite store.
pub(super) fn sqlite_file(config: &Config) -> Option<PathBuf> {
    let file = config.store.as_str().strip_prefix("sqlite:")?;
    Some(PathBuf::from(file.strip_prefix("//").unwrap_or(file)))
}

/// Returns whether the configuration itself contains a secret, instead of a reference to one.
fn has_literal_secret(file: &Path, config: &Config) -> bool {
    let Ok(text) = std::fs::read_to_string(file) else { return false };
    let tokens = config.clients.iter().flat_map(|client| {
        let app = client.grant.iter().map(|grant| match &grant.credential {
            AppCredential::Secret(secret) => secret.expose().as_str(),
            // YAML indents the lines of a key. The second one is key material.
            AppCredential::Key(key) => key.pem().expose().lines().nth(1).unwrap_or_default(),
        });
        let refresh = client.grant.iter().flat_map(|grant| grant.refresh_token.iter());
        let tokens = client.tokens.iter().chain(&client.credentials).map(|(_, token)| token);
        tokens.chain(refresh).map(|token| token.expose().as_str()).chain(app)
    });
    let admin = [&config.admin.token, &config.admin.read_token].into_iter().flatten();
    let own = config.keys.iter().chain(admin).map(|secret| secret.expose().as_str());
    // A public application has an empty secret.
    own.chain(tokens).any(|secret| !secret.is_empty() && text.contains(secret))
}

/// Reports the names and the expiry of the certificate that clients see.
pub(super) fn listener_certificate(files: &TlsFilesConfig) -> DoctorCheck {
    const NAME: &str = "tls";
    const RENEW: &str = "replace the files; a reload applies them";
    let certificate = match ServerCertificate::load(&tls_files(files)) {
        Ok(certificate) => certificate,
        Err(error) => {
            return DoctorCheck::failed(NAME, error.to_string(), "correct `tls` in the configuration");
        }
    };
    let names = certificate.names();
    let names = if names.is_empty() { "no DNS name".to_owned() } else { names.join(", ") };
    certificate_end(NAME, &format!("the certificate for {names}"), certificate.ends(), RENEW)
}

/// Judges the expiry of a certificate, given in seconds since 1970.
pub(super) fn certificate_end(name: &str, subject: &str, ends: Option<u64>, advice: &str) -> DoctorCheck {
    let Some(ends_ms) = ends.and_then(|ends| i64::try_from(ends).ok()).map(|ends| ends * 1000) else {
        return DoctorCheck::unknown(name, format!("the end of {subject} cannot be read"));
    };
    let now_ms = Clock::machine().unix_ms();
    let left_ms = ends_ms - now_ms;
    let when = relative(ends_ms, now_ms);
    match left_ms {
        ..=0 => DoctorCheck::failed(name, format!("{subject} ended {when}"), advice),
        _ if left_ms < CERTIFICATE_NEAR_MS => {
            DoctorCheck::warning(name, format!("{subject} ends {when}"), advice)
        }
        _ => DoctorCheck::ok(name, format!("{subject} ends {when}")),
    }
}
