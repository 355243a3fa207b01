//! Matches the fields of two objects. Counterparts are certain: an equal name, a name that differs
//! only in spelling, or an equal description of a compatible value; one side may wrap all fields in
//! an object. Guesses have a score and a reason, and are used only if accepted. A guess requires
//! descriptions on both sides, because guesses without them were wrong when reviewed.

use super::descriptions::Descriptions;
use crate::contract::{Field, Object, Scalar, TypeIn, TypeKind, Types};
use std::collections::{BTreeSet, HashMap};

/// A place in an object: the name of a member, or of a member nested in it.
pub(super) type FieldPath = Vec<String>;

/// A pair of corresponding fields.
pub(super) struct Both<'t> {
    pub places: [FieldPath; 2],
    pub fields: [&'t Field; 2],
    /// The enclosing field of each side, if any.
    pub around: [Option<&'t Field>; 2],
    /// Set if the match is based on descriptions rather than names.
    pub is_said: bool,
}

/// A field of the old side with a possible counterpart on the new side.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Guess {
    /// Id for `--accept`.
    pub id: String,
    pub places: [FieldPath; 2],
    /// From 0 to 1.
    pub score: f64,
    pub why: String,
}

/// The matched fields of two objects.
#[derive(Default)]
pub(super) struct FieldPairing<'t> {
    pub both: Vec<Both<'t>>,
    pub only: [Vec<(FieldPath, &'t Field)>; 2],
    /// Best first.
    pub guesses: Vec<Guess>,
    /// Ids of accepted guesses, which are included in `both`.
    pub taken: BTreeSet<String>,
    /// The names that they relate.
    pub renamed: Vec<[String; 2]>,
}

/// Input other than the two objects.
pub(super) struct FieldContext<'k> {
    /// Name of the old side's type, for ids.
    pub name: &'k str,
    pub accepted: &'k BTreeSet<String>,
    pub descriptions: &'k Descriptions<'k>,
    /// Whether to remove an object that wraps fields of one side.
    pub unwraps: bool,
    /// Old and new names of members that a person has related in one type. They hold in the others.
    pub siblings: &'k BTreeSet<[String; 2]>,
    /// Returns whether a value of the two types is compatible without a conversion.
    pub fits: &'k dyn Fn([TypeIn<'_>; 2]) -> bool,
}

/// Minimum score of a guess.
const SCORE_MIN: f64 = 0.55;
/// Minimum distance to the second-best score, on both sides.
const MARGIN: f64 = 0.12;
/// Maximum number of unmatched fields of one side. There are no guesses above it.
const GUESSED_MAX: usize = 200;

pub(super) fn pair<'t>(
    objects: [&'t Object; 2],
    types: [&'t Types; 2],
    known: &FieldContext<'_>,
) -> FieldPairing<'t> {
    // A wrapper explains all fields at once, so it takes precedence over individual matches.
    if let Some(pairing) = known.unwraps.then(|| pair_unwrapped(objects, types)).flatten() {
        return pairing;
    }
    let mut pairing = same(objects);
    said_alike(objects, types, known, &mut pairing);
    if known.unwraps {
        pair_moved(objects, types, known, &mut pairing);
    }
    let all = guesses(objects, &pairing, types, known);
    for guess in all {
        match known.accepted.contains(&guess.id).then(|| accept(&guess, objects, types, &mut pairing)) {
            Some(true) => {
                if let [[old], [new]] = guess.places.each_ref().map(Vec::as_slice) {
                    pairing.renamed.push([old.clone(), new.clone()]);
                }
                pairing.taken.insert(guess.id);
            }
            _ => pairing.guesses.push(guess),
        }
    }
    pair_siblings(objects, types, known, &mut pairing);
    pairing
}

/// Matches fields by equal names, otherwise by names that differ only in spelling.
pub(super) fn same<'t>([old, new]: [&'t Object; 2]) -> FieldPairing<'t> {
    let mut pairing = FieldPairing::default();
    let mut by_spelling: HashMap<String, Vec<&'t Field>> = HashMap::new();
    for field in &new.fields {
        by_spelling.entry(spelling(&field.name)).or_default().push(field);
    }
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    let names: BTreeSet<&str> = old.fields.iter().map(|field| field.name.as_str()).collect();
    for field in &old.fields {
        let spelt = || match by_spelling.get(&spelling(&field.name)).map(Vec::as_slice) {
            // An exact match with another field of the old side takes precedence.
            Some([only]) if !names.contains(only.name.as_str()) => Some(*only),
            _ => None,
        };
        match new.field(&field.name).or_else(spelt).filter(|other| taken.insert(&other.name)) {
            Some(other) => pairing.both.push(Both {
                places: [vec![field.name.clone()], vec![other.name.clone()]],
                fields: [field, other],
                around: [None, None],
                is_said: false,
            }),
            None => pairing.only[0].push((vec![field.name.clone()], field)),
        }
    }
    let left = new.fields.iter().filter(|field| !taken.contains(field.name.as_str()));
    pairing.only[1] = left.map(|field| (vec![field.name.clone()], field)).collect();
    pairing
}

