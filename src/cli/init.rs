//! `switchback init`: drafts a pack from the contracts of two versions.

use super::output::{COULD_NOT_RUN, HAS_FINDINGS};
use super::pack::fail;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use switchback_compiler::diagnostic::{Colour, to_text};
use switchback_compiler::init::{self, Draft, SideDocument, Weight};
use switchback_compiler::mapping::Compiled;
use switchback_compiler::mapping::load::MAPPING_SUFFIX;

/// Drafts a pack from two OpenAPI documents. Certain translations are written, uncertain ones become
/// decisions in `DECISIONS.md`, and all others are refused: the draft passes `check`. Run it again on newer
/// documents; your edits are merged.
#[derive(clap::Args)]
pub struct InitArgs {
    /// Document of the version that clients use (Swagger 2.0 or OpenAPI 3.x, YAML or JSON)
    old: PathBuf,

    /// Document of the version that answers
    new: PathBuf,

    /// Folder of the pack; created if missing
    #[arg(default_value = "pack")]
    folder: PathBuf,

    /// Accept a proposal of `DECISIONS.md`; repeat for several
    #[arg(long, value_name = "ID")]
    accept: Vec<String>,

    /// Names of the two sides [default: the versions in the file names, else `old` and `new`]
    #[arg(long, value_name = "OLD,NEW", value_parser = parse_sides)]
    sides: Option<[String; 2]>,

    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: InitFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum InitFormat {
    Text,
    Markdown,
}

/// The folder with the last draft, which distinguishes generated text from edits, and with the
/// decisions.
pub(super) const BASE: &str = ".init";
/// The decisions in the order in which they were made, one a line: `ID` accepts a proposal, `ID: LINE`
/// resolves a difference, `ID: refuse OPERATION: TEXT` refuses an operation. A line that starts with
/// `+ ` belongs to the decision above it.
const ACCEPTED: &str = ".init/accepted";
/// The findings of `switchback learn` for tools, by which drafts rank their decisions.
pub(super) const LEARNED_JSON: &str = "LEARNED.json";
/// The mapping file with the operations that a person has refused.
const REFUSED: &str = "refused.map.yaml";
/// Most files around the document that are searched for the targets of its references.
const FILES_MAX: usize = 10_000;
const DEPTH_MAX: usize = 8;

pub fn run(args: &InitArgs) -> ExitCode {
    draft(args).unwrap_or_else(|error| fail(COULD_NOT_RUN, error))
}

fn draft(args: &InitArgs) -> io::Result<ExitCode> {
    let names = names(args);
    let sides = [side(&args.old, &names[0])?, side(&args.new, &names[1])?];
    let mut decided = read_decided(&args.folder);
    let new = args.accept.iter().filter(|id| !decided.contains(id)).cloned();
    decided.extend(new.collect::<BTreeSet<_>>());
    let pack = args.folder.file_name().map_or("pack".into(), |name| name.to_string_lossy());
    let shows = io::stderr().is_terminal();
    let mut progress = |what: &str| {
        if shows {
            eprintln!("{what} …");
        }
    };
    let drafted = match draft_pack(&pack, &args.folder, &sides, &decided, &mut progress) {
        Ok(drafted) => drafted,
        Err(compiled) => {
            eprint!("{}", to_text(&compiled.sources, &compiled.findings, Colour::Never));
            return Ok(ExitCode::from(HAS_FINDINGS));
        }
    };
    let unknown: Vec<&String> = args.accept.iter().filter(|id| !was_taken(id, &drafted)).collect();
    if let Some(id) = unknown.first() {
        return Err(io::Error::other(format!("`{id}` is no proposal of this draft: see DECISIONS.md")));
    }
    let kept = write(&args.folder, &sides, &drafted, &decided)?;
    warn_of_documents(&drafted);
    let said = summary(args, &drafted, &kept);
    print!("{said}");
    Ok(ExitCode::SUCCESS)
}

/// Drafts the pack of a folder, with the decisions made so far, ranked by the traffic that
/// `switchback learn` has seen.
///
/// # Errors
///
/// The findings, if one of the documents is not a contract.
pub(super) fn draft_pack(
    pack: &str,
    folder: &Path,
    sides: &[SideDocument; 2],
    decided: &[String],
    progress: &mut dyn FnMut(&str),
) -> Result<Draft, Box<Compiled>> {
    let mut own = own(folder);
    let accepted = decided.iter().map(|line| line.strip_prefix("+ ").unwrap_or(line).to_owned()).collect();
    let refused = refusals(&accepted, &sides[0].name);
    own.extend(refused.clone());
    let mut drafted = init::draft(pack, sides, &own, &accepted, progress)?;
    drafted.files.extend(refused);
    let learned = std::fs::read_to_string(folder.join(LEARNED_JSON)).ok();
    if let Some(uses) = learned.and_then(|learned| init::parse_uses(&learned)) {
        drafted.rank(uses);
    }
    Ok(drafted)
}

/// Renders the mapping file with the operations that a person has refused.
fn refusals(accepted: &BTreeSet<String>, side: &str) -> Option<(String, String)> {
    let (mut reasons, mut routes) = (String::new(), String::new());
    let lines = accepted.iter().filter_map(|line| line.split_once(": refuse ")?.1.split_once(": "));
    for (operation, text) in lines {
        let letters =
            operation.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
        let name: String = format!("refused_{}", letters.collect::<String>());
        // JSON texts are YAML.
        let [operation, text, side] = [operation, text, side].map(|text| serde_json::json!(text));
        reasons.push_str(&format!("  {name}: {{en: {text}}}\n"));
        routes.push_str(&format!("  - {{serve: {side}, at: {operation}, refuse: {name}}}\n"));
    }
    let text = format!("mapping: 1\nreasons:\n{reasons}routes:\n{routes}");
    (!routes.is_empty()).then(|| (REFUSED.to_owned(), text))
}

/// Prints what the compiler has found in the documents. They are not the user's to correct, but the
/// draft goes by what could be read of them.
fn warn_of_documents(drafted: &Draft) {
    let (sources, mut findings) = (&drafted.compiled.sources, drafted.compiled.findings.clone());
    findings.retain(|finding| sources.name(finding.span.file).starts_with("contracts/"));
    eprint!("{}", to_text(sources, &findings, Colour::Never));
}

/// Returns whether an accepted id was applied: it is a known decision and no longer a pending
/// proposal.
fn was_taken(id: &str, drafted: &Draft) -> bool {
    let waits = drafted.decisions.iter().any(|d| d.weight == Weight::Proposal && d.id == id);
    drafted.taken.contains(id) || (!waits && drafted.decisions.iter().any(|d| d.id == id))
}

/// Parses the names of the sides. They are words, because front prefixes and settings contain them.
fn parse_sides(text: &str) -> Result<[String; 2], String> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    };
    match text.split_once(',').map(|(old, new)| [old.trim(), new.trim()]) {
        Some(names @ [old, new]) if old != new && names.into_iter().all(is_name) => {
            Ok(names.map(str::to_owned))
        }
        _ => Err("two different names, such as `v1,v2`".to_owned()),
    }
}

