//! The report of a pack: what it preserves, changes, loses and refuses, operation by operation. It
//! is written for the owners of integrations, and computed from the compiled pack alone.
//! `report/show.rs` renders it.

mod show;

use super::{
    Archive, ArchiveId, Becomes, Class, Direction, Effect, Events, Loss, NoteKind, Pack, Route, RouteKind,
    Setting, Shape, SideId, Verdict,
};
use serde::Serialize;

/// The report of a pack, for the clients of each side.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the pack.
    pub pack: String,
    /// The old side first.
    pub sides: Vec<SideReport>,
    /// In the order of the manifest.
    pub settings: Vec<SettingReport>,
    /// Archives of the gateway.
    pub archives: Vec<ArchiveReport>,
    /// Translation of the events of the sending side.
    pub events: Vec<EventReport>,
    /// In the order of the mapping files.
    pub shapes: Vec<ShapeReport>,
}

/// The translation of one event.
#[derive(Debug, Serialize)]
pub struct EventReport {
    /// Name of the event, with the side that sends it.
    pub event: String,
    /// Name of the resulting event with its side; `None` if the event is dropped.
    pub becomes: Option<String>,
    /// The reason why it is dropped.
    pub dropped: Option<String>,
    /// Place of the ordering key; `None` if all events of a receiver are ordered.
    pub key: Option<String>,
    /// How much of a body is buffered.
    pub class: Option<&'static str>,
    /// How a dual run finds the corresponding event of the other side.
    pub correlate: Option<String>,
    /// Members that receivers of the other side do not get.
    pub lost: Vec<LossReport>,
    /// `file:line` of the mapping.
    pub place: String,
}

/// An archive. Each client has separate entries.
#[derive(Debug, Serialize)]
pub struct ArchiveReport {
    /// Name of the archive.
    pub archive: String,
    /// Description from the mapping.
    pub about: String,
    /// Whether entries have values, rather than marking that an object was deleted.
    pub values: bool,
    /// Operations that read it, for any choice of settings.
    pub read_by: Vec<String>,
    /// Harvests that fill it.
    pub filled_by: Vec<String>,
    /// `file:line` of the mapping.
    pub place: String,
}

/// A setting of the operator.
#[derive(Debug, Serialize)]
pub struct SettingReport {
    /// Dotted name below the pack in the configuration.
    pub setting: String,
    /// `boolean`, `integer`, `string` or `date`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Default as JSON text, if any.
    pub default: Option<String>,
    /// Whether the operator must set it if clients use a side in `read_by`.
    pub required: bool,
    /// Sides with calls that read it.
    pub read_by: Vec<String>,
    /// Allowed texts; empty if any text is allowed.
    pub values: Vec<String>,
    /// Description from the manifest.
    pub about: String,
    /// The open question of a contract that it decides.
    pub reading: Option<String>,
    /// Operations for which it selects another route.
    pub switches: Vec<String>,
    /// `file:line` of the manifest.
    pub place: String,
}

/// The operations of one side, answered by the other side.
#[derive(Debug, Serialize)]
pub struct SideReport {
    /// Name of the served side.
    pub side: String,
    /// Name of the other side.
    pub backend: String,
    /// Number of operations whose responses are as in the contract.
    pub exact: usize,
    /// Number of operations that work completely, but differently.
    pub different: usize,
    /// Number of operations without a part of the contract's behavior.
    pub partly: usize,
    /// Number of refused operations.
    pub refused: usize,
    /// Number of degraded operations among those that are not refused.
    pub degraded: usize,
    /// In the order of the contract.
    pub operations: Vec<OperationReport>,
}

