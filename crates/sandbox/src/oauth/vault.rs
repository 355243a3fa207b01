//! Storage of the authorization server: codes, access and refresh tokens, and the families that
//! tokens of one grant form. With a state file, the data survives restarts: the file is atomically
//! replaced before an answer is sent.

use super::{Credentials, secret};
use crate::state::Id;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Lifetime of a code.
const CODE_LIFE_MS: i64 = 60_000;

/// Above this number of access tokens, expired ones are discarded when the next one is issued.
const ACCESS_SOFT_MAX: usize = 10_000;

/// An access token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Access {
    pub agent: Id,
    family: u64,
    expires_ms: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Refresh {
    agent: Id,
    family: u64,
    spent: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Code {
    agent: Id,
    redirect_uri: String,
    expires_ms: i64,
    /// The token family, if the code was already redeemed.
    spent: Option<u64>,
}

/// A new pair of tokens.
#[derive(Debug)]
pub struct Issued {
    pub access_token: String,
    pub refresh_token: String,
    /// Lifetime in seconds.
    pub expires_in: u64,
}

/// The reason why no tokens were issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Never issued, or revoked.
    Unknown,
    Expired,
    /// Used before. With reuse detection, the resulting tokens are revoked.
    Spent,
    /// Issued for another redirect URI.
    OtherRedirect,
}

/// The storage of the authorization server, and its options.
pub struct Vault {
    seed: u64,
    book: Book,
    v2: HashMap<String, Id>,
    /// Lifetime of access tokens in seconds.
    pub expires_in: u64,
    /// Whether each refresh issues a new refresh token and invalidates the old one.
    pub rotate: bool,
    /// Whether the reuse of a spent refresh token revokes its family.
    pub detect_reuse: bool,
    pub redirect_uris: Vec<String>,
    file: Option<PathBuf>,
}

/// The persistent part.
#[derive(Default, Serialize, Deserialize)]
struct Book {
    issued: u64,
    access: HashMap<String, Access>,
    refresh: HashMap<String, Refresh>,
    codes: HashMap<String, Code>,
    revoked_families: BTreeSet<u64>,
    revoked_v2: BTreeSet<String>,
}

impl Vault {
    /// Initializes from the seed's credentials, or from the file if it exists.
    pub fn open(
        seed: u64,
        credentials: &Credentials,
        file: Option<PathBuf>,
        now_ms: i64,
        expires_in: u64,
    ) -> io::Result<Vault> {
        let kept = file.as_deref().map(load).transpose()?.flatten();
        let mut vault = Vault {
            seed,
            book: kept.unwrap_or_else(|| Book::of_credentials(credentials, now_ms + seconds_ms(expires_in))),
            v2: credentials
                .accounts
                .iter()
                .map(|account| (account.v2_token.clone(), account.agent_id))
                .collect(),
            expires_in,
            rotate: true,
            detect_reuse: true,
            redirect_uris: Vec::new(),
            file,
        };
        // The v2 tokens are derived from the seed again, so repeat earlier revocations.
        let revoked = std::mem::take(&mut vault.book.revoked_v2);
        vault.v2.retain(|token, _| !revoked.contains(token));
        vault.book.revoked_v2 = revoked;
        // Written at once, so that an unwritable path fails at the start and not at the first refresh.
        vault.save()?;
        Ok(vault)
    }

    /// Returns the agent of a v2 token.
    pub fn v2(&self, token: &str) -> Option<Id> {
        self.v2.get(token).copied()
    }

    /// Returns the agent of a v3 token that has not expired.
    pub fn v3(&self, token: &str, now_ms: i64) -> Option<Id> {
        self.book.access.get(token).filter(|access| access.expires_ms > now_ms).map(|access| access.agent)
    }

    /// Issues a code for an agent who approved the app.
    pub fn code(&mut self, agent: Id, redirect_uri: &str, now_ms: i64) -> io::Result<String> {
        // Retain expired codes for an hour in order to detect their reuse.
        self.book.codes.retain(|_, code| code.expires_ms + CODE_LIFE_MS * 60 > now_ms);
        let code = self.next("code");
        let entry = Code {
            agent,
            redirect_uri: redirect_uri.to_owned(),
            expires_ms: now_ms + CODE_LIFE_MS,
            spent: None,
        };
        self.book.codes.insert(code.clone(), entry);
        self.save()?;
        Ok(code)
    }

