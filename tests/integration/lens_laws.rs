//! The laws of every shape, on values generated from the contracts: data that a shape does not list
//! as lost returns from the other side; an edited view that is overlaid on the old value is visible
//! again; and the list of losses equals the actual losses. The shapes are those of the compiler,
//! not a separate list.
//!
//! [`How`] defines the construction of a side: from the shape alone; with the parts that the shape
//! leaves to its route; or, if the other side may omit required data, only over an old value. Over
//! an old value, an absent member preserves the existing one, so it says nothing about the other
//! side; the laws take this into account.

mod domain;
mod generated;
mod shapes;
mod whole;

use crate::support::packs;
use crate::support::values::{Fill, Generator, Spot, below};
use domain::Reading;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use shapes::{How, Loaded, Shape, Way};
use std::cell::Cell;
use std::collections::BTreeSet;
use switchback_compiler::contract::{Additional, Type, TypeIn, TypeKind};
use switchback_compiler::mapping::load::PackSource;
use switchback_json::{Limits, Object, Value};
use switchback_plan::convert::SPECS;
use switchback_plan::{Loss, SideId};

const SIDES: [SideId; 2] = [SideId::OLD, SideId::NEW];

thread_local! {
    /// Values for each law, shape and direction, where `PROPTEST_CASES` does not ask for more.
    static CASES: Cell<u32> = const { Cell::new(48) };
}

fn config() -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = asked.unwrap_or_else(|| CASES.get());
    Config { cases, failure_persistence: None, ..Config::default() }
}

