//! The questions on a terminal: one decision at a time.

use super::question::{Answer, Question, questions};
use super::session::{DecideSession, SessionError};
use dialoguer::theme::{ColorfulTheme, SimpleTheme, Theme};
use dialoguer::{Confirm, Input, Select};
use std::collections::HashSet;
use std::io;

/// An entry of the menu.
enum MenuEntry {
    Give(Answer),
    /// Answers with a line that the user types.
    TypeLine,
    /// Refuses with a text that the user types.
    TypeReason,
    Undo,
    Quit,
}

/// Asks until no decision is open that was not skipped, or the user quits.
pub(super) fn ask(session: &mut DecideSession) -> Result<(), SessionError> {
    // Any value turns colours off (https://no-color.org).
    let is_coloured = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let (colours, plain) = (ColorfulTheme::default(), SimpleTheme);
    let theme: &dyn Theme = if is_coloured { &colours } else { &plain };
    let mut skipped: HashSet<String> = HashSet::new();
    loop {
        let open = questions(session.draft());
        let Some(question) = open.iter().find(|question| !skipped.contains(&question.ids[0])) else { break };
        eprint!("\n{}{}", session.summary(), question.render(session.sides()));
        match choose(session, question, theme)? {
            MenuEntry::Quit => break,
            MenuEntry::Undo => {
                let undone = session.undo()?.unwrap_or_default();
                // The decision is open again, so it is asked again.
                skipped.clear();
                eprintln!("taken back: {undone}");
            }
            MenuEntry::Give(Answer::Skip) => {
                skipped.insert(question.ids[0].clone());
            }
            MenuEntry::Give(answer) => give(session, question, &answer, theme, is_coloured)?,
            entry @ (MenuEntry::TypeLine | MenuEntry::TypeReason) => {
                let (prompt, verb) = match entry {
                    MenuEntry::TypeLine => ("line, such as `rename: {old: new}`", ""),
                    _ => ("text for clients", "refuse "),
                };
                let Some(typed) =
                    done(Input::<String>::with_theme(theme).with_prompt(prompt).interact_text())?
                else {
                    break;
                };
                match question.parse(&format!("{verb}{}", typed.trim())) {
                    Ok(answer) => give(session, question, &answer, theme, is_coloured)?,
                    Err(why) => eprintln!("{why}"),
                }
            }
        }
    }
    eprint!("\n{}", session.summary());
    Ok(())
}

fn choose(
    session: &DecideSession,
    question: &Question,
    theme: &dyn Theme,
) -> Result<MenuEntry, SessionError> {
    let mut menu: Vec<(String, MenuEntry)> = Vec::new();
    if let Some(proposal) = &question.proposal {
        menu.push((format!("Accept: {proposal}"), MenuEntry::Give(Answer::Accept)));
    }
    for choice in &question.choices {
        let label = format!("{}: {}", choice.label, choice.line);
        menu.push((label, MenuEntry::Give(Answer::Line(choice.line.clone()))));
    }
    if !question.choices.is_empty() {
        menu.push(("Write a line".to_owned(), MenuEntry::TypeLine));
    }
    if !question.operations.is_empty() {
        menu.push(("Refuse for good".to_owned(), MenuEntry::TypeReason));
    }
    menu.push(("Skip, or write a mapping file later".to_owned(), MenuEntry::Give(Answer::Skip)));
    if session.has_decided() {
        menu.push(("Undo the last decision".to_owned(), MenuEntry::Undo));
    }
    menu.push(("Quit".to_owned(), MenuEntry::Quit));
    let labels: Vec<&str> = menu.iter().map(|(label, _)| label.as_str()).collect();
    let prompt = Select::with_theme(theme).with_prompt("decision").items(&labels).default(0);
    let chosen = done(prompt.interact_opt())?.flatten();
    Ok(chosen.map_or(MenuEntry::Quit, |at| menu.swap_remove(at).1))
}

/// Previews an answer and writes it once it is confirmed. An answer that does not compile is
/// reported, and the decision stays open.
fn give(
    session: &mut DecideSession,
    question: &Question,
    answer: &Answer,
    theme: &dyn Theme,
    is_coloured: bool,
) -> Result<(), SessionError> {
    let next = match session.attempt(question, answer) {
        Ok(Some(next)) => next,
        Ok(None) => return Ok(()),
        Err(SessionError::Findings(why)) => {
            eprintln!("{why}");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    eprint!("{}", session.preview(&next, is_coloured));
    let confirm = Confirm::with_theme(theme).with_prompt("Write it?").default(true);
    if done(confirm.interact_opt())?.flatten() == Some(true) {
        match session.write(next) {
            Err(SessionError::Findings(why)) => eprintln!("{why}"),
            written => return written,
        }
    }
    Ok(())
}

/// Returns the result of a prompt; `None` if the user has interrupted it.
fn done<T>(result: dialoguer::Result<T>) -> io::Result<Option<T>> {
    match result.map_err(io::Error::from) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}
