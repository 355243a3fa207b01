//! How an operation is answered: the four phases, and shares of clients and requests. Plain values; what they cause is the
//! business of `proxy`, where they come from that of [`super::phases`].

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// What the parts of a whole are counted in.
const WHOLE: u32 = 1_000_000;

/// A part of a whole, from none to all, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// No client, or no request.
    pub const NONE: Share = Share(0);
    /// Every client, or every request.
    pub const ALL: Share = Share(WHOLE);

    /// A part between 0 and 1, rounded to millionths; anything else is none.
    pub fn new(part: f64) -> Option<Share> {
        // In range, so the cast loses nothing but the fraction that was rounded away.
        (0.0..=1.0).contains(&part).then(|| Share((part * f64::from(WHOLE)).round() as u32))
    }

    /// As it is kept in the store.
    pub(crate) fn of_millionths(millionths: i64) -> Option<Share> {
        u32::try_from(millionths).ok().filter(|millionths| *millionths <= WHOLE).map(Share)
    }

    pub(crate) fn millionths(self) -> u32 {
        self.0
    }

    /// Between 0 and 1.
    pub fn part(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// Whether nobody is in it.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether a client is among this share of an operation's clients. The answer depends on the two names alone, so that it
    /// is the same at every time, in every process and after every restart; and a share that grows only adds clients.
    pub fn has_client(self, client: &str, operation: &str) -> bool {
        match self {
            Share::NONE => false,
            Share::ALL => true,
            Share(share) => place(client, operation) < share,
        }
    }

    /// Whether one request out of many is among this share; `sample_roll` is any number, evenly spread.
    pub fn takes(self, sample_roll: u64) -> bool {
        scaled(sample_roll) < self.0
    }
}

/// A number that depends on a text alone, evenly spread: by it both of two messages are taken into a sample, or neither.
pub(crate) fn roll_of(text: &str) -> u64 {
    let digest = Sha256::digest(text);
    let (head, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
    u64::from_be_bytes(*head)
}

/// Where a client stands in the order in which clients of an operation are added.
fn place(client: &str, operation: &str) -> u32 {
    let digest = Sha256::new().chain_update(client).chain_update([0]).chain_update(operation).finalize();
    let (head, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
    scaled(u64::from_be_bytes(*head))
}

/// A number of 64 evenly spread bits → millionths, evenly spread.
fn scaled(number: u64) -> u32 {
    let scaled = (u128::from(number) * u128::from(WHOLE)) >> 64;
    u32::try_from(scaled).expect("smaller than the whole")
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.part())
    }
}

impl FromStr for Share {
    type Err = String;

    /// `0.1` or `10%`.
    fn from_str(text: &str) -> Result<Share, String> {
        let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
        let part = number.trim().parse::<f64>().ok().and_then(|number| Share::new(number / unit));
        part.ok_or_else(|| format!("expected a share such as `0.1` or `10%`, from 0 to 1, not `{text}`"))
    }
}

/// Who answers an operation, and who is asked beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The served side's own service answers; the request is forwarded unchanged. Nobody else is asked.
    Legacy,
    /// The served side's own service answers; the other side is asked in the shadow.
    Shadow,
    /// The other side answers this share of the clients, the served side's own service the rest; whichever does not answer
    /// is asked in the shadow.
    Canary(Share),
    /// The other side answers; for this share of requests the served side's own service is asked in the shadow.
    Translated {
        /// The share of requests.
        check: Share,
    },
}

impl Default for Phase {
    fn default() -> Phase {
        Phase::Translated { check: Share::NONE }
    }
}

/// The names of all phases, in the order in which an operation goes through them.
pub const PHASES: [&str; 4] = ["legacy", "shadow", "canary", "translated"];

impl Phase {
    /// Its name in configuration, store, metrics and answers.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Legacy => "legacy",
            Phase::Shadow => "shadow",
            Phase::Canary(_) => "canary",
            Phase::Translated { .. } => "translated",
        }
    }

    /// The share of clients of a canary, the share of requests that `translated` checks; none of the others.
    pub fn share(self) -> Option<Share> {
        match self {
            Phase::Legacy | Phase::Shadow => None,
            Phase::Canary(share) => Some(share),
            Phase::Translated { check } => Some(check),
        }
    }

    /// A phase by its name and its share.
    ///
    /// # Errors
    ///
    /// There is no such phase, or it has a share where it takes none, or none where it takes one.
    pub fn named(name: &str, share: Option<Share>) -> Result<Phase, PhaseFault> {
        match (name, share) {
            ("legacy", None) => Ok(Phase::Legacy),
            ("shadow", None) => Ok(Phase::Shadow),
            ("canary", Some(share)) => Ok(Phase::Canary(share)),
            ("canary", None) => Err(PhaseFault::NoShare),
            ("translated", check) => Ok(Phase::Translated { check: check.unwrap_or_default() }),
            ("legacy" | "shadow", Some(_)) => Err(PhaseFault::ShareOfNothing),
            (other, _) => Err(PhaseFault::NoSuchPhase(other.to_owned())),
        }
    }

    /// Whether the served side's own service has to be there. Without it, `translated` still reads back what it has written.
    pub fn needs_own(self) -> bool {
        !matches!(self, Phase::Translated { .. })
    }

    /// One number that holds it, for tables that are read without a lock.
    pub(super) fn packed(self) -> u64 {
        let kind: u64 = match self {
            Phase::Translated { .. } => 0,
            Phase::Legacy => 1,
            Phase::Shadow => 2,
            Phase::Canary(_) => 3,
        };
        (kind << 32) | u64::from(self.share().unwrap_or_default().0)
    }

    pub(super) fn unpacked(packed: u64) -> Phase {
        // The lower half is the share; it was put there by `packed`.
        let share = Share((packed & u64::from(u32::MAX)) as u32);
        match packed >> 32 {
            1 => Phase::Legacy,
            2 => Phase::Shadow,
            3 => Phase::Canary(share),
            _ => Phase::Translated { check: share },
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Phase::Canary(share) => write!(f, "canary for {share} of clients"),
            Phase::Translated { check } if !check.is_none() => {
                write!(f, "translated, {check} of requests checked")
            }
            other => f.write_str(other.name()),
        }
    }
}

