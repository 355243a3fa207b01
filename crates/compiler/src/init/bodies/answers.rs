//! The lines that a person has chosen for the obstacles of a shape, in place of the drafted ones.

use super::ShapeDraft;
use super::spelled::quote;
use crate::init::decision::slug;
use std::mem::take;

/// An entry that a choice adds to a shape.
struct Entry<'l> {
    list: EntryList,
    /// The name of the member, and its value.
    text: &'l str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryList {
    Rename,
    /// Members of one side.
    Only(usize),
}

impl<'l> Entry<'l> {
    /// Parses `only: {SIDE: {ENTRY}}` or `rename: {ENTRY}`. The compiler checks the entry itself.
    fn parse(line: &'l str, names: [&str; 2]) -> Option<Entry<'l>> {
        if let Some(text) = line.strip_prefix("rename: {") {
            return Some(Entry { list: EntryList::Rename, text: text.strip_suffix('}')? });
        }
        [0, 1].into_iter().find_map(|side| {
            let text = line.strip_prefix(&format!("only: {{{}: {{", quote(names[side])))?;
            Some(Entry { list: EntryList::Only(side), text: text.strip_suffix("}}")? })
        })
    }

    /// Returns the member's name on each side that the entry has one of.
    fn members(&self) -> [Option<&'l str>; 2] {
        let Some((name, value)) = self.text.split_once(": ") else { return [None, None] };
        match self.list {
            EntryList::Only(0) => [Some(name), None],
            EntryList::Only(_) => [None, Some(name)],
            EntryList::Rename => {
                // The value is a name, or a map that begins with the side and the name.
                let inner = value.strip_prefix('{').and_then(|inner| inner.split_once(": "));
                let other = inner.map_or(value, |(_, rest)| rest.split([',', '}']).next().unwrap_or(rest));
                [Some(name), Some(other)]
            }
        }
    }
}

/// The value of a member that clients must not send.
const REFUSED: &str = ": {refuse: todo}";

impl ShapeDraft {
    /// Gives each obstacle its id, and applies the lines that answer them. `name` distinguishes the
    /// shape, since operations that share it share its obstacles.
    pub(super) fn answer<'l>(
        &mut self,
        name: &str,
        names: [&str; 2],
        answer: impl Fn(&str) -> Option<&'l str>,
    ) {
        for mut obstacle in take(&mut self.obstacles) {
            let subject = obstacle.text.split('`').nth(1).unwrap_or_default();
            obstacle.id = slug(&format!("{name} {subject}"));
            self.obstacles.push(obstacle);
        }
        let answered: Vec<_> = self
            .obstacles
            .iter()
            .filter_map(|obstacle| Some((obstacle.id.clone(), answer(&obstacle.id)?)))
            .collect();
        for (id, line) in answered {
            // The answer to another obstacle may have resolved this one.
            let Some(at) = self.obstacles.iter().position(|obstacle| obstacle.id == id) else { continue };
            let Some(chosen) = Entry::parse(line, names) else { continue };
            let first = self.obstacles.remove(at).choices.into_iter().next();
            if first.as_ref().is_some_and(|first| first.line == line) {
                continue;
            }
            if let Some(first) = first.as_ref().and_then(|first| Entry::parse(&first.line, names)) {
                self.remove(&first);
            }
            self.add(&chosen, names);
        }
    }

    fn list(&mut self, list: EntryList) -> &mut Vec<String> {
        match list {
            EntryList::Rename => &mut self.rename,
            EntryList::Only(0) => &mut self.only_old,
            EntryList::Only(_) => &mut self.only_new,
        }
    }

    fn remove(&mut self, entry: &Entry<'_>) {
        self.list(entry.list).retain(|known| known != entry.text);
        if let Some(name) = entry.text.strip_suffix(REFUSED) {
            self.refused.retain(|refused| quote(refused) != name);
        }
    }

    /// Adds an entry in place of all others about its members.
    fn add(&mut self, entry: &Entry<'_>, names: [&str; 2]) {
        for (side, name) in entry.members().into_iter().enumerate() {
            let Some(name) = name else { continue };
            let is_its = |text: &str| text.split_once(": ").is_some_and(|(known, _)| known == name);
            self.list(EntryList::Only(side)).retain(|known| !is_its(known));
            if side == 0 {
                self.refused.retain(|refused| quote(refused) != name);
            }
            self.obstacles.retain(|obstacle| {
                let first = obstacle.choices.first().and_then(|first| Entry::parse(&first.line, names));
                !first.is_some_and(|first| first.list == EntryList::Only(side) && is_its(first.text))
            });
        }
        if let Some(name) = entry.text.strip_suffix(REFUSED) {
            self.refused.push(name.trim_matches('\'').to_owned());
        }
        let [_, used] = entry.members();
        self.rest.retain(|name| used != Some(name.as_str()));
        self.renames |= entry.list == EntryList::Rename;
        self.list(entry.list).push(entry.text.to_owned());
    }
}
