//! The four phases of an operation, and shares of clients and requests. Plain values: `proxy`
//! implements their effects, and [`super::phases`] manages them.

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// Denominator of shares.
const WHOLE: u32 = 1_000_000;

/// A share from 0 to 1, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// No client, or no request.
    pub const NONE: Share = Share(0);
    /// Every client, or every request.
    pub const ALL: Share = Share(WHOLE);

    /// Returns a share between 0 and 1, rounded to millionths. Returns `None` for values outside
    /// that range.
    pub fn new(part: f64) -> Option<Share> {
        // The value is in range, so the cast loses no more than the rounding error.
        (0.0..=1.0).contains(&part).then(|| Share((part * f64::from(WHOLE)).round() as u32))
    }

    /// Converts a share from its stored form.
    pub(crate) fn of_millionths(millionths: i64) -> Option<Share> {
        u32::try_from(millionths).ok().filter(|millionths| *millionths <= WHOLE).map(Share)
    }

    pub(crate) fn millionths(self) -> u32 {
        self.0
    }

    /// Returns the share as a number from 0 to 1.
    pub fn part(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// Returns whether the share is 0.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns whether a client belongs to this share of an operation's clients. The result depends
    /// only on the two names, so it is the same at any time, in every process and after a restart.
    /// Increasing the share only adds clients.
    pub fn has_client(self, client: &str, operation: &str) -> bool {
        match self {
            Share::NONE => false,
            Share::ALL => true,
            Share(share) => place(client, operation) < share,
        }
    }

    /// Returns whether one of many requests belongs to this share. `sample_roll` is a uniformly
    /// distributed number.
    pub fn takes(self, sample_roll: u64) -> bool {
        to_millionths(sample_roll) < self.0
    }
}

/// Hashes a text to a uniformly distributed number, so that two messages with the same text are
/// sampled together.
pub(crate) fn roll_of(text: &str) -> u64 {
    let digest = Sha256::digest(text);
    let (head, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
    u64::from_be_bytes(*head)
}

/// Returns a client's position in the order in which an operation's clients are added.
fn place(client: &str, operation: &str) -> u32 {
    let digest = Sha256::new().chain_update(client).chain_update([0]).chain_update(operation).finalize();
    let (head, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
    to_millionths(u64::from_be_bytes(*head))
}

/// Scales a uniformly distributed 64-bit number to millionths.
fn to_millionths(number: u64) -> u32 {
    let scaled = (u128::from(number) * u128::from(WHOLE)) >> 64;
    u32::try_from(scaled).expect("smaller than the whole")
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.part())
    }
}

impl FromStr for Share {
    type Err = ShareError;

    /// Parses `0.1` or `10%`.
    fn from_str(text: &str) -> Result<Share, ShareError> {
        let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
        let part = number.trim().parse::<f64>().ok().and_then(|number| Share::new(number / unit));
        part.ok_or_else(|| ShareError(text.to_owned()))
    }
}

/// A text that is not a share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a share such as `0.1` or `10%`, from 0 to 1, not `{0}`")]
pub struct ShareError(String);

/// Selects the service that answers an operation, and the one called in the shadow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The served side's own service answers; the request is forwarded unchanged. There is no
    /// shadow call.
    Legacy,
    /// The served side's own service answers; the other side is called in the shadow.
    Shadow,
    /// The other side answers this share of the clients, and the served side's own service the
    /// rest. The side that does not answer is called in the shadow.
    Canary(Share),
    /// The other side answers. For the share `check` of requests, the served side's own service is
    /// called in the shadow.
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

/// The names of all phases, in the order of a migration.
pub const PHASES: [&str; 4] = ["legacy", "shadow", "canary", "translated"];

impl Phase {
    /// Returns the name used in the configuration, the store, metrics and responses.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Legacy => "legacy",
            Phase::Shadow => "shadow",
            Phase::Canary(_) => "canary",
            Phase::Translated { .. } => "translated",
        }
    }

    /// Returns the share of clients of `canary` or the checked share of `translated`, and `None`
    /// for other phases.
    pub fn share(self) -> Option<Share> {
        match self {
            Phase::Legacy | Phase::Shadow => None,
            Phase::Canary(share) => Some(share),
            Phase::Translated { check } => Some(check),
        }
    }

    /// Returns a phase by its name and share.
    ///
    /// # Errors
    ///
    /// No phase has this name, the phase does not accept a share, or it lacks one.
    pub fn parse(name: &str, share: Option<Share>) -> Result<Phase, PhaseFault> {
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

    /// Returns whether the phase requires the served side's own service. `translated` works without
    /// it and can still read back its writes.
    pub fn needs_own(self) -> bool {
        !matches!(self, Phase::Translated { .. })
    }

    /// Returns the position of the phase in a migration: a phase of a higher rank gives more clients
    /// translated answers, or compares more.
    pub fn rank(self) -> (u8, u32) {
        match self {
            Phase::Legacy => (0, 0),
            Phase::Shadow => (1, 0),
            Phase::Canary(share) => (2, share.0),
            Phase::Translated { .. } => (3, 0),
        }
    }

    /// Packs the phase into one number, for lock-free tables.
    pub(super) fn pack(self) -> u64 {
        let kind: u64 = match self {
            Phase::Translated { .. } => 0,
            Phase::Legacy => 1,
            Phase::Shadow => 2,
            Phase::Canary(_) => 3,
        };
        (kind << 32) | u64::from(self.share().unwrap_or_default().0)
    }

    pub(super) fn unpack(packed: u64) -> Phase {
        // The lower half is the share, set by `packed`.
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

/// An error in the name or share of a phase.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PhaseFault {
    /// No phase has this name.
    #[error("there is no phase `{0}`; they are legacy, shadow, canary and translated")]
    NoSuchPhase(String),
    /// `canary` has no share.
    #[error("the phase `canary` needs a share of clients")]
    NoShare,
    /// `legacy` or `shadow` has a share.
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
            assert_eq!(Phase::unpack(phase.pack()), phase);
            assert_eq!(Phase::parse(phase.name(), phase.share()), Ok(phase));
        }
        assert_eq!(Phase::default().pack(), 0);
        assert_eq!(Phase::parse("canary", None), Err(PhaseFault::NoShare));
        assert_eq!(Phase::parse("shadow", Some(Share::ALL)), Err(PhaseFault::ShareOfNothing));
    }
}
