//! Drafts a pack from two contracts. Certain mappings are written, uncertain ones become decisions
//! for a person, and impossible ones are refused. The module works in memory and does not access
//! files.
//!
//! The compiler checks the draft. A route that does not compile is removed and becomes a decision
//! with the compiler's message, so the draft always passes `check`.

mod bodies;
mod decision;
mod descriptions;
mod error_form;
mod evidence;
mod fields;
mod operations;
mod paging;
mod places;
mod text;

use crate::contract::{Contract, Contracts, Documents};
use crate::diagnostic::{Code, Findings, Severity, Sources};
use crate::mapping::load::{PackFile, PackSource};
use crate::mapping::{Compiled, Compiler};
use bodies::{Bodies, DraftContext, Obstacle, RouteDraft};
pub(crate) use decision::slug;
pub use decision::{
    Choice, Decision, DecisionCase, DecisionGroup, DecisionTraffic, DocumentPlace, OperationUse, Weight,
    files, parse_list, parse_uses,
};
use descriptions::Descriptions;
use operations::{PairCandidate, Tier, candidates};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use switchback_plan::{Loss, Route, RouteKind};

/// One side of the draft: its name in the pack, its document, and the files that the document
/// consists of.
pub struct SideDocument {
    /// Name of the side, such as `v2`.
    pub name: String,
    /// Path of the document within the pack.
    pub document: String,
    /// Paths within the pack, and contents.
    pub files: Vec<PackFile>,
}

/// A drafted pack.
pub struct Draft {
    /// Paths within the pack, and texts. Contracts are not included.
    pub files: Vec<(String, String)>,
    /// Decisions, blockers first.
    pub decisions: Vec<Decision>,
    /// Ids of accepted proposals that the draft contains.
    pub taken: BTreeSet<String>,
    /// Operations whose lines do not compile, which are refused, with the first error of each.
    pub faults: BTreeMap<String, String>,
    /// Statistics.
    pub counts: DraftCounts,
    /// Summary for management, as Markdown.
    pub summary: String,
    /// The compiled draft.
    pub compiled: Compiled,
    /// Calls of the operations, by which the decisions are ranked.
    uses: Vec<OperationUse>,
}

impl Draft {
    /// Returns the decisions, joined by their question and ranked.
    pub fn questions(&self) -> Vec<DecisionGroup> {
        decision::group(&self.decisions, &self.uses)
    }

    /// Ranks the decisions by the calls of their operations.
    pub fn rank(&mut self, uses: Vec<OperationUse>) {
        self.uses = uses;
        self.list_decisions();
    }

    /// Writes both lists of the decisions.
    fn list_decisions(&mut self) {
        let (joined, lines) = (self.questions(), decision::files(&self.decisions));
        let lists = [
            (DECISIONS.to_owned(), text::decisions(&self.summary, &joined, &lines)),
            (DECISIONS_JSON.to_owned(), decision::to_json(&joined, &lines)),
        ];
        self.files.retain(|(name, _)| ![DECISIONS, DECISIONS_JSON].contains(&name.as_str()));
        self.files.extend(lists);
    }
}

/// Numbers of operations of the old side by the way in which they are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DraftCounts {
    /// All operations of the contract.
    pub operations: usize,
    /// Operations without lines in the mapping and without decisions.
    pub untouched: usize,
    /// Operations with certain lines, including handwritten ones.
    pub written: usize,
    /// Operations with lines to review.
    pub marked: usize,
    /// Operations that are refused until a person decides.
    pub refused: usize,
    /// Operations that lines of the mapping refuse.
    pub refused_by_lines: usize,
}

