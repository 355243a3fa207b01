//! `switchback decide`: goes through the open decisions of a drafted pack, on a terminal or with a
//! file of answers. Every answer drafts the pack again, so the pack compiles at any time.

mod question;
mod session;
mod terminal;

use self::question::{Question, questions};
use self::session::{DecideSession, SessionError};
use super::output::{COULD_NOT_RUN, HAS_FINDINGS};
use super::pack::fail;
use serde_json::json;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use switchback_compiler::diagnostic::did_you_mean;

/// Goes through the open decisions of a drafted pack, blockers first: shows the difference with its
/// places in both documents and the choices, previews the lines that a choice writes, and writes
/// them. Quit at any time: the next run continues.
#[derive(clap::Args)]
pub struct DecideArgs {
    /// Folder of the pack, as drafted by `switchback init`
    #[arg(default_value = "pack")]
    folder: PathBuf,

    /// Apply a file of answers, one a line: `ID: accept`, `ID: 1` (a choice), `ID: rename: {old: new}`
    /// (a line of your own), `ID: refuse TEXT` or `ID: skip`
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,

    /// List the open decisions with their choices
    #[arg(long, conflicts_with = "answers")]
    list: bool,

    /// Print all decisions with their choices as JSON
    #[arg(long, conflicts_with_all = ["answers", "list"])]
    json: bool,

    /// Take back the last decision
    #[arg(long, conflicts_with_all = ["answers", "list", "json"])]
    undo: bool,
}

/// Exit code: an answer that is none, or no terminal to answer on.
const USAGE: u8 = 2;

pub fn run(args: &DecideArgs) -> ExitCode {
    let asks = args.answers.is_none() && !args.list && !args.json && !args.undo;
    if asks && !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        let why =
            "this is no terminal to ask on; answer with `--answers FILE`, or see the decisions with `--list`";
        return fail(USAGE, why);
    }
    let done = DecideSession::open(&args.folder).and_then(|mut session| match &args.answers {
        Some(file) => apply_file(&mut session, file),
        None if args.undo => undo(&mut session),
        None if args.json => {
            println!("{:#}", to_json(&session));
            Ok(())
        }
        None if args.list => {
            print!("{}", to_text(&session));
            Ok(())
        }
        None => terminal::ask(&mut session),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(SessionError::Usage(why)) => fail(USAGE, why),
        Err(SessionError::Findings(why)) => fail(HAS_FINDINGS, why),
        Err(SessionError::Io(error)) => fail(COULD_NOT_RUN, error),
    }
}

/// Applies the answers of a file in their order.
fn apply_file(session: &mut DecideSession, file: &Path) -> Result<(), SessionError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let placed = |error: SessionError| error.prefix(&format!("{}:{}: ", file.display(), at + 1));
        let report = apply_line(session, line).map_err(placed)?;
        println!("{report}");
    }
    print!("{}", session.summary());
    Ok(())
}

/// Applies one `ID: ANSWER`, and returns a report.
fn apply_line(session: &mut DecideSession, line: &str) -> Result<String, SessionError> {
    let form = || SessionError::Usage(format!("`{line}` is not `ID: ANSWER`"));
    let (id, text) = line.split_once(": ").ok_or_else(form)?;
    let (id, text) = (id.trim(), text.trim());
    let open = questions(session.draft());
    let Some(question) = open.iter().find(|question| question.ids.iter().any(|known| known == id)) else {
        if session.is_decided(id) {
            return Ok(format!("{id}: decided before"));
        }
        let near = did_you_mean(id, open.iter().flat_map(|question| &question.ids));
        let near = near.unwrap_or_else(|| "see `--list`".to_owned());
        return Err(SessionError::Usage(format!("`{id}` is no open decision: {near}")));
    };
    let answer = question.parse(text).map_err(SessionError::Usage)?;
    let Some(next) = session.attempt(question, &answer)? else { return Ok(format!("{id}: skipped")) };
    session.write(next)?;
    Ok(format!("{id}: {text}"))
}

fn undo(session: &mut DecideSession) -> Result<(), SessionError> {
    let undone =
        session.undo()?.ok_or_else(|| SessionError::Usage("there is no decision to take back".to_owned()))?;
    print!("taken back: {undone}\n{}", session.summary());
    Ok(())
}

fn to_text(session: &DecideSession) -> String {
    let open = questions(session.draft());
    let mut text: String = open.iter().map(|question| question.render(session.sides()) + "\n").collect();
    text.push_str(&session.summary());
    text
}

/// Returns all decisions: the open ones with their answers, and those to review, without.
fn to_json(session: &DecideSession) -> serde_json::Value {
    let open = questions(session.draft());
    let all: Vec<_> = open.iter().map(Question::to_json).collect();
    let all_groups = session.draft().questions();
    let reviews = all_groups.iter().filter(|group| !group.is_open());
    json!({ "open": all, "review": reviews.collect::<Vec<_>>() })
}
