//! The effect of an op on its values: the mapped objects, and the values that its conversions
//! accept, so that generated values are meaningful on both sides.

use crate::support::values::{Spot, below, integer, text};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use switchback_engine::translate::{Env, Settings, document};
use switchback_json::{Limits, Str, Value};
use switchback_plan::convert::{Conversion, ConversionKind};
use switchback_plan::{
    AttemptOp, Captured, Close, CloseFrom, MemberAction, ObjectOp, Others, SideId, ValueOp,
};

/// The domain of an op, by path.
#[derive(Debug, Default)]
pub struct Reading {
    taken_apart: BTreeSet<String>,
    /// Objects that preserve undeclared members.
    keeping: BTreeSet<String>,
    conversions: BTreeMap<String, Conversion>,
    /// Members that every value with an inverse has: their absence becomes a default, which
    /// returns, or belongs to a choice that must be made.
    needed: BTreeSet<String>,
    /// Objects that may be rejected as a whole, and the responsible op.
    attempts: BTreeMap<String, Arc<AttemptOp>>,
    /// Places that share a counterpart: one of them is there.
    choices: Vec<Vec<String>>,
    /// Lists of which exactly one element is taken.
    single: BTreeSet<String>,
    /// Places of recursion, each with the place of the enclosing op.
    again: Vec<(String, String)>,
    /// The enclosing ops, by their addresses, each with its place.
    around: Vec<(*const (), String)>,
}

impl Reading {
    pub fn of(op: &ValueOp) -> Reading {
        let mut reading = Reading::default();
        reading.value(op, "$".to_owned());
        reading
    }