fn runner() -> TestRunner {
    TestRunner::new_with_rng(config(), TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Runs a law for each shape and each starting side. Returns the journeys that the law does not
/// cover; every other one was run.
fn each(source: &PackSource, law: &impl Fn(&Journey<'_>) -> Spoke) -> Vec<String> {
    let loaded = Loaded::of(source);
    let (mut ran, mut silent) = (0, Vec::new());
    loaded.shapes(|shape| {
        for from in SIDES {
            let spoke = Journey::new(shape, from).map(|journey| law(&journey));
            match spoke {
                Some(Spoke::Yes) => ran += 1,
                _ => silent.push(format!("{} from {}", shape.name, shape.sides[usize::from(from.0)])),
            }
        }
    });
    assert_eq!(ran + silent.len(), 2 * shapes::compiled(source));
    silent
}

/// Returns whether a law covers a journey.
enum Spoke {
    Yes,
    No,
}

/// A shape, from one side to the other and, where it can build the first, back.
struct Journey<'a> {
    shape: &'a Shape<'a>,
    from: usize,
    to: usize,
    there: &'a Way,
    back: Option<&'a Way>,
    /// The modifications of values of the starting side, and of the other.
    reading: [Reading; 2],
}

impl<'a> Journey<'a> {
    /// None if the shape cannot build the other side.
    fn new(shape: &'a Shape<'a>, from: SideId) -> Option<Journey<'a>> {
        let (from, to) = (usize::from(from.0), usize::from(from.other().0));
        let (there, back) = (shape.ways[to].as_ref()?, shape.ways[from].as_ref());
        let far = back.map(|back| Reading::of(&back.lens.op)).unwrap_or_default();
        Some(Journey { shape, from, to, there, back, reading: [Reading::of(&there.lens.op), far] })
    }

    fn name(&self) -> String {
        format!("{} from {}", self.shape.name, self.shape.sides[self.from])
    }

    fn types(&self) -> [TypeIn<'a>; 2] {
        [self.shape.types[self.from], self.shape.types[self.to]]
    }

    /// Values of the side that is started from, or (`1`) of the other.
    fn values(&self, which: usize, fill: Fill) -> BoxedStrategy<Value> {
        self.values_with(which, fill, true)
    }

    /// The same, with or without undeclared members in mapped objects.
    fn values_with(&self, which: usize, fill: Fill, undeclared: bool) -> BoxedStrategy<Value> {
        let ty = self.types()[which];
        let make = |generator: Generator<'_>| {
            let extras = |path: &str| {
                (generator.extras)(path) && (undeclared || !self.reading[which].is_taken_apart(path))
            };
            Generator { extras: &extras, ..generator }.value(ty.ty)
        };
        let values = self.with_generator(which, fill, make);
        let choices = self.reading[which].choices().to_vec();
        let again: Vec<String> = self.reading[which].back_to_the_top().map(str::to_owned).collect();
        (values, any::<usize>())
            .prop_map(move |(value, which)| choose(value, &choices, &again, which))
            .boxed()
    }

    fn with_generator<T>(&self, which: usize, fill: Fill, make: impl FnOnce(Generator<'_>) -> T) -> T {
        let reading = &self.reading[which];
        let narrow = |spot: &Spot<'_>, plain| reading.narrow(spot, plain);
        let extras = |path: &str| !reading.loses_others(path);
        let must = |path: &str| reading.must_be_there(path);
        let single = |path: &str| reading.is_single(path);
        make(Generator {
            types: self.types()[which].types,
            fill,
            narrow: &narrow,
            must: &must,
            single: &single,
            extras: &extras,
        })
    }

    fn is_lost(&self, path: &str) -> bool {
        is_listed(&self.there.lens.losses, &self.reading[0].home(path))
    }
}

/// Leaves one of the places that share a counterpart, and so within the values at `again`.
fn choose(mut value: Value, choices: &[Vec<String>], again: &[String], which: usize) -> Value {
    for places in choices {
        let chosen = which % places.len();
        for (_, place) in places.iter().enumerate().filter(|(at, _)| *at != chosen) {
            take_away(&mut value, &steps(place));
        }
    }
    if !choices.is_empty() {
        for place in again {
            each_at(&mut value, &steps(place), &|inner| *inner = choose(inner.take(), choices, again, which));
        }
    }
    value
}

/// Calls `work` with the values at a place, of all elements of the lists on the way.
fn each_at(value: &mut Value, steps: &[Step], work: &dyn Fn(&mut Value)) {
    match (steps, value) {
        ([], value) => work(value),
        ([Step::Name(name), rest @ ..], Value::Object(members)) => {
            members.get_mut(name).into_iter().for_each(|inner| each_at(inner, rest, work));
        }
        ([Step::First, rest @ ..], Value::Array(items)) => {
            items.iter_mut().for_each(|item| each_at(item, rest, work));
        }
        _ => {}
    }
}

/// Removes a member, from all elements of the lists on the way.
fn take_away(value: &mut Value, steps: &[Step]) {
    match (steps, value) {
        ([Step::Name(name)], Value::Object(members)) => {
            members.remove(name);
        }
        ([Step::Name(name), rest @ ..], Value::Object(members)) => {
            members.get_mut(name).into_iter().for_each(|inner| take_away(inner, rest));
        }
        ([Step::First, rest @ ..], Value::Array(items)) => {
            items.iter_mut().for_each(|item| take_away(item, rest));
        }
        _ => {}
    }
}

/// Whether a place, or one around it, is listed as lost.
fn is_listed(losses: &[Loss], path: &str) -> bool {
    // Of a partial loss, the generated values are those that return.
    losses.iter().filter(|loss| loss.instead.is_none() && !loss.partly).any(|loss| {
        path.strip_prefix(loss.place.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

/// Returns whether `found` is `wanted`, apart from losses. For members that are absent in `wanted`,
/// `silence` defines the expectation.
fn agree(
    (found, wanted): (Option<&Value>, Option<&Value>),
    silence: Option<&Value>,
    path: &str,
    losses: &[Loss],
    reading: &Reading,
) -> Result<(), String> {
    let path = &reading.home(path);
    let in_part = |found, wanted: Option<&Value>| {
        // Generated packs have partial losses everywhere; a null object with required members is reported
        // by nothing.
        let (list, is_null) = (whole::List { losses, reading }, wanted.is_some_and(Value::is_null));
        whole::DRAWN.get() && (list.excuses(found, wanted, path) || (is_null && list.in_part(path)))
    };
    if is_listed(losses, path) || in_part(found, wanted.or(silence)) {
        return Ok(());
    }
    match (found, wanted.or(silence)) {
        (Some(Value::Object(found)), Some(Value::Object(expected))) if reading.is_taken_apart(path) => {
            let names: BTreeSet<String> =
                found.keys().chain(expected.keys()).map(|key| key.decode().into_owned()).collect();
            let silence = silence.and_then(Value::as_object);
            let inner =
                |object: Option<&Object>, name: &str| object.and_then(|object| object.get(name)).cloned();
            names.iter().try_for_each(|name| {
                let wanted = inner(wanted.and_then(Value::as_object), name);
                let silence = inner(silence, name);
                agree(
                    (found.get(name), wanted.as_ref()),
                    silence.as_ref(),
                    &below(path, name),
                    losses,
                    reading,
                )
            })
        }
        (Some(Value::Array(found)), Some(Value::Array(expected)))
            if reading.is_taken_apart(path) && found.len() == expected.len() =>
        {
            let pairs = found.iter().zip(expected.iter());
            pairs.into_iter().try_for_each(|(found, wanted)| {
                agree((Some(found), Some(wanted)), None, &format!("{path}[*]"), losses, reading)
            })
        }
        (found, expected) if found == expected => Ok(()),
        (found, expected) => Err(format!("at {path}: found {found:?}, expected {expected:?}")),
    }
}

/// There and back: data that is not listed as lost is unchanged. If a side can only be built over
/// an old value, absent members have that value's.
fn there_and_back(journey: &Journey<'_>) -> Spoke {
    let Some(back_way) = journey.back else { return Spoke::No };
    let over = |way: &Way, values: BoxedStrategy<Value>| match way.how {
        How::Over => values.prop_map(Some).boxed(),
        How::Alone | How::Supplied => Just(None).boxed(),
    };
    let old = over(journey.there, journey.values(1, Fill::Full));
    let values = (journey.values(0, Fill::Any), old, journey.there.supplies(), back_way.supplies());
    let ran = runner().run(&values, |(value, old, there, back)| {
        let far = journey.there.run(&value, old.as_ref(), &there);
        let near = back_way.run(&far, Some(&value), &back);
        let silence = old.map(|old| back_way.run(&old, Some(&value), &back));
        let (losses, reading) = (&journey.there.lens.losses, &journey.reading[0]);
        agree((Some(&near), Some(&value)), silence.as_ref(), "$", losses, reading)
            .map_err(|why| TestCaseError::fail(format!("{why}\n  of {value}\n  by {far}")))
    });
    ran.unwrap_or_else(|why| panic!("{}: {why}", journey.name()));
    Spoke::Yes
}

/// Edit, then put back. The view of a value, overlaid on that value, yields the value; edited, it
/// yields a value with the edited view, and data outside the view is unchanged.
fn edit_and_put_back(journey: &Journey<'_>) -> Spoke {
    // Data that is visible only over an old value depends on that value too, so it is not a view of one
    // value.
    let (Some(put), false) = (&journey.shape.over[journey.from], journey.there.how == How::Over) else {
        return Spoke::No;
    };
    // A recursive type is replaced as one, including its private data.
    if whole::DRAWN.get() && journey.reading.iter().any(|reading| reading.back_to_the_top().next().is_some())
    {
        return Spoke::No;
    }
    let edits = prop::collection::vec(0..4u8, 64);
    // An edit without an undeclared member preserves it: absence cannot be distinguished from removal.
    let values = (
        journey.values_with(0, Fill::Any, false),
        journey.values_with(1, Fill::Any, false),
        edits,
        journey.values_with(1, Fill::Full, false),
        journey.there.supplies(),
    );
    let ran = runner().run(&values, |(value, other, edits, old, there)| {
        let get = |value: &Value| journey.there.run(value, Some(&old), &there);
        let view = get(&value);
        // A member that shows a place of the other side a second time follows that place.
        let copies = &journey.shape.copies[journey.from];
        let again: Vec<&str> = journey.reading[0].back_to_the_top().collect();
        let own = |value: &Value| without(value.clone(), copies, &again);
        let same = put.run(&view, Some(&value), &[]);
        // Elements of lists have no identity, so an overlay builds them anew.
        let losses = journey.there.lens.losses.iter();
        let mut anew: Vec<Loss> = losses.filter(|loss| loss.place.contains("[*]")).cloned().collect();
        // A listed replacement value appears where the original is absent.
        let made = put.lens.losses.iter().filter(|loss| loss.instead.is_some());
        anew.extend(made.map(|loss| Loss { instead: None, ..loss.clone() }));
        anew.extend(journey.there.lens.losses.iter().filter(|loss| loss.partly).cloned());
        let (before, after) = (own(&value), own(&same));
        agree((Some(&after), Some(&before)), None, "$", &anew, &journey.reading[0]).map_err(|why| {
            TestCaseError::fail(format!("the unchanged view {view} changes {value}: {why}"))
        })?;

        let edited = edit(&view, &other, &edits);
        let changed = put.run(&edited, Some(&value), &[]);
        let again = get(&changed);
        let losses = &put.lens.losses;
        let reading = &journey.reading[1];
        agree((Some(&again), Some(&edited)), Some(&view), "$", losses, reading).map_err(|why| {
            TestCaseError::fail(format!("{why}\n  of {value}\n  edited to {edited}\n  put back as {changed}"))
        })?;
        for loss in journey.there.lens.losses.iter().filter(|loss| loss.instead.is_none() && !loss.partly) {
            if !loss.place.contains("[*]") {
                let steps = steps(&loss.place);
                let (changed, value) = (own(&changed), own(&value));
                let both = (at(&changed, &steps), at(&value, &steps));
                let is_made =
                    put.lens.losses.iter().any(|made| made.instead.is_some() && made.place == loss.place);
                // Replacing an object by null also removes its private data.
                prop_assert!(
                    both.0 == both.1 || both.0.is_none() || (both.1.is_none() && is_made),
                    "{} was {:?} and is {:?}",
                    loss.place,
                    both.1,
                    both.0
                );
            }
        }
        Ok(())
    });
    ran.unwrap_or_else(|why| panic!("{}: {why}", journey.name()));
    Spoke::Yes
}

/// A value without these members, there and in the values at `again`.
fn without(mut value: Value, names: &[String], again: &[&str]) -> Value {
    if let (false, Some(members)) = (names.is_empty(), value.as_object_mut()) {
        members.retain(|key, _| !names.iter().any(|name| key.is(name)));
        for place in again {
            each_at(&mut value, &steps(place), &|inner| *inner = without(inner.take(), names, again));
        }
    }
    value
}

/// A view in which some members are another value's, and some are left out.
fn edit(view: &Value, other: &Value, edits: &[u8]) -> Value {
    let (Some(view), Some(other)) = (view.as_object(), other.as_object()) else { return view.clone() };
    let names = view.keys().chain(other.keys().filter(|key| !view.contains_key(&key.decode())));
    let edited = names.zip(edits.iter().cycle()).filter_map(|(key, edit)| {
        let name = key.decode();
        let value = match edit {
            0 => view.get(&name),
            1 => None,
            _ => other.get(&name),
        };
        Some((key.clone(), value?.clone()))
    });
    Value::Object(edited.collect())
}

/// The list of losses is exact: each leaf of a complete value is changed, one at a time. A listed
/// place leaves no trace on the other side; every other change is visible there and, if there is an
/// inverse, returns.
fn losses_are_what_is_lost(journey: &Journey<'_>) -> Spoke {
    let mut samples = Samples { runner: runner() };
    let (full, old) = (journey.values(0, Fill::Full), journey.values(1, Fill::Full));
    let leaves = journey.leaves();
    let mut changed: BTreeSet<&str> = BTreeSet::new();
    for _ in 0..config().cases.div_ceil(4) {
        let trial = Trial {
            journey,
            value: samples.draw(&full),
            old: samples.draw(&old),
            there: samples.draw(&journey.there.supplies()),
            back: journey.back.map(|back| samples.draw(&back.supplies())),
        };
        let (far, near) = trial.run(&trial.value);
        for leaf in &leaves {
            let steps = steps(&leaf.path);
            let Some(before) = at(&trial.value, &steps) else { continue };
            let other = (0..40).map(|_| samples.draw(&leaf.values)).find(|other| other != before);
            let absent = (leaf.optional && !trial.is_over() && !journey.reading[0].must_be_there(&leaf.path))
                .then_some(None);
            for change in other.map(Some).into_iter().chain(absent) {
                trial.change(&far, leaf, change);
                changed.insert(&leaf.path);
            }
        }
        near.inspect(|near| trial.instead(near));
    }
    let missed = leaves.iter().filter(|leaf| !changed.contains(leaf.path.as_str()) && !leaf.is_fixed);
    let missed: Vec<_> = missed.map(|leaf| &leaf.path).collect();
    // Few values leave out some places of which there is only one at a time.
    assert!(missed.is_empty() || whole::DRAWN.get(), "{}: never changed: {missed:?}", journey.name());
    Spoke::Yes
}

struct Samples {
    runner: TestRunner,
}

impl Samples {
    fn draw<T: std::fmt::Debug>(&mut self, values: &BoxedStrategy<T>) -> T {
        values.new_tree(&mut self.runner).expect("values are never filtered away for good").current()
    }
}

/// One value with the places to change.
struct Trial<'a> {
    journey: &'a Journey<'a>,
    value: Value,
    /// A value of the other side, for a side that is only built over one.
    old: Value,
    there: Vec<Value>,
    back: Option<Vec<Value>>,
}

impl Trial<'_> {
    fn is_over(&self) -> bool {
        [Some(self.journey.there), self.journey.back].iter().flatten().any(|way| way.how == How::Over)
    }

    fn run(&self, start: &Value) -> (Value, Option<Value>) {
        let far = self.journey.there.run(start, Some(&self.old), &self.there);
        let back = self.journey.back.zip(self.back.as_ref());
        let near = back.map(|(back, supplied)| back.run(&far, Some(&self.value), supplied));
        (far, near)
    }

    fn change(&self, far: &Value, leaf: &Leaf, change: Option<Value>) {
        let (journey, steps) = (self.journey, steps(&leaf.path));
        let mut changed = self.value.clone();
        set(&mut changed, &steps, change.clone());
        let (far_changed, near_changed) = self.run(&changed);
        let list = whole::List { losses: &journey.there.lens.losses, reading: &journey.reading[0] };
        if whole::DRAWN.get() && list.is_in_doubt(&leaf.path) {
            return;
        }
        let what = || format!("{}: {} changed to {change:?} in {}", journey.name(), leaf.path, self.value);
        if journey.is_lost(&leaf.path) {
            assert_eq!(&far_changed, far, "is listed as lost and is seen: {}", what());
            return;
        }
        assert_ne!(&far_changed, far, "is lost and not listed: {}", what());
        let silent = self.is_over() && journey.reading[0].is_silent(&leaf.path, change.as_ref());
        if let Some(near) = near_changed.filter(|_| !silent) {
            assert_eq!(at(&near, &steps), change.as_ref(), "does not come back: {}", what());
        }
    }

    /// A listed replacement value is present.
    fn instead(&self, near: &Value) {
        let Some(back) = self.journey.back.filter(|back| back.how != How::Over) else { return };
        for loss in back.lens.losses.iter().filter(|loss| !loss.place.contains("[*]")) {
            let Some(instead) = &loss.instead else { continue };
            let instead =
                Value::parse(instead.as_bytes(), &Limits::DOCUMENT).expect("a listed value is JSON");
            let place = steps(&loss.place);
            let around = at(near, &place[..place.len() - 1]);
            if around.is_some_and(|around| !around.is_null()) {
                assert_eq!(at(near, &place), Some(&instead), "{}: {}", self.journey.name(), loss.place);
            }
        }
    }
}

/// A place that is changed on its own.
struct Leaf {
    path: String,
    optional: bool,
    /// Whether it may be that there is no other value, or no such place in a value.
    is_fixed: bool,
    values: BoxedStrategy<Value>,
}

impl Journey<'_> {
    fn leaves(&self) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        let ty = self.types()[0];
        self.descend(ty, "$".to_owned(), (false, false), &mut leaves);
        leaves
    }

    fn descend(&self, ty: TypeIn<'_>, path: String, (optional, fixed): (bool, bool), leaves: &mut Vec<Leaf>) {
        const DEPTH_MAX: usize = 5;
        if self.reading[0].leads_back(&path) {
            return;
        }
        let deep = path.matches(['.', '[']).count() >= DEPTH_MAX;
        match ty.types.resolve(ty.ty).kind {
            TypeKind::Object(object)
                if !object.fields.is_empty() && !self.reading[0].converts(&path) && !deep =>
            {
                for field in &object.fields {
                    let inner = ty.types.at(&field.ty);
                    self.descend(inner, below(&path, &field.name), (!field.required, fixed), leaves);
                }
            }
            TypeKind::Array(array)
                if has_fields(ty, &array.items) && !self.reading[0].converts(&path) && !deep =>
            {
                let fixed = fixed || array.max_items == Some(0);
                self.descend(ty.types.at(&array.items), format!("{path}[*]"), (false, fixed), leaves);
            }
            kind => {
                let single = match kind {
                    TypeKind::Scalar(scalar) => {
                        scalar.values.as_ref().is_some_and(|values| values.values.len() < 2 && !values.open)
                    }
                    TypeKind::Array(array) => array.max_items == Some(0),
                    kind => matches!(kind, TypeKind::Null),
                };
                let values = self.with_generator(0, Fill::Any, |generator| generator.value_at(&path, ty.ty));
                let choices = self.reading[0].choices_below(&path);
                let values = (values, any::<usize>())
                    .prop_map(move |(value, which)| choose(value, &choices, &[], which));
                let values = values.boxed();
                leaves.push(Leaf { path, optional, is_fixed: fixed || single, values });
            }
        }
    }
}

impl Journey<'_> {
    /// The mapped objects that may have undeclared members.
    fn open_objects(&self, ty: TypeIn<'_>, path: String, places: &mut Vec<String>) {
        if !self.reading[0].is_taken_apart(&path) || self.reading[0].leads_back(&path) {
            return;
        }
        match ty.types.resolve(ty.ty).kind {
            TypeKind::Object(object) => {
                for field in &object.fields {
                    self.open_objects(ty.types.at(&field.ty), below(&path, &field.name), places);
                }
                if object.additional == Additional::Open {
                    places.push(path);
                }
            }
            TypeKind::Array(array) => {
                self.open_objects(ty.types.at(&array.items), format!("{path}[*]"), places);
            }
            _ => {}
        }
    }
}

