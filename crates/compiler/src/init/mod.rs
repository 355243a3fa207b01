//! A pack drafted from two contracts: what is sure is written, what is not is a decision for a person, and what cannot be
//! done is refused. Values in, files out; nothing here reads or writes a disk.
//!
//! The draft is held to the compiler: a route that does not compile is taken back and becomes a decision with the
//! compiler's reason, so that what comes out always passes `check`.

mod bodies;
mod descriptions;
mod evidence;
mod fields;
mod operations;
mod paging;
mod text;

use crate::contract::{Contract, Documents, Operation};
use crate::diagnostic::{Code, Findings, Severity, Sources};
use crate::mapping::load::{PackFile, PackSource};
use crate::mapping::{Compiled, Compiler};
use bodies::{Bodies, Given};
use descriptions::Descriptions;
use operations::{Candidate, Tier, candidates};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use switchback_plan::{Route, RouteKind};

/// One side of the pair: its name in the pack, its document, and all files the document is made of.
pub struct Side {
    /// Name of the side, such as `v2`.
    pub name: String,
    /// The document's path within the pack.
    pub document: String,
    /// Paths within the pack, and contents.
    pub files: Vec<PackFile>,
}

/// What is drafted.
pub struct Draft {
    /// Path within the pack, and text. Contracts are not among them.
    pub files: Vec<(String, String)>,
    /// Blockers first.
    pub decisions: Vec<Decision>,
    /// Ids of proposals that a person took, and that are written.
    pub taken: BTreeSet<String>,
    /// What was drafted, in numbers.
    pub counts: Counts,
    /// What a manager reads, as Markdown.
    pub summary: String,
    /// The draft as the compiler sees it.
    pub compiled: Compiled,
}

/// Something that a person decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Stays the same as long as its operation does; for `--accept`.
    pub id: String,
    /// How much depends on it.
    pub weight: Weight,
    /// The old side's operation, or a field of a type of it.
    pub operation: String,
    /// As a paragraph in Markdown.
    pub text: String,
    /// What accepting it writes; none where only an edit helps.
    pub proposal: Option<String>,
    /// A mapping file that does the same, for a person to paste and edit.
    pub lines: Option<String>,
}

/// How much a decision holds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The operation is refused until it is decided.
    Blocker,
    /// There is a likely answer, which is not written.
    Proposal,
    /// The operation is served; a person should look at how.
    Look,
}

/// Operations of the old side by how they are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations of the old side's contract.
    pub operations: usize,
    /// Without a line in the mapping, and without a decision.
    pub untouched: usize,
    /// By lines that are sure, a person's own among them.
    pub written: usize,
    /// By lines that a person should look at.
    pub marked: usize,
    /// Refused until somebody decides.
    pub refused: usize,
}

