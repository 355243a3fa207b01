//! Facts of the serving pack for the dual run: the comparison rules and the contracts. Created with
//! the pack and replaced with it.

use super::subject::{JobSubject, PlannedCall};
use std::fmt::Debug;
use std::sync::Arc;
use switchback_engine::diff::{OperationRules, Rules};
use switchback_plan::{Disclosures, Origin, Pack, PerSide, RouteId, SideId};

/// The contract of one side, for validating planned calls. The gateway sees only compiled plans, so
/// the code that parsed the contract implements this.
pub trait CallContract: Debug + Send + Sync {
    /// Returns the contract violations of a call, each as a sentence without values. `operation` is
    /// named as in the contract; `target` is path and query below the base.
    fn breaches(&self, operation: &str, target: &str, body: Option<&[u8]>) -> Vec<String>;
}

/// A pack as the dual run uses it.
#[derive(Debug)]
pub struct Knowledge {
    pack: Arc<Pack>,
    /// A hash of all files of the pack: evidence about one pack does not apply to another.
    pack_hash: Arc<str>,
    rules: Rules,
    /// Rules for an event that the pack does not contain.
    unknown: OperationRules,
    nowhere: Origin,
    /// Old side first.
    contracts: PerSide<Box<dyn CallContract>>,
}

impl Knowledge {
    /// Creates the facts of a pack. `contracts` are those it was compiled with, the old side's
    /// first; `pack_hash` identifies the pack.
    pub fn new(pack: Arc<Pack>, pack_hash: &str, contracts: PerSide<Box<dyn CallContract>>) -> Knowledge {
        Knowledge {
            rules: Rules::compile(&pack),
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

    /// Returns the comparison rules of an operation or event.
    pub(super) fn rules_about(&self, serves: SideId, about: JobSubject) -> &OperationRules {
        match about {
            JobSubject::Route(route) => self.rules(serves, route),
            JobSubject::Event(event) => self.rules.of_event(event).unwrap_or(&self.unknown),
        }
    }

    pub(super) fn rules(&self, serves: SideId, route: RouteId) -> &OperationRules {
        self.rules.of_route(serves, route)
    }

    /// Returns which values in messages of a side may be disclosed.
    pub(super) fn disclosures(&self, side: SideId) -> &Disclosures {
        &self.pack.disclosures[side]
    }

    /// Returns the mapping line that answers a route or handles an event.
    pub(super) fn origin(&self, serves: SideId, about: JobSubject) -> &Origin {
        let event = |at: usize| self.pack.events.as_ref().and_then(|events| events.routes.get(at));
        match about {
            JobSubject::Route(route) => &self.pack.directions[serves].routes[route].origin,
            JobSubject::Event(at) => event(at).map_or(&self.nowhere, |event| &event.origin),
        }
    }

    /// Returns the violations of a planned call against the contract of the called side, each as a
    /// sentence without values.
    pub(super) fn breaches(&self, called: SideId, call: &PlannedCall) -> Vec<String> {
        self.contracts[called].breaches(&call.operation, &call.target, call.body.as_deref())
    }
}