/// Drafts a pack. `own` are handwritten mapping files; the operations that they answer are not
/// drafted. `accepted` are ids of accepted proposals, and `ID: LINE` for decisions that a line resolves.
/// `progress` is called at the start of each stage.
///
/// # Errors
///
/// The findings, for the caller to render, if one of the documents is not a contract.
pub fn draft(
    pack: &str,
    sides: &[SideDocument; 2],
    own: &[(String, String)],
    accepted: &BTreeSet<String>,
    progress: &mut dyn FnMut(&str),
) -> Result<Draft, Box<Compiled>> {
    progress("reading the contracts");
    let manifest_of =
        |rest: &str, contracts: Option<&Contracts>| text::manifest(pack, sides, rest, contracts);
    let base = [("pack.yaml".to_owned(), manifest_of("keep", None))];
    let mut own = own;
    let mut compiler = Compiler::default();
    let mut first = compiler.compile(&source(sides, own, &base));
    if first.findings.in_order().into_iter().any(|finding| {
        finding.severity == Severity::Error
            && own.iter().any(|(name, _)| first.sources.name(finding.span.file) == name)
    }) {
        // A handwritten file with errors is work in progress, and ignored.
        own = &[];
        first = compiler.compile(&source(sides, own, &base));
    }
    // Unanswered operations are expected here: the first run determines them.
    let is_no_contract = first.findings.in_order().into_iter().any(|finding| {
        finding.severity == Severity::Error
            && first.sources.name(finding.span.file).starts_with("contracts/")
            && finding.code != Code::Unanswered
    });
    let Some(contracts) = first.contracts.as_ref().filter(|_| !is_no_contract) else {
        return Err(Box::new(first));
    };
    let [old, _] = contracts;
    let unfit = unfit(&first, old);
    progress("pairing operations");
    let descriptions = Descriptions::new(sides, &first.sources);
    let carriers = sides.iter().flat_map(text::carriers);
    let credentials: Vec<String> =
        carriers.filter_map(|carrier| carrier.header().map(str::to_owned)).collect();
    let reserved = if own.is_empty() { BTreeSet::new() } else { shape_names(&first) };
    let (mut wrapped, mut siblings) = (BTreeSet::new(), BTreeSet::new());
    let manifest = manifest_of("refuse", Some(contracts));
    // An attempt fails if types without their wrappers do not compile, or if accepted renames hold
    // in further types. The next attempt considers them. Each attempt adds some, so the loop
    // terminates.
    loop {
        let given = DraftContext {
            accepted,
            descriptions: &descriptions,
            credentials: &credentials,
            wrapped: &wrapped,
            reserved: &reserved,
            siblings: &siblings,
        };
        let attempt =
            Attempt { sides, own, contracts, unfit: &unfit, given: &given, sources: &first.sources };
        match attempt.draft(&manifest, &mut compiler, progress) {
            Ok(draft) => return Ok(draft),
            Err(Retry::Wrapped(types)) => wrapped.extend(types),
            Err(Retry::Renamed(names)) => siblings.extend(names),
        }
    }
}

/// Returns the names of handwritten shapes, which drafted ones must not have.
fn shape_names(compiled: &Compiled) -> BTreeSet<String> {
    compiled.shape_names().map(str::to_owned).collect()
}

/// What the next attempt at a draft has to consider.
enum Retry {
    /// Types of the old side with wrappers that must be preserved, because the lines without them do
    /// not compile.
    Wrapped(BTreeSet<String>),
    /// Old and new names of members, of accepted guesses.
    Renamed(BTreeSet<[String; 2]>),
}

/// Input of every attempt at a draft.
struct Attempt<'d> {
    sides: &'d [SideDocument; 2],
    own: &'d [(String, String)],
    contracts: &'d Contracts,
    unfit: &'d HashMap<String, String>,
    given: &'d DraftContext<'d>,
    /// Sources that the spans of the contracts refer to.
    sources: &'d Sources,
}

