//! Values out of a contract's types: anything that a type allows, the rare included. Texts in
//! several scripts with every kind of escape, numbers beyond 2^53 and numbers that no float can
//! hold, null and absent, values that an open enumeration does not list yet, members that an open
//! object does not declare, empty and nested lists.

use proptest::prelude::*;
use switchback_compiler::contract::{
    Additional, Array, Enum, Field, Literal, Object, Scalar, ScalarKind, Test, Type, TypeKind, Types,
};
use switchback_json::{self as json, Str, Value};

/// A restriction of the values at one place, in addition to its type.
pub type Narrow<'a> = &'a dyn Fn(&Spot<'_>, BoxedStrategy<Value>) -> BoxedStrategy<Value>;

/// A place that a value is generated for.
pub struct Spot<'a> {
    /// Path from the top, such as `$.a[*].b`.
    pub path: &'a str,
    pub nullable: bool,
    /// Returns the values of the type, without null if it is one of them: random choice among these
    /// is never wasted.
    pub some: &'a BoxedStrategy<Value>,
}

/// The share of optional values that are present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Optional members are random, and null is used where permitted.
    Any,
    /// Every member is present, and no value is null or empty unless required.
    Full,
}

/// Makes values of the types of one contract.
#[derive(Clone, Copy)]
pub struct Generator<'a> {
    pub types: &'a Types,
    pub fill: Fill,
    /// Called for every place; returns its argument if there is no restriction.
    pub narrow: Narrow<'a>,
    /// Whether the member at a path must be there, optional or not.
    pub must: &'a dyn Fn(&str) -> bool,
    /// Whether the list at a path has exactly one element.
    pub single: &'a dyn Fn(&str) -> bool,
    /// Whether the object at a path may get members that its type does not declare.
    pub extras: &'a dyn Fn(&str) -> bool,
}

/// Objects and lists inside one another, at most: types may refer to themselves.
const DEPTH_MAX: usize = 6;

