//! `switchback learn`: evidence for the lines of a pack from recorded traffic.

use super::init::{BASE, LEARNED_JSON, draft_pack, read_decided};
use super::output::{COULD_NOT_RUN, HAS_FINDINGS, Progress, count_noun};
use super::pack::{fail, render_findings};
use crate::replay::Fronts;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use switchback_compiler::contract::{Contracts, Documents, parse_contract};
use switchback_compiler::diagnostic::{Findings, Sources};
use switchback_compiler::init::{DECISIONS, DECISIONS_JSON, DecisionGroup, SideDocument};
use switchback_compiler::learn::{
    Confidence, GuessWitness, Inference, Learned, TrafficCall, Witness, accept, to_json, to_markdown,
    weigh_guesses,
};
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::{self, MANIFEST, PackSource};
use switchback_compiler::yaml::{self, Node};
use switchback_engine::har::{self, Body, Exchange, header_map};
use switchback_gateway::outcome::Outcome;
use switchback_json::{Limits, Str, Value};
use switchback_plan::{BodyFormat, SideId};

/// Compares the answers of both versions in recorded traffic, and reports which members correspond,
/// in `LEARNED.md` and `LEARNED.json` of the folder. Archives of `switchback capture` during a dual run
/// hold both answers to each request; other archives must contain reads of the same resources through
/// both versions. Lines are proposals until they are accepted.
///
/// In a folder without a pack, the command drafts the contract of each version from the traffic, for
/// `switchback init`.
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 success, 1 an accepted line does not compile and was not written, 2 wrong use, 3 the archives or the pack could not be used.\n\n\
    Examples:\n  switchback learn pack --har traffic.har\n  switchback learn pack --har old.har --har new.har --front /api/v1=v1 --front https://new.example=v2\n  \
    switchback learn pack --har traffic.har --accept sure"
)]
pub struct LearnArgs {
    /// Folder of the pack, or of the contracts to draft
    folder: PathBuf,

    /// HTTP Archive; repeat for several
    #[arg(long = "har", value_name = "FILE.har", required = true)]
    archives: Vec<PathBuf>,

    /// Base of a side in the recording, such as https://old.example/api=v1 or /api=v1; repeat for several
    /// [default: the path segment with the name of the side]
    #[arg(long = "front", value_name = "PREFIX=SIDE")]
    fronts: Vec<String>,

    /// Names of the two sides, for a folder without a pack
    #[arg(long, value_name = "OLD,NEW", value_delimiter = ',')]
    sides: Option<Vec<String>>,

    /// Write the line with this id of `LEARNED.md` into the pack, or all sure lines; repeat for several
    #[arg(long, value_name = "sure|ID")]
    accept: Vec<String>,
}

/// Accepts all sure lines.
const SURE: &str = "sure";

pub fn run(args: &LearnArgs) -> Result<ExitCode, ExitCode> {
    let folder = &args.folder;
    let failed = |why: String| fail(COULD_NOT_RUN, format_args!("switchback learn: {why}"));
    if !folder.join(MANIFEST).is_file() {
        return draft_contracts(args).map_err(failed);
    }
    let source = PackSource::from_dir(folder).map_err(|error| failed(in_file(folder, &error)))?;
    let compiled = compile(&source);
    let Some(contracts) = &compiled.contracts else {
        eprint!("{}", render_findings(&compiled, false));
        return Err(ExitCode::from(HAS_FINDINGS));
    };
    let learned = watch(args, contracts).map_err(failed)?;
    let (guesses, decisions) = weigh(folder, &source, &learned).map_err(failed)?;
    report(folder, &learned, &guesses, &decisions).map_err(failed)?;
    if args.accept.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    write_accepted(args, &source, &learned).map_err(failed)
}

fn in_file(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn put(path: &Path, text: &str) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, text)).map_err(|error| in_file(path, &error))
}

/// Returns the findings of the archives, by the contracts of both sides.
fn watch(args: &LearnArgs, contracts: &Contracts) -> Result<Learned, String> {
    let names = contracts.each_ref().map(|contract| contract.name.clone());
    let mut witness = Witness::new(contracts.each_ref().map(|contract| &**contract));
    each_call(args, names, &mut |call| witness.add(call))?;
    let mut progress = Progress::new();
    let learned = witness.finish(&mut |ty| progress.show(format_args!("comparing {ty} …")));
    progress.end();
    Ok(learned)
}

