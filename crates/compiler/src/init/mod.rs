//! Drafts a pack from two contracts. Certain mappings are written, uncertain ones become decisions
//! for a person, and impossible ones are refused. The module works in memory and does not access
//! files.
//!
//! The compiler checks the draft. A route that does not compile is removed and becomes a decision
//! with the compiler's message, so the draft always passes `check`.

mod bodies;
mod descriptions;
mod evidence;
mod fields;
mod operations;
mod paging;
mod text;

use crate::contract::{Contract, Documents};
use crate::diagnostic::{Code, Findings, Severity, Sources};
use crate::mapping::load::{PackFile, PackSource};
use crate::mapping::{Compiled, Compiler};
use bodies::{Bodies, DraftContext};
use descriptions::Descriptions;
use operations::{PairCandidate, Tier, candidates};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use switchback_plan::{Route, RouteKind};

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
    /// Statistics.
    pub counts: DraftCounts,
    /// Summary for management, as Markdown.
    pub summary: String,
    /// The compiled draft.
    pub compiled: Compiled,
}

/// A decision for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Id for `--accept`. It is stable as long as the operation's key is.
    pub id: String,
    /// Impact.
    pub weight: Weight,
    /// The operation of the old side, or a field of one of its types.
    pub operation: String,
    /// A paragraph of Markdown.
    pub text: String,
    /// The effect of accepting it; `None` if an edit is necessary.
    pub proposal: Option<String>,
    /// An equivalent mapping file, to paste and edit.
    pub lines: Option<String>,
}

/// The impact of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The operation is refused until a person decides.
    Blocker,
    /// There is a probable answer, which is not part of the draft.
    Proposal,
    /// The operation is served; a person should review the mapping.
    Look,
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
}

/// Drafts a pack. `own` are handwritten mapping files; the operations that they answer are not
/// drafted. `accepted` are ids of accepted proposals. `progress` is called at the start of each
/// stage.
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
        |rest: &str, contracts: Option<&[Contract; 2]>| text::manifest(pack, sides, rest, contracts);
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
    let mut wrapped = BTreeSet::new();
    // An attempt fails if types without their wrappers do not compile. Their wrappers are then
    // preserved in the next attempt. Each attempt adds types, so the loop terminates.
    loop {
        let given = DraftContext {
            accepted,
            descriptions: &descriptions,
            credentials: &credentials,
            wrapped: &wrapped,
        };
        let attempt = Attempt { sides, own, contracts, unfit: &unfit, given: &given };
        let manifest = manifest_of("refuse", Some(contracts));
        match attempt.draft(&manifest, &mut compiler, progress) {
            Ok(draft) => return Ok(draft),
            Err(unwrapped) => wrapped.extend(unwrapped),
        }
    }
}

/// Input of every attempt at a draft.
struct Attempt<'d> {
    sides: &'d [SideDocument; 2],
    own: &'d [(String, String)],
    contracts: &'d [Contract; 2],
    unfit: &'d HashMap<String, String>,
    given: &'d DraftContext<'d>,
}