/// Matches members that a person has related in another type.
fn pair_siblings<'t>(
    objects: [&'t Object; 2],
    types: [&'t Types; 2],
    known: &FieldContext<'_>,
    pairing: &mut FieldPairing<'t>,
) {
    for names in known.siblings {
        let [Some(old), Some(new)] = [0, 1].map(|side| objects[side].field(&names[side])) else { continue };
        let fields = [old, new];
        let are_open = [0, 1].iter().all(|side| {
            pairing.only[*side]
                .iter()
                .any(|(place, open)| place.len() == 1 && std::ptr::eq(*open, fields[*side]))
        });
        if are_open && same_kind([types[0].at(&old.ty), types[1].at(&new.ty)]) {
            let places = fields.map(|field| vec![field.name.clone()]);
            pairing.guesses.retain(|guess| !(0..2).any(|side| guess.places[side] == places[side]));
            pairing.join(places, fields, [None, None]);
        }
    }
}

/// Names that members of unrelated objects share.
const COMMON_WORDS: &[&str] = &[
    "type",
    "status",
    "state",
    "value",
    "title",
    "description",
    "date",
    "time",
    "amount",
    "created",
    "updated",
    "data",
    "key",
    "label",
    "number",
    "version",
    "size",
    "kind",
    "email",
    "address",
    "user",
    "owner",
];

/// Matches members that were moved into an object that the other side does not have, or out of it:
/// the same name and a compatible value, and no other place of that name on either side.
fn pair_moved<'t>(
    objects: [&'t Object; 2],
    types: [&'t Types; 2],
    known: &FieldContext<'_>,
    pairing: &mut FieldPairing<'t>,
) {
    if pairing.only.iter().any(|only| only.len() > GUESSED_MAX) {
        return;
    }
    for flat in [0, 1] {
        let nested = 1 - flat;
        let (mut found, mut left) = (Vec::new(), Vec::new());
        for (at, outer) in pairing.only[nested].iter().filter(|(at, _)| at.len() == 1) {
            let TypeKind::Object(inner) = types[nested].resolve(&outer.ty).kind else { continue };
            let moved: Vec<[&'t Field; 2]> = pairing.only[flat]
                .iter()
                .filter(|(at, _)| at.len() == 1)
                .filter_map(|(_, field)| Some([*field, inner.field(&field.name)?]))
                .filter(|[field, within]| {
                    let sorted = if flat == 0 { [*field, *within] } else { [*within, *field] };
                    let kinds = [types[0].at(&sorted[0].ty), types[1].at(&sorted[1].ty)];
                    is_flat(kinds) && same_kind(kinds) && (known.fits)(kinds)
                })
                .filter(|[field, _]| places_of(&field.name, objects[nested], types[nested]) == 1)
                .collect();
            // One common name may be a coincidence.
            let is_own = |name: &str| {
                let words = name_words(name);
                let is_common = |word: &String| {
                    COMMON_WORDS.contains(&word.as_str())
                        || FORM_WORDS.iter().any(|group| group.split(' ').any(|one| one == word))
                };
                !words.iter().all(is_common)
            };
            if moved.len() >= 2 || matches!(moved.as_slice(), [[field, _]] if is_own(&field.name)) {
                let others = inner
                    .fields
                    .iter()
                    .filter(|within| !moved.iter().any(|[_, known]| std::ptr::eq(*known, *within)));
                left.extend(others.map(|within| (vec![at[0].clone(), within.name.clone()], within)));
                found.extend(moved.iter().map(|fields| (at[0].clone(), *outer, *fields)));
            }
        }
        pairing.only[nested].extend(left);
        for (name, outer, [field, within]) in found {
            let (mut places, mut fields, mut around) = (
                [vec![field.name.clone()], vec![name, within.name.clone()]],
                [field, within],
                [None, Some(outer)],
            );
            if flat == 1 {
                places.reverse();
                fields.reverse();
                around.reverse();
            }
            pairing.join(places, fields, around);
        }
    }
}

/// Returns the number of places of a name in an object and in its objects.
fn places_of(name: &str, object: &Object, types: &Types) -> usize {
    let within = object.fields.iter().filter(|field| match types.resolve(&field.ty).kind {
        TypeKind::Object(inner) => inner.field(name).is_some(),
        _ => false,
    });
    usize::from(object.field(name).is_some()) + within.count()
}

impl<'t> FieldPairing<'t> {
    /// Moves two one-sided members, or objects around them, to the counterparts.
    fn join(&mut self, places: [FieldPath; 2], fields: [&'t Field; 2], around: [Option<&'t Field>; 2]) {
        for side in [0, 1] {
            let outer = around[side].unwrap_or(fields[side]);
            self.only[side].retain(|(_, open)| !std::ptr::eq(*open, outer));
        }
        self.both.push(Both { places, fields, around, is_said: false });
    }
}

/// Minimum number of words in a description that identifies a field.
const SAID_MIN: usize = 3;

/// Matches unmatched fields with equal descriptions and compatible values. The description must be
/// unique among the fields of each type.
fn said_alike<'t>(
    objects: [&'t Object; 2],
    types: [&'t Types; 2],
    known: &FieldContext<'_>,
    pairing: &mut FieldPairing<'t>,
) {
    if pairing.only.iter().any(|only| only.is_empty() || only.len() > GUESSED_MAX) {
        return;
    }
    let by_words: [HashMap<Vec<String>, Vec<&Field>>; 2] = [0, 1].map(|side| {
        let mut by_words: HashMap<_, Vec<_>> = HashMap::new();
        for field in &objects[side].fields {
            if let Some(words) = description_words(field, types[side], known) {
                by_words.entry(words).or_default().push(field);
            }
        }
        by_words
    });
    let is_open =
        |side: usize, field: &Field| pairing.only[side].iter().any(|(_, open)| std::ptr::eq(*open, field));
    let mut found = Vec::new();
    for (words, old) in &by_words[0] {
        let ([old], Some([new])) = (old.as_slice(), by_words[1].get(words).map(Vec::as_slice)) else {
            continue;
        };
        let kinds = [types[0].at(&old.ty), types[1].at(&new.ty)];
        let are_open = is_open(0, old) && is_open(1, new);
        if are_open
            && is_flat(kinds)
            && same_kind(kinds)
            && !is_written_otherwise(old, new)
            && (known.fits)(kinds)
        {
            found.push([*old, *new]);
        }
    }
    // In text order, independent of the order of the hash map.
    found.sort_by_key(|[old, _]| old.span.start);
    for fields in found {
        for side in [0, 1] {
            pairing.only[side].retain(|(_, open)| !std::ptr::eq(*open, fields[side]));
        }
        let places = fields.map(|field| vec![field.name.clone()]);
        pairing.both.push(Both { places, fields, around: [None, None], is_said: true });
    }
}

/// Returns the words of a description in order, without enumerated values.
fn description_words(field: &Field, types: &Types, known: &FieldContext<'_>) -> Option<Vec<String>> {
    let text = known.descriptions.of_field(field)?;
    let listed: BTreeSet<String> = match types.resolve(&field.ty).kind {
        TypeKind::Scalar(Scalar { values: Some(values), .. }) => {
            values.values.iter().flat_map(|value| words_in_order(&value.to_string())).collect()
        }
        _ => BTreeSet::new(),
    };
    let words: Vec<String> = words_in_order(text).into_iter().filter(|word| !listed.contains(word)).collect();
    (words.len() >= SAID_MIN).then_some(words)
}

/// Returns whether both types are scalars or lists of scalars. The description of an object is not
/// specific enough.
fn is_flat(types: [TypeIn<'_>; 2]) -> bool {
    types.into_iter().all(|ty| match ty.kind() {
        TypeKind::Scalar(_) => true,
        TypeKind::Array(array) => {
            matches!(ty.types.resolve(&array.items).kind, TypeKind::Scalar(_))
        }
        _ => false,
    })
}

/// Words in names that determine the notation of a value: its unit, the polarity of a switch, the
/// kind of identifier. If two names differ in such a word, the fields have different values even if
/// their descriptions are equal. Grouped by topic.
const FORM_WORDS: &[&str] = &[
    "ms millis milliseconds s sec secs seconds min mins minutes hours days weeks months years us ns",
    "cents minor major micros",
    "b bytes kb mb gb kib mib gib",
    "percent percentage pct rate ratio fraction",
    "utc local unix epoch timestamp iso",
    "decimal float raw hex base64 encoded escaped encrypted hash hashed html markdown text json xml",
    "km m cm mm miles kg g grams lbs celsius fahrenheit",
    "max count total net gross",
    "old new previous next first last from to start end",
    "not no disable disabled enable enabled exclude include excluded included without with",
    "url uri uuid guid slug code id name",
];

/// Returns whether the names imply different notations.
fn is_written_otherwise(old: &Field, new: &Field) -> bool {
    let [a, b] = [old, new].map(|field| name_words(&field.name));
    let is_of_form = |word: &str| FORM_WORDS.iter().any(|group| group.split(' ').any(|one| one == word));
    a.symmetric_difference(&b).any(|word| is_of_form(word))
}

/// Matches `{details: {a, b}}` with `{a, b}`: all fields of one side are in a single member.
fn pair_unwrapped<'t>(objects: [&'t Object; 2], types: [&'t Types; 2]) -> Option<FieldPairing<'t>> {
    let wrapping = (0..2).find(|side| objects[*side].fields.len() == 1)?;
    let wrapper = &objects[wrapping].fields[0];
    let bare = objects[1 - wrapping];
    let TypeKind::Object(inner) = types[wrapping].resolve(&wrapper.ty).kind else { return None };
    // A field with the wrapper's name is the counterpart of the wrapper.
    if bare.fields.iter().any(|field| spelling(&field.name) == spelling(&wrapper.name)) {
        return None;
    }
    let sorted = if wrapping == 0 { [inner, bare] } else { [bare, inner] };
    let mut pairing = same(sorted);
    // A single common field may be a coincidence; require at least two, and half of all fields.
    let enough = pairing.both.len() >= 2 || (inner.fields.len() == 1 && bare.fields.len() == 1);
    if !enough || pairing.both.len() * 2 < bare.fields.len().max(inner.fields.len()) {
        return None;
    }
    for both in &mut pairing.both {
        both.places[wrapping].insert(0, wrapper.name.clone());
        both.around[wrapping] = Some(wrapper);
    }
    for (place, _) in &mut pairing.only[wrapping] {
        place.insert(0, wrapper.name.clone());
    }
    Some(pairing)
}

/// Adds an accepted guess to the counterparts.
fn accept<'t>(
    guess: &Guess,
    objects: [&'t Object; 2],
    types: [&'t Types; 2],
    pairing: &mut FieldPairing<'t>,
) -> bool {
    let found: Vec<_> =
        (0..2).filter_map(|side| at(objects[side], types[side], &guess.places[side])).collect();
    let [(old, around_old), (new, around_new)] = found.as_slice() else { return false };
    pairing.both.push(Both {
        places: guess.places.clone(),
        fields: [old, new],
        around: [*around_old, *around_new],
        is_said: false,
    });
    // The fields are no longer one-sided.
    for side in [0, 1] {
        pairing.only[side].retain(|(place, _)| *place != guess.places[side]);
    }
    true
}

fn at<'t>(object: &'t Object, types: &'t Types, place: &FieldPath) -> Option<(&'t Field, Option<&'t Field>)> {
    let first = object.field(place.first()?)?;
    let Some(name) = place.get(1) else { return Some((first, None)) };
    let TypeKind::Object(inner) = types.resolve(&first.ty).kind else { return None };
    Some((inner.field(name)?, Some(first)))
}

/// An unmatched field.
struct ObservedField<'t> {
    place: FieldPath,
    field: &'t Field,
    name: BTreeSet<String>,
    letters: String,
    says: BTreeSet<String>,
}

fn guesses(
    objects: [&Object; 2],
    pairing: &FieldPairing<'_>,
    types: [&Types; 2],
    known: &FieldContext<'_>,
) -> Vec<Guess> {
    let sizes = [0, 1].map(|side| pairing.only[side].len());
    // There is no unmatched field, or too many.
    if sizes == [0, 0] || sizes.iter().any(|size| *size > GUESSED_MAX) {
        return Vec::new();
    }
    let see = |side: usize, place: FieldPath, field: &'_ Field| {
        let text = known.descriptions.get(types[side], field)?;
        let says = words(text);
        (says.len() >= 2).then_some((place, says))
    };
    let open = |side: usize| -> Vec<ObservedField<'_>> {
        let all = pairing.only[side].iter();
        all.filter_map(|(place, field)| {
            let (place, says) = see(side, place.clone(), field)?;
            Some(observe_field(place, field, says))
        })
        .collect()
    };
    let opens = [open(0), open(1)];
    let mut found = likely(&opens, types, known);
    for side in [0, 1] {
        // Look for a field of the same name in the objects of the other side.
        let taken: BTreeSet<FieldPath> = found.iter().map(|guess| guess.places[side].clone()).collect();
        let other = 1 - side;
        let within = objects[other].fields.iter().filter_map(|outer| {
            let TypeKind::Object(object) = types[other].resolve(&outer.ty).kind else { return None };
            Some((outer, object))
        });
        let within: Vec<_> = within.collect();
        for one in opens[side].iter().filter(|one| !taken.contains(&one.place) && one.place.len() == 1) {
            let mut hits = Vec::new();
            for (outer, object) in &within {
                for inner in &object.fields {
                    if spelling(&inner.name) != spelling(&one.field.name) {
                        continue;
                    }
                    let place = vec![outer.name.clone(), inner.name.clone()];
                    // A nested field that both sides have is its own counterpart.
                    if at(objects[side], types[side], &place).is_some() {
                        continue;
                    }
                    let Some((place, says)) = see(other, place, inner) else { continue };
                    let kinds = [types[side].at(&one.field.ty), types[other].at(&inner.ty)];
                    let agree = agreement(&one.says, &says);
                    if same_kind(kinds) && agree >= 0.4 {
                        hits.push((place, agree));
                    }
                }
            }
            // Several candidates are ambiguous.
            if let [(place, agree)] = hits.as_slice() {
                let mut places = [one.place.clone(), place.clone()];
                if side == 1 {
                    places.reverse();
                }
                let why = format!(
                    "the same name within `{}`, the same kind, descriptions agree by {:.0} %",
                    place[0],
                    agree * 100.0
                );
                found.push(guess(known.name, places, 0.4 + 0.5 * agree, why));
            }
        }
    }
    found.retain(|guess| guess.score >= SCORE_MIN);
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.id.cmp(&b.id)));
    found
}