fn has_fields(ty: TypeIn<'_>, items: &Type) -> bool {
    matches!(ty.types.resolve(items).kind, TypeKind::Object(object) if !object.fields.is_empty())
}

enum Step {
    Name(String),
    First,
}

/// The steps of a path; `[*]` is the first element.
fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = &path[1..];
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("[*]") {
            steps.push(Step::First);
            rest = after;
        } else if let Some(quoted) = rest.strip_prefix("['") {
            let (name, after) = quoted.split_once("']").expect("a quoted name ends");
            steps.push(Step::Name(name.replace("\\'", "'")));
            rest = after;
        } else {
            let name = &rest[1..];
            let end = name.find(['.', '[']).unwrap_or(name.len());
            steps.push(Step::Name(name[..end].to_owned()));
            rest = &name[end..];
        }
    }
    steps
}

fn at<'v>(value: &'v Value, steps: &[Step]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Name(name) => value.get(name),
        Step::First => value.as_array()?.first(),
    })
}

/// Puts a value at a place with an existing parent, or removes the member.
fn set(value: &mut Value, steps: &[Step], new: Option<Value>) {
    let Some((last, around)) = steps.split_last() else {
        *value = new.expect("the value itself is there");
        return;
    };
    let holder = around.iter().try_fold(value, |value, step| match step {
        Step::Name(name) => value.get_mut(name),
        Step::First => value.as_array_mut()?.first_mut(),
    });
    match (holder, last, new) {
        (Some(Value::Object(object)), Step::Name(name), Some(new)) => {
            object.insert(name.as_str(), new);
        }
        (Some(Value::Object(object)), Step::Name(name), None) => {
            object.remove(name);
        }
        (Some(Value::Array(items)), Step::First, Some(new)) => items[0] = new,
        _ => panic!("the place was there a moment ago"),
    }
}