/// Returns the names of the sides: `--sides`, else the version suffixes of the file names if they
/// differ, else `old` and `new`.
fn names(args: &InitArgs) -> [String; 2] {
    if let Some(names) = &args.sides {
        return names.clone();
    }
    let ending = |path: &Path| -> Option<String> {
        let stem = path.file_stem()?.to_string_lossy().into_owned();
        let last = stem.rsplit(['-', '_']).next()?.replace('.', "_");
        let name = if last.starts_with(|c: char| c.is_ascii_digit()) { format!("v{last}") } else { last };
        let is_version =
            name.len() > 1 && name.starts_with('v') && name[1..].starts_with(|c: char| c.is_ascii_digit());
        is_version.then_some(name)
    };
    match (ending(&args.old), ending(&args.new)) {
        (Some(old), Some(new)) if old != new => [old, new],
        _ => ["old".to_owned(), "new".to_owned()],
    }
}

/// Reads a document and the files that it refers to, for `contracts/NAME/`.
pub(super) fn side(document: &Path, name: &str) -> io::Result<SideDocument> {
    let named = |error: io::Error| io::Error::other(format!("{}: {error}", document.display()));
    let file = document.file_name().ok_or_else(|| named(io::Error::other("no file")))?.to_string_lossy();
    let bytes = std::fs::read(document).map_err(named)?;
    let folder = format!("contracts/{name}");
    let path = format!("{folder}/{file}");
    let mut around = Vec::new();
    // A document may lie in a large folder, which is read only if a reference needs it.
    if refers_to_files(&bytes) {
        let root = document.parent().filter(|parent| !parent.as_os_str().is_empty());
        collect(root.unwrap_or(Path::new(".")), &folder, 0, &mut around)?;
        around.retain(|(known, _)| *known != path);
    }
    let mut files = vec![(path.clone(), bytes)];
    if !around.is_empty() {
        files.extend(init::referenced_files(&path, &files[0].1, around));
    }
    let files = files.into_iter().map(|(name, bytes)| (name, bytes.into())).collect();
    Ok(SideDocument { name: name.to_owned(), document: path, files })
}

/// Returns whether any `$ref` refers to another file.
fn refers_to_files(bytes: &[u8]) -> bool {
    let found = memchr::memmem::find_iter(bytes, b"$ref");
    found.into_iter().any(|at| {
        // Enough for the quotes, the colon and the spaces before the target.
        let rest = &bytes[at + 4..bytes.len().min(at + 24)];
        let start = rest.iter().position(|b| !matches!(b, b'"' | b'\'' | b':' | b' '));
        start.is_some_and(|start| rest[start] != b'#')
    })
}

