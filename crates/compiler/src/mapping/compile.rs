//! Compiles the files of a pack, or reports all of their errors.
//!
//! Every check runs even after others have failed, so one run reports all mistakes. A pack is
//! produced only if no finding is an error.

use super::ast::{ExampleDecl, ProgramDecl, RestWord, ShapeDecl, Spanned};
use super::corrections::{self, Corrections, PASSES_MAX};
use super::lens::{LensEnv, Lenses, Supply};
use super::load::{self, PackSource, Texts};
use super::names::PackNames;
use super::references::{NameLog, ResolvedName};
use super::{
    compare, conformance, disclosures, errors, events, examples, hosts, made, manifest, media, routes, texts,
};
use crate::contract::{Contracts, Proven};
use crate::diagnostic::{Aspect, FileId, Findings, Sources, Span};
use std::collections::HashSet;
use std::sync::Arc;
use switchback_json::Value;
use switchback_plan::{self as plan, Direction, Pack, SideId};

/// Result of compiling a pack's files.
#[derive(Debug)]
pub struct Compiled {
    /// The files, for rendering the locations of findings.
    pub sources: Sources,
    /// Errors, warnings and notes, in file order.
    pub findings: Findings,
    /// `None` if a finding is an error.
    pub pack: Option<Arc<Pack>>,
    /// The parsed mapping files; `None` if the manifest or a contract cannot be read.
    program: Option<ProgramDecl>,
    /// Old side first; `None` if the manifest or a contract cannot be read.
    pub contracts: Option<Contracts>,
    /// Whether findings were left out because there are too many.
    is_capped: bool,
    /// The names of the mapping files with their meanings, in the order of the text; empty unless the
    /// compiler records them.
    pub references: Vec<ResolvedName>,
}

impl Compiled {
    /// Returns the pack's name from its manifest, even if the pack has errors, or `None` if the
    /// manifest or a contract cannot be read.
    pub fn name(&self) -> Option<&str> {
        self.program.as_ref().map(|program| program.manifest.name.value.as_str())
    }

    /// Returns the number of declared shapes, used or not, or `None` if the manifest or a contract
    /// cannot be read.
    pub fn shapes_declared(&self) -> Option<usize> {
        self.program.as_ref().map(|program| program.shapes.len())
    }

    /// Returns the declared shapes, or `None` if the manifest or a contract cannot be read.
    pub(super) fn shapes(&self) -> Option<&[ShapeDecl]> {
        self.program.as_ref().map(|program| program.shapes.as_slice())
    }

    /// Returns the names of the declared shapes.
    pub(crate) fn shape_names(&self) -> impl Iterator<Item = &str> {
        let shapes = self.program.iter().flat_map(|program| &program.shapes);
        shapes.filter_map(|shape| shape.name.as_ref()).map(|name| name.value.as_str())
    }

    /// Returns the texts of all files with open values of examples (`?`), filled in.
    ///
    /// `found` contains, for each example of the program, the values of its open places in the
    /// order of their appearance. Examples without values remain unchanged.
    pub fn fill_open_places(&self, found: &[Vec<Value>]) -> Vec<(FileId, String)> {
        let fill = |program| examples::fill_open_places(program, &self.sources, found);
        self.program.as_ref().map(fill).unwrap_or_default()
    }
}

/// Reads, checks and lowers a pack.
pub fn compile(source: &PackSource) -> Compiled {
    Compiler::default().compile(source)
}

/// An incremental compiler, for packs with files that change over time.
///
/// Parsing dominates the cost, so the compiler caches the trees of all files and parses only
/// changed ones. Results equal those of [`compile`].
#[derive(Debug, Default)]
pub struct Compiler {
    texts: Texts,
    records: bool,
}

impl Compiler {
    /// Creates a compiler that records [`Compiled::references`].
    pub fn with_references() -> Compiler {
        Compiler { records: true, ..Compiler::default() }
    }

    /// Reads, checks and lowers a pack. The result is that of [`compile`], regardless of earlier
    /// calls.
    pub fn compile(&mut self, source: &PackSource) -> Compiled {
        self.compile_until(source, &|| false).expect("it is never stopped")
    }