/// Writes the findings into the folder, and prints a summary.
fn report(
    folder: &Path,
    learned: &Learned,
    guesses: &[GuessWitness],
    decisions: &[DecisionGroup],
) -> Result<(), String> {
    put(&folder.join("LEARNED.md"), &to_markdown(learned, guesses, decisions))?;
    put(&folder.join(LEARNED_JSON), &format!("{:#}\n", to_json(learned, guesses, decisions)))?;
    let sure = learned.lines.iter().filter(|line| line.confidence == Confidence::Sure).count();
    let held = |holds: bool| guesses.iter().filter(|guess| guess.holds == Some(holds)).count();
    let idle = learned.operations.iter().filter(|one| one.calls == 0).count();
    println!(
        "{}/LEARNED.md: {}, {} likely, {} of another answer; guesses of the draft: {} supported, {} contradicted",
        folder.display(),
        count_noun(sure as u64, "sure line"),
        learned.lines.len() - sure,
        learned.joins.len(),
        held(true),
        held(false)
    );
    println!(
        "{} and {} of {}; {} of {} without a call, {} outside the contracts",
        count_noun(learned.calls[0], "call"),
        learned.calls[1],
        learned.sides.join(" and "),
        count_noun(idle as u64, "operation"),
        learned.operations.len(),
        count_noun(learned.unknown, "call")
    );
    Ok(())
}

/// Writes accepted lines into the pack.
fn write_accepted(args: &LearnArgs, source: &PackSource, learned: &Learned) -> Result<ExitCode, String> {
    let mut ids = BTreeSet::new();
    for id in &args.accept {
        if id == SURE {
            let sure = learned.lines.iter().filter(|line| line.confidence == Confidence::Sure);
            ids.extend(sure.map(|line| line.id.clone()));
        } else if learned.lines.iter().any(|line| line.id == *id) {
            ids.insert(id.clone());
        } else {
            return Err(format!("`{id}` is no line of LEARNED.md; nothing was accepted"));
        }
    }
    let acceptance =
        accept(source, learned, &ids).map_err(|error| format!("the pack has errors: {error}"))?;
    for (name, text) in &acceptance.files {
        put(&args.folder.join(name), text)?;
        println!("{name}: changed");
    }
    for (id, why) in &acceptance.rejected {
        eprintln!("{id}: not written: {why}");
    }
    println!("{} written", count_noun(acceptance.written.len() as u64, "line"));
    let is_all = acceptance.rejected.is_empty();
    Ok(if is_all { ExitCode::SUCCESS } else { ExitCode::from(HAS_FINDINGS) })
}

/// Returns the traffic about the decisions of the folder's draft, which the documents yield again, and
/// ranks its lists of decisions.
fn weigh(
    folder: &Path,
    source: &PackSource,
    learned: &Learned,
) -> Result<(Vec<GuessWitness>, Vec<DecisionGroup>), String> {
    let documents = documents(source).filter(|_| folder.join(BASE).is_dir());
    let draft = documents.and_then(|documents| {
        draft_pack("pack", folder, &documents, &read_decided(folder), &mut |_| ()).ok()
    });
    let Some(mut draft) = draft else { return Ok((Vec::new(), Vec::new())) };
    draft.rank(learned.operations.clone());
    for (name, text) in draft.files.iter().filter(|(name, _)| [DECISIONS, DECISIONS_JSON].contains(&&**name))
    {
        put(&folder.join(name), text)?;
    }
    let mut open: Vec<DecisionGroup> = draft.questions().into_iter().filter(DecisionGroup::is_open).collect();
    open.sort_by_key(|group| Reverse(group.traffic));
    Ok((weigh_guesses(&draft.decisions, learned), open))
}

/// Returns the documents of the pack's contracts.
fn documents(source: &PackSource) -> Option<[SideDocument; 2]> {
    let (mut sources, mut findings) = (Sources::new(), Findings::new());
    let (_, manifest) = source.files().iter().find(|(name, _)| name == MANIFEST)?;
    let manifest = yaml::parse(&mut sources, MANIFEST, manifest, &mut findings)?;
    let names = load::sides(source)?;
    let contracts = source.files().iter().filter(|(name, _)| name.contains('/'));
    let document = |name: &str| {
        let document = manifest.get("contracts")?.get(name).and_then(Node::as_str)?.to_owned();
        Some(SideDocument { name: name.to_owned(), document, files: contracts.clone().cloned().collect() })
    };
    Some([document(&names[0])?, document(&names[1])?])
}

