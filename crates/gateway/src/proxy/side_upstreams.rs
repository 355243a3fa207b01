//! The service of a side: one upstream, and those of the hosts that the pack names besides. Which
//! of them a call goes to the compiler has settled; what is meant for a host goes to no other, with
//! the token that it carries.

use super::upstream::Upstream;
use std::sync::Arc;
use switchback_plan::HostId;

/// The upstreams of one side. Clones share them.
#[derive(Clone, Debug)]
pub struct SideUpstreams {
    main: Arc<Upstream>,
    /// In the order of their [`HostId`]s; none where the main one answers for all.
    hosts: Option<Arc<[Arc<Upstream>]>>,
}

impl SideUpstreams {
    /// A service at its own address, and at those of its hosts, in the order of
    /// [`switchback_plan::Side::hosts`].
    pub fn new(main: Arc<Upstream>, hosts: impl Into<Arc<[Arc<Upstream>]>>) -> SideUpstreams {
        SideUpstreams { main, hosts: Some(hosts.into()) }
    }

    /// A service that answers for all hosts of its side.
    pub(crate) fn of_all(main: Arc<Upstream>) -> SideUpstreams {
        SideUpstreams { main, hosts: None }
    }

    /// The upstream that answers for a host; none for one that has no address.
    pub(super) fn at(&self, host: HostId) -> Option<&Arc<Upstream>> {
        match (host.place(), &self.hosts) {
            (None, _) | (Some(_), None) => Some(&self.main),
            (Some(place), Some(hosts)) => hosts.get(place),
        }
    }

    /// The upstream at the side's own address.
    pub fn main(&self) -> &Arc<Upstream> {
        &self.main
    }

    /// Whether this upstream is one of its own.
    pub(super) fn has(&self, upstream: &Arc<Upstream>) -> bool {
        let hosts = self.hosts.iter().flat_map(|hosts| hosts.iter());
        std::iter::once(&self.main).chain(hosts).any(|own| Arc::ptr_eq(own, upstream))
    }
}