    /// Like [`Compiler::compile`], until `is_stopped` returns true, which is called for each file,
    /// shape and route. Returns `None` if it did. The function stays true once it was.
    pub fn compile_until(&mut self, source: &PackSource, is_stopped: &dyn Fn() -> bool) -> Option<Compiled> {
        let pass = |corrections: &Corrections, corrected: &mut Vec<Span>, texts: &mut Texts| {
            let compiled = compile_with(source, corrections, corrected, texts, self.records, is_stopped);
            (!is_stopped()).then_some(compiled)
        };
        let mut compiled = pass(&Corrections::default(), &mut Vec::new(), &mut self.texts)?;
        let (mut corrections, mut said) = (Corrections::default(), Findings::new());
        let mut first = None;
        for _ in 0..PASSES_MAX {
            // Consequences of a mistake would suggest wrong corrections, so prune them first.
            super::cascade::prune(&mut compiled.findings, &compiled.sources);
            // With hundreds of mistakes, their consequences matter little, and each pass takes long.
            if compiled.is_capped || !corrections.learn(&compiled.findings) {
                break;
            }
            first.get_or_insert_with(|| (compiled.findings.clone(), compiled.sources.clone()));
            let mut corrected = Vec::new();
            let again = pass(&corrections, &mut corrected, &mut self.texts)?;
            // Keep findings about corrected texts only. The next pass reports all others again,
            // without the consequences of the slips.
            compiled.findings.retain(|finding| {
                corrected.contains(&finding.span)
                    && corrections::suggestion_of(finding).is_some()
                    && finding.aspect != Aspect::Method
            });
            said.append(std::mem::replace(&mut compiled.findings, again.findings));
            // The first pass may have failed at the manifest, without registering any other file.
            compiled.sources = again.sources;
            // A corrected program has more meaning than the text as written.
            compiled.references = again.references;
            compiled.is_capped = again.is_capped;
        }
        super::cascade::prune(&mut compiled.findings, &compiled.sources);
        // The method of a corrected operation is a guess. A further finding that the path lacks the
        // guessed method would mislead.
        let said_at: HashSet<Span> = said.in_order().iter().map(|finding| finding.span).collect();
        compiled
            .findings
            .retain(|finding| !(finding.aspect == Aspect::Method && said_at.contains(&finding.span)));
        // A text that was read as its correction may be wrong in another place that the name has. A
        // suggestion to write what is written would mislead.
        let Compiled { findings, sources, .. } = &mut compiled;
        findings.retain(|finding| {
            corrections::suggestion_of(finding).is_none_or(|one| sources.snippet(one.span) != one.replacement)
        });
        findings.append(said);
        // Corrections may remove every finding. The pack as written is invalid, so restore the
        // findings of the first pass.
        if compiled.pack.is_none()
            && !compiled.findings.has_errors()
            && let Some((findings, sources)) = first
        {
            (compiled.findings, compiled.sources) = (findings, sources);
        }
        // A corrected pack compiles without errors of its own, but the findings of the slips
        // remain.
        compiled.pack.take_if(|_| compiled.findings.has_errors());
        // Passes add to each other's findings.
        compiled.findings.cap();
        compiled.findings.retain_counts();
        Some(compiled)
    }
}

