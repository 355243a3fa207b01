//! The losses of a shape in one direction.

use super::Direction;
use crate::contract::Narrowing;
use crate::diagnostic::Span;
use crate::mapping::ast::FieldPlace;
use switchback_plan::{Loss, Narrow, Origin, Raw};

/// Losses, in the order of the lines that cause them.
pub(super) struct Losses<'b> {
    way: Direction<'b>,
    pub all: Vec<Loss>,
}

impl<'b> Losses<'b> {
    pub(super) fn new(way: Direction<'b>) -> Losses<'b> {
        Losses { way, all: Vec::new() }
    }

    /// Records a place of the source that the target lacks.
    pub(super) fn lose(&mut self, place: &FieldPlace, span: Span) {
        self.lose_at(path(place), span);
    }

    pub(super) fn lose_at(&mut self, place: String, span: Span) {
        self.add(self.way.from, place, None, false, span);
    }

    /// Records a partial loss: some values of a place, or their spelling.
    pub(super) fn lose_partly(&mut self, place: String, span: Span) {
        // Report each place once, even if it loses both spellings and values.
        if !self.all.iter().any(|loss| loss.partly && loss.place == place) {
            self.add(self.way.from, place, None, true, span);
        }
    }

    /// Records a field with a fixed value.
    pub(super) fn always(&mut self, place: &FieldPlace, value: &Raw, span: Span) {
        let instead = Some(String::from_utf8_lossy(value).into_owned());
        self.add(self.way.to, path(place), instead, false, span);
    }

    fn add(&mut self, side: usize, place: String, instead: Option<String>, partly: bool, span: Span) {
        let (side, origin) = (self.way.world.side(side).to_owned(), self.way.world.origin(span));
        self.all.push(Loss { side, place, instead, unless_found: false, partly, narrow: None, origin });
    }

    /// Records values that the contract of the target does not accept.
    pub(super) fn narrow(
        &mut self,
        narrowings: &[Narrowing],
        source: &FieldPlace,
        target: &FieldPlace,
        span: Span,
    ) {
        let Direction { world, from, to } = self.way;
        for narrowing in narrowings {
            let (side, place) = if narrowing.is_of_target { (to, target) } else { (from, source) };
            let side = world.side(side).to_owned();
            self.all.push(lost(narrowing, side, &path(place), world.origin(span)));
        }
    }

    /// Moves the losses recorded since `mark` into the single element of a list at `list`.
    /// Depending on the direction, these are losses of the source or replacements in the target.
    pub(super) fn move_into_list(&mut self, mark: usize, list: &FieldPlace) {
        let (list, reads) = (path(list), self.way.to == 0);
        for found in self.all[mark..].iter_mut().filter(|found| found.instead.is_none() == reads) {
            found.place.insert_str(list.len(), "[*]");
        }
    }
}

/// Converts a narrowing to a loss of the value at `place`.
pub(in crate::mapping) fn lost(narrowing: &Narrowing, side: String, place: &str, origin: Origin) -> Loss {
    Loss {
        side,
        place: format!("{place}{}", &narrowing.path[1..]),
        instead: None,
        unless_found: false,
        partly: true,
        narrow: Some(Narrow {
            values: narrowing.values.clone(),
            only_in: narrowing.only_in,
            is_of_target: narrowing.is_of_target,
        }),
        origin,
    }
}

/// Returns a place as a path from the value, such as `$.a.b`.
pub(super) fn path(place: &FieldPlace) -> String {
    place.0.iter().fold("$".to_owned(), |path, name| {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit());
        // `*` means all undeclared members, not one with this name.
        if plain || name == "*" {
            format!("{path}.{name}")
        } else {
            format!("{path}['{}']", name.replace('\'', "\\'"))
        }
    })
}
