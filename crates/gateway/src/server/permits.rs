//! Connection permits: a total limit and a limit per address. Locked when connections open and
//! close, never while requests are answered. Listeners of one address share them.

use arc_swap::ArcSwap;
use ipnet::IpNet;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Limits on the number of connections.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Maximum number of open connections; further ones are rejected with 503.
    pub max: usize,
    /// Maximum per address; `None`: unlimited while the address has no more open connections
    /// than there are free permits.
    pub per_address_max: Option<usize>,
    /// Load balancers and proxies, which connect on behalf of many clients. Their connections are
    /// exempt from the limit per address.
    pub trusted: Vec<IpNet>,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits { max: 9_000, per_address_max: None, trusted: Vec::new() }
    }
}

#[derive(Debug)]
pub(super) struct ConnectionPermits {
    bounds: ArcSwap<ConnectionLimits>,
    taken: Mutex<TakenPermits>,
}

#[derive(Debug, Default)]
struct TakenPermits {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The limit that prevents a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPermit {
    /// The total limit is reached.
    Full,
    /// The limit of this address is reached.
    Address,
}

impl ConnectionPermits {
    pub(super) fn new(bounds: ConnectionLimits) -> Arc<ConnectionPermits> {
        Arc::new(ConnectionPermits { bounds: ArcSwap::from_pointee(bounds), taken: Mutex::default() })
    }

    /// Replaces the limits. Connections beyond the new limits stay open.
    pub(super) fn set_bounds(&self, bounds: ConnectionLimits) {
        self.bounds.store(Arc::new(bounds));
    }

    /// Takes a permit for a connection from `address`.
    pub(super) fn take(self: &Arc<ConnectionPermits>, address: IpAddr) -> Result<ConnectionPermit, NoPermit> {
        let (counted, bounds) = (self.network_of(address), self.bounds.load());
        let mut taken = self.lock_taken();
        // Saturating, because `take_over` and a lowered limit may leave more permits taken than
        // allowed.
        let free = bounds.max.saturating_sub(taken.all);
        if free == 0 {
            return Err(NoPermit::Full);
        }
        if let Some(address) = counted {
            let own = taken.by_address.get(&address).copied().unwrap_or(0);
            // With this default, n addresses that take all they can leave 1/(n + 1) of the permits
            // free.
            let may_have = bounds.per_address_max.map_or(own <= free, |max| own < max);
            if !may_have {
                return Err(NoPermit::Address);
            }
        }
        Ok(self.enter(&mut taken, counted))
    }

    /// Takes a permit beyond the limit, for a connection that has just evicted another.
    pub(super) fn take_over(self: &Arc<ConnectionPermits>, address: IpAddr) -> ConnectionPermit {
        let counted = self.network_of(address);
        self.enter(&mut self.lock_taken(), counted)
    }

    fn enter(
        self: &Arc<ConnectionPermits>,
        taken: &mut TakenPermits,
        address: Option<IpAddr>,
    ) -> ConnectionPermit {
        taken.all += 1;
        if let Some(address) = address {
            *taken.by_address.entry(address).or_default() += 1;
        }
        ConnectionPermit { places: Arc::clone(self), address }
    }

    /// Returns the key under which connections from an address are counted; `None` for a trusted
    /// proxy. IPv6 addresses count by network, since one client usually controls all of it.
    fn network_of(&self, address: IpAddr) -> Option<IpAddr> {
        // A dual-stack socket reports IPv4 peers as mapped IPv6 addresses, all of one /64 network.
        let address = address.to_canonical();
        if self.bounds.load().trusted.iter().any(|network| network.contains(&address)) {
            return None;
        }
        Some(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        })
    }

    fn lock_taken(&self) -> MutexGuard<'_, TakenPermits> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permit of one connection, returned on drop.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    places: Arc<ConnectionPermits>,
    address: Option<IpAddr>,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = self.places.lock_taken();
        taken.all -= 1;
        if let Some(address) = self.address
            && let Some(own) = taken.by_address.get_mut(&address)
        {
            *own -= 1;
            // Removes the entry, or the map would grow with every address that ever connected.
            if *own == 0 {
                taken.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn places(max: usize, per_address_max: Option<usize>) -> Arc<ConnectionPermits> {
        let trusted = vec!["10.0.0.0/8".parse().unwrap()];
        ConnectionPermits::new(ConnectionLimits { max, per_address_max, trusted })
    }

    /// Takes all permits that an address can get.
    fn take_all(places: &Arc<ConnectionPermits>, address: &str) -> Vec<ConnectionPermit> {
        std::iter::from_fn(|| places.take(ip(address)).ok()).collect()
    }

    #[test]
    fn addresses_that_take_all_they_can_leave_places_to_others() {
        let places = places(40, None);
        let mut held = vec![take_all(&places, "192.0.2.1")];
        assert_eq!(held[0].len(), 21, "half, and the one that is asked for with as many left");
        for other in 2..=4 {
            held.push(take_all(&places, &format!("192.0.2.{other}")));
        }
        assert!(held.iter().all(|own| !own.is_empty()), "{held:?}");
        assert_eq!(places.take(ip("192.0.2.1")).unwrap_err(), NoPermit::Address);
        assert!(places.take(ip("192.0.2.99")).is_ok());
    }

    #[test]
    fn what_is_configured_for_an_address_holds_and_proxies_have_no_such_bound() {
        let places = places(10, Some(2));
        let first = take_all(&places, "192.0.2.1");
        assert_eq!(first.len(), 2);
        let proxied = take_all(&places, "10.1.2.3");
        assert_eq!(proxied.len(), 8);
        assert_eq!(places.take(ip("192.0.2.2")).unwrap_err(), NoPermit::Full);
        drop((first, proxied));
        assert!(places.take(ip("192.0.2.1")).is_ok());
    }

    #[test]
    fn a_network_of_ipv6_is_one_address_and_a_mapped_one_is_that_of_ipv4() {
        let places = places(100, Some(1));
        let _held = [places.take(ip("2001:db8::1")).unwrap(), places.take(ip("::ffff:192.0.2.1")).unwrap()];
        assert_eq!(places.take(ip("2001:db8::2")).unwrap_err(), NoPermit::Address);
        assert_eq!(places.take(ip("192.0.2.1")).unwrap_err(), NoPermit::Address);
        assert!(places.take(ip("2001:db8:0:1::1")).is_ok());
    }

    #[test]
    fn places_are_given_back() {
        let places = places(1, None);
        let place = places.take(ip("192.0.2.1")).unwrap();
        assert_eq!(places.take(ip("192.0.2.1")).unwrap_err(), NoPermit::Full);
        let over = places.take_over(ip("192.0.2.1"));
        drop((place, over));
        assert!(places.lock_taken().by_address.is_empty());
        assert!(places.take(ip("192.0.2.1")).is_ok());
    }
}