/// Runs one pass with `corrections` applied. Appends the corrected spans to `corrected`.
fn compile_with(
    source: &PackSource,
    corrections: &Corrections,
    corrected: &mut Vec<Span>,
    texts: &mut Texts,
    records: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Compiled {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let read =
        load::read_with(source, corrections, corrected, texts, is_stopped, &mut sources, &mut findings);
    let Some((mut program, mut contracts)) = read else {
        findings.locate(&sources);
        let is_capped = findings.cap();
        return Compiled {
            sources,
            findings,
            pack: None,
            program: None,
            contracts: None,
            references: Vec::new(),
            is_capped,
        };
    };
    // First, so that every later check sees contracts without credentials.
    manifest::take_credentials(&program.manifest, &mut contracts, &mut findings);
    media::check(&program.manifest, &contracts, &mut findings);
    hosts::place(&program.manifest, &mut contracts, &mut findings);
    made::add(&mut program, &contracts);
    let mut names = PackNames::collect(&program, &mut findings);
    names.references = NameLog::new(records);
    let world =
        LensEnv { program: &program, contracts: &contracts, names: &names, sources: &sources, is_stopped };
    let pack = lower(world, &mut findings);
    let references = names.references.into_sorted(&sources);
    // Decide before findings are joined. Joining never removes the last error of a pack.
    let pack = pack.filter(|_| !findings.has_errors()).map(Arc::new);
    findings.locate(&sources);
    // Before findings are related to each other, which takes quadratic time.
    let is_capped = findings.cap();
    super::cascade::join(&mut findings, &sources);
    let (program, contracts) = (Some(program), Some(contracts));
    Compiled { sources, findings, pack, program, contracts, references, is_capped }
}

/// Returns the contracts of a pack as [`compile`] does, old side first, or `None` if they or the
/// manifest cannot be read.
pub fn contracts(source: &PackSource) -> Option<Contracts> {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let (program, mut contracts) = load::load_pack(source, &mut sources, &mut findings)?;
    manifest::take_credentials(&program.manifest, &mut contracts, &mut findings);
    Some(contracts)
}

fn lower(world: LensEnv<'_>, findings: &mut Findings) -> Option<Pack> {
    let LensEnv { program, contracts, names, sources, .. } = world;
    let written = &program.manifest;
    if written.rest.iter().flatten().any(|word| word.value != RestWord::Keep) {
        // The rest policy uses this reason even if every operation has a route today: a new
        // operation may come without one.
        let name = Spanned { value: made::REST_REASON.to_owned(), span: written.span };
        names.reason(&name, findings);
    }
    let languages = texts::languages(written, findings);
    let (reasons, placeholders) = texts::reasons(&program.reasons, &languages, sources, findings);
    let settings = manifest::settings(written, sources, findings);
    let sides = manifest::sides(written, findings);
    let refuse = routes::refuse_policy(&written.refuse, names, findings);
    let error_types = errors::types(written, contracts, findings);
    let lenses = Lenses::check(world, findings);
    let style = errors::style(written, contracts, error_types, names, &placeholders, findings);
    let failures = errors::failures(written, contracts, sources, findings);
    let error_plans = errors::plans(written, contracts, error_types, &lenses, findings);
    let credential_headers: Vec<String> = sides
        .iter()
        .flatten()
        .flat_map(|side| side.credential.headers_of_tokens().map(str::to_owned))
        .collect();
    manifest::sent(written, &credential_headers, findings);
    // Without a valid error plan the pack is rejected below. A placeholder lets the routes be
    // checked all the same.
    let keep = || plan::BodyPlan {
        op: plan::ValueOp::Keep,
        root: plan::Root::ANY,
        class: plan::Class::Pass,
        because: String::new(),
    };
    let has_plans = error_plans.is_some();
    let [(old_error, old_losses), (new_error, new_losses)] =
        error_plans.unwrap_or_else(|| [(keep(), Vec::new()), (keep(), Vec::new())]);
    let (error_plans, error_losses) = ([old_error, new_error], [old_losses, new_losses]);
    let comparisons = compare::check(written, contracts, sources, findings);
    let approximate_header = manifest::own_header(written.headers.approximate.as_ref(), findings);
    let archives = routes::Archives::collect(program, contracts, findings);
    let proven = <[std::cell::RefCell<Proven>; 2]>::default();
    let env = routes::RouteEnv {
        world,
        placeholders: &placeholders,
        lenses: &lenses,
        refuse: &refuse,
        proven: &proven,
        comparisons: &comparisons,
        errors: routes::ErrorTranslation { plans: &error_plans, losses: &error_losses, types: error_types },
        credential_headers: &credential_headers,
        approximate_header: approximate_header.as_deref(),
        archives: &archives,
    };
    let [old_routes, new_routes] = routes::compile(&env, program, findings);
    errors::warn_foreign_errors(written, contracts, [&old_routes, &new_routes], findings);
    let harvests = routes::harvests(&env, program, findings);
    let archives = archives.lower(&env, findings);
    let compared_errors = [0, 1].map(|side| {
        let name = written.errors.type_name(side);
        name.map_or_else(Vec::new, |name| comparisons.of_type(side, &name.value))
    });
    let disclosures = [0, 1].map(|side| Arc::new(disclosures::of_side(&comparisons, side)));
    let events = events::compile(world, &lenses, &comparisons, findings);
    // Checks for unused items run last, because every step above marks the items that it uses.
    comparisons.report_unused(findings);
    let shapes = shapes(program, &lenses, sources);
    lenses.report_unused(findings);
    lenses.report_partials(findings);
    lenses.report_elses(findings);
    names.report_unused(findings);
    let examples = examples::lower(program, sources, findings);
    for example in &program.examples {
        if let ExampleDecl::Shape(example) = example {
            lenses.record(&example.shape);
        }
    }
    if !findings.has_errors() && !(world.is_stopped)() {
        conformance::check(program, contracts, findings);
    }
    let [old_error, new_error] = error_plans;
    let [old_side, new_side] = sides;
    if !has_plans {
        return None;
    }
    Some(Pack {
        name: written.name.value.clone(),
        sides: [old_side?, new_side?],
        directions: [
            Direction { serves: SideId::OLD, routes: old_routes, error: old_error },
            Direction { serves: SideId::NEW, routes: new_routes, error: new_error },
        ],
        languages,
        reasons,
        errors: style?,
        failures,
        refuse,
        settings,
        approximate_header,
        archives,
        harvests,
        events,
        shapes,
        examples,
        json_types: written.json_types().iter().map(|own| own.as_str().into()).collect(),
        compared_headers: comparisons.headers,
        compared_errors,
        disclosures,
    })
}

/// Lowers the named shapes in every direction that can be built, for examples and explanations.
///
/// Discards findings: a route that needs a direction reports why it cannot be built.
fn shapes(program: &ProgramDecl, lenses: &Lenses<'_>, sources: &Sources) -> Vec<plan::Shape> {
    let plan = |name: &str, to: SideId| {
        let mut findings = Findings::new();
        let lens = lenses.lens(name, to, &Supply::default(), &mut findings)?;
        Some(plan::ShapePlan { op: lens.op, losses: lens.losses, supplied: lens.supplied })
    };
    let named = program.shapes.iter().filter_map(|shape| shape.name.as_ref());
    named
        .map(|name| plan::Shape {
            name: name.value.clone(),
            to: [SideId::OLD, SideId::NEW].map(|to| plan(&name.value, to)),
            origin: super::origin(sources, name.span),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{self, Colour, work};
    use std::path::Path;

    fn messaging() -> PackSource {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mappings/messaging");
        PackSource::from_dir(&folder).expect("the pack lies beside the sources")
    }

    /// Returns the messaging pack with another mapping file.
    fn with_file(text: String) -> PackSource {
        let mut files = messaging().files().to_vec();
        files.push(("zz.map.yaml".to_owned(), text.into_bytes().into()));
        PackSource::from_files(files)
    }

    /// Twice as many mistakes take at most about twice as many comparisons, and have as many findings.
    #[test]
    fn work_is_linear_in_the_number_of_mistakes() {
        let route = |at| format!("  - {{pair: {{v2: GET /x{at}, v3: GET /y{at}}}, response: [No{at}]}}\n");
        let line = |at| format!("      bad_{at}: worse_{at}\n");
        let reason = |at| format!("  r{at}: {{en: a}}\n");
        let key = |at| format!("rout{at}: 1\n");
        let shape = "shapes:\n  Zed:\n    of: {v2: Message, v3: Message}\n    rename:\n";
        let kinds: [(&str, &dyn Fn(usize) -> String); 4] =
            [("routes:\n", &route), (shape, &line), ("reasons:\n", &reason), ("", &key)];
        for (head, one) in kinds {
            let measure = |count: usize| {
                let lines: String = (0..count).map(one).collect();
                work::take();
                let compiled = compile(&with_file(format!("mapping: 1\n{head}{lines}")));
                assert!(compiled.findings.has_errors());
                (work::take(), compiled.findings.len())
            };
            let (few, many) = (measure(400), measure(800));
            assert!(many.0 <= few.0 * 5 / 2, "{head:?}: {few:?}, {many:?}");
            assert_eq!(few.1, many.1, "{head:?}");
        }
    }

    #[test]
    fn a_compilation_stops_when_its_result_is_not_needed() {
        let (source, asked) = (messaging(), std::cell::Cell::new(0));
        let mut compiler = Compiler::default();
        let mut count = |last: usize| {
            asked.set(0);
            let is_stopped = || {
                asked.set(asked.get() + 1);
                asked.get() > last
            };
            let compiled = compiler.compile_until(&source, &is_stopped);
            (compiled.is_some(), asked.get())
        };
        let (true, all) = count(usize::MAX) else { panic!("it is not stopped") };
        assert!(all > 100, "{all}: for each file, shape and route");
        for last in [0, 3, all / 2, all - 1] {
            let (is_done, then) = count(last);
            assert!(!is_done && then <= last + 8, "{last}: {then}");
        }
        assert!(compiler.compile(&source).pack.is_some(), "a stopped compilation leaves nothing behind");
    }

    #[test]
    fn the_messaging_pack_compiles_without_a_finding() {
        let compiled = compile(&messaging());
        assert_eq!(diagnostic::to_text(&compiled.sources, &compiled.findings, Colour::Never), "");
        let pack = compiled.pack.expect("there was no error");
        assert_eq!([pack.directions[0].routes.len(), pack.directions[1].routes.len()], [22, 37]);
    }

    /// Covers every kind of change between two compilations: in a mapping file, a contract or the
    /// manifest, and files that are removed, added or restored.
    #[test]
    fn what_a_compiler_keeps_changes_nothing_of_what_comes_out() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mappings/messaging");
        let whole = PackSource::from_dir(&folder).expect("the pack lies beside the sources");
        let names = || whole.files().iter().map(|(name, _)| name.as_str());
        let [old, new] = names().filter(|name| name.starts_with("contracts/")).collect::<Vec<_>>()[..] else {
            panic!("a contract of each side");
        };
        let has_routes =
            |(_, bytes): &&load::PackFile| str::from_utf8(bytes).is_ok_and(|text| text.contains("routes:"));
        let routed = |name: &&str| name.ends_with(load::MAPPING_SUFFIX);
        let with_routes =
            whole.files().iter().filter(has_routes).map(|(name, _)| name.as_str()).filter(routed);
        let [first, .., last] = with_routes.collect::<Vec<_>>()[..] else {
            panic!("several files of routes")
        };
        let edited = |name: &str, from: &str, to: &str| {
            let edit = |(known, bytes): &load::PackFile| {
                let text = str::from_utf8(bytes).expect("a pack is text");
                assert!(known != name || text.contains(from), "{name} has no `{from}`");
                let text = if known == name { text.replacen(from, to, 1) } else { text.to_owned() };
                (known.clone(), text.into_bytes())
            };
            PackSource::from_files(whole.files().iter().map(edit).collect())
        };
        let without_contract = |name: &str, from: &str, to: &str| {
            let files = edited(name, from, to);
            let files = files.files().iter().filter(|(name, _)| name != old);
            PackSource::from_files(files.cloned().collect())
        };
        let only = |keep: &dyn Fn(&str) -> bool| {
            PackSource::from_files(whole.files().iter().filter(|(name, _)| keep(name)).cloned().collect())
        };
        let mut compiler = Compiler::default();
        for (source, has_findings) in [
            (whole.clone(), false),
            (edited(first, "routes:", "roots:"), true),
            (edited(new, "paths:", "paths: 1\nx-paths:"), true),
            (whole.clone(), false),
            (only(&|name| name != last), true),
            (only(&|name| name != old), true),
            (without_contract("pack.yaml", "sides:", "\nsides:"), true),
            (edited("pack.yaml", old, new), true),
            (edited(last, "routes:", "routes: ["), true),
            (edited("pack.yaml", "sides", "sidse"), true),
            (PackSource::default(), true),
            (whole.clone(), false),
        ] {
            let (again, anew) = (compiler.compile(&source), compile(&source));
            let said = |compiled: &Compiled| {
                let text = diagnostic::to_text(&compiled.sources, &compiled.findings, Colour::Never);
                (text, format!("{:?}", compiled.pack))
            };
            assert_eq!(said(&again), said(&anew));
            assert_eq!(!anew.findings.is_empty(), has_findings);
        }
    }
}