impl Generator<'_> {
    /// Values of a type.
    pub fn value(&self, ty: &Type) -> BoxedStrategy<Value> {
        self.at("$", ty, 0)
    }

    /// Returns values of a type at a path.
    pub fn value_at(&self, path: &str, ty: &Type) -> BoxedStrategy<Value> {
        self.at(path, ty, path.matches(['.', '[']).count())
    }

    fn at(&self, path: &str, ty: &Type, depth: usize) -> BoxedStrategy<Value> {
        let resolved = self.types.resolve(ty);
        let some = self.kind(path, resolved.kind, depth);
        let nullable = resolved.nullable;
        let always_null = matches!(resolved.kind, TypeKind::Null);
        let plain = match (nullable && !always_null, self.fill, depth > DEPTH_MAX) {
            (true, _, true) => Just(Value::Null).boxed(),
            (true, Fill::Any, false) => prop_oneof![1 => Just(Value::Null), 3 => some.clone()].boxed(),
            _ => some.clone(),
        };
        (self.narrow)(&Spot { path, nullable, some: &some }, plain)
    }

    fn kind(&self, path: &str, kind: &TypeKind, depth: usize) -> BoxedStrategy<Value> {
        match kind {
            TypeKind::Any => any_json(),
            TypeKind::Null | TypeKind::Named(_) => Just(Value::Null).boxed(),
            TypeKind::Scalar(scalar) => scalar_of(scalar),
            TypeKind::Array(array) => self.array(path, array, depth),
            TypeKind::Object(object) => self.object(path, object, depth),
            TypeKind::OneOf(_) | TypeKind::Choice(_) => {
                // Null was offered for all of them together, and the place is narrowed once.
                let told = |at: usize| {
                    let TypeKind::Choice(choice) = kind else { return None };
                    let Test::Constant { member, values } = &choice.test else { return None };
                    let values = values.iter().filter(|(_, of)| *of == at).map(|(value, _)| literal(value));
                    Some((member.clone(), values.collect::<Vec<_>>()))
                };
                let alternatives = kind.alternatives().iter().enumerate().map(|(at, ty)| {
                    let plain = self.kind(path, self.types.resolve(ty).kind, depth);
                    let Some((member, values)) = told(at).filter(|(_, values)| !values.is_empty()) else {
                        return plain;
                    };
                    (plain, prop::sample::select(values))
                        .prop_map(move |(mut value, told)| {
                            if let Some(members) = value.as_object_mut() {
                                members.insert(member.as_str(), told);
                            }
                            value
                        })
                        .boxed()
                });
                proptest::strategy::Union::new(alternatives).boxed()
            }
        }
    }

    fn array(&self, path: &str, array: &Array, depth: usize) -> BoxedStrategy<Value> {
        let wanted = usize::from(self.fill == Fill::Full && depth <= DEPTH_MAX);
        let max = array.max_items.unwrap_or(u64::MAX).min(array.min_items.max(3)) as usize;
        let min = (array.min_items as usize).max(wanted).min(max);
        let max = if depth > DEPTH_MAX { min } else { max };
        let (min, max) = if (self.single)(path) { (1, 1) } else { (min, max) };
        if max == 0 {
            return Just(Value::from(Vec::new())).boxed();
        }
        let item = self.at(&format!("{path}[*]"), &array.items, depth + 1);
        prop::collection::vec(item, min..=max).prop_map(Value::from).boxed()
    }

    fn object(&self, path: &str, object: &Object, depth: usize) -> BoxedStrategy<Value> {
        let mut members: BoxedStrategy<Vec<(Str, Value)>> = Just(Vec::new()).boxed();
        for field in object.fields.iter().filter(|field| field.required || depth <= DEPTH_MAX) {
            let name = Str::new(&field.name);
            let value = self.field(path, field, depth);
            members = (members, value)
                .prop_map(move |(mut members, value)| {
                    members.extend(value.map(|value| (name.clone(), value)));
                    members
                })
                .boxed();
        }
        let extras = match &object.additional {
            _ if !(self.extras)(path) || depth > DEPTH_MAX => None,
            Additional::Closed => None,
            Additional::Open => Some(any_json()),
            Additional::Of(ty) => Some(self.at(&format!("{path}.*"), ty, depth + 1)),
        };
        let Some(extra) = extras else { return members.prop_map(object_of).boxed() };
        let least = usize::from(self.fill == Fill::Full && object.fields.is_empty());
        let extras = prop::collection::vec((undeclared_name(), extra), least..=2);
        (members, extras).prop_map(|(members, extras)| object_of([members, extras].concat())).boxed()
    }

    fn field(&self, path: &str, field: &Field, depth: usize) -> BoxedStrategy<Option<Value>> {
        let path = below(path, &field.name);
        let value = self.at(&path, &field.ty, depth + 1);
        match field.required || self.fill == Fill::Full || (self.must)(&path) {
            true => value.prop_map(Some).boxed(),
            false => prop::option::weighted(0.7, value).boxed(),
        }
    }
}

/// The path of a member, written as the compiler writes places.
pub fn below(path: &str, name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if plain { format!("{path}.{name}") } else { format!("{path}['{}']", name.replace('\'', "\\'")) }
}

fn object_of(members: Vec<(Str, Value)>) -> Value {
    Value::Object(members.into_iter().collect())
}

fn scalar_of(scalar: &Scalar) -> BoxedStrategy<Value> {
    if let Some(Enum { values, open }) = scalar.values.as_deref() {
        let listed = prop::sample::select(values.iter().map(literal).collect::<Vec<_>>());
        return if *open { prop_oneof![3 => listed, 1 => free(scalar)].boxed() } else { listed.boxed() };
    }
    free(scalar)
}

fn literal(literal: &Literal) -> Value {
    match literal {
        Literal::Boolean(value) => Value::from(*value),
        Literal::Number(text) => number(text),
        Literal::String(text) => Value::string(text),
    }
}

fn free(scalar: &Scalar) -> BoxedStrategy<Value> {
    let limits = &scalar.limits;
    match scalar.kind {
        ScalarKind::Boolean => any::<bool>().prop_map(Value::from).boxed(),
        ScalarKind::Integer | ScalarKind::Number if limits.minimum.is_some() || limits.maximum.is_some() => {
            let bound = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<i64>().ok());
            let least = bound(&limits.minimum).unwrap_or(-(1 << 62));
            let most = bound(&limits.maximum).unwrap_or(1 << 62);
            prop_oneof![least..=most, least..=most.min(least.saturating_add(9))].prop_map(Value::from).boxed()
        }
        ScalarKind::Integer => integer().prop_map(|text| number(&text)).boxed(),
        ScalarKind::Number => number_text().prop_map(|text| number(&text)).boxed(),
        ScalarKind::String => match scalar.format.as_deref() {
            Some("date") => date().prop_map(|date| Value::string(&date)).boxed(),
            Some("date-time") => moment().prop_map(|moment| Value::string(&moment)).boxed(),
            _ => string_of(limits),
        },
    }
}