fn observe_field<'t>(place: FieldPath, field: &'t Field, says: BTreeSet<String>) -> ObservedField<'t> {
    let name = name_words(&field.name);
    ObservedField { place, field, letters: spelling(&field.name), name, says }
}

/// Returns the pairs that have the best score on both sides, with a margin.
fn likely(opens: &[Vec<ObservedField<'_>>; 2], types: [&Types; 2], known: &FieldContext<'_>) -> Vec<Guess> {
    let [old, new] = opens;
    let scores: Vec<Vec<Option<Score>>> =
        old.iter().map(|a| new.iter().map(|b| score(a, b, types)).collect()).collect();
    let of = |i: usize, j: usize| scores[i][j].as_ref().map_or(0.0, |score| score.all);
    let mut found = Vec::new();
    for (i, a) in old.iter().enumerate() {
        let Some(j) = best((0..new.len()).map(|j| of(i, j))) else { continue };
        if best((0..old.len()).map(|i| of(i, j))) != Some(i) {
            continue;
        }
        if let Some(score) = &scores[i][j] {
            let places = [a.place.clone(), new[j].place.clone()];
            found.push(guess(known.name, places, score.all, score.why()));
        }
    }
    found
}

/// Returns the index of the best score, if it reaches the minimum and the margin.
fn best(scores: impl Iterator<Item = f64>) -> Option<usize> {
    let (mut first, mut second): (Option<(usize, f64)>, f64) = (None, 0.0);
    for (at, score) in scores.enumerate() {
        match first {
            Some((_, most)) if score <= most => second = second.max(score),
            _ => {
                second = first.map_or(0.0, |(_, most)| most);
                first = Some((at, score));
            }
        }
    }
    first.filter(|(_, most)| *most >= SCORE_MIN && most - second >= MARGIN).map(|(at, _)| at)
}

struct Score {
    all: f64,
    name: f64,
    says: f64,
    values: Option<f64>,
}

impl Score {
    fn why(&self) -> String {
        let values = self.values.map(|share| format!(", values by {:.0} %", share * 100.0));
        format!(
            "the same kind; names agree by {:.0} %, descriptions by {:.0} %{}",
            self.name * 100.0,
            self.says * 100.0,
            values.unwrap_or_default()
        )
    }
}

fn score(a: &ObservedField<'_>, b: &ObservedField<'_>, types: [&Types; 2]) -> Option<Score> {
    let kinds = [types[0].at(&a.field.ty), types[1].at(&b.field.ty)];
    if !same_kind(kinds) {
        return None;
    }
    // The third power lowers the score of names that are only vaguely similar.
    let name = dice(&a.name, &b.name).max(strsim::jaro_winkler(&a.letters, &b.letters).powi(3));
    let says = agreement(&a.says, &b.says);
    let values = shared_values(kinds);
    let all = match values {
        Some(share) => 0.4 * name + 0.35 * says + 0.25 * share,
        None => 0.5 * name + 0.5 * says,
    };
    Some(Score { all, name, says, values })
}

fn guess(ty: &str, places: [FieldPath; 2], score: f64, why: String) -> Guess {
    let text = [vec![ty.to_owned()], places[0].clone(), places[1].clone()].concat().join("-");
    Guess { id: super::decision::slug(&text), places, score: score.min(1.0), why }
}

/// Returns whether both types have the same kind: scalars of the same JSON kind and format, lists
/// of the same kind, or types with equal JSON kinds.
pub(super) fn same_kind(types: [TypeIn<'_>; 2]) -> bool {
    let [a, b] = types.map(|ty| ty.kind());
    match (a, b) {
        (TypeKind::Any, _) | (_, TypeKind::Any) => false,
        (TypeKind::Array(a), TypeKind::Array(b)) => {
            same_kind([types[0].types.at(&a.items), types[1].types.at(&b.items)])
        }
        (TypeKind::Scalar(a), TypeKind::Scalar(b)) => a.kind.json() == b.kind.json() && a.format == b.format,
        _ => {
            let kinds = types.map(|ty| ty.types.json_kinds(ty.ty));
            kinds[0] == kinds[1]
        }
    }
}

/// Returns the share of common values of two enumerations. Returns `None` if one is not an
/// enumeration.
fn shared_values(types: [TypeIn<'_>; 2]) -> Option<f64> {
    let [a, b] = types.map(|ty| match ty.kind() {
        TypeKind::Scalar(Scalar { values: Some(values), .. }) => {
            Some(values.values.iter().map(ToString::to_string).collect::<BTreeSet<String>>())
        }
        _ => None,
    });
    Some(dice(&a?, &b?))
}

fn dice(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    2.0 * a.intersection(b).count() as f64 / (a.len() + b.len()) as f64
}

/// Returns the agreement of two descriptions. A description contained in a longer one scores at
/// least 0.75.
fn agreement(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let least = a.len().min(b.len()).max(1);
    let within = a.intersection(b).count() as f64 / least as f64;
    dice(a, b).max(0.75 * within)
}

/// Splits a name such as `isBound` or `is_bound` into words.
fn name_words(name: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        // A capital letter after a lower-case one starts a word.
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.insert(std::mem::take(&mut word));
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    words.insert(word);
    words.remove("");
    words
}

/// Returns the significant words of a description.
pub(super) fn words(text: &str) -> BTreeSet<String> {
    words_in_order(text).into_iter().collect()
}

/// Returns the significant words of a description in order.
fn words_in_order(text: &str) -> Vec<String> {
    const EMPTY: &[&str] = &[
        "the", "and", "for", "that", "this", "with", "from", "are", "can", "will", "not", "you", "your",
        "has", "have", "was", "its", "may", "any", "all", "when", "which", "true", "false", "value", "field",
        "object", "possible", "values", "use", "used",
    ];
    // Bound the cost of long descriptions.
    let all = text.split(|c: char| !c.is_alphanumeric()).take(400).map(str::to_lowercase);
    all.filter(|word| word.len() > 2 && !EMPTY.contains(&word.as_str())).collect()
}

/// Normalizes a name: removes separators, case, and the prefix `is`.
pub(super) fn spelling(name: &str) -> String {
    let letters: String =
        name.chars().filter(|c| !matches!(c, '_' | '-' | '.')).flat_map(char::to_lowercase).collect();
    match letters.strip_prefix("is") {
        // Only before a separator or a capital letter: `issue` has no prefix `is`.
        Some(rest)
            if rest.len() > 2
                && name.len() > 3
                && name[2..].starts_with(|c: char| c == '_' || c.is_uppercase()) =>
        {
            rest.to_owned()
        }
        _ => letters,
    }
}