impl Attempt<'_> {
    /// Returns the draft. The error contains types of the old side with wrappers that must be
    /// preserved, because the lines without them do not compile.
    fn draft(
        &self,
        manifest: &str,
        compiler: &mut Compiler,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Draft, BTreeSet<String>> {
        let Attempt { sides, own, contracts: [old, new], unfit, given } = *self;
        let mut bodies = Bodies::new([old, new], [&sides[0].name, &sides[1].name], given);
        let mut decisions: Vec<Decision> = Vec::new();
        let mut taken = BTreeSet::new();
        let mut routes: Vec<WrittenRoute<'_>> = Vec::new();
        for candidate in candidates(old, new, unfit) {
            let is_guess = candidate.tier == Tier::Guess;
            let is_proposal = is_guess && !given.accepted.contains(&candidate.id());
            taken.extend((is_guess && !is_proposal).then(|| candidate.id()));
            match bodies.route(candidate.old, candidate.new) {
                Ok(route) => routes.push(WrittenRoute { candidate, route, is_proposal }),
                Err(why) => decisions.push(undrafted_pair(&candidate, is_proposal, &why)),
            }
        }
        progress("checking the draft");
        loop {
            // Shapes that only removed routes used must not remain in the files.
            bodies.forget_unused(routes.iter().flat_map(|written| &written.route.shapes));
            let mut files = written_files(manifest, &routes, &bodies, sides, own);
            let compiled = compiler.compile(&source(sides, own, &files));
            let faulty = faulty(&compiled, &files, &routes);
            if faulty.is_empty() && routes.iter().any(|written| written.is_proposal) {
                // Proposals are compiled as well, so that their lines are ready to be pasted. They
                // are not part of the draft.
                let proposals: Vec<WrittenRoute<'_>> =
                    routes.extract_if(.., |written| written.is_proposal).collect();
                let written = bodies.with_inner(routes.iter().flat_map(|written| &written.route.shapes));
                let refuses = routes.iter().any(|written| written.route.refuses);
                decisions.extend(proposals.iter().map(|proposal| {
                    let own = proposal.route.shapes.iter().filter(|shape| !written.contains(*shape));
                    let shapes = bodies.text_of(own);
                    let reasons = if proposal.route.refuses && !refuses { REASONS } else { "" };
                    let route = text::route(&proposal.route, &proposal.candidate, sides);
                    propose_pair(
                        &proposal.candidate,
                        format!("mapping: 1\n{reasons}{shapes}routes:\n{route}"),
                    )
                }));
                continue;
            }
            if faulty.is_empty() || routes.is_empty() {
                let changed = list_changed(&compiled);
                let counts = counts(&compiled, &routes, own, &changed);
                decisions.extend(decide_refused(&compiled, old, unfit, &decisions));
                decisions.extend(changed);
                decisions.extend(routes.iter().flat_map(look));
                decisions.extend(bodies.proposals.values().map(likely));
                decisions.sort_by(|a, b| (a.weight, &a.operation).cmp(&(b.weight, &b.operation)));
                taken.extend(bodies.taken);
                let summary = text::summary(sides, &counts, &decisions, [old, new]);
                files.push(("DECISIONS.md".to_owned(), text::decisions(&summary, &decisions)));
                return Ok(Draft { files, decisions, taken, counts, summary, compiled });
            }
            // Restore the wrappers first, because the other errors may result from their removal.
            let unwrapped = faulty.keys().flat_map(|at| routes[*at].route.unwraps.iter().cloned());
            let unwrapped: BTreeSet<String> = unwrapped.collect();
            if !unwrapped.is_empty() {
                return Err(unwrapped);
            }
            let mut at = 0;
            routes.retain(|written| {
                let why = faulty.get(&at);
                at += 1;
                decisions.extend(why.map(|why| undrafted_pair(&written.candidate, written.is_proposal, why)));
                why.is_none()
            });
        }
    }
}

/// A drafted route with its origin.
struct WrittenRoute<'c> {
    candidate: PairCandidate<'c>,
    route: bodies::RouteDraft,
    /// Set for a guess that was not accepted: it is compiled with the draft, but not part of it.
    is_proposal: bool,
}

/// The reason for refusals in drafted lines.
const REASONS: &str = "reasons:\n  todo: {en: This is not available here.}\n";

impl Decision {
    /// Returns a decision about an operation, or about a field, that needs an edit.
    fn new(weight: Weight, operation: &str, text: String) -> Decision {
        Decision {
            id: slug(operation),
            weight,
            operation: operation.to_owned(),
            text,
            proposal: None,
            lines: None,
        }
    }
}