    /// Returns the place for a path: a recursive op is read like the enclosing one.
    pub fn home(&self, path: &str) -> String {
        let mut home = path.to_owned();
        let within = |path: &str| {
            self.again.iter().find_map(|(at, around)| {
                let rest =
                    path.strip_prefix(at).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))?;
                Some(format!("{around}{rest}"))
            })
        };
        while let Some(shorter) = within(&home) {
            home = shorter;
        }
        home
    }

    /// Whether the value at a path is read as one around it is.
    pub fn leads_back(&self, path: &str) -> bool {
        self.again.iter().any(|(at, _)| at == path)
    }

    /// The places that are read as the value itself is.
    pub fn back_to_the_top(&self) -> impl Iterator<Item = &str> {
        self.again.iter().filter(|(_, around)| around == "$").map(|(at, _)| at.as_str())
    }

    /// Whether the object or list at a path is read member by member, rather than taken over as one.
    pub fn is_taken_apart(&self, path: &str) -> bool {
        self.taken_apart.contains(&self.home(path))
    }

    /// Returns whether the object at a path loses undeclared members.
    pub fn loses_others(&self, path: &str) -> bool {
        self.is_taken_apart(path) && !self.keeping.contains(&self.home(path))
    }

    /// Whether a conversion reads the value at a path, as one.
    pub fn converts(&self, path: &str) -> bool {
        self.conversions.contains_key(&self.home(path)) && !self.is_taken_apart(path)
    }

    /// Whether a conversion reads the value at a path as one, even where its elements have places
    /// of their own.
    pub fn converts_whole(&self, path: &str) -> bool {
        self.conversions.contains_key(&self.home(path))
    }

    /// Whether exactly one element is taken of the list at a path.
    pub fn is_single(&self, path: &str) -> bool {
        self.single.contains(&self.home(path))
    }

    /// Returns whether the op at a path rejects this value as a whole.
    pub fn turns_away(&self, path: &str, value: &Value) -> bool {
        let settings = Settings::default();
        self.attempts.get(&self.home(path)).is_some_and(|attempt| {
            let (env, limits) = (Env::new(&settings), Limits::DOCUMENT);
            document(&attempt.op, &value.to_vec(), &env, &limits, &mut Vec::new()).is_err()
        })
    }

    /// Whether no value with an inverse leaves the member at a path out.
    pub fn must_be_there(&self, path: &str) -> bool {
        self.needed.contains(&self.home(path))
    }

    /// Places of which one is there.
    pub fn choices(&self) -> &[Vec<String>] {
        &self.choices
    }

    /// The same for places within the value at a path, as seen from there.
    pub fn choices_below(&self, path: &str) -> Vec<Vec<String>> {
        let below = |place: &String| {
            let rest = place.strip_prefix(path).filter(|rest| rest.starts_with(['.', '[']))?;
            Some(format!("${rest}"))
        };
        self.choices.iter().filter_map(|places| places.iter().map(below).collect()).collect()
    }

    /// Returns whether a value omits its counterpart, so that an old value is not changed.
    pub fn is_silent(&self, path: &str, value: Option<&Value>) -> bool {
        let nothing = |conversion: &Conversion| {
            matches!(conversion.kind, ConversionKind::AbsentToNull) && value.is_some_and(Value::is_null)
        };
        value.is_none() || self.conversions.get(&self.home(path)).is_some_and(nothing)
    }

    fn value(&mut self, op: &ValueOp, path: String) {
        match op {
            ValueOp::Keep | ValueOp::Constant(_) => {}
            ValueOp::Object(op) => {
                self.around.push((Arc::as_ptr(op).cast(), path.clone()));
                self.object(op, path);
                self.around.pop();
            }
            ValueOp::Array(op) => {
                self.value(op, format!("{path}[*]"));
                self.taken_apart.insert(path);
            }
            ValueOp::Wrap(op) => self.value(op, path),
            ValueOp::Unwrap(op) => {
                self.value(op, format!("{path}[*]"));
                self.single.insert(path.clone());
                self.taken_apart.insert(path);
            }
            ValueOp::Convert(conversion) => {
                if let ConversionKind::Pairs { list, .. } = conversion.kind
                    && list == conversion.from()
                {
                    self.taken_apart.extend([path.clone(), format!("{path}[*]")]);
                }
                self.conversions.insert(path, conversion.clone());
            }
            ValueOp::Choose(choose) => {
                self.around.push((Arc::as_ptr(choose).cast(), path.clone()));
                choose.arms.iter().for_each(|arm| self.value(arm, path.clone()));
                self.around.pop();
            }
            ValueOp::Attempt(attempt) => {
                self.attempts.insert(path.clone(), Arc::clone(attempt));
                self.value(&attempt.op, path);
            }
            ValueOp::Again(again) => {
                let to: *const () = match again.op() {
                    ValueOp::Object(op) => Arc::as_ptr(&op).cast(),
                    ValueOp::Choose(op) => Arc::as_ptr(&op).cast(),
                    other => panic!("only objects and choices hold themselves: {other:?}"),
                };
                let around = self.around.iter().find(|(op, _)| *op == to).expect("it stands around");
                self.again.push((path, around.1.clone()));
            }
        }
    }

    fn object(&mut self, op: &ObjectOp, path: String) {
        for member in &op.members {
            let place = below(&path, &member.name.text);
            if let MemberAction::Emit(emit) = &member.action {
                self.value(&emit.op, place.clone());
            }
            let captured =
                captures(&op.close).into_iter().filter(|captured| member.capture == Some(captured.slot));
            for captured in captured {
                let mut place = place.clone();
                for key in &captured.path {
                    let inner = below(&place, &key.text);
                    self.taken_apart.insert(std::mem::replace(&mut place, inner));
                }
                self.value(&captured.op, place);
            }
        }
        for close in &op.close {
            self.close(close, op, &path);
        }
        if let Others::Each(inner) = &op.others {
            self.value(inner, format!("{path}.*"));
        }
        if matches!(op.others, Others::Each(_) | Others::Keep) {
            self.keeping.insert(path.clone());
        }
        self.taken_apart.insert(path);
    }

    fn close(&mut self, close: &Close, op: &ObjectOp, path: &str) {
        match &close.from {
            CloseFrom::Object(inner) => {
                // Without a required member, the object is omitted and its other members are not visible.
                let needed =
                    inner.iter().filter(|close| close.needed).flat_map(|close| places(close, op, path));
                self.needed.extend(needed.collect::<Vec<_>>());
                inner.iter().for_each(|close| self.close(close, op, path));
            }
            CloseFrom::Default { unless_written, .. } => {
                let member = &op.members[usize::from(*unless_written)];
                let emits_null =
                    matches!(&member.action, MemberAction::Emit(emit) if converts_absence(&emit.op));
                if !emits_null {
                    self.needed.insert(below(path, &member.name.text));
                }
            }
            CloseFrom::Captured { alternatives, .. } if alternatives.len() > 1 => {
                let places = places(close, op, path);
                self.needed.extend(places.iter().cloned());
                self.choices.push(places);
            }
            _ => {}
        }
    }

    /// The values of a place for which its conversion has an inverse. The other spellings that some
    /// conversions accept (`{}` where the side writes `[]`, null where it leaves a member out) come
    /// back as the usual one.
    pub fn narrow(&self, spot: &Spot<'_>, plain: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
        let home = self.home(spot.path);
        let Some(conversion) = self.conversions.get(&home) else { return plain };
        let values = domain(conversion, plain, spot.some);
        let passes = conversion.kind.spec().null_passes;
        if passes && spot.nullable {
            prop_oneof![1 => Just(Value::Null), 4 => values].boxed()
        } else {
            values
        }
    }
}

