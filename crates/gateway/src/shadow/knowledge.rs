//! What the dual run knows of the pack that serves: what comparing looks away from, and what the contracts promise. Made with
//! the pack, replaced with it.

use super::job::{About, PlannedCall};
use std::fmt::Debug;
use std::sync::Arc;
use switchback_engine::diff::{OperationRules, Rules};
use switchback_plan::{Disclosures, Origin, Pack, PerSide, RouteId, SideId};

/// The contract of one side, as far as the dual run asks it. The gateway sees plans only, so whoever read the contract
/// implements this.
pub trait CallContract: Debug + Send + Sync {
    /// In which ways a call is not what the contract asks for, each in a sentence that repeats no value. `operation` is
    /// written as the contract writes it, `target` is path and query below the base.
    fn breaches(&self, operation: &str, target: &str, body: Option<&[u8]>) -> Vec<String>;
}

/// A pack as the dual run sees it.
#[derive(Debug)]
pub struct Knowledge {
    pack: Arc<Pack>,
    /// Of all its files: evidence about one pack is none about another.
    pack_hash: Arc<str>,
    rules: Rules,
    /// Of an event that the pack does not have.
    unknown: OperationRules,
    nowhere: Origin,
    /// Old side first.
    contracts: PerSide<Box<dyn CallContract>>,
}

impl Knowledge {
    /// `contracts` are those that the pack was compiled with, the old side's first; `pack_hash` tells packs apart.
    pub fn new(pack: Arc<Pack>, pack_hash: &str, contracts: PerSide<Box<dyn CallContract>>) -> Knowledge {
        Knowledge {
            rules: Rules::of(&pack),
            unknown: OperationRules::unknown(),
            nowhere: Origin { file: "".into(), line: 0 },
            pack,
            pack_hash: pack_hash.into(),
            contracts,
        }
    }

    pub(crate) fn pack_hash(&self) -> &Arc<str> {
        &self.pack_hash
    }

    /// What comparing looks away from.
    pub(super) fn rules_about(&self, serves: SideId, about: About) -> &OperationRules {
        match about {
            About::Route(route) => self.rules(serves, route),
            About::Event(event) => self.rules.of_event(event).unwrap_or(&self.unknown),
        }
    }

    pub(super) fn rules(&self, serves: SideId, route: RouteId) -> &OperationRules {
        self.rules.of_route(serves, route)
    }

    /// What may be shown of messages of a side.
    pub(super) fn disclosures(&self, side: SideId) -> &Disclosures {
        &self.pack.disclosures[side]
    }

    /// The line of the mapping that answers a route, or that says what becomes of an event.
    pub(super) fn origin(&self, serves: SideId, about: About) -> &Origin {
        let event = |at: usize| self.pack.events.as_ref().and_then(|events| events.routes.get(at));
        match about {
            About::Route(route) => &self.pack.directions[serves].routes[route].origin,
            About::Event(at) => event(at).map_or(&self.nowhere, |event| &event.origin),
        }
    }

    /// In which ways a call is not what the contract of the side it goes to asks for, each in a sentence that repeats no value.
    pub(super) fn breaches(&self, called: SideId, call: &PlannedCall) -> Vec<String> {
        self.contracts[called].breaches(&call.operation, &call.target, call.body.as_deref())
    }
}
