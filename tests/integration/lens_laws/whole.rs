//! The laws for all possible values: values of the contract's types without exception, regardless
//! of the domains of conversions. All input conforms to its contract; therefore each error was
//! announced, all output conforms to the other contract, and each value that does not return
//! unchanged is listed as a loss.

use super::domain::Reading;
use super::shapes::{How, Way};
use super::{Journey, Spoke, is_listed, runner};
use crate::support::values::{Fill, Generator, below};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeSet;
use switchback_compiler::contract::{Additional, TypeIn, TypeKind, breaches};
use switchback_engine::translate::{Cause, TranslateError};
use switchback_json::Value;
use switchback_plan::{Loss, NoteKind};

thread_local! {
    /// Returns whether a line of the pack declares an error for values outside the domain of its
    /// conversion.
    pub static MEANS_ERRORS: Cell<bool> = const { Cell::new(false) };
    /// Whether the pack was generated: its types are so unrelated that partial losses occur
    /// everywhere.
    pub static DRAWN: Cell<bool> = const { Cell::new(false) };
}

impl Journey<'_> {
    /// Values of the side that is started from, all that its contract allows.
    fn all_values(&self) -> BoxedStrategy<Value> {
        let [ty, other] = self.types();
        let room = |ty: TypeIn<'_>| match ty.types.resolve(ty.ty).kind {
            TypeKind::Object(object) => Some(object.additional.clone()),
            _ => None,
        };
        let fits_unasked =
            room(ty) == Some(Additional::Open) && matches!(room(other), Some(Additional::Of(_)));
        let all = Generator {
            types: ty.types,
            fill: Fill::Any,
            narrow: &|_, plain| plain,
            must: &|_| false,
            single: &|_| false,
            // Undeclared members of an open object are assumed to be valid if the other side is open too.
            extras: &|path| !fits_unasked || self.reading[0].home(path) != "$",
        };
        all.value(ty.ty)
    }
}

/// Returns whether the author of a mapping was warned of this error, or declared it.
fn was_told(way: &Way, why: &TranslateError) -> bool {
    match why.cause {
        Cause::Convert(_) | Cause::NotOne => MEANS_ERRORS.get() || way.lens.is_partial,
        Cause::Refused(_) => !way.lens.refuses.is_empty(),
        _ => false,
    }
}

/// No error without an announcement, no output outside the other contract, no loss that is not
/// listed.
pub fn whatever_comes(journey: &Journey<'_>) -> Spoke {
    let way = journey.there;
    if way.how == How::Over {
        return Spoke::No;
    }
    let [near, far] = journey.types();
    let breaks = |way: &Way| way.lens.notes.iter().any(|note| note.kind == NoteKind::Despite);
    let back = journey.back.filter(|back| back.how != How::Over);
    let back_values = back.map(Way::supplies).unwrap_or_else(|| Just(Vec::new()).boxed());
    let values = (journey.all_values(), way.supplies(), back_values);
    let ran = runner().run(&values, |(value, there_with, back_with)| {
        let there = match way.try_run(&value, None, &there_with) {
            Ok(there) => there,
            Err(why) => {
                prop_assert!(was_told(way, &why), "{:?} in {}", why, value);
                return Ok(());
            }
        };
        if !breaks(way) {
            let breaches = breaches(far.types, far.ty, &there, None);
            prop_assert!(breaches.is_empty(), "{} is made of {}: {:?}", there, value, breaches);
        }
        let Some(back) = back else { return Ok(()) };
        let again = match back.try_run(&there, None, &back_with) {
            Ok(again) => again,
            Err(why) => {
                prop_assert!(was_told(back, &why), "{:?} in {}, made of {}", why, there, value);
                return Ok(());
            }
        };
        if !breaks(back) {
            let breaches = breaches(near.types, near.ty, &again, None);
            prop_assert!(breaches.is_empty(), "{} is made of {}: {:?}", again, there, breaches);
        }
        let list = List { losses: &way.lens.losses, reading: &journey.reading[0] };
        list.agree(Some(&again), Some(&value), "$")
            .map_err(|why| TestCaseError::fail(format!("{why}\n  of {value}\n  by {there}")))
    });
    ran.unwrap_or_else(|why| panic!("{}: {why}", journey.name()));
    Spoke::Yes
}

/// The losses, and the parts of the value that a shape reads for them.
pub struct List<'a> {
    pub losses: &'a [Loss],
    pub reading: &'a Reading,
}