/// Why a name and a share are no phase.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PhaseFault {
    /// No phase has this name.
    #[error("there is no phase `{0}`; they are legacy, shadow, canary and translated")]
    NoSuchPhase(String),
    /// `canary` was given without a share.
    #[error("the phase `canary` needs a share of clients")]
    NoShare,
    /// `legacy` or `shadow` was given with a share.
    #[error("the phases `legacy` and `shadow` have no share")]
    ShareOfNothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(part: f64) -> Share {
        Share::new(part).expect("between 0 and 1")
    }

    #[test]
    fn a_growing_share_only_adds_clients_and_is_met() {
        let clients: Vec<String> = (0..10_000).map(|n| format!("client-{n}")).collect();
        let among = |part: f64| -> Vec<bool> {
            clients.iter().map(|client| share(part).has_client(client, "GET /things")).collect()
        };
        let steps = [0.0, 0.01, 0.1, 0.5, 0.9, 1.0].map(|part| (part, among(part)));
        for pair in steps.windows(2) {
            let lost = pair[0].1.iter().zip(&pair[1].1).filter(|(before, after)| **before && !**after);
            assert_eq!(lost.count(), 0, "from {} to {}", pair[0].0, pair[1].0);
        }
        for (part, among) in steps {
            let met = among.iter().filter(|is_in| **is_in).count() as f64 / clients.len() as f64;
            assert!((met - part).abs() < 0.02, "{met} for {part}");
        }
    }

    #[test]
    fn operations_do_not_all_begin_with_the_same_clients() {
        let clients: Vec<String> = (0..1_000).map(|n| format!("client-{n}")).collect();
        let tenth = share(0.1);
        let both = clients.iter().filter(|c| tenth.has_client(c, "GET /a") && tenth.has_client(c, "GET /b"));
        assert!(both.count() < 40);
    }

    /// The order of clients outlives processes: were it to change, clients of a running canary would flap.
    #[test]
    fn the_order_of_clients_is_for_good() {
        assert_eq!(place("acme", "GET /things"), 563_098);
        assert_eq!(place("beta", "GET /things/{id}"), 988_927);
    }

    #[test]
    fn shares_are_read_as_parts_and_percent() {
        assert_eq!("0.1".parse(), Ok(share(0.1)));
        assert_eq!("12.5%".parse(), Ok(share(0.125)));
        assert_eq!("1".parse(), Ok(Share::ALL));
        for wrong in ["1.1", "-0", "-0.1", "x", "", "NaN", "101%"] {
            let read = wrong.parse::<Share>();
            assert!(read.is_err() || wrong == "-0", "{wrong}: {read:?}");
        }
        assert_eq!(share(0.1).to_string(), "0.1");
    }

    #[test]
    fn requests_are_taken_in_proportion() {
        let mut sample_roll = fastrand::Rng::with_seed(7);
        let taken = (0..100_000).filter(|_| share(0.25).takes(sample_roll.u64(..))).count();
        assert!((24_000..26_000).contains(&taken), "{taken}");
        assert!(Share::ALL.takes(u64::MAX) && !Share::NONE.takes(0));
    }

    #[test]
    fn every_phase_survives_being_packed_and_being_named() {
        let phases = [
            Phase::Legacy,
            Phase::Shadow,
            Phase::Canary(share(0.25)),
            Phase::Translated { check: share(0.01) },
            Phase::default(),
        ];
        for phase in phases {
            assert_eq!(Phase::unpacked(phase.packed()), phase);
            assert_eq!(Phase::named(phase.name(), phase.share()), Ok(phase));
        }
        assert_eq!(Phase::default().packed(), 0);
        assert_eq!(Phase::named("canary", None), Err(PhaseFault::NoShare));
        assert_eq!(Phase::named("shadow", Some(Share::ALL)), Err(PhaseFault::ShareOfNothing));
    }
}