/// Drafts the contracts of both sides, and reports what their calls show.
fn draft_contracts(args: &LearnArgs) -> Result<ExitCode, String> {
    let folder = args.folder.display();
    let Some([old, new]) = args.sides.as_deref() else {
        return Err(format!(
            "{folder} has no pack.yaml; name the sides of the traffic with `--sides OLD,NEW`"
        ));
    };
    if !args.accept.is_empty() {
        return Err(format!("{folder} has no pack.yaml to write into; draft one with `switchback init`"));
    }
    let names = [old.clone(), new.clone()];
    let mut inferred = [Inference::default(), Inference::default()];
    each_call(args, names.clone(), &mut |call| inferred[usize::from(call.side.0)].add(call))?;
    let mut contracts = Vec::new();
    let mut paths = Vec::new();
    for (name, inference) in names.iter().zip(inferred) {
        if inference.is_empty() {
            return Err(format!(
                "the archives have no call of {name}; --front states where clients spoke it"
            ));
        }
        let path = args.folder.join(format!("contracts/{name}/traffic-{name}.json"));
        println!("{}: {}", path.display(), count_noun(inference.len() as u64, "operation"));
        let text = inference.document(name, "from-traffic");
        put(&path, &text)?;
        let (mut sources, mut findings) = (Sources::new(), Findings::new());
        let documents =
            Documents::load(&mut sources, "traffic.json", &|_| Some(text.as_bytes()), &mut findings);
        let documents = documents.ok_or_else(|| in_file(&path, &"the drafted contract cannot be read"))?;
        contracts.push(parse_contract(name, &documents, &mut findings));
        paths.push(path.display().to_string());
    }
    let [old, new] = contracts.as_chunks::<2>().0.first().ok_or("two contracts were drafted")?.clone();
    let learned = watch(args, &[old, new].map(Arc::new))?;
    report(&args.folder, &learned, &[], &[])?;
    println!("next: switchback init {} {folder}", paths.join(" "));
    Ok(ExitCode::SUCCESS)
}

/// Calls `each` with the calls of all archives to one of the sides.
fn each_call(args: &LearnArgs, names: [String; 2], each: &mut dyn FnMut(&TrafficCall)) -> Result<(), String> {
    let mut fronts = Fronts::new(names);
    args.fronts.iter().try_for_each(|text| fronts.add(text)).map_err(|error| error.to_string())?;
    let mut progress = Progress::new();
    let (mut entries, mut malformed, mut foreign) = (0_u64, 0_u64, 0_u64);
    for archive in &args.archives {
        let file = File::open(archive).map_err(|error| in_file(archive, &error))?;
        let stem = archive.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let parsed = har::parse(io::BufReader::new(file), |entry| {
            entries += 1;
            progress.show(format_args!("{entries} exchanges …"));
            match entry {
                Ok(exchange) => {
                    let calls = calls(&exchange, &fronts, &stem, entries);
                    foreign += u64::from(calls.is_empty());
                    calls.iter().for_each(&mut *each);
                }
                Err(_) => malformed += 1,
            }
        });
        parsed.map_err(|error| in_file(archive, &error))?;
    }
    progress.end();
    if malformed > 0 {
        eprintln!("entries that could not be read: {malformed}");
    }
    if foreign > 0 {
        eprintln!("entries without an answer, or of no side: {foreign} of {entries}; --front states a side");
    }
    Ok(())
}

/// Returns the calls of an exchange. `file` is the client of a recording without names.
fn calls(exchange: &Exchange, fronts: &Fronts, file: &str, number: u64) -> Vec<TrafficCall> {
    let Some((side, target)) = fronts.find(exchange) else { return Vec::new() };
    let gateway = exchange.gateway.as_ref();
    let mut all = Vec::new();
    if let Some(mut call) = call(exchange, side, target) {
        call.client = Some(gateway.map_or(file, |known| &known.client).to_owned());
        // An answer that the gateway translated would confirm the pack by itself.
        let is_own = gateway.is_some_and(|known| Outcome::parse(&known.outcome) != Some(Outcome::Forwarded));
        call.answer = call.answer.filter(|_| !is_own);
        all.push(call);
    }
    for made in gateway.into_iter().flat_map(|known| &known.calls) {
        let call = call(made, side.other(), made.request.url.clone());
        all.extend(call);
    }
    all.iter_mut().for_each(|call| call.exchange = Some(number));
    all
}

/// Returns an exchange as a call, if it has an answer.
fn call(exchange: &Exchange, side: SideId, target: String) -> Option<TrafficCall> {
    let response = exchange.response.as_ref()?;
    let media = header_map(&exchange.request.headers).remove(http::header::CONTENT_TYPE);
    let is_form = media.is_some_and(|media| media.as_bytes().starts_with(BodyFormat::FORM.as_bytes()));
    let json = |body: &Body| match body {
        Body::Whole(bytes) => Value::parse(bytes, &Limits::DOCUMENT).ok(),
        Body::None | Body::Missing => None,
    };
    let sent = if is_form { Some(form(&exchange.request.body)) } else { json(&exchange.request.body) };
    Some(TrafficCall {
        side,
        method: exchange.request.method.parse().ok()?,
        target,
        sent,
        is_form,
        status: response.status,
        answer: json(&response.body),
        client: None,
        exchange: None,
    })
}

/// Returns the fields of a form.
fn form(body: &Body) -> Value {
    let bytes = body.bytes().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace('+', " ");
    let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let fields = text.split('&').filter_map(|pair| pair.split_once('='));
    Value::Object(
        fields.map(|(name, value)| (Str::new(&decode(name)), Value::string(&decode(value)))).collect(),
    )
}