impl Attempt<'_> {
    /// Returns the draft, or what another attempt has to consider.
    fn draft(
        &self,
        manifest: &str,
        compiler: &mut Compiler,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Draft, Retry> {
        let Attempt { sides, own, contracts: [old, new], unfit, given, sources } = *self;
        let mut bodies = Bodies::new([old, new], [&sides[0].name, &sides[1].name], given);
        let mut decisions: Vec<Decision> = Vec::new();
        let mut taken = BTreeSet::new();
        let mut faults = BTreeMap::new();
        let mut routes: Vec<WrittenRoute<'_>> = Vec::new();
        for candidate in candidates(old, new, unfit) {
            let is_guess = candidate.tier == Tier::Guess;
            let is_proposal = is_guess && !given.accepted.contains(&candidate.id());
            taken.extend((is_guess && !is_proposal).then(|| candidate.id()));
            match bodies.route(candidate.old, candidate.new) {
                // Lines for an operation that is served without any have to be better than none.
                Ok(route) if candidate.is_kept && !(route.improves && route.obstacles.is_empty()) => {}
                Ok(route) => routes.push(WrittenRoute { candidate, route, is_proposal }),
                Err(_) if candidate.is_kept => {}
                Err(whys) => decisions.extend(self.undrafted_pair(&candidate, is_proposal, &whys)),
            }
        }
        if !bodies.renamed.is_subset(given.siblings) {
            return Err(Retry::Renamed(bodies.renamed));
        }
        progress("checking the draft");
        loop {
            // Shapes that only removed routes used must not remain in the files.
            bodies.forget_unused(routes.iter().flat_map(|written| &written.route.shapes));
            let files = written_files(manifest, &routes, &bodies, sides, own);
            let compiled = compiler.compile(&source(sides, own, &files));
            let faulty = faulty(&compiled, &files, &routes);
            if faulty.is_empty() && routes.iter().any(WrittenRoute::is_open) {
                // Open routes are compiled as well, so that their lines are ready to be pasted. They
                // are not part of the draft.
                let open: Vec<WrittenRoute<'_>> =
                    routes.extract_if(.., |written| written.is_open()).collect();
                let written = bodies.with_inner(routes.iter().flat_map(|written| &written.route.shapes));
                for one in &open {
                    let own = one.route.shapes.iter().filter(|shape| !written.contains(*shape));
                    let lines = pasted(one, &bodies.text_of(own), sides);
                    decisions.extend(self.decide_open(one, Some(lines.into())));
                }
                continue;
            }
            if faulty.is_empty() || routes.is_empty() {
                let changed = list_changed(&compiled, [old, new], sources);
                let counts = counts(&compiled, &routes, own, &changed);
                decisions.extend(self.decide_refused(&compiled, &decisions));
                decisions.extend(changed);
                decisions.extend(routes.iter().flat_map(|written| look(written, sources)));
                decisions.extend(bodies.proposals.values().map(|proposal| likely(proposal, sources)));
                decisions.extend(decide_errors(old, sources));
                decisions.sort_by(|a, b| (a.weight, &a.operation).cmp(&(b.weight, &b.operation)));
                taken.extend(bodies.taken);
                let summary = text::summary(sides, &counts, &decisions, [old, new]);
                let uses = Vec::new();
                let mut draft = Draft { files, decisions, taken, faults, counts, summary, compiled, uses };
                draft.list_decisions();
                return Ok(draft);
            }
            // Restore the wrappers first, because the other errors may result from their removal.
            let unwrapped = faulty.keys().flat_map(|at| routes[*at].route.unwraps.iter().cloned());
            let unwrapped: BTreeSet<String> = unwrapped.collect();
            if !unwrapped.is_empty() {
                return Err(Retry::Wrapped(unwrapped));
            }
            let mut at = 0;
            routes.retain(|written| {
                let why = faulty.get(&at);
                at += 1;
                if let Some(why) = why {
                    if !written.candidate.is_kept {
                        faults.insert(written.candidate.old.key.to_string(), why.clone());
                    }
                    decisions.extend(self.decide_faulty(written, why));
                }
                why.is_none()
            });
        }
    }

    /// Returns the decisions about a route that is not part of the draft: a guess, or its obstacles.
    fn decide_open(&self, written: &WrittenRoute<'_>, lines: Option<Arc<str>>) -> Vec<Decision> {
        let candidate = &written.candidate;
        let spans = [candidate.old.span, candidate.new.span].map(Some);
        let obstacles = &written.route.obstacles;
        if written.is_proposal {
            let decision = propose_pair(candidate, obstacles, lines);
            return vec![decision.at_spans(spans, self.sources)];
        }
        let operation = candidate.old.key.to_string();
        let decide = |obstacle: &Obstacle| {
            let decision = Decision::new(Weight::Blocker, &operation, obstacle.text.clone());
            let choices = obstacle.choices.iter();
            let choices = choices.map(|one| Choice { label: one.label.clone(), line: one.line.clone() });
            Decision {
                id: obstacle.id.clone(),
                choices: choices.collect(),
                lines: lines.clone(),
                ..decision.at_spans(obstacle.spans, self.sources)
            }
        };
        obstacles.iter().map(decide).collect()
    }

    /// Returns the decisions about a route whose lines do not compile.
    fn decide_faulty(&self, written: &WrittenRoute<'_>, why: &str) -> Vec<Decision> {
        // The lines past an obstacle are guesses, so their errors say nothing about the operation.
        let is_blocked = !written.is_proposal && !written.route.obstacles.is_empty();
        match () {
            () if written.candidate.is_kept => Vec::new(),
            () if is_blocked => self.decide_open(written, None),
            () => self.undrafted_pair(&written.candidate, written.is_proposal, &[why.to_owned()]),
        }
    }

    /// Returns the decisions about a pair without drafted lines.
    fn undrafted_pair(
        &self,
        candidate: &PairCandidate<'_>,
        is_proposal: bool,
        whys: &[String],
    ) -> Vec<Decision> {
        let operation = candidate.old.key.to_string();
        let spans = [candidate.old.span, candidate.new.span].map(Some);
        let decide = |text: String| {
            let decision = Decision::new(Weight::Blocker, &operation, text);
            let id = if candidate.tier == Tier::Guess { candidate.id() } else { decision.id };
            Decision { id, ..decision }.at_spans(spans, self.sources)
        };
        if is_proposal {
            let text = format!(
                "{} {}; no route is drafted: {}",
                candidate.why,
                candidate.evidence.render(),
                whys.join("; ")
            );
            return vec![decide(text)];
        }
        whys.iter().map(|why| decide(why.clone())).collect()
    }

    /// Returns a decision for every refused operation without one.
    fn decide_refused(&self, compiled: &Compiled, known: &[Decision]) -> Vec<Decision> {
        let Some(pack) = &compiled.pack else { return Vec::new() };
        let decided: BTreeSet<&str> = known.iter().map(|decision| decision.operation.as_str()).collect();
        let refused = pack.directions[0].routes.iter().filter(|r| matches!(r.kind, RouteKind::Refuse(_)));
        let refused = refused.filter(|route| *route.origin.file == *"pack.yaml");
        let refused: BTreeSet<&str> = refused.map(|route| route.operation.key.as_ref()).collect();
        let [old, new] = self.contracts;
        let all = old.operations.iter().filter(|operation| {
            let key = operation.key.to_string();
            refused.contains(key.as_str()) && !decided.contains(key.as_str())
        });
        all.map(|operation| {
            let key = operation.key.to_string();
            let why = self.unfit.get(&key).filter(|why| !why.is_empty());
            let text = why.map_or("the new side has no such operation", String::as_str).to_owned();
            let same = new.find_shape(&operation.key.method, &operation.key.path.shape());
            let decision = Decision::new(Weight::Blocker, &key, text);
            let line = format!(
                "{{serve: {}, at: {}, refuse: {}}}",
                bodies::quote(&self.sides[0].name),
                bodies::quote(&key),
                reason_name(&key)
            );
            let lines = format!("mapping: 1\n{}routes:\n  - {line}\n", reasons(&reason_name(&key)));
            let choices = vec![Choice { label: "refuse it with a text of your own".to_owned(), line }];
            Decision { choices, lines: Some(lines.into()), ..decision }
                .at_spans([Some(operation.span), same.map(|same| same.span)], self.sources)
        })
        .collect()
    }
}

