//! The service of a side: its main upstream and one per host that the pack names. The compiler
//! assigns a host to each call. A call for one host is never sent to another, because it carries a
//! token.

use super::upstream::Upstream;
use std::sync::Arc;
use switchback_plan::HostId;

/// The upstreams of one side. Clones share them.
#[derive(Clone, Debug)]
pub struct SideUpstreams {
    main: Arc<Upstream>,
    /// In the order of their [`HostId`]s. `None`: the main upstream answers for all hosts.
    hosts: Option<Arc<[Arc<Upstream>]>>,
}

impl SideUpstreams {
    /// Creates the service of a side with its own address and those of its hosts, in the order of
    /// [`switchback_plan::Side::hosts`].
    pub fn new(main: Arc<Upstream>, hosts: impl Into<Arc<[Arc<Upstream>]>>) -> SideUpstreams {
        SideUpstreams { main, hosts: Some(hosts.into()) }
    }

    /// Creates a service that answers for all hosts of its side.
    pub(crate) fn of_all(main: Arc<Upstream>) -> SideUpstreams {
        SideUpstreams { main, hosts: None }
    }

    /// Returns the upstream for a host, or `None` if the host has no address.
    pub(super) fn at(&self, host: HostId) -> Option<&Arc<Upstream>> {
        match (host.place(), &self.hosts) {
            (None, _) | (Some(_), None) => Some(&self.main),
            (Some(place), Some(hosts)) => hosts.get(place),
        }
    }

    /// Returns the upstream at the side's own address.
    pub fn main(&self) -> &Arc<Upstream> {
        &self.main
    }

    /// Returns whether `upstream` is one of this side's.
    pub(super) fn has(&self, upstream: &Arc<Upstream>) -> bool {
        let hosts = self.hosts.iter().flat_map(|hosts| hosts.iter());
        std::iter::once(&self.main).chain(hosts).any(|own| Arc::ptr_eq(own, upstream))
    }
}