/// The translation of one operation.
#[derive(Debug, Serialize)]
pub struct OperationReport {
    /// Method and path template as in the contract.
    pub operation: String,
    /// `exact`, `different`, `partly` or `not possible`.
    pub verdict: &'static str,
    /// `pair`, `serve` or `refuse`.
    pub route: &'static str,
    /// Whether the response lacks, or only approximates, a part of the contract's behavior.
    pub degraded: bool,
    /// The corresponding operation of the other side, from a pair or an equal name.
    pub counterpart: Option<String>,
    /// Minimum number of calls to the other side per request.
    pub calls_min: u32,
    /// Maximum number of calls to the other side per request.
    pub calls_max: u32,
    /// How much of a body is buffered; `None` if the route makes no call.
    pub class: Option<&'static str>,
    /// The reason why the class is not a cheaper one, as a sentence.
    pub because: Option<String>,
    /// Effect on the service: `none` or `write`.
    pub effect: &'static str,
    /// Members of requests and responses that do not reach the other side.
    pub lost: Vec<LossReport>,
    /// Fields of the response without a source on the other side, with their values.
    pub without_source: Vec<GapReport>,
    /// Differences, as sentences from the mapping.
    pub differs: Vec<String>,
    /// Approximations, as sentences from the mapping.
    pub approximate: Vec<String>,
    /// Deliberate deviations from the contract.
    pub despite: Vec<String>,
    /// Pagination, if the sides differ in it.
    pub paging: Option<String>,
    /// The operation that reads the effect of this write in a dual run, with its address.
    pub read_back: Option<String>,
    /// Reasons of all refusals in the default language.
    pub refusals: Vec<String>,
    /// The pack's own texts in responses, in the default language and after their status: `400: …`.
    /// The service's texts for the same errors differ.
    pub own_words: Vec<String>,
    /// Translation while a setting is on.
    pub instead: Vec<InsteadReport>,
    /// `file:line` of the mapping.
    pub place: String,
}

/// The translation of an operation while a setting is on.
#[derive(Debug, Serialize)]
pub struct InsteadReport {
    /// Dotted name of the boolean setting.
    pub setting: String,
    /// Translation while it is on.
    #[serde(flatten)]
    pub operation: OperationReport,
}

/// A field of a response without a source.
#[derive(Debug, PartialEq, Serialize)]
pub struct GapReport {
    /// Place in the response, such as `$.items[*].size`.
    pub place: String,
    /// JSON text, usually `null`.
    pub value: String,
    /// False if the value occurs only when no source was found.
    pub always: bool,
}

/// A field that does not survive.
#[derive(Debug, PartialEq, Serialize)]
pub struct LossReport {
    /// Name of the side that has the field.
    pub side: String,
    /// Place in the body, such as `$[*].size`.
    pub place: String,
    /// Name of the side that the value does not reach. `None` if the place has no source on the
    /// other side.
    pub to: Option<String>,
    /// JSON text that the place always has, because it has no source on the other side.
    pub instead: Option<String>,
    /// Whether only some values, or only the spelling of values, are lost.
    pub partly: bool,
    /// The values that the other side's contract does not allow, such as `values above 100`. `None`
    /// if the mapping causes the loss.
    pub values: Option<String>,
}

/// The information that a shape preserves.
#[derive(Debug, Serialize)]
pub struct ShapeReport {
    /// Name of the shape.
    pub shape: String,
    /// `iso`: lossless; `lens`: one side has more; `symmetric`: both sides have more.
    pub law: &'static str,
    /// Members of either side that do not survive a round trip.
    pub lost: Vec<LossReport>,
    /// `file:line` of the mapping.
    pub place: String,
}

/// Returns the report of a pack.
pub fn report(pack: &Pack) -> Report {
    Report {
        pack: pack.name.clone(),
        sides: pack.directions.iter().map(|direction| side(pack, direction)).collect(),
        settings: pack.settings.iter().zip(0..).map(|(one, at)| setting(pack, one, at)).collect(),
        archives: pack.archives.iter().zip(0..).map(|(one, at)| archive(pack, one, at)).collect(),
        events: pack.events.iter().flat_map(|events| events_report(pack, events)).collect(),
        shapes: pack.shapes.iter().map(|shape| shape_report(pack, shape)).collect(),
    }
}

fn events_report<'p>(pack: &'p Pack, events: &'p Events) -> impl Iterator<Item = EventReport> + 'p {
    let (sender, receiver) = (&pack.sides[events.from].name, &pack.sides[events.from.other()].name);
    events.routes.iter().map(move |route| {
        let (becomes, dropped, class) = match &route.becomes {
            Becomes::Event { name, body, .. } => {
                (Some(format!("{receiver} {name}")), None, Some(body.class.word()))
            }
            Becomes::Dropped { because } => (None, Some(because.clone()), None),
        };
        EventReport {
            event: format!("{sender} {}", route.sent),
            becomes,
            dropped,
            key: (!route.key.is_empty()).then(|| format!("$.body.{}", route.key.join("."))),
            class,
            correlate: route.delivered().and_then(|told| told.correlate).map(super::explain::correlate),
            lost: route.losses.iter().map(|loss| LossReport::new(pack, loss)).collect(),
            place: route.origin.to_string(),
        }
    })
}