fn collect(folder: &Path, prefix: &str, depth: usize, files: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = entry.path();
        if name.starts_with('.') || files.len() >= FILES_MAX {
            continue;
        }
        if path.is_dir() && depth < DEPTH_MAX {
            collect(&path, &format!("{prefix}/{name}"), depth + 1, files)?;
        } else if [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending)) {
            files.push((format!("{prefix}/{name}"), std::fs::read(&path)?));
        }
    }
    Ok(())
}

pub(super) fn read_decided(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(ACCEPTED)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Returns the mapping files of the folder that no draft has generated.
fn own(folder: &Path) -> Vec<(String, String)> {
    let mut own = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.ends_with(MAPPING_SUFFIX)
            && !folder.join(BASE).join(&name).exists()
            && let Ok(text) = std::fs::read_to_string(entry.path())
        {
            own.push((name, text));
        }
    }
    own
}

/// Writes the draft, merged with the user's edits since the last draft. Returns the files with
/// merge conflicts, which are left unchanged.
pub(super) fn write(
    folder: &Path,
    sides: &[SideDocument; 2],
    drafted: &Draft,
    decided: &[String],
) -> io::Result<Vec<String>> {
    let mut conflicts = Vec::new();
    for (name, bytes) in sides.iter().flat_map(|side| &side.files) {
        put(&folder.join(name), bytes)?;
    }
    let base = folder.join(BASE);
    let mut drafts: BTreeMap<&str, &str> =
        drafted.files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    // Remove files that this draft no longer generates, unless the user has edited them.
    for entry in std::fs::read_dir(&base).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !drafts.contains_key(name.as_str()) && name != "accepted" {
            let (before, now) = (std::fs::read(entry.path())?, std::fs::read(folder.join(&name)));
            if now.is_ok_and(|now| now == before) {
                std::fs::remove_file(folder.join(&name))?;
            }
            std::fs::remove_file(entry.path())?;
        }
    }
    // Nobody edits the lists, so they are not merged.
    for name in [init::DECISIONS, init::DECISIONS_JSON] {
        if let Some(list) = drafts.remove(name) {
            put(&folder.join(name), list.as_bytes())?;
        }
    }
    for (name, text) in drafts {
        let (path, base) = (folder.join(name), base.join(name));
        let (now, before) = (std::fs::read_to_string(&path).ok(), std::fs::read_to_string(&base).ok());
        let merged = match (now, before) {
            (None, _) => Some((*text).to_owned()),
            // No edits since the last draft.
            (Some(now), Some(before)) if now == before => Some((*text).to_owned()),
            // The draft is unchanged: keep the edits.
            (Some(_), Some(before)) if before == *text => None,
            (Some(now), before) => match diffy::merge(&before.unwrap_or_default(), &now, text) {
                Ok(merged) => Some(merged),
                Err(_) => {
                    conflicts.push(name.to_owned());
                    put(&folder.join(BASE).join(format!("{name}.new")), text.as_bytes())?;
                    None
                }
            },
        };
        if let Some(merged) = merged {
            put(&path, merged.as_bytes())?;
        }
        // Also after a conflict: the next run must not merge the same lines again.
        put(&base, text.as_bytes())?;
    }
    let lines: String = decided.iter().map(|line| format!("{line}\n")).collect();
    if !lines.is_empty() || folder.join(ACCEPTED).exists() {
        put(&folder.join(ACCEPTED), lines.as_bytes())?;
    }
    Ok(conflicts)
}

fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, bytes).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

fn summary(args: &InitArgs, drafted: &Draft, conflicts: &[String]) -> String {
    let folder = args.folder.display();
    let counts = &drafted.counts;
    let mut text = match args.format {
        InitFormat::Markdown => drafted.summary.clone(),
        InitFormat::Text => format!(
            "{folder}: {} operations; {} served untouched, {} by sure lines, {} to be looked at, {} refused\n",
            counts.operations,
            counts.untouched,
            counts.written,
            counts.marked,
            counts.refused + counts.refused_by_lines
        ),
    };
    let of = |weight: Weight| drafted.decisions.iter().filter(|decision| decision.weight == weight).count();
    text.push_str(&format!(
        "{}{} decisions in {folder}/DECISIONS.md: {} blockers, {} proposals, {} to look at, {} changes\n",
        if args.format == InitFormat::Markdown { "\n" } else { "" },
        drafted.decisions.len(),
        of(Weight::Blocker),
        of(Weight::Proposal),
        of(Weight::Look),
        of(Weight::Changed)
    ));
    for name in conflicts {
        text.push_str(&format!(
            "{name}: you and the new draft changed the same lines; yours stay, the draft is {BASE}/{name}.new\n"
        ));
    }
    text
}