/// File name of the list of decisions.
pub const DECISIONS: &str = "DECISIONS.md";
/// File name of the decisions as data.
pub const DECISIONS_JSON: &str = "DECISIONS.json";

/// A drafted route with its origin.
struct WrittenRoute<'c> {
    candidate: PairCandidate<'c>,
    route: RouteDraft,
    /// Set for a guess that was not accepted.
    is_proposal: bool,
}

impl WrittenRoute<'_> {
    /// Returns whether a person has to decide first. Such a route is compiled with the draft, but
    /// not part of it.
    fn is_open(&self) -> bool {
        self.is_proposal || !self.route.obstacles.is_empty()
    }

    /// Returns whether a person should review it.
    fn is_marked(&self) -> bool {
        let RouteDraft { remarks, looks, .. } = &self.route;
        self.candidate.tier == Tier::Guess || !remarks.is_empty() || !looks.is_empty()
    }
}

/// Name of the reason for refusals in drafted lines.
const REASON: &str = "todo";

/// Renders the section of a mapping file with one reason.
fn reasons(name: &str) -> String {
    format!("reasons:\n  {name}: {{en: This is not available here.}}\n")
}

/// Returns the name of the reason in lines to be pasted. Each operation has its own, so that the
/// lines of several can be pasted.
fn reason_name(operation: &str) -> String {
    format!("todo_{}", decision::slug(operation).replace('-', "_"))
}