impl List<'_> {
    /// Whether a place, or one around it, is listed as lost in part.
    pub fn is_in_doubt(&self, path: &str) -> bool {
        let home = self.reading.home(path);
        self.losses.iter().filter(|loss| loss.partly).any(|loss| {
            home.strip_prefix(&loss.place).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    /// Whether a place is listed as lost in part.
    pub fn in_part(&self, path: &str) -> bool {
        self.losses.iter().any(|loss| loss.partly && loss.place == path)
    }

    /// Returns whether a result is permitted for a partial loss: of a mapped object, its presence;
    /// of a value that is read as one, anything.
    pub fn excuses(&self, found: Option<&Value>, wanted: Option<&Value>, path: &str) -> bool {
        let elements = |value: Option<&Value>| value.and_then(Value::as_array).map(|items| items.len());
        if let (Some(found), Some(wanted)) = (elements(found), elements(wanted))
            && found != wanted
            && self.in_part(&format!("{path}[*]"))
        {
            return true;
        }
        let is_nothing = |value: Option<&Value>| {
            self.is_hollow(value, path) || value.is_none_or(|value| value.as_object().is_none())
        };
        self.in_part(path)
            && (!self.reading.is_taken_apart(path)
                || self.reading.converts_whole(path)
                || wanted.is_some_and(|wanted| self.reading.turns_away(path, wanted))
                || (is_nothing(found) && is_nothing(wanted)))
    }

    /// Returns whether the value returned unchanged, apart from listed losses.
    pub fn agree(&self, found: Option<&Value>, wanted: Option<&Value>, path: &str) -> Result<(), String> {
        let path = &self.reading.home(path);
        if is_listed(self.losses, path) || found == wanted || is_one_number(found, wanted) {
            return Ok(());
        }
        if self.excuses(found, wanted, path) {
            return Ok(());
        }
        match (found, wanted) {
            (Some(Value::Object(found)), Some(Value::Object(wanted)))
                if self.reading.is_taken_apart(path) =>
            {
                let names: BTreeSet<String> =
                    found.keys().chain(wanted.keys()).map(|key| key.decode().into_owned()).collect();
                names.iter().try_for_each(|name| {
                    let (found, wanted) = (found.get(name), wanted.get(name));
                    if name.starts_with("x-")
                        && self.losses.iter().any(|loss| loss.place == format!("{path}.*"))
                    {
                        return Ok(());
                    }
                    let inner = match name.starts_with("x-") {
                        true => format!("{path}.*"),
                        false => below(path, name),
                    };
                    self.agree(found, wanted, &inner)
                })
            }
            (Some(Value::Array(found)), Some(Value::Array(wanted))) if self.reading.is_taken_apart(path) => {
                let item = format!("{path}[*]");
                if found.len() != wanted.len() {
                    return Err(format!("at {path}: {} elements of {}", found.len(), wanted.len()));
                }
                found
                    .iter()
                    .zip(wanted.iter())
                    .try_for_each(|(found, wanted)| self.agree(Some(found), Some(wanted), &item))
            }
            (found, wanted) => Err(format!("at {path}: found {found:?}, expected {wanted:?}")),
        }
    }

    /// Absent, null, or an object with only listed members.
    fn is_hollow(&self, value: Option<&Value>, path: &str) -> bool {
        let Some(value) = value else { return true };
        let members = |object: &switchback_json::Object| {
            object.iter().all(|(key, inner)| {
                let name = key.decode();
                let place = below(path, &name);
                is_listed(self.losses, &place)
                    || self.in_part(&place)
                    || (name.starts_with("x-")
                        && self.losses.iter().any(|loss| loss.place == format!("{path}.*")))
                    || self.is_hollow(Some(inner), &place)
            })
        };
        value.is_null() || value.as_object().is_some_and(members)
    }
}

/// Whether both are one number, however each is written.
fn is_one_number(a: Option<&Value>, b: Option<&Value>) -> bool {
    let number = |value: Option<&Value>| match value {
        Some(number @ Value::Number(_)) => number.to_string().parse::<f64>().ok(),
        _ => None,
    };
    number(a).zip(number(b)).is_some_and(|(a, b)| a == b)
}

/// A stream yields the result of the document class for every division into pieces: the same text,
/// or an error as well.
pub fn a_stream_gives_what_the_document_does(journey: &Journey<'_>) -> Spoke {
    let way = journey.there;
    if way.how == How::Over {
        return Spoke::No;
    }
    let cuts = prop_oneof![
        Just((0..4096).collect::<Vec<usize>>()),
        prop::collection::btree_set(0..400usize, 0..8).prop_map(|cuts| cuts.into_iter().collect()),
    ];
    let values = (journey.all_values(), way.supplies(), cuts);
    let ran = runner().run(&values, |(value, supplied, cuts)| {
        let [document, stream] = way.texts(&value, &supplied, &cuts);
        match (document, stream) {
            (Ok(document), Ok(stream)) => prop_assert_eq!(
                String::from_utf8_lossy(&stream),
                String::from_utf8_lossy(&document),
                "of {}",
                value
            ),
            (Err(_), Err(_)) => {}
            (document, stream) => {
                prop_assert!(false, "document: {:?}, stream: {:?}, of {}", document, stream, value);
            }
        }
        Ok(())
    });
    ran.unwrap_or_else(|why| panic!("{}: {why}", journey.name()));
    Spoke::Yes
}
