//! The authorization server: an app, its grants, and the tokens of both versions. `authorize.rs` is
//! the consent page, `token.rs` the token endpoint, and `vault.rs` the storage.

pub mod authorize;
pub mod token;
mod vault;

pub use vault::{Issued, Refused, Vault};

use super::seed::{ACCOUNTS, COMPANIES, mix};
use super::state::Id;
use sha2::{Digest, Sha256};

/// The scopes in the document.
pub const SCOPES: [(&str, &str); 2] =
    [("install_app", "Install the app in your company"), ("read_agent_profile", "Read your agent profile")];

/// The app's name on the consent page.
pub const APP_NAME: &str = "Switchback & Co. \"Bridge\"";

/// All credentials for calling the service, derived from the seed.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Credentials {
    pub main_company: Id,
    pub second_company: Id,
    /// The administrator's v2 token.
    pub v2_token: String,
    pub client_id: String,
    pub client_secret: String,
    /// The first redirect URI of the app.
    pub redirect_uri: String,
    /// The administrator's v3 access token.
    pub access_token: String,
    /// The administrator's refresh token. With rotation, its first use invalidates it.
    pub refresh_token: String,
    /// One account per role, the administrator first.
    pub accounts: Vec<Account>,
}

/// The tokens of one agent.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Account {
    /// `administrator`, `manager`, `agent`, `guest` or `second-company`.
    pub role: &'static str,
    pub agent_id: Id,
    /// The agent's main company.
    pub company_id: Id,
    pub v2_token: String,
    pub access_token: String,
    pub refresh_token: String,
}

impl Credentials {
    /// Derives the credentials from a seed.
    pub fn of_seed(seed: u64, redirect_uri: &str) -> Credentials {
        let account = |(role, agent_id, company_id)| Account {
            role,
            agent_id,
            company_id,
            v2_token: secret(seed, "v2", agent_id),
            access_token: secret(seed, "access", agent_id),
            refresh_token: secret(seed, "refresh", agent_id),
        };
        let accounts: Vec<Account> = ACCOUNTS.into_iter().map(account).collect();
        let first = accounts[0].clone();
        Credentials {
            main_company: COMPANIES[0].0,
            second_company: COMPANIES[1].0,
            v2_token: first.v2_token,
            client_id: client_id(seed),
            client_secret: secret(seed, "client", 0),
            redirect_uri: redirect_uri.to_owned(),
            access_token: first.access_token,
            refresh_token: first.refresh_token,
            accounts,
        }
    }

    /// Returns the account of a role.
    pub fn account(&self, role: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.role == role)
    }
}

/// Derives a secret from seed, kind and number. It is predictable, which is acceptable for a
/// sandbox.
pub fn secret(seed: u64, kind: &str, number: u64) -> String {
    let digest = Sha256::digest(format!("{seed}/{kind}/{number}"));
    digest.iter().take(20).fold(format!("{kind}-"), |text, byte| text + &format!("{byte:02x}"))
}

fn client_id(seed: u64) -> String {
    let (a, b) = (mix(seed), mix(!seed));
    format!(
        "APP-{:08x}-{:04x}-4{:03x}-b{:03x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff,
        b >> 52,
        b & 0xffff_ffff_ffff
    )
}