/// Renders the mapping file of an open route, to paste and edit.
fn pasted(written: &WrittenRoute<'_>, shapes: &str, sides: &[SideDocument; 2]) -> String {
    let route = text::route(&written.route, &written.candidate, sides);
    let name = reason_name(&written.candidate.old.key.to_string());
    let body = format!("{shapes}routes:\n{route}");
    let body = body.replace(&format!("refuse: {REASON}}}"), &format!("refuse: {name}}}"));
    let reasons = if body.contains(&name) { reasons(&name) } else { String::new() };
    format!("mapping: 1\n{reasons}{body}")
}

/// Returns the decision about a field that was probably renamed.
fn likely(proposal: &bodies::Proposal, sources: &Sources) -> Decision {
    let bodies::Proposal { ty, guess, spans, line } = proposal;
    let [old, new] = guess.places.each_ref().map(|place| place.join("."));
    let text = format!("it has likely become `{new}` ({:.2}: {})", guess.score, guess.why);
    let decision = Decision::new(Weight::Proposal, &format!("{ty}: {old}"), text);
    let choices = line.iter().map(|line| Choice { label: "write it".to_owned(), line: line.clone() });
    Decision {
        id: guess.id.clone(),
        proposal: Some("write it".to_owned()),
        choices: choices.collect(),
        ..decision.at_spans(*spans, sources)
    }
}

/// Returns the decision about a guessed pair. The operation is refused until the pair is accepted.
fn propose_pair(candidate: &PairCandidate<'_>, obstacles: &[Obstacle], lines: Option<Arc<str>>) -> Decision {
    let mut text = format!("{} {}", candidate.why, candidate.evidence.render());
    if !obstacles.is_empty() {
        let all: Vec<&str> = obstacles.iter().map(|obstacle| obstacle.text.as_str()).collect();
        text.push_str(&format!(". To decide after that: {}", all.join("; ")));
    }
    let decision = Decision::new(Weight::Proposal, &candidate.old.key.to_string(), text);
    Decision { id: candidate.id(), proposal: Some("pair them".to_owned()), lines, ..decision }
}

/// Returns the decision about the form of the gateway's own errors, if it is not that of the old
/// contract.
fn decide_errors(old: &Contract, sources: &Sources) -> Option<Decision> {
    let form = error_form::draft(old);
    let text = match (form.is_conforming, form.others) {
        (true, 0) => return None,
        (true, others) => format!(
            "{others} errors that the old contract declares have another form than `{}`, which errors of the gateway have",
            form.body
        ),
        (false, _) => format!(
            "no error that the old contract declares has a place for the text of `{}`, which errors of the gateway have",
            form.body
        ),
    };
    let decision = Decision::new(Weight::Look, "pack.yaml", text);
    let line = format!("errors: {{body: {}}}", form.body);
    let choices = vec![Choice { label: "the form of all errors of the gateway".to_owned(), line }];
    Some(Decision {
        id: "errors".to_owned(),
        choices,
        ..decision.at_spans([form.first_other, None], sources)
    })
}

fn look(written: &WrittenRoute<'_>, sources: &Sources) -> Vec<Decision> {
    let marked = (written.candidate.tier == Tier::Guess).then(|| written.candidate.why.clone());
    let route = &written.route;
    let all = marked.iter().chain(&route.remarks).chain(&route.looks);
    // Several steps may have the same remark.
    let all: BTreeSet<&String> = all.collect();
    let operation = written.candidate.old.key.to_string();
    let spans = [written.candidate.old.span, written.candidate.new.span].map(Some);
    let decide = |text: &String| Decision::new(Weight::Look, &operation, text.clone());
    all.into_iter().map(|text| decide(text).at_spans(spans, sources)).collect()
}

