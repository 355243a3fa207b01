//! What a pack keeps, changes, loses and refuses, operation by operation: the document for the people whose integrations
//! run through it. Works on the compiled pack alone; how it is shown to people is in `report/show.rs`.

mod show;

use super::{
    Archive, ArchiveId, Becomes, Class, Direction, Effect, Events, Loss, NoteKind, Pack, Route, RouteKind,
    Setting, Shape, SideId, Verdict,
};
use serde::Serialize;

/// A pack's report: what clients of each side can expect.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the pack.
    pub pack: String,
    /// The old side first.
    pub sides: Vec<SideReport>,
    /// In the order of the manifest.
    pub settings: Vec<SettingReport>,
    /// What the gateway keeps of its own.
    pub archives: Vec<ArchiveReport>,
    /// What becomes of the events of the side that sends some.
    pub events: Vec<EventReport>,
    /// In the order of the mapping files.
    pub shapes: Vec<ShapeReport>,
}

/// What receivers of the other side get of an event.
#[derive(Debug, Serialize)]
pub struct EventReport {
    /// With the side that sends it.
    pub event: String,
    /// With the side whose receivers get it; none where it is dropped.
    pub becomes: Option<String>,
    /// Why it is dropped.
    pub dropped: Option<String>,
    /// The place of the value that keeps events in order; none where all of a receiver are.
    pub key: Option<String>,
    /// How much of a body is held, and why not less.
    pub class: Option<&'static str>,
    /// How a dual run finds the event of the other side that tells the same.
    pub correlate: Option<String>,
    /// Members that receivers of the other side do not get.
    pub lost: Vec<LossReport>,
    /// `file:line` of the mapping.
    pub place: String,
}

/// What the gateway keeps of its own, for each client apart.
#[derive(Debug, Serialize)]
pub struct ArchiveReport {
    /// Name of the archive.
    pub archive: String,
    /// As the mapping describes it.
    pub about: String,
    /// Whether entries have values, or are marks that something is gone.
    pub values: bool,
    /// The operations that look into it, whichever settings are on.
    pub read_by: Vec<String>,
    /// The harvests that fill it.
    pub filled_by: Vec<String>,
    /// `file:line` of the mapping.
    pub place: String,
}

/// What the operator can set.
#[derive(Debug, Serialize)]
pub struct SettingReport {
    /// Dotted name, as the configuration has it below the pack's.
    pub setting: String,
    /// `boolean`, `integer`, `string` or `date`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// JSON text; none where the operator must give a value, or where there is none without him.
    pub default: Option<String>,
    /// Whether the operator must give a value, where clients speak one of the sides under `read_by`.
    pub required: bool,
    /// The sides whose clients' calls read it.
    pub read_by: Vec<String>,
    /// The only texts that it may be; empty = any.
    pub values: Vec<String>,
    /// As the manifest describes it.
    pub about: String,
    /// Which open point of a contract it settles.
    pub reading: Option<String>,
    /// The operations that another route answers while it is on.
    pub switches: Vec<String>,
    /// `file:line` of the manifest.
    pub place: String,
}

/// What clients of one side can expect when the other side answers.
#[derive(Debug, Serialize)]
pub struct SideReport {
    /// Name of the side whose clients ask.
    pub side: String,
    /// Name of the side that answers.
    pub backend: String,
    /// How many of its operations are answered as the contract promises.
    pub exact: usize,
    /// How many are answered in full, but not in the same way.
    pub different: usize,
    /// How many are answered without something that the contract promises.
    pub partly: usize,
    /// How many are refused.
    pub refused: usize,
    /// How many of the operations that are answered are degraded.
    pub degraded: usize,
    /// In the order of the contract.
    pub operations: Vec<OperationReport>,
}

/// What becomes of one operation.
#[derive(Debug, Serialize)]
pub struct OperationReport {
    /// Method and path template, as the contract writes them.
    pub operation: String,
    /// `exact`, `different`, `partly` or `not possible`.
    pub verdict: &'static str,
    /// `pair`, `serve` or `refuse`.
    pub route: &'static str,
    /// Whether the answer lacks, or only approximates, something that the contract promises.
    pub degraded: bool,
    /// The operation of the other side that this one is the counterpart of, where a pair or a shared name says so.
    pub counterpart: Option<String>,
    /// Least calls to the other side for one request.
    pub calls_min: u32,
    /// Most calls to the other side for one request.
    pub calls_max: u32,
    /// How much of a body is held, and why not less; none when nothing is called.
    pub class: Option<&'static str>,
    /// Why the class is not a cheaper one, as a sentence.
    pub because: Option<String>,
    /// `none` or `write`: what it does to the service.
    pub effect: &'static str,
    /// Members of requests and answers that do not reach the other side.
    pub lost: Vec<LossReport>,
    /// Fields of the answer that the other side has nothing for, and what stands there.
    pub without_source: Vec<GapReport>,
    /// What is not as it was, as sentences of the mapping.
    pub differs: Vec<String>,
    /// What is only nearly as it was, as sentences of the mapping.
    pub approximate: Vec<String>,
    /// What is written against the contract on purpose.
    pub despite: Vec<String>,
    /// How its pages are asked for and told, where the sides differ in it.
    pub paging: Option<String>,
    /// What a dual run may read after this write, with its address.
    pub read_back: Option<String>,
    /// Why a refused operation is refused, in the default language; for others, the reasons of what is refused of it.
    pub refusals: Vec<String>,
    /// Texts of the pack's own that it answers with, in the default language, each after its status: `400: …`. The service's
    /// own words for the same are others.
    pub own_words: Vec<String>,
    /// What becomes of it while a setting is on.
    pub instead: Vec<InsteadReport>,
    /// `file:line` of the mapping.
    pub place: String,
}