/// The places that a member which is written at the close may come from.
fn places(close: &Close, op: &ObjectOp, path: &str) -> Vec<String> {
    let place = |captured: &Captured| {
        let holder = op.members.iter().find(|member| member.capture == Some(captured.slot));
        let top = below(path, &holder.expect("a slot has a member").name.text);
        captured.path.iter().fold(top, |place, key| below(&place, &key.text))
    };
    match &close.from {
        CloseFrom::Captured { alternatives, .. } => alternatives.iter().map(place).collect(),
        _ => Vec::new(),
    }
}

fn captures(close: &[Close]) -> Vec<&Captured> {
    let mut found = Vec::new();
    for close in close {
        match &close.from {
            CloseFrom::Captured { alternatives, .. } => found.extend(alternatives),
            CloseFrom::Object(close) => found.extend(captures(close)),
            _ => {}
        }
    }
    found
}

fn converts_absence(op: &ValueOp) -> bool {
    matches!(op, ValueOp::Convert(Conversion { kind: ConversionKind::AbsentToNull, .. }))
}

/// Returns the values with an inverse that a conversion accepts: of the values of a place, `some`
/// without null.
fn domain(
    conversion: &Conversion,
    plain: BoxedStrategy<Value>,
    some: &BoxedStrategy<Value>,
) -> BoxedStrategy<Value> {
    // A place that takes any JSON may still draw null.
    let no_null = |why: &'static str| some.clone().prop_filter(why, |value| !value.is_null()).boxed();
    let from = conversion.from();
    match (&conversion.kind, conversion.forward) {
        (ConversionKind::IntegerToString, false) | (ConversionKind::StringToInteger, true) => {
            integer().prop_map(|digits| Value::string(&digits)).boxed()
        }
        (ConversionKind::IntegerToString, true) | (ConversionKind::StringToInteger, false) => {
            no_null("an integer")
        }
        // Digits in quotes come back as an integer.
        (ConversionKind::Integer, _) => {
            let number = |digits: String| Value::parse(digits.as_bytes(), &Default::default());
            integer().prop_map(move |digits| number(digits).expect("digits are JSON")).boxed()
        }
        (ConversionKind::LowerCase | ConversionKind::Digits, _) => {
            integer().prop_map(|digits| Value::string(digits.trim_start_matches('-'))).boxed()
        }
        (ConversionKind::AbsentToNull, true) => no_null("null is written by leaving out"),
        (ConversionKind::AbsentToNull, false) => plain,
        (ConversionKind::EmptyArrayToNull, forward) => {
            let none = if forward { Value::from(Vec::new()) } else { Value::Null };
            let nothing = none.clone();
            let some = plain.prop_map(move |value| match value {
                Value::Object(members) if !members.is_empty() => Value::Object(members),
                _ => nothing.clone(),
            });
            prop_oneof![1 => Just(none), 3 => some].boxed()
        }
        (ConversionKind::Table(table), _) => {
            // Of several values of one row, the first one returns.
            let first = |at: &usize| table.rows[..*at].iter().all(|row| row.0 != table.rows[*at].0);
            let rows = (0..table.rows.len()).filter(first).map(|at| &table.rows[at]);
            let cells = rows.map(|(old, new)| if from == SideId::OLD { old } else { new });
            let values = cells.map(|cell| Value::parse(cell, &Default::default()).expect("cells are JSON"));
            prop::sample::select(values.collect::<Vec<_>>()).boxed()
        }
        (ConversionKind::CsvToArray, true) => no_null("a text"),
        (ConversionKind::CsvToArray, false) => {
            let item =
                text().prop_filter("no comma", |item| !item.decode().contains(',')).prop_map(Value::String);
            let items = prop::collection::vec(item, 0..4);
            items
                .prop_filter("not one empty text", |items| *items != [Value::string("")])
                .prop_map(Value::from)
                .boxed()
        }
        (ConversionKind::Pairs { list, .. }, _) if *list != from => no_null("an object"),
        (ConversionKind::Pairs { key, .. }, _) => {
            let key = key.to_string();
            plain.prop_map(move |entries| with_different_keys(entries, &key)).boxed()
        }
        // Values that only a later form accepts are other spellings of values of the first.
        (ConversionKind::FirstOf(kinds), forward) => {
            domain(&Conversion::new(kinds[0].clone(), forward), plain, some)
        }
        (ConversionKind::Own(own), _) => {
            let own = Arc::clone(own);
            let value = move |seed| Value::parse(own.sample(from, seed).as_bytes(), &Default::default());
            any::<u64>().prop_map(move |seed| value(seed).expect("a sample is JSON")).boxed()
        }
    }
}

/// The same entries, each key with its number behind it.
fn with_different_keys(mut entries: Value, key: &str) -> Value {
    for (at, entry) in entries.as_array_mut().into_iter().flat_map(|all| all.iter_mut()).enumerate() {
        let Some(Value::String(name)) = entry.get_mut(key) else { continue };
        let different = format!("{}#{at}", name.raw());
        *name = Str::from_raw(&different).expect("a text with a number behind it");
    }
    entries
}