/// Returns the pack: the files of both contracts, the handwritten files, and `files`.
fn source(sides: &[SideDocument; 2], own: &[(String, String)], files: &[(String, String)]) -> PackSource {
    let contracts = sides.iter().flat_map(|side| side.files.iter().cloned());
    let drafted = own.iter().chain(files).map(|(name, text)| (name.clone(), text.as_bytes().into()));
    PackSource::from_files(contracts.chain(drafted).collect())
}

/// Returns the operations of the old side that cannot be forwarded unchanged, by key, with the
/// reason.
fn unfit(compiled: &Compiled, old: &Contract) -> HashMap<String, String> {
    let by_span: HashMap<_, _> =
        old.operations.iter().map(|operation| (operation.span, operation.key.to_string())).collect();
    let mut unfit = HashMap::new();
    for finding in compiled.findings.in_order() {
        if finding.code == Code::Unanswered
            && let Some(key) = by_span.get(&finding.span)
        {
            // The message contains the reason after this phrase.
            let why = finding.message.split_once("cannot be kept as it is: ").map_or("", |(_, why)| why);
            unfit.insert(key.clone(), why.to_owned());
        }
    }
    unfit
}

fn written_files(
    manifest: &str,
    routes: &[WrittenRoute<'_>],
    bodies: &Bodies<'_>,
    sides: &[SideDocument; 2],
    own: &[(String, String)],
) -> Vec<(String, String)> {
    let mut files = vec![("pack.yaml".to_owned(), manifest.to_owned())];
    let mut by_resource: BTreeMap<String, String> = BTreeMap::new();
    for written in routes {
        let file = by_resource.entry(operations::resource(written.candidate.old)).or_default();
        file.push_str(&text::route(&written.route, &written.candidate, sides));
    }
    for (resource, routes) in by_resource {
        let mut name = format!("{resource}.map.yaml");
        while own.iter().any(|(known, _)| *known == name) {
            // A handwritten file has this name.
            name = format!("draft-{name}");
        }
        files.push((name, format!("mapping: 1\nroutes:\n{routes}")));
    }
    let shapes = bodies.all_text();
    if !shapes.is_empty() {
        files.push(("shapes.map.yaml".to_owned(), format!("mapping: 1\n{shapes}")));
    }
    let refuses = routes.iter().any(|written| written.route.refuses);
    if refuses {
        files.push(("reasons.map.yaml".to_owned(), format!("mapping: 1\n{}", reasons(REASON))));
    }
    files
}

/// Returns the routes (by index) that errors of a draft belong to, with the first message of each.
/// An error in a shape belongs to all routes that use it. An error outside of routes and shapes
/// belongs to all routes.
fn faulty(
    compiled: &Compiled,
    files: &[(String, String)],
    routes: &[WrittenRoute<'_>],
) -> HashMap<usize, String> {
    let mut faulty = HashMap::new();
    for finding in compiled.findings.in_order().into_iter().filter(|one| one.severity == Severity::Error) {
        let name = compiled.sources.name(finding.span.file);
        let text = files.iter().find(|(known, _)| known == name).map_or("", |(_, text)| text.as_str());
        let line = compiled.sources.start(finding.span).line as usize;
        let owner = text::owner(text, line);
        for (at, written) in routes.iter().enumerate() {
            let is_its = match &owner {
                text::LineOwner::Route(key) => *key == written.candidate.old.key.to_string(),
                text::LineOwner::Shape(shape) => written.route.shapes.contains(shape),
                text::LineOwner::Nobody => true,
            };
            if is_its {
                faulty.entry(at).or_insert_with(|| finding.message.clone());
            }
        }
    }
    faulty
}

/// Returns what does not go over of the operations that are served: parts of their messages that
/// one contract lacks, values that one does not take, and differences that the compiler names.
fn list_changed(compiled: &Compiled, contracts: [&Contract; 2], sources: &Sources) -> Vec<Decision> {
    let Some(pack) = &compiled.pack else { return Vec::new() };
    let by_key = contracts.map(|contract| {
        let keyed = contract.operations.iter().map(|operation| (operation.key.to_string(), operation));
        keyed.collect::<HashMap<_, _>>()
    });
    let mut changed = Vec::new();
    for route in &pack.directions[0].routes {
        let RouteKind::Pair(pair) = &route.kind else { continue };
        let operations = [by_key[0].get(&*route.operation.key), by_key[1].get(&*pair.call.operation)];
        let spans = operations.map(|operation| operation.map(|operation| operation.span));
        let decide = |text: String| Decision::new(Weight::Changed, &route.operation.key, text);
        // Members of the new side that a line leaves out change nothing for clients of the old one.
        let is_seen =
            |loss: &&Loss| loss.narrow.is_some() || is_without_lines(route) || loss.side == contracts[0].name;
        changed.extend(route.losses.iter().filter(is_seen).map(|loss| {
            let places = [0, 1].map(|side| {
                let declared = operations[side]
                    .and_then(|operation| places::declared(&loss.place, operation, contracts[side]));
                declared.or(spans[side])
            });
            let decision = decide(text::loss(loss)).at_spans(places, sources);
            Decision { at: Some(loss.place.clone()), ..decision }
        }));
        // The remarks of drafted routes are decisions of their own.
        let notes = route.notes.iter().filter(|_| is_without_lines(route));
        changed.extend(notes.map(|note| decide(note.text.clone()).at_spans(spans, sources)));
    }
    changed
}

/// Returns whether an operation has no lines: the manifest is its origin.
fn is_without_lines(route: &Route) -> bool {
    *route.origin.file == *"pack.yaml"
}

fn counts(
    compiled: &Compiled,
    routes: &[WrittenRoute<'_>],
    own: &[(String, String)],
    changed: &[Decision],
) -> DraftCounts {
    let Some(pack) = &compiled.pack else { return DraftCounts::default() };
    let all = &pack.directions[0].routes;
    let refused = all.iter().filter(|route| matches!(route.kind, RouteKind::Refuse(_)));
    let (without_lines, by_lines): (Vec<&Route>, Vec<&Route>) = refused.partition(|r| is_without_lines(r));
    let (refused, refused_by_lines) = (without_lines.len(), by_lines.len());
    let is_changed = |key: &str| changed.iter().any(|decision| decision.operation == key);
    let is_marked = |written: &&WrittenRoute<'_>| {
        written.is_marked() || is_changed(&written.candidate.old.key.to_string())
    };
    let marked = routes.iter().filter(is_marked).count();
    // Operations without lines that lose values need a review too.
    let is_kept = |route: &&Route| is_without_lines(route) && is_changed(&route.operation.key);
    let kept_and_changed = all.iter().filter(is_kept).count();
    let is_own = |file: &str| own.iter().any(|(name, _)| name == file);
    let by_hand =
        all.iter().filter(|route| !matches!(route.kind, RouteKind::Refuse(_)) && is_own(&route.origin.file));
    let by_lines = routes.len() + by_hand.count();
    let written = by_lines - marked;
    DraftCounts {
        operations: all.len(),
        untouched: (all.len() - refused - refused_by_lines).saturating_sub(by_lines + kept_and_changed),
        written,
        marked: marked + kept_and_changed,
        refused,
        refused_by_lines,
    }
}

/// Returns the files that a document references, directly or indirectly.
pub fn referenced_files(
    document: &str,
    bytes: &[u8],
    around: Vec<(String, Vec<u8>)>,
) -> Vec<(String, Vec<u8>)> {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let fetch = |name: &str| match name == document {
        true => Some(bytes),
        false => around.iter().find(|(known, _)| known == name).map(|(_, bytes)| bytes.as_slice()),
    };
    let documents = Documents::load(&mut sources, document, &fetch, &mut findings);
    let wanted: BTreeSet<String> =
        documents.iter().flat_map(|documents| documents.names()).map(str::to_owned).collect();
    around.into_iter().filter(|(name, _)| wanted.contains(name)).collect()
}

#[cfg(test)]
mod tests;