/// Converts a text to an id: its letters and digits, with `-` between words.
fn slug(text: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = text.chars().map(word).collect();
    text.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Returns the decision about a field that was probably renamed.
fn likely(proposal: &bodies::Proposal) -> Decision {
    let bodies::Proposal { ty, guess } = proposal;
    let [old, new] = guess.places.each_ref().map(|place| place.join("."));
    let text = format!("it has likely become `{new}` ({:.2}: {})", guess.score, guess.why);
    let decision = Decision::new(Weight::Proposal, &format!("{ty}: {old}"), text);
    Decision { id: guess.id.clone(), proposal: Some("write it".to_owned()), ..decision }
}

/// Returns the decision about a guessed pair. The operation is refused until the pair is accepted.
fn propose_pair(candidate: &PairCandidate<'_>, lines: String) -> Decision {
    let text = format!("{} {}", candidate.why, candidate.evidence.render());
    let decision = Decision::new(Weight::Proposal, &candidate.old.key.to_string(), text);
    Decision { id: candidate.id(), proposal: Some("pair them".to_owned()), lines: Some(lines), ..decision }
}

/// Returns the decision about a pair without drafted lines.
fn undrafted_pair(candidate: &PairCandidate<'_>, is_proposal: bool, why: &str) -> Decision {
    let guessed = || format!("{} {}; no route is drafted: {why}", candidate.why, candidate.evidence.render());
    let text = if is_proposal { guessed() } else { why.to_owned() };
    let decision = Decision::new(Weight::Blocker, &candidate.old.key.to_string(), text);
    let id = if candidate.tier == Tier::Guess { candidate.id() } else { decision.id };
    Decision { id, ..decision }
}

fn look(written: &WrittenRoute<'_>) -> Vec<Decision> {
    let marked = (written.candidate.tier == Tier::Guess).then(|| written.candidate.why.clone());
    let route = &written.route;
    let all = marked.iter().chain(&route.remarks).chain(&route.looks);
    // Several steps may have the same remark.
    let all: BTreeSet<&String> = all.collect();
    let operation = written.candidate.old.key.to_string();
    all.into_iter().map(|text| Decision::new(Weight::Look, &operation, text.clone())).collect()
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
        files.push(("reasons.map.yaml".to_owned(), format!("mapping: 1\n{REASONS}")));
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

/// Returns a decision to review each operation that is served although one contract lacks some of
/// its values, members or header fields.
fn list_changed(compiled: &Compiled) -> Vec<Decision> {
    let Some(pack) = &compiled.pack else { return Vec::new() };
    // The manifest is the origin of an operation without lines.
    let is_kept = |route: &Route| *route.origin.file == *"pack.yaml";
    let lost = |route: &Route| {
        let losses = route.losses.iter().filter(|loss| loss.narrow.is_some() || is_kept(route));
        let all = losses.map(|loss| match &loss.narrow {
            Some(narrow) => format!("`{}` of {} ({})", loss.place, loss.side, narrow.values),
            None => format!("{} of {}", loss.place, loss.side),
        });
        all.collect::<Vec<_>>()
    };
    let routes = pack.directions[0].routes.iter().map(|route| (route, lost(route)));
    routes
        .filter(|(_, lost)| !lost.is_empty())
        .map(|(route, lost)| {
            let text = format!("not all of it goes over: {}", lost.join("; "));
            Decision::new(Weight::Look, &route.operation.key, text)
        })
        .collect()
}

fn counts(
    compiled: &Compiled,
    routes: &[WrittenRoute<'_>],
    own: &[(String, String)],
    changed: &[Decision],
) -> DraftCounts {
    let Some(pack) = &compiled.pack else { return DraftCounts::default() };
    let all = &pack.directions[0].routes;
    let refused = all.iter().filter(|route| matches!(route.kind, RouteKind::Refuse(_))).count();
    let is_changed = |key: &str| changed.iter().any(|decision| decision.operation == key);
    let is_marked = |written: &&WrittenRoute<'_>| {
        !look(written).is_empty() || is_changed(&written.candidate.old.key.to_string())
    };
    let marked = routes.iter().filter(is_marked).count();
    // Operations without lines that lose values need a review too.
    let is_kept = |route: &&Route| *route.origin.file == *"pack.yaml" && is_changed(&route.operation.key);
    let kept_and_changed = all.iter().filter(is_kept).count();
    let is_own = |file: &str| own.iter().any(|(name, _)| name == file);
    let by_hand =
        all.iter().filter(|route| !matches!(route.kind, RouteKind::Refuse(_)) && is_own(&route.origin.file));
    let by_lines = routes.len() + by_hand.count();
    let written = by_lines - marked;
    DraftCounts {
        operations: all.len(),
        untouched: (all.len() - refused).saturating_sub(by_lines + kept_and_changed),
        written,
        marked: marked + kept_and_changed,
        refused,
    }
}

/// Returns a decision for every refused operation without one.
fn decide_refused(
    compiled: &Compiled,
    old: &Contract,
    unfit: &HashMap<String, String>,
    known: &[Decision],
) -> Vec<Decision> {
    let Some(pack) = &compiled.pack else { return Vec::new() };
    let decided: BTreeSet<&str> = known.iter().map(|decision| decision.operation.as_str()).collect();
    let refused = pack.directions[0].routes.iter().filter(|r| matches!(r.kind, RouteKind::Refuse(_)));
    let refused: BTreeSet<&str> = refused.map(|route| route.operation.key.as_ref()).collect();
    let all = old.operations.iter().filter(|operation| {
        let key = operation.key.to_string();
        refused.contains(key.as_str()) && !decided.contains(key.as_str())
    });
    all.map(|operation| {
        let key = operation.key.to_string();
        let why = unfit.get(&key).filter(|why| !why.is_empty());
        let why = why.map_or("the new side has no such operation", String::as_str);
        Decision::new(Weight::Blocker, &key, why.to_owned())
    })
    .collect()
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