/// What becomes of an operation while a setting is on.
#[derive(Debug, Serialize)]
pub struct InsteadReport {
    /// Dotted name of the setting, which is a boolean.
    pub setting: String,
    /// What is true while it is on.
    #[serde(flatten)]
    pub operation: OperationReport,
}

/// A field of an answer without a source.
#[derive(Debug, Serialize)]
pub struct GapReport {
    /// Place in the answer, such as `$.items[*].size`.
    pub place: String,
    /// JSON text, mostly `null`.
    pub value: String,
    /// False where it is so only when nothing was found.
    pub always: bool,
}

/// A field that does not survive.
#[derive(Debug, Serialize)]
pub struct LossReport {
    /// Name of the side that has the field.
    pub side: String,
    /// Place in the body, such as `$[*].size`.
    pub place: String,
    /// Name of the side that the value does not reach; none where the place is lost because that side has nothing for it.
    pub to: Option<String>,
    /// JSON text that always stands at the place, since the other side has nothing for it.
    pub instead: Option<String>,
    /// Whether only some of its values do not survive, or how they are spelt.
    pub partly: bool,
    /// The values that the contract of the other side does not take, such as `values above 100`; none where it is the mapping
    /// that loses them.
    pub values: Option<String>,
}

/// How much a shape carries.
#[derive(Debug, Serialize)]
pub struct ShapeReport {
    /// Name of the shape.
    pub shape: String,
    /// `iso`: nothing is lost; `lens`: one side has more; `symmetric`: both have.
    pub law: &'static str,
    /// Members of either side that do not come back.
    pub lost: Vec<LossReport>,
    /// `file:line` of the mapping.
    pub place: String,
}

/// The report of a pack.
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
            correlate: route.told().and_then(|told| told.correlate).map(super::explain::correlate),
            lost: route.losses.iter().map(|loss| LossReport::new(pack, loss)).collect(),
            place: format!("{}:{}", route.origin.file, route.origin.line),
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
        place: format!("{}:{}", archive.origin.file, archive.origin.line),
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
        place: format!("{}:{}", setting.origin.file, setting.origin.line),
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
    let (without_source, lost): (Vec<&Loss>, Vec<&Loss>) =
        route.losses.iter().partition(|loss| loss.instead.is_some() && loss.side == *served);
    let notes = |kind| -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        for note in route.notes.iter().filter(|note| note.kind == kind) {
            let text = match &note.name {
                Some(name) => format!("{} (`{name}`)", note.text),
                None => note.text.clone(),
            };
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
        lost: lost.into_iter().map(|loss| LossReport::new(pack, loss)).collect(),
        without_source: without_source.into_iter().map(gap).collect(),
        differs: notes(NoteKind::Differs),
        approximate,
        despite: notes(NoteKind::Despite),
        paging: route.paging.as_ref().map(|paging| paging.sentence()),
        read_back: super::explain::read_back(pack, route),
        refusals: super::explain::refusals(route)
            .into_iter()
            .filter_map(|id| pack.reasons[id].texts.get(pack.languages.first()?).cloned())
            .collect(),
        own_words: super::explain::own_words(route)
            .into_iter()
            .filter_map(|(status, id)| {
                let text = pack.reasons[id].texts.get(pack.languages.first()?)?;
                Some(format!("{status}: {text}"))
            })
            .collect(),
        instead: route
            .instead
            .iter()
            .map(|instead| InsteadReport {
                setting: pack.settings[usize::from(instead.setting)].name.clone(),
                operation: operation(pack, serves, &instead.route),
            })
            .collect(),
        place: format!("{}:{}", route.origin.file, route.origin.line),
    }
}

/// The operation that a pair relates to this one in either direction, else the one of the same name.
fn counterpart(pack: &Pack, serves: SideId, route: &Route) -> Option<String> {
    let paired = |route: &Route| match &route.kind {
        RouteKind::Pair(pair) => Some(std::sync::Arc::clone(&pair.call.operation)),
        RouteKind::Serve(_) | RouteKind::Refuse(_) => None,
    };
    let others = &pack.directions[serves.other()].routes;
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
        place: format!("{}:{}", shape.origin.file, shape.origin.line),
    }
}

impl Verdict {
    /// The verdict in words.
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
    /// The class in a word.
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
