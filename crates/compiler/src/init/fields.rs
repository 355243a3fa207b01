//! What the fields of an object have become. Counterparts are sure: the same name, or the same but for spelling; the same
//! description of a value that goes over as it is; an object around all of them that is there on one side only. Guesses have a
//! score and a reason, and are written only on demand. A guess wants descriptions on both sides: without them guesses were
//! wrong when they were looked at.

use super::descriptions::Descriptions;
use crate::contract::{Field, Object, Scalar, TypeIn, TypeKind, Types};
use std::collections::{BTreeSet, HashMap};

/// A place of an object: the name of a member, or of one within it.
pub(super) type Place = Vec<String>;

/// Two fields that are one.
pub(super) struct Both<'t> {
    pub places: [Place; 2],
    pub fields: [&'t Field; 2],
    /// Around the field of each side, where it lies within one.
    pub around: [Option<&'t Field>; 2],
    /// Whether it is their descriptions that say so, and not their names.
    pub is_said: bool,
}

/// A field of the old side that may be one of the new side.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Guess {
    /// For `--accept`.
    pub id: String,
    pub places: [Place; 2],
    /// From 0 to 1.
    pub score: f64,
    pub why: String,
}

/// All fields of two objects.
#[derive(Default)]
pub(super) struct Pairing<'t> {
    pub both: Vec<Both<'t>>,
    pub only: [Vec<(Place, &'t Field)>; 2],
    /// Best first.
    pub guesses: Vec<Guess>,
    /// Ids of guesses that a person took, and that are among `both` now.
    pub taken: BTreeSet<String>,
}

/// What is known beside the two objects.
pub(super) struct Known<'k> {
    /// Name of the old side's type, for ids.
    pub name: &'k str,
    pub accepted: &'k BTreeSet<String>,
    pub descriptions: &'k Descriptions<'k>,
    /// Whether an object around all fields of one side is taken away.
    pub unwraps: bool,
    /// Whether a value of the two sides goes over as it is.
    pub fits: &'k dyn Fn([TypeIn<'_>; 2]) -> bool,
}

/// Guesses below are not shown.
const SCORE_MIN: f64 = 0.55;
/// How much better than the next one a guess must be, on both sides.
const MARGIN: f64 = 0.12;
/// Fields of one side that guesses are made of; beyond, there are none.
const GUESSED_MAX: usize = 200;

pub(super) fn pair<'t>(objects: [&'t Object; 2], types: [&'t Types; 2], known: &Known<'_>) -> Pairing<'t> {
    if let Some(pairing) = known.unwraps.then(|| unwrapped(objects, types)).flatten() {
        return pairing;
    }
    let mut pairing = same(objects);
    said_alike(objects, types, known, &mut pairing);
    let all = guesses(objects, &pairing, types, known);
    for guess in all {
        match known.accepted.contains(&guess.id).then(|| accept(&guess, objects, types, &mut pairing)) {
            Some(true) => {
                pairing.taken.insert(guess.id);
            }
            _ => pairing.guesses.push(guess),
        }
    }
    pairing
}