/// Undeclared members stay in their object and return; otherwise the losses list them.
fn undeclared_members_go_on_or_are_listed(journey: &Journey<'_>) -> Spoke {
    let mut places = Vec::new();
    journey.open_objects(journey.types()[0], "$".to_owned(), &mut places);
    let values = (journey.values(0, Fill::Full), journey.values(1, Fill::Full), journey.there.supplies());
    let ran = runner().run(&values, |(value, old, there)| {
        let run = |value: &Value| journey.there.run(value, Some(&old), &there);
        for place in &places {
            let (mut more, steps) = (value.clone(), steps(&format!("{place}.x-undeclared")));
            let is_there =
                at(&value, &steps[..steps.len() - 1]).is_some_and(|object| object.as_object().is_some());
            if !is_there || journey.is_lost(place) {
                continue;
            }
            set(&mut more, &steps, Some(Value::from(true)));
            let others = format!("{place}.*");
            // A part of them is listed, too, and the others stay.
            let is_lost = |loss: &Loss| loss.place == others && loss.narrow.is_none();
            let is_listed = journey.there.lens.losses.iter().any(is_lost);
            let (before, after) = (run(&value), run(&more));
            prop_assert_eq!(is_listed, before == after, "undeclared member of {} in {}", place, value);
            if let Some(back) = journey.back.filter(|back| !is_listed && back.how == How::Alone) {
                let near = back.run(&after, Some(&value), &[]);
                prop_assert_eq!(at(&near, &steps), Some(&Value::from(true)), "{} of {}", place, near);
            }
        }
        Ok(())
    });
    ran.unwrap_or_else(|why| panic!("{}: {why}", journey.name()));
    Spoke::Yes
}