/// Drafts a pack. `own`: mapping files that a person wrote; what they answer is not drafted. `accepted`: ids of proposals that
/// a person took. `progress` hears what is being done.
///
/// # Errors
/// The findings, rendered by the caller, when one of the documents is no contract.
pub fn draft(
    pack: &str,
    sides: &[Side; 2],
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
    if first.findings.sorted().into_iter().any(|finding| {
        finding.severity == Severity::Error
            && own.iter().any(|(name, _)| first.sources.name(finding.span.file) == name)
    }) {
        // What a person is still working on is left out of the account.
        own = &[];
        first = compiler.compile(&source(sides, own, &base));
    }
    let is_no_contract = first.findings.sorted().into_iter().any(|finding| {
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
    loop {
        let given =
            Given { accepted, descriptions: &descriptions, credentials: &credentials, wrapped: &wrapped };
        let attempt = Attempt { sides, own, contracts, unfit: &unfit, given: &given };
        let manifest = manifest_of("refuse", Some(contracts));
        match attempt.draft(&manifest, &mut compiler, progress) {
            Ok(draft) => return Ok(draft),
            Err(unwrapped) => wrapped.extend(unwrapped),
        }
    }
}

/// What every attempt at a draft starts from.
struct Attempt<'d> {
    sides: &'d [Side; 2],
    own: &'d [(String, String)],
    contracts: &'d [Contract; 2],
    unfit: &'d HashMap<String, String>,
    given: &'d Given<'d>,
}

impl Attempt<'_> {
    /// The draft, or types of the old side whose wrappers must stay: lines without them do not compile.
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
        let mut routes: Vec<Written<'_>> = Vec::new();
        for candidate in candidates(old, new, unfit) {
            let is_guess = candidate.tier == Tier::Guess;
            let is_proposal = is_guess && !given.accepted.contains(&candidate.id());
            taken.extend((is_guess && !is_proposal).then(|| candidate.id()));
            match bodies.route(candidate.old, candidate.new) {
                Ok(route) => routes.push(Written { candidate, route, is_proposal }),
                Err(why) => decisions.push(undrafted(&candidate, is_proposal, &why)),
            }
        }
        progress("checking the draft");
        loop {
            bodies.forget_unused(routes.iter().flat_map(|written| &written.route.shapes));
            let mut files = written_files(manifest, &routes, &bodies, sides, own);
            let compiled = compiler.compile(&source(sides, own, &files));
            let faulty = faulty(&compiled, &files, &routes);
            if faulty.is_empty() && routes.iter().any(|written| written.is_proposal) {
                // Proposals compile, so that their lines are ready to be pasted. They are not part of the draft.
                let proposals: Vec<Written<'_>> =
                    routes.extract_if(.., |written| written.is_proposal).collect();
                let written = bodies.with_inner(routes.iter().flat_map(|written| &written.route.shapes));
                let refuses = routes.iter().any(|written| written.route.refuses);
                decisions.extend(proposals.iter().map(|proposal| {
                    let own = proposal.route.shapes.iter().filter(|shape| !written.contains(*shape));
                    let shapes = bodies.text_of(own);
                    let reasons = if proposal.route.refuses && !refuses { REASONS } else { "" };
                    let route = text::route(&proposal.route, &proposal.candidate, sides);
                    proposed(&proposal.candidate, format!("mapping: 1\n{reasons}{shapes}routes:\n{route}"))
                }));
                continue;
            }
            if faulty.is_empty() || routes.is_empty() {
                let changed = changed(&compiled);
                let counts = counts(&compiled, &routes, own, &changed);
                decisions.extend(refused(&compiled, old, unfit, &decisions));
                decisions.extend(changed);
                decisions.extend(routes.iter().flat_map(look));
                decisions.extend(bodies.proposals.values().map(likely));
                decisions.sort_by(|a, b| (a.weight, &a.operation).cmp(&(b.weight, &b.operation)));
                taken.extend(bodies.taken);
                let summary = text::summary(sides, &counts, &decisions, [old, new]);
                files.push(("DECISIONS.md".to_owned(), text::decisions(&summary, &decisions)));
                return Ok(Draft { files, decisions, taken, counts, summary, compiled });
            }
            let unwrapped = faulty.keys().flat_map(|at| routes[*at].route.unwraps.iter().cloned());
            let unwrapped: BTreeSet<String> = unwrapped.collect();
            if !unwrapped.is_empty() {
                return Err(unwrapped);
            }
            let mut at = 0;
            routes.retain(|written| {
                let why = faulty.get(&at);
                at += 1;
                decisions.extend(why.map(|why| undrafted(&written.candidate, written.is_proposal, why)));
                why.is_none()
            });
        }
    }
}

/// A route that is written, and where it came from.
struct Written<'c> {
    candidate: Candidate<'c>,
    route: bodies::Route,
    /// Compiled with the draft, and not part of it: a guess that no person accepted.
    is_proposal: bool,
}

/// The reason that drafted lines refuse for.
const REASONS: &str = "reasons:\n  todo: {en: This is not available here.}\n";

fn id_of(operation: &Operation) -> String {
    slug(&operation.key.to_string())
}