/// Fields of one name, and of one name but for spelling.
pub(super) fn same<'t>([old, new]: [&'t Object; 2]) -> Pairing<'t> {
    let mut pairing = Pairing::default();
    let mut by_spelling: HashMap<String, Vec<&'t Field>> = HashMap::new();
    for field in &new.fields {
        by_spelling.entry(spelling(&field.name)).or_default().push(field);
    }
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    let names: BTreeSet<&str> = old.fields.iter().map(|field| field.name.as_str()).collect();
    for field in &old.fields {
        let spelt = || match by_spelling.get(&spelling(&field.name)).map(Vec::as_slice) {
            // What the old side has under the same name is that field's.
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

/// Words that a description must have to be of one field and no other.
const SAID_MIN: usize = 3;

/// Fields that are gone on one side and new on the other, of which both documents say the same in the same words, and whose
/// value goes over as it is. No other field of the two types may be described so.
fn said_alike<'t>(
    objects: [&'t Object; 2],
    types: [&'t Types; 2],
    known: &Known<'_>,
    pairing: &mut Pairing<'t>,
) {
    if pairing.only.iter().any(|only| only.is_empty() || only.len() > GUESSED_MAX) {
        return;
    }
    let by_words: [HashMap<Vec<String>, Vec<&Field>>; 2] = [0, 1].map(|side| {
        let mut by_words: HashMap<_, Vec<_>> = HashMap::new();
        for field in &objects[side].fields {
            if let Some(words) = said(field, types[side], known) {
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
    found.sort_by_key(|[old, _]| old.span.start);
    for fields in found {
        for side in [0, 1] {
            pairing.only[side].retain(|(_, open)| !std::ptr::eq(*open, fields[side]));
        }
        let places = fields.map(|field| vec![field.name.clone()]);
        pairing.both.push(Both { places, fields, around: [None, None], is_said: true });
    }
}

/// The words of a description in their order, without the values that it lists.
fn said(field: &Field, types: &Types, known: &Known<'_>) -> Option<Vec<String>> {
    let text = known.descriptions.of_field(field)?;
    let listed: BTreeSet<String> = match types.resolve(&field.ty).kind {
        TypeKind::Scalar(Scalar { values: Some(values), .. }) => {
            values.values.iter().flat_map(|value| ordered(&value.to_string())).collect()
        }
        _ => BTreeSet::new(),
    };
    let words: Vec<String> = ordered(text).into_iter().filter(|word| !listed.contains(word)).collect();
    (words.len() >= SAID_MIN).then_some(words)
}

/// Scalars and lists of them: of objects a description says little.
fn is_flat(types: [TypeIn<'_>; 2]) -> bool {
    types.into_iter().all(|ty| match ty.types.resolve(ty.ty).kind {
        TypeKind::Scalar(_) => true,
        TypeKind::Array(array) => {
            matches!(ty.types.resolve(&array.items).kind, TypeKind::Scalar(_))
        }
        _ => false,
    })
}

/// Words of names that tell how a value is written down: its unit, which way a switch points, what a text identifies. Fields whose
/// names differ in one of them hold different values, however alike they are described.
const FORM_WORDS: &[&str] = &[
    "ms",
    "millis",
    "milliseconds",
    "s",
    "sec",
    "secs",
    "seconds",
    "min",
    "mins",
    "minutes",
    "hours",
    "days",
    "weeks",
    "months",
    "years",
    "us",
    "ns",
    "cents",
    "minor",
    "major",
    "micros",
    "b",
    "bytes",
    "kb",
    "mb",
    "gb",
    "kib",
    "mib",
    "gib",
    "percent",
    "percentage",
    "pct",
    "rate",
    "ratio",
    "fraction",
    "utc",
    "local",
    "unix",
    "epoch",
    "timestamp",
    "iso",
    "decimal",
    "float",
    "raw",
    "hex",
    "base64",
    "encoded",
    "escaped",
    "encrypted",
    "hash",
    "hashed",
    "html",
    "markdown",
    "text",
    "json",
    "xml",
    "km",
    "m",
    "cm",
    "mm",
    "miles",
    "kg",
    "g",
    "grams",
    "lbs",
    "celsius",
    "fahrenheit",
    "max",
    "count",
    "total",
    "net",
    "gross",
    "old",
    "new",
    "previous",
    "next",
    "first",
    "last",
    "from",
    "to",
    "start",
    "end",
    "not",
    "no",
    "disable",
    "disabled",
    "enable",
    "enabled",
    "exclude",
    "include",
    "excluded",
    "included",
    "without",
    "with",
    "url",
    "uri",
    "uuid",
    "guid",
    "slug",
    "code",
    "id",
    "name",
];

/// Whether the names tell of values that are written down in different ways.
fn is_written_otherwise(old: &Field, new: &Field) -> bool {
    let [a, b] = [old, new].map(|field| name_words(&field.name));
    a.symmetric_difference(&b).any(|word| FORM_WORDS.contains(&word.as_str()))
}

/// `{details: {a, b}}` and `{a, b}`: the whole of one side lies in one member, whose fields the other side has.
fn unwrapped<'t>(objects: [&'t Object; 2], types: [&'t Types; 2]) -> Option<Pairing<'t>> {
    let wrapping = (0..2).find(|side| objects[*side].fields.len() == 1)?;
    let wrapper = &objects[wrapping].fields[0];
    let bare = objects[1 - wrapping];
    let TypeKind::Object(inner) = types[wrapping].resolve(&wrapper.ty).kind else { return None };
    if bare.fields.iter().any(|field| spelling(&field.name) == spelling(&wrapper.name)) {
        return None;
    }
    let sorted = if wrapping == 0 { [inner, bare] } else { [bare, inner] };
    let mut pairing = same(sorted);
    // One field alone may be anything's; most of them tell.
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

/// Makes counterparts of a guess that a person took.
fn accept<'t>(
    guess: &Guess,
    objects: [&'t Object; 2],
    types: [&'t Types; 2],
    pairing: &mut Pairing<'t>,
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
    for side in [0, 1] {
        pairing.only[side].retain(|(place, _)| *place != guess.places[side]);
    }
    true
}

fn at<'t>(object: &'t Object, types: &'t Types, place: &Place) -> Option<(&'t Field, Option<&'t Field>)> {
    let first = object.field(place.first()?)?;
    let Some(name) = place.get(1) else { return Some((first, None)) };
    let TypeKind::Object(inner) = types.resolve(&first.ty).kind else { return None };
    Some((inner.field(name)?, Some(first)))
}

/// A field that guesses are made of.
struct Seen<'t> {
    place: Place,
    field: &'t Field,
    name: BTreeSet<String>,
    letters: String,
    says: BTreeSet<String>,
}

fn guesses(
    objects: [&Object; 2],
    pairing: &Pairing<'_>,
    types: [&Types; 2],
    known: &Known<'_>,
) -> Vec<Guess> {
    let sizes = [0, 1].map(|side| pairing.only[side].len());
    // Nothing is open on either side, or nothing can have become of it.
    if sizes == [0, 0] || sizes.iter().any(|size| *size > GUESSED_MAX) {
        return Vec::new();
    }
    let see = |side: usize, place: Place, field: &'_ Field| {
        let text = known.descriptions.of(types[side], field)?;
        let says = words(text);
        (says.len() >= 2).then_some((place, says))
    };
    let open = |side: usize| -> Vec<Seen<'_>> {
        let all = pairing.only[side].iter();
        all.filter_map(|(place, field)| {
            let (place, says) = see(side, place.clone(), field)?;
            Some(seen(place, field, says))
        })
        .collect()
    };
    let opens = [open(0), open(1)];
    let mut found = likely(&opens, types, known);
    for side in [0, 1] {
        // What lies in an object of the other side, under the same name.
        let taken: BTreeSet<Place> = found.iter().map(|guess| guess.places[side].clone()).collect();
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
                    // What is still where it was has not moved out. (What stood in both places and is gone from one has moved in.)
                    if side == 1 && at(objects[1], types[1], &place).is_some() {
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

fn seen<'t>(place: Place, field: &'t Field, says: BTreeSet<String>) -> Seen<'t> {
    let name = name_words(&field.name);
    Seen { place, field, letters: spelling(&field.name), name, says }
}

/// The pairs that are best on both sides, with a margin.
fn likely(opens: &[Vec<Seen<'_>>; 2], types: [&Types; 2], known: &Known<'_>) -> Vec<Guess> {
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

/// The index of the greatest, where it is great enough and no other is near.
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

fn score(a: &Seen<'_>, b: &Seen<'_>, types: [&Types; 2]) -> Option<Score> {
    let kinds = [types[0].at(&a.field.ty), types[1].at(&b.field.ty)];
    if !same_kind(kinds) {
        return None;
    }
    let name = dice(&a.name, &b.name).max(strsim::jaro_winkler(&a.letters, &b.letters).powi(3));
    let says = agreement(&a.says, &b.says);
    let values = listed(kinds);
    let all = match values {
        Some(share) => 0.4 * name + 0.35 * says + 0.25 * share,
        None => 0.5 * name + 0.5 * says,
    };
    Some(Score { all, name, says, values })
}

fn guess(ty: &str, places: [Place; 2], score: f64, why: String) -> Guess {
    let text = [vec![ty.to_owned()], places[0].clone(), places[1].clone()].concat().join("-");
    Guess { id: super::slug(&text), places, score: score.min(1.0), why }
}

/// Whether both are of one kind: a number of any sort, lists of one kind, types of one name.
fn same_kind(types: [TypeIn<'_>; 2]) -> bool {
    let [a, b] = types.map(|ty| ty.types.resolve(ty.ty).kind);
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

/// The share of listed values that both list; none where one of them lists none.
fn listed(types: [TypeIn<'_>; 2]) -> Option<f64> {
    let [a, b] = types.map(|ty| match ty.types.resolve(ty.ty).kind {
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

/// How far two descriptions agree. What one says and the other says in more words counts for most.
fn agreement(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let least = a.len().min(b.len()).max(1);
    let within = a.intersection(b).count() as f64 / least as f64;
    dice(a, b).max(0.75 * within)
}

/// Words of a name: `isBound`, `is_bound`.
fn name_words(name: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in name.chars() {
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

/// Words of a description that say something.
pub(super) fn words(text: &str) -> BTreeSet<String> {
    ordered(text).into_iter().collect()
}

/// The same, as they come.
fn ordered(text: &str) -> Vec<String> {
    const EMPTY: &[&str] = &[
        "the", "and", "for", "that", "this", "with", "from", "are", "can", "will", "not", "you", "your",
        "has", "have", "was", "its", "may", "any", "all", "when", "which", "true", "false", "value", "field",
        "object", "possible", "values", "use", "used",
    ];
    let all = text.split(|c: char| !c.is_alphanumeric()).take(400).map(str::to_lowercase);
    all.filter(|word| word.len() > 2 && !EMPTY.contains(&word.as_str())).collect()
}

/// A name without what people spell differently.
pub(super) fn spelling(name: &str) -> String {
    let letters: String =
        name.chars().filter(|c| !matches!(c, '_' | '-' | '.')).flat_map(char::to_lowercase).collect();
    match letters.strip_prefix("is") {
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