    /// Exchanges a code for tokens, once. Repeated use revokes the tokens of the first use, as RFC
    /// 6749, section 4.1.2 advises.
    pub fn redeem(
        &mut self,
        code: &str,
        redirect_uri: &str,
        now_ms: i64,
    ) -> io::Result<Result<Issued, Refused>> {
        let Some(entry) = self.book.codes.get(code) else { return Ok(Err(Refused::Unknown)) };
        // A second use indicates a stolen code.
        if let Some(family) = entry.spent {
            self.revoke_family(family);
            self.save()?;
            return Ok(Err(Refused::Spent));
        }
        // Checked after the reuse: a stolen code is often tried late, and must still revoke the tokens.
        if entry.expires_ms <= now_ms {
            return Ok(Err(Refused::Expired));
        }
        if entry.redirect_uri != redirect_uri {
            return Ok(Err(Refused::OtherRedirect));
        }
        let agent = entry.agent;
        // The families of seeded accounts are their agent ids, so start above them.
        let family = self.book.issued + 1_000;
        if let Some(entry) = self.book.codes.get_mut(code) {
            entry.spent = Some(family);
        }
        let refresh_token = self.new_refresh(agent, family);
        let issued = self.issue(agent, family, refresh_token, now_ms);
        self.save()?;
        Ok(Ok(issued))
    }

    /// Exchanges a refresh token for new tokens.
    pub fn refresh(&mut self, token: &str, now_ms: i64) -> io::Result<Result<Issued, Refused>> {
        let Some(entry) = self.book.refresh.get(token).cloned() else { return Ok(Err(Refused::Unknown)) };
        if self.book.revoked_families.contains(&entry.family) {
            return Ok(Err(Refused::Unknown));
        }
        if entry.spent {
            if self.detect_reuse {
                self.revoke_family(entry.family);
                self.save()?;
            }
            return Ok(Err(Refused::Spent));
        }
        // The spent token stays in the book, in order to distinguish its second use from an unknown token.
        let refresh_token = if self.rotate {
            if let Some(entry) = self.book.refresh.get_mut(token) {
                entry.spent = true;
            }
            self.new_refresh(entry.agent, entry.family)
        } else {
            token.to_owned()
        };
        let issued = self.issue(entry.agent, entry.family, refresh_token, now_ms);
        self.save()?;
        Ok(Ok(issued))
    }

    fn new_refresh(&mut self, agent: Id, family: u64) -> String {
        let token = self.next("refresh");
        // The family passes to the successor, so that a revocation reaches every token of the grant.
        self.book.refresh.insert(token.clone(), Refresh { agent, family, spent: false });
        token
    }

    fn issue(&mut self, agent: Id, family: u64, refresh_token: String, now_ms: i64) -> Issued {
        // Above the bound only, because the scan is linear and load tests refresh often.
        if self.book.access.len() > ACCESS_SOFT_MAX {
            self.book.access.retain(|_, access| access.expires_ms > now_ms);
        }
        let access_token = self.next("access");
        let expires_ms = now_ms + seconds_ms(self.expires_in);
        self.book.access.insert(access_token.clone(), Access { agent, family, expires_ms });
        Issued { access_token, refresh_token, expires_in: self.expires_in }
    }

    /// Returns a new secret. The numbers start above those of the seeded agents, so that no token
    /// is issued twice.
    fn next(&mut self, kind: &str) -> String {
        self.book.issued += 1;
        secret(self.seed, kind, 1_000_000 + self.book.issued)
    }

    fn revoke_family(&mut self, family: u64) {
        self.book.revoked_families.insert(family);
        self.book.access.retain(|_, access| access.family != family);
    }

    /// Expires access tokens: a single one, those of an agent, or all. Returns their number.
    pub fn expire(&mut self, token: Option<&str>, agent: Option<Id>) -> io::Result<usize> {
        let mut count = 0;
        for (name, access) in &mut self.book.access {
            if token.is_none_or(|token| token == name) && agent.is_none_or(|agent| agent == access.agent) {
                // Expired even if the clock is moved back.
                access.expires_ms = i64::MIN;
                count += 1;
            }
        }
        self.save()?;
        Ok(count)
    }

    /// Revokes v2 tokens, and the families of v3 tokens: of a single token, of an agent, or all.
    /// Returns the number of v2 tokens plus the number of families.
    pub fn revoke(&mut self, token: Option<&str>, agent: Option<Id>) -> io::Result<usize> {
        let is = |name: &String, of: Id| {
            token.is_none_or(|token| token == name) && agent.is_none_or(|agent| agent == of)
        };
        let access = self.book.access.iter().filter(|(name, a)| is(name, a.agent)).map(|(_, a)| a.family);
        let refresh = self.book.refresh.iter().filter(|(name, r)| is(name, r.agent)).map(|(_, r)| r.family);
        let families: BTreeSet<u64> = access.chain(refresh).collect();
        let gone: Vec<String> =
            self.v2.iter().filter(|(name, of)| is(name, **of)).map(|(n, _)| n.clone()).collect();
        for token in &gone {
            self.v2.remove(token);
        }
        let count = gone.len() + families.len();
        self.book.revoked_v2.extend(gone);
        families.into_iter().for_each(|family| self.revoke_family(family));
        self.save()?;
        Ok(count)
    }

    fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        // In the same directory, because a rename is atomic only within one file system.
        let beside = file.with_extension("new");
        fs::write(&beside, serde_json::to_vec(&self.book)?)?;
        // The rename is atomic, so a crash never leaves a partial file.
        fs::rename(beside, file)
    }
}

impl Book {
    fn of_credentials(credentials: &Credentials, expires_ms: i64) -> Book {
        let mut book = Book::default();
        for account in &credentials.accounts {
            // Seeded tokens were not issued by a grant, so each account forms a family of its own.
            let (agent, family) = (account.agent_id, account.agent_id);
            book.access.insert(account.access_token.clone(), Access { agent, family, expires_ms });
            book.refresh.insert(account.refresh_token.clone(), Refresh { agent, family, spent: false });
        }
        book
    }
}

fn load(file: &Path) -> io::Result<Option<Book>> {
    match fs::read(file) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn seconds_ms(seconds: u64) -> i64 {
    // A quarter of the range leaves space for the sum with the present time.
    i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REDIRECT: &str = "http://127.0.0.1:9/cb";

    fn vault() -> Vault {
        let credentials = Credentials::of_seed(1, REDIRECT);
        Vault::open(1, &credentials, None, 0, 100).expect("no file is involved")
    }

    fn seeded_refresh() -> String {
        Credentials::of_seed(1, REDIRECT).refresh_token
    }

    #[test]
    fn a_spent_refresh_token_that_comes_again_revokes_the_family() {
        let mut vault = vault();
        let first = vault.refresh(&seeded_refresh(), 0).unwrap().unwrap();
        let second = vault.refresh(&first.refresh_token, 0).unwrap().unwrap();
        assert!(vault.v3(&second.access_token, 1).is_some());

        assert_eq!(vault.refresh(&first.refresh_token, 0).unwrap().unwrap_err(), Refused::Spent);
        assert_eq!(vault.v3(&second.access_token, 1), None, "access tokens of the family die");
        assert_eq!(vault.refresh(&second.refresh_token, 0).unwrap().unwrap_err(), Refused::Unknown);
    }

    #[test]
    fn without_detection_a_spent_refresh_token_is_only_refused() {
        let mut vault = vault();
        vault.detect_reuse = false;
        let first = vault.refresh(&seeded_refresh(), 0).unwrap().unwrap();
        assert_eq!(vault.refresh(&seeded_refresh(), 0).unwrap().unwrap_err(), Refused::Spent);
        assert!(vault.refresh(&first.refresh_token, 0).unwrap().is_ok());
    }

    #[test]
    fn without_rotation_a_refresh_token_stays_good() {
        let mut vault = vault();
        vault.rotate = false;
        for _ in 0..3 {
            assert_eq!(vault.refresh(&seeded_refresh(), 0).unwrap().unwrap().refresh_token, seeded_refresh());
        }
    }

    #[test]
    fn a_code_is_good_once_for_its_callback_and_a_minute() {
        let mut vault = vault();
        let code = vault.code(201, REDIRECT, 0).unwrap();
        assert_eq!(vault.redeem(&code, "http://elsewhere", 1).unwrap().unwrap_err(), Refused::OtherRedirect);
        assert_eq!(vault.redeem(&code, REDIRECT, CODE_LIFE_MS).unwrap().unwrap_err(), Refused::Expired);
        let issued = vault.redeem(&code, REDIRECT, 1).unwrap().unwrap();
        assert_eq!(vault.v3(&issued.access_token, 99_000), Some(201));
        assert_eq!(vault.v3(&issued.access_token, 101_000), None);
        assert_eq!(vault.redeem(&code, REDIRECT, 2).unwrap().unwrap_err(), Refused::Spent);
        assert_eq!(vault.v3(&issued.access_token, 2), None, "what a replayed code gave is revoked");
    }

    #[test]
    fn refresh_tokens_outlive_a_restart_with_a_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = Some(folder.path().join("oauth.json"));
        let credentials = Credentials::of_seed(1, REDIRECT);
        let mut before = Vault::open(1, &credentials, file.clone(), 0, 100).unwrap();
        let issued = before.refresh(&credentials.refresh_token, 0).unwrap().unwrap();
        drop(before);
        let mut after = Vault::open(1, &credentials, file, 0, 100).unwrap();
        assert!(after.v3(&issued.access_token, 1).is_some());
        assert!(after.refresh(&issued.refresh_token, 0).unwrap().is_ok());
        assert_eq!(after.refresh(&credentials.refresh_token, 0).unwrap().unwrap_err(), Refused::Spent);
    }
}