fn archive(pack: &Pack, archive: &Archive, at: u16) -> ArchiveReport {
    let read_by = pack.directions.iter().flat_map(|direction| {
        let side = &pack.sides[direction.serves].name;
        let looks = |route: &&Route| route.all().any(|route| super::explain::uses(route, ArchiveId(at)).0);
        direction.routes.iter().filter(looks).map(move |route| format!("{side} {}", route.operation.key))
    });
    let fills = |harvest: &&super::Harvest| super::explain::uses(&harvest.route, ArchiveId(at)).1;
    ArchiveReport {
        archive: archive.name.clone(),
        about: archive.about.clone(),
        values: archive.side.is_some(),
        read_by: read_by.collect(),
        filled_by: pack.harvests.iter().filter(fills).map(|harvest| harvest.name.clone()).collect(),
        place: archive.origin.to_string(),
    }
}

fn setting(pack: &Pack, setting: &Setting, at: u16) -> SettingReport {
    let switches = pack.directions.iter().flat_map(|direction| {
        let side = &pack.sides[direction.serves].name;
        let switched = |route: &&Route| route.instead.iter().any(|instead| instead.setting == at);
        direction.routes.iter().filter(switched).map(move |route| format!("{side} {}", route.operation.key))
    });
    let reads = |side: &SideId| pack.settings_read(*side).contains(&at);
    let sides = [SideId::OLD, SideId::NEW].into_iter().filter(reads);
    SettingReport {
        setting: setting.name.clone(),
        kind: setting.kind.word(),
        default: setting.default.as_ref().map(|json| String::from_utf8_lossy(json).into_owned()),
        required: setting.is_required,
        read_by: sides.map(|side| pack.sides[side].name.clone()).collect(),
        values: setting.values.clone(),
        about: setting.about.clone(),
        reading: setting.reading.clone(),
        switches: switches.collect(),
        place: setting.origin.to_string(),
    }
}

fn side(pack: &Pack, direction: &Direction) -> SideReport {
    let side = pack.sides[direction.serves].name.clone();
    let operations: Vec<_> =
        direction.routes.iter().map(|route| operation(pack, direction.serves, route)).collect();
    let count = |verdict| direction.routes.iter().filter(|route| route.verdict == verdict).count();
    SideReport {
        side,
        backend: pack.sides[direction.serves.other()].name.clone(),
        exact: count(Verdict::Exact),
        different: count(Verdict::Different),
        partly: count(Verdict::Partly),
        refused: count(Verdict::Not),
        degraded: operations.iter().filter(|operation| operation.degraded).count(),
        operations,
    }
}

fn operation(pack: &Pack, serves: SideId, route: &Route) -> OperationReport {
    let served = &pack.sides[serves].name;
    // A constant on the served side is a field without a source. Every other entry is a loss.
    let (without_source, lost): (Vec<&Loss>, Vec<&Loss>) =
        route.losses.iter().partition(|loss| loss.instead.is_some() && loss.side == *served);
    let notes = |kind| -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        for note in route.notes.iter().filter(|note| note.kind == kind) {
            let text = match &note.name {
                Some(name) => format!("{} (`{name}`)", note.text),
                None => note.text.clone(),
            };
            // Several steps may have the same note.
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
    };
    let approximate = notes(NoteKind::Approximate);
    let degrades = !without_source.is_empty() || !approximate.is_empty();
    OperationReport {
        degraded: degrades && matches!(route.verdict, Verdict::Different | Verdict::Partly),
        counterpart: counterpart(pack, serves, route),
        operation: route.operation.key.to_string(),
        verdict: route.verdict.word(),
        route: match &route.kind {
            RouteKind::Pair(_) => "pair",
            RouteKind::Serve(_) => "serve",
            RouteKind::Refuse(_) => "refuse",
        },
        calls_min: route.calls_min,
        calls_max: route.calls_max,
        class: route.class().map(Class::word),
        because: super::explain::because(route),
        effect: match route.operation.effect {
            Effect::None => "none",
            Effect::Write => "write",
        },
        lost: without_repetitions(lost.into_iter().map(|loss| LossReport::new(pack, loss))),
        without_source: without_repetitions(without_source.into_iter().map(gap)),
        differs: notes(NoteKind::Differs),
        approximate,
        despite: notes(NoteKind::Despite),
        paging: route.paging.as_ref().map(|paging| paging.sentence()),
        read_back: super::explain::read_back(pack, route),
        refusals: super::explain::refusals(route)
            .into_iter()
            .filter_map(|id| pack.reason_text(id).map(str::to_owned))
            .collect(),
        own_words: super::explain::own_words(route)
            .into_iter()
            .filter_map(|(status, id)| Some(format!("{status}: {}", pack.reason_text(id)?)))
            .collect(),
        instead: route
            .instead
            .iter()
            .map(|instead| InsteadReport {
                setting: pack.settings[usize::from(instead.setting)].name.clone(),
                operation: operation(pack, serves, &instead.route),
            })
            .collect(),
        place: route.origin.to_string(),
    }
}

