//! What the dual run knows of the pack that serves: what comparing looks away from, and what the contracts promise. Made with
//! the pack, replaced with it.

use super::job::PlannedCall;
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
    /// Old side first.
    contracts: PerSide<Box<dyn CallContract>>,
}

impl Knowledge {
    /// `contracts` are those that the pack was compiled with, the old side's first; `pack_hash` tells packs apart.
    pub fn new(pack: Arc<Pack>, pack_hash: &str, contracts: PerSide<Box<dyn CallContract>>) -> Knowledge {
        Knowledge { rules: Rules::of(&pack), pack, pack_hash: pack_hash.into(), contracts }
    }

    pub(super) fn pack_hash(&self) -> &Arc<str> {
        &self.pack_hash
    }

    pub(super) fn rules(&self, serves: SideId, route: RouteId) -> &OperationRules {
        self.rules.of_route(serves, route)
    }

    /// What may be shown of messages of a side.
    pub(super) fn disclosures(&self, side: SideId) -> &Disclosures {
        &self.pack.disclosures[side]
    }

    /// The line of the mapping that answers a route.
    pub(super) fn origin(&self, serves: SideId, route: RouteId) -> &Origin {
        &self.pack.directions[serves].routes[route].origin
    }

    /// In which ways a call is not what the contract of the side it goes to asks for, each in a sentence that repeats no value.
    pub(super) fn breaches(&self, called: SideId, call: &PlannedCall) -> Vec<String> {
        self.contracts[called].breaches(&call.operation, &call.target, call.body.as_deref())
    }
}