/// A text as an id: its letters and digits, and `-` between them.
fn slug(text: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = text.chars().map(word).collect();
    text.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// The decision about a field that may have become another one.
fn likely(proposal: &bodies::Proposal) -> Decision {
    let bodies::Proposal { ty, guess } = proposal;
    let [old, new] = guess.places.each_ref().map(|place| place.join("."));
    Decision {
        id: guess.id.clone(),
        weight: Weight::Proposal,
        operation: format!("{ty}: {old}"),
        text: format!("it has likely become `{new}` ({:.2}: {})", guess.score, guess.why),
        proposal: Some("write it".to_owned()),
        lines: None,
    }
}

/// The decision about a guessed pair: the operation is refused until a person accepts it.
fn proposed(candidate: &Candidate<'_>, lines: String) -> Decision {
    Decision {
        id: candidate.id(),
        weight: Weight::Proposal,
        operation: candidate.old.key.to_string(),
        text: format!("{} {}", candidate.why, candidate.evidence.render()),
        proposal: Some("pair them".to_owned()),
        lines: Some(lines),
    }
}

/// The decision about a pair that has no drafted lines.
fn undrafted(candidate: &Candidate<'_>, is_proposal: bool, why: &str) -> Decision {
    let guessed = || format!("{} {}; no route is drafted: {why}", candidate.why, candidate.evidence.render());
    let text = if is_proposal { guessed() } else { why.to_owned() };
    let id = if candidate.tier == Tier::Guess { candidate.id() } else { id_of(candidate.old) };
    Decision { id, ..blocker(candidate.old, &text) }
}

fn blocker(operation: &Operation, why: &str) -> Decision {
    Decision {
        id: id_of(operation),
        weight: Weight::Blocker,
        operation: operation.key.to_string(),
        text: why.to_owned(),
        proposal: None,
        lines: None,
    }
}

fn look(written: &Written<'_>) -> Vec<Decision> {
    let marked = (written.candidate.tier == Tier::Guess).then(|| written.candidate.why.clone());
    let route = &written.route;
    let all = marked.iter().chain(&route.remarks).chain(&route.looks);
    let all: BTreeSet<&String> = all.collect();
    all.into_iter()
        .map(|text| Decision {
            id: id_of(written.candidate.old),
            weight: Weight::Look,
            operation: written.candidate.old.key.to_string(),
            text: text.clone(),
            proposal: None,
            lines: None,
        })
        .collect()
}

/// The files of both contracts, a person's own, and these.
fn source(sides: &[Side; 2], own: &[(String, String)], files: &[(String, String)]) -> PackSource {
    let contracts = sides.iter().flat_map(|side| side.files.iter().cloned());
    let drafted = own.iter().chain(files).map(|(name, text)| (name.clone(), text.as_bytes().into()));
    PackSource::from_files(contracts.chain(drafted).collect())
}

/// The operations of the old side that cannot be kept as they are, by the place of each, with the reason.
fn unfit(compiled: &Compiled, old: &Contract) -> HashMap<String, String> {
    let by_span: HashMap<_, _> =
        old.operations.iter().map(|operation| (operation.span, operation.key.to_string())).collect();
    let mut unfit = HashMap::new();
    for finding in compiled.findings.sorted() {
        if finding.code == Code::Unanswered
            && let Some(key) = by_span.get(&finding.span)
        {
            let why = finding.message.split_once("cannot be kept as it is: ").map_or("", |(_, why)| why);
            unfit.insert(key.clone(), why.to_owned());
        }
    }
    unfit
}

fn written_files(
    manifest: &str,
    routes: &[Written<'_>],
    bodies: &Bodies<'_>,
    sides: &[Side; 2],
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
            // The name is a person's.
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

/// The routes (by index) that errors of a draft belong to, with the first reason of each. An error in a shape belongs to all
/// routes that use it; one that belongs to none belongs to all.
fn faulty(compiled: &Compiled, files: &[(String, String)], routes: &[Written<'_>]) -> HashMap<usize, String> {
    let mut faulty = HashMap::new();
    for finding in compiled.findings.sorted().into_iter().filter(|one| one.severity == Severity::Error) {
        let name = compiled.sources.name(finding.span.file);
        let text = files.iter().find(|(known, _)| known == name).map_or("", |(_, text)| text.as_str());
        let line = compiled.sources.start(finding.span).line as usize;
        let owner = text::owner(text, line);
        for (at, written) in routes.iter().enumerate() {
            let is_its = match &owner {
                text::Owner::Route(key) => *key == written.candidate.old.key.to_string(),
                text::Owner::Shape(shape) => written.route.shapes.contains(shape),
                text::Owner::Nobody => true,
            };
            if is_its {
                faulty.entry(at).or_insert_with(|| finding.message.clone());
            }
        }
    }
    faulty
}

/// A look for each operation that is served with values, members or header fields that one of the contracts does not have.
fn changed(compiled: &Compiled) -> Vec<Decision> {
    let Some(pack) = &compiled.pack else { return Vec::new() };
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
        .map(|(route, lost)| Decision {
            id: slug(&route.operation.key),
            weight: Weight::Look,
            operation: route.operation.key.to_string(),
            text: format!("not all of it goes over: {}", lost.join("; ")),
            proposal: None,
            lines: None,
        })
        .collect()
}

fn counts(
    compiled: &Compiled,
    routes: &[Written<'_>],
    own: &[(String, String)],
    changed: &[Decision],
) -> Counts {
    let Some(pack) = &compiled.pack else { return Counts::default() };
    let all = &pack.directions[0].routes;
    let refused = all.iter().filter(|route| matches!(route.kind, RouteKind::Refuse(_))).count();
    let is_changed = |key: &str| changed.iter().any(|decision| decision.operation == key);
    let is_marked = |written: &&Written<'_>| {
        !look(written).is_empty() || is_changed(&written.candidate.old.key.to_string())
    };
    let marked = routes.iter().filter(is_marked).count();
    let is_kept = |route: &&Route| *route.origin.file == *"pack.yaml" && is_changed(&route.operation.key);
    let kept_and_changed = all.iter().filter(is_kept).count();
    let is_own = |file: &str| own.iter().any(|(name, _)| name == file);
    let by_hand =
        all.iter().filter(|route| !matches!(route.kind, RouteKind::Refuse(_)) && is_own(&route.origin.file));
    let by_lines = routes.len() + by_hand.count();
    let written = by_lines - marked;
    Counts {
        operations: all.len(),
        untouched: (all.len() - refused).saturating_sub(by_lines + kept_and_changed),
        written,
        marked: marked + kept_and_changed,
        refused,
    }
}

/// A decision for every operation that is refused and has none yet.
fn refused(
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
        let why = unfit.get(&operation.key.to_string()).filter(|why| !why.is_empty());
        blocker(operation, why.map_or("the new side has no such operation", String::as_str))
    })
    .collect()
}

/// Of files around a document, those that its references lead to.
pub fn referred(document: &str, bytes: &[u8], around: Vec<(String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
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