/// Returns each item once: several lines of a mapping may lose the same place.
fn without_repetitions<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for item in items {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}

/// Returns the operation that a pair relates to this one in either direction, otherwise the one
/// with the same key.
fn counterpart(pack: &Pack, serves: SideId, route: &Route) -> Option<String> {
    let paired = |route: &Route| match &route.kind {
        RouteKind::Pair(pair) => Some(std::sync::Arc::clone(&pair.call.operation)),
        RouteKind::Serve(_) | RouteKind::Refuse(_) => None,
    };
    let others = &pack.directions[serves.other()].routes;
    // A pair of the other direction relates the two operations as well.
    let from_there = || others.iter().find(|other| paired(other).as_ref() == Some(&route.operation.key));
    let same = || others.iter().find(|other| other.operation.key == route.operation.key);
    let found = || from_there().or_else(same).map(|other| other.operation.key.to_string());
    paired(route).map(|key| key.to_string()).or_else(found)
}

fn gap(loss: &Loss) -> GapReport {
    let value = loss.instead.clone().unwrap_or_default();
    GapReport { place: loss.place.clone(), value, always: !loss.unless_found }
}

impl LossReport {
    /// Describes a loss of a route or shape of this pack.
    pub fn new(pack: &Pack, loss: &Loss) -> LossReport {
        // The place itself lacks a source, so no value is lost on its way.
        let is_unfilled =
            loss.instead.is_some() || loss.narrow.as_ref().is_some_and(|narrow| narrow.is_of_target);
        let other = pack.sides.iter().find(|side| side.name != loss.side);
        LossReport {
            side: loss.side.clone(),
            place: loss.place.clone(),
            to: other.filter(|_| !is_unfilled).map(|side| side.name.clone()),
            instead: loss.instead.clone(),
            partly: loss.partly,
            values: loss.narrow.as_ref().map(|narrow| narrow.values.clone()),
        }
    }
}

fn shape_report(pack: &Pack, shape: &Shape) -> ShapeReport {
    let lost: Vec<&Loss> = shape.to.iter().flatten().flat_map(|plan| &plan.losses).collect();
    let of = |side: usize| lost.iter().any(|loss| loss.side == pack.sides[side].name);
    ShapeReport {
        shape: shape.name.clone(),
        law: match (of(0), of(1)) {
            (false, false) => "iso",
            (true, true) => "symmetric",
            _ => "lens",
        },
        lost: lost.into_iter().map(|loss| LossReport::new(pack, loss)).collect(),
        place: shape.origin.to_string(),
    }
}

impl Verdict {
    /// Returns the verdict in words.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Exact => "exact",
            Verdict::Different => "different",
            Verdict::Partly => "partly",
            Verdict::Not => "not possible",
        }
    }
}

impl Class {
    /// Returns the name of the class.
    pub fn word(self) -> &'static str {
        match self {
            Class::Pass => "pass",
            Class::Tokens => "tokens",
            Class::Captures => "captures",
            Class::Element => "element",
            Class::Document => "document",
        }
    }
}