fn string_of(limits: &switchback_compiler::contract::Limits) -> BoxedStrategy<Value> {
    if let Some(pattern) = limits.patterns.first() {
        let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
        let texts =
            prop::string::string_regex(pattern).expect("patterns of contracts are plain regular expressions");
        return texts.prop_map(|text| Value::string(&text)).boxed();
    }
    if limits.min_length.is_some() || limits.max_length.is_some() {
        let least = limits.min_length.unwrap_or(0) as usize;
        let most = limits.max_length.map_or(least + 12, |most| most as usize);
        let letters = prop::collection::vec(any::<char>(), least..=most);
        return letters.prop_map(|letters| Value::string(&letters.into_iter().collect::<String>())).boxed();
    }
    text().prop_map(Value::String).boxed()
}

/// `full-date` of RFC 3339.
fn date() -> BoxedStrategy<String> {
    (0..10_000u32, 1..=12u32, 1..=31u32)
        .prop_map(|(year, month, day)| {
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let days = match month {
                2 => 28 + u32::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            format!("{year:04}-{month:02}-{:02}", day.min(days))
        })
        .boxed()
}

/// `date-time` of RFC 3339, but for leap seconds.
fn moment() -> BoxedStrategy<String> {
    let zone = prop_oneof![3 => Just("Z".to_owned()), 1 => "[+-](0[0-9]|1[0-4]):(00|30|45)"];
    let clock = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?";
    (date(), clock, zone).prop_map(|(date, clock, zone)| format!("{date}T{clock}{zone}")).boxed()
}

fn number(text: &str) -> Value {
    Value::Number(json::Number::from_text(text).expect("generated texts are numbers"))
}

/// Integers as JSON writes them: small ones, ones that a float rounds, ones that no machine word holds.
pub fn integer() -> BoxedStrategy<String> {
    prop_oneof![
        4 => (-999i64..1000).prop_map(|number| number.to_string()),
        2 => any::<i64>().prop_map(|number| number.to_string()),
        1 => (9_007_199_254_740_993i64..9_007_199_254_740_999).prop_map(|number| number.to_string()),
        1 => "-?[1-9][0-9]{20,39}",
    ]
    .boxed()
}

fn number_text() -> BoxedStrategy<String> {
    prop_oneof![
        integer(),
        "-?(0|[1-9][0-9]{0,4})\\.[0-9]{1,20}",
        "-?[1-9](\\.[0-9]{1,3})?[eE][+-]?[0-9]{1,3}"
    ]
    .boxed()
}

/// Texts, each letter written in one of the ways that JSON has for it.
pub fn text() -> BoxedStrategy<Str> {
    let piece = prop_oneof![
        6 => "[a-zA-Z0-9 ]{1,6}",
        1 => prop::sample::select(vec!["é", "ß", "漢字", "😀", "🇧🇷", "\u{200d}", "\u{7f}", "ﷺ"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec![
            "\\\"", "\\\\", "\\/", "/", "\\b", "\\f", "\\n", "\\r", "\\t", "\\u0000", "\\u0041", "\\u00e9", "\\ud83d\\ude00",
        ])
        .prop_map(str::to_owned),
        1 => prop::sample::select(vec![",", ":", "{", "}", "[", "]", "$", "$.a", "null", "'", "%2F"]).prop_map(str::to_owned),
    ];
    let raw = prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat());
    raw.prop_map(|raw| Str::from_raw(&raw).expect("pieces are written as between quotes")).boxed()
}

/// A name that no contract declares.
fn undeclared_name() -> BoxedStrategy<Str> {
    text()
        .prop_map(|text| Str::from_raw(&format!("x-{}", text.raw())).expect("a text with a letter before it"))
        .boxed()
}

/// Any JSON value.
pub fn any_json() -> BoxedStrategy<Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number_text().prop_map(|text| number(&text)),
        text().prop_map(Value::String),
    ];
    scalar
        .prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((text(), inner), 0..4).prop_map(object_of),
            ]
        })
        .boxed()
}