/// The journeys of all packs that a law does not cover.
fn silent(law: impl Fn(&Journey<'_>) -> Spoke) -> Vec<String> {
    packs::all().iter().chain([&packs::forms()]).flat_map(|source| each(source, &law)).collect()
}

/// Journeys of shapes that only build the other side: data for old clients that is never sent back,
/// and events.
const WITHOUT_A_WAY_BACK: [&str; 9] = [
    "NewFields from v2",
    "EditFields from v2",
    "AttendingAgent from v3",
    "ContactShown from v3",
    "Charge from charges",
    "Tweet from v1",
    "User from v1",
    "Order from v1",
    "NoteChanged from v1",
];

#[test]
fn there_and_back_gives_what_is_not_listed_as_lost() {
    // Shapes that leave members out by `rest:` build one side only: what is sent, or what is answered.
    // A contact of the new side may have a null name, which requests of old clients may not: visible,
    // never sent back. The agents of a chat are visible to new clients, from a larger view of the old
    // side: no inverse.
    assert_eq!(
        silent(there_and_back),
        [
            "NewFields from v2",
            "NewFields from v3",
            "EditFields from v2",
            "EditFields from v3",
            "AttendingAgent from v2",
            "AttendingAgent from v3",
            "ContactShown from v2",
            "ContactShown from v3",
            "Charge from charges",
            "Charge from intents",
            "Tweet from v1",
            "Tweet from v2",
            "User from v1",
            "User from v2",
            "Order from v1",
            "Order from v2",
            "NoteChanged from v1",
            "NoteChanged from v2",
        ]
    );
}

#[test]
fn an_edited_view_that_is_put_back_is_seen_again() {
    // Edits leave members out, so that they are no view of one value; the other way round, from the
    // value that is edited, the law holds for them too.
    let silent = silent(edit_and_put_back);
    assert_eq!(
        silent,
        [
            "Fields from v2",
            "NewFields from v2",
            "NewFields from v3",
            "EditFields from v2",
            "EditFields from v3",
            "Comment from v2",
            "AttendingAgent from v2",
            "AttendingAgent from v3",
            "ContactEdit from v2",
            "ContactShown from v2",
            "ContactShown from v3",
            "Charge from charges",
            "Charge from intents",
            "NewCharge from intents",
            "Tweet from v1",
            "Tweet from v2",
            "User from v1",
            "User from v2",
            "Order from v1",
            "Order from v2",
            "Checklist from v1",
            "NoteChanged from v1",
            "NoteChanged from v2",
            "NoteKept from v2",
            "NoteEdit from v1",
            // One of several objects is replaced as one.
            "Animal from a",
            "Animal from b",
            "Food from a",
            "Food from b",
        ]
    );
}

#[test]
fn the_list_of_losses_is_what_is_lost() {
    assert_eq!(silent(losses_are_what_is_lost), WITHOUT_A_WAY_BACK);
}

#[test]
fn what_a_contract_does_not_declare_passes_a_shape_or_is_listed_as_lost() {
    assert_eq!(silent(undeclared_members_go_on_or_are_listed), WITHOUT_A_WAY_BACK);
}

/// Lists of one element, and conversions that do not take null, in a type that holds itself.
const LISTS_OF_ONE_IN_ITSELF: [u64; 2] = [20_032, 20_112];

/// The seeds for packs with content that the usual ones do not have.
const FURTHER: std::ops::Range<u64> = 30_000..30_400;

/// All laws, on packs that are drawn. The campaign: `SWITCHBACK_DRAWN_PACKS=5000 cargo test --test
/// integration drawn`; `SWITCHBACK_DRAWN_FROM` is the first seed, `SWITCHBACK_DRAWN_SHOW=1` prints
/// the packs.
#[test]
fn the_laws_hold_on_packs_that_are_drawn() {
    let asked =
        |name: &str, usual| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok()).unwrap_or(usual);
    let (count, first) = (asked("SWITCHBACK_DRAWN_PACKS", 60), asked("SWITCHBACK_DRAWN_FROM", 1));
    CASES.set(6);
    type Law = fn(&Journey<'_>) -> Spoke;
    let laws: [(&str, Law); 6] = [
        ("there and back", there_and_back),
        ("edit and put back", edit_and_put_back),
        ("losses", losses_are_what_is_lost),
        ("undeclared members", undeclared_members_go_on_or_are_listed),
        ("whatever comes", whole::whatever_comes),
        ("streams", whole::a_stream_gives_what_the_document_does),
    ];
    let (mut compiled, mut ran, mut silent, mut failed) = (0, 0, 0, Vec::new());
    let mut missing: Vec<&str> = SPECS.iter().map(|spec| spec.name).chain(["single_in_array"]).collect();
    let usual = (first..first + count).chain(LISTS_OF_ONE_IN_ITSELF).map(|seed| (seed, true));
    // Conversions that these happen not to draw are looked for further on.
    let further = FURTHER.take(if count < 60 { 0 } else { usize::MAX }).map(|seed| (seed, false));
    for (seed, is_usual) in usual.chain(further) {
        if !is_usual && missing.is_empty() {
            break;
        }
        let Some(drawn) = generated::pack(seed) else { continue };
        if !is_usual && !missing.iter().any(|name| generated::converts(&drawn, name)) {
            continue;
        }
        if std::env::var_os("SWITCHBACK_DRAWN_SHOW").is_some() {
            println!("{}", generated::text(&drawn));
        }
        compiled += 1;
        missing.retain(|name| !generated::converts(&drawn, name));
        for (name, law) in laws {
            whole::MEANS_ERRORS.set(drawn.means_errors);
            whole::DRAWN.set(true);
            let holds = std::panic::catch_unwind(|| each(&drawn.source, &law).len());
            match holds {
                Ok(quiet) => silent += quiet,
                Err(_) => {
                    failed.push(format!("{name}, of SWITCHBACK_DRAWN_FROM={seed} SWITCHBACK_DRAWN_PACKS=1"))
                }
            }
            ran += 2 * shapes::compiled(&drawn.source);
        }
        if std::panic::catch_unwind(|| reports_agree(&drawn.source)).is_err() {
            failed.push(format!("report, of SWITCHBACK_DRAWN_FROM={seed} SWITCHBACK_DRAWN_PACKS=1"));
        }
    }
    println!("{compiled} of {count} packs compile; {} laws ran, {silent} had nothing to say", ran - silent);
    assert!(failed.is_empty(), "{} laws do not hold:\n{}", failed.len(), failed.join("\n"));
    // A conversion without a pack would have a domain that no law has tested.
    assert!(count < 60 || missing.is_empty(), "no pack draws {missing:?}: give them to the generator");
    assert!(compiled * 2 >= count, "{compiled} of {count} packs compile");
    assert!(silent * 2 < ran, "{silent} of {ran} laws had nothing to say");
}

/// The report of a shape equals its losses, and no route with fields without a source in its answer
/// is exact.
fn reports_agree(source: &PackSource) {
    let pack = switchback_compiler::mapping::compile(source).pack.expect("it compiled before");
    let report = switchback_plan::report(&pack);
    for (shape, told) in pack.shapes.iter().zip(&report.shapes) {
        let lost = shape.to.iter().flatten().flat_map(|plan| &plan.losses).count();
        assert_eq!(lost, told.lost.len(), "{}", told.shape);
        // A direction that can be built has no losses of its own, and says nothing about the other.
        if shape.to.iter().all(Option::is_some) {
            assert_eq!(told.law == "iso", lost == 0, "{} is called {}", told.shape, told.law);
        }
    }
    for operation in report.sides.iter().flat_map(|side| &side.operations) {
        let gaps = operation.without_source.iter().any(|gap| gap.always);
        assert!(!gaps || operation.verdict != "exact", "{} is called exact", operation.operation);
    }
}
