//! Plans for tests: short ways to write ops, and a generator of plans and of bodies that meet them.

use super::super::Values;
use crate::translate::Settings;
use proptest::prelude::*;
use std::sync::Arc;
use switchback_json::{Number, Object, Str, Value};
use switchback_plan::convert::{Conversion, ConversionKind, Otherwise, SPECS};
use switchback_plan::{
    Absent, Again, AttemptOp, Captured, ChooseBy, ChooseOp, Close, CloseFrom, Emit, Key, Kinds, Member,
    MemberAction, ObjectOp, Origin, Others, Raw, ReasonId, ValueOp,
};

pub(super) fn key(name: &str) -> Key {
    Key { text: name.into(), json: Raw::from(Value::string(name).to_vec()) }
}

pub(super) fn raw(text: &str) -> Raw {
    Raw::from(text.as_bytes())
}

pub(super) fn origin() -> Origin {
    Origin { file: "test".into(), line: 1 }
}

pub(super) fn member(name: &str, action: MemberAction) -> Member {
    Member { name: key(name), action, capture: None, origin: origin() }
}

pub(super) fn emit(name: &str, to: &str, op: ValueOp) -> Member {
    member(name, MemberAction::Emit(Emit { name: key(to), op }))
}

pub(super) fn keep(name: &str) -> Member {
    emit(name, name, ValueOp::Keep)
}

pub(super) fn captured(member: Member, slot: u16) -> Member {
    Member { capture: Some(slot), ..member }
}

pub(super) fn close(name: &str, from: CloseFrom) -> Close {
    Close { name: key(name), from, needed: false, null: false, origin: origin() }
}

pub(super) fn place(slot: u16, path: &[&str]) -> Captured {
    Captured { slot, path: path.iter().map(|name| key(name)).collect(), only: None, op: ValueOp::Keep }
}

pub(super) fn first_of(alternatives: Vec<Captured>, absent: Absent) -> CloseFrom {
    CloseFrom::Captured { alternatives, absent }
}

pub(super) fn object(members: Vec<Member>, others: Others, close: Vec<Close>) -> ValueOp {
    let mut members = members;
    members.sort_by(|a, b| a.name.text.cmp(&b.name.text));
    let captures = members.iter().filter_map(|member| member.capture).max().map_or(0, |slot| slot + 1);
    ValueOp::Object(Arc::new(ObjectOp { name: "Test".into(), members, others, close, captures, supplied: 2 }))
}

pub(super) fn array(op: ValueOp) -> ValueOp {
    ValueOp::Array(Box::new(op))
}

pub(super) fn attempt(op: ValueOp, instead: Option<Raw>) -> ValueOp {
    ValueOp::Attempt(Arc::new(AttemptOp { op, instead, null: false, origin: origin() }))
}

pub(super) fn conversion(kind: ConversionKind, otherwise: Otherwise) -> ValueOp {
    ValueOp::Convert(Conversion { kind, forward: false, otherwise })
}

/// What plans in tests take from elsewhere: a supplied value that is there and one that is not, and
/// the setting 0.
pub(super) fn values() -> Values {
    let settings = Settings::of_values(vec![Some(raw("10")), None]);
    Values { settings: Arc::new(settings), supplied: vec![Some(b"\"given\"".to_vec()), None] }
}

const NAMES: [&str; 9] =
    ["a", "b", "c", "d", "e", "long_name_of_a_member", "f\"g", "é", "a_name_that_is_too_long_to_be_expected"];

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&NAMES[..])
}

fn kinds() -> impl Strategy<Value = Kinds> {
    any::<(bool, bool, bool, bool, bool, bool)>().prop_map(
        |(null, boolean, number, string, array, object)| Kinds {
            null,
            boolean,
            number,
            string,
            array,
            object,
        },
    )
}

fn constant() -> impl Strategy<Value = Raw> {
    prop::sample::select(vec!["null", "[]", "{}", "\"x\"", "7"]).prop_map(raw)
}

fn leaf_op() -> impl Strategy<Value = ValueOp> {
    let mut conversions = vec![
        conversion(ConversionKind::IntegerToString, Otherwise::Keep),
        conversion(ConversionKind::AbsentToNull, Otherwise::Keep),
        conversion(ConversionKind::EmptyArrayToNull, Otherwise::Value(raw("\"else\""))),
        conversion(ConversionKind::StringToInteger, Otherwise::Error),
    ];
    let examples = SPECS.iter().flat_map(|spec| spec.examples);
    conversions.extend(examples.map(|example| conversion((example.kind)(), Otherwise::Drop)));
    prop_oneof![
        4 => Just(ValueOp::Keep),
        1 => constant().prop_map(ValueOp::Constant),
        2 => prop::sample::select(conversions),
    ]
}

/// Any op, a few levels deep. Some lead back to the op around them.
pub(super) fn op() -> impl Strategy<Value = ValueOp> {
    let leaf = prop_oneof![6 => leaf_op(), 1 => Just(ValueOp::Constant(raw(BACK)))];
    let tree = leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            5 => object_op(inner.clone()),
            1 => choose_op(inner.clone()),
            1 => (inner.clone(), prop::option::of(constant())).prop_map(|(op, instead)| attempt(op, instead)),
            2 => inner.clone().prop_map(array),
            1 => inner.clone().prop_map(|op| ValueOp::Wrap(Box::new(op))),
            1 => inner.prop_map(|op| ValueOp::Unwrap(Box::new(op))),
        ]
    });
    tree.prop_map(|op| lead_back(&op, None))
}

/// Stands, in generated ops, for what is to lead back.
const BACK: &str = "\"back\"";

/// The op with an [`Again`] in each place that is to lead back: to the innermost object or choice
/// around it, of which it gets a part.
fn lead_back(op: &ValueOp, around: Option<&Again>) -> ValueOp {
    match op {
        ValueOp::Constant(text) if **text == *BACK.as_bytes() => {
            around.map_or(ValueOp::Keep, |again| ValueOp::Again(again.clone()))
        }
        ValueOp::Array(inner) => array(lead_back(inner, around)),
        ValueOp::Wrap(inner) => ValueOp::Wrap(Box::new(lead_back(inner, around))),
        ValueOp::Unwrap(inner) => ValueOp::Unwrap(Box::new(lead_back(inner, around))),
        ValueOp::Attempt(held) => attempt(lead_back(&held.op, around), held.instead.clone()),
        ValueOp::Choose(choose) => {
            let own = Again::default();
            let arms = choose.arms.iter().map(|arm| match arm {
                ValueOp::Object(object) => lead_back_within(object, &own),
                arm => lead_back(arm, None),
            });
            let by = match &choose.by {
                ChooseBy::Constant { member, values } => {
                    ChooseBy::Constant { member: member.clone(), values: values.clone() }
                }
                ChooseBy::OwnField(fields) => ChooseBy::OwnField(fields.clone()),
            };
            let name = choose.name.clone();
            let made =
                ValueOp::Choose(Arc::new(ChooseOp { name, by, arms: arms.collect(), origin: origin() }));
            own.tie(&made);
            made
        }
        ValueOp::Object(object) => {
            let own = Again::default();
            let made = lead_back_within(object, &own);
            own.tie(&made);
            made
        }
        op => op.clone(),
    }
}

fn lead_back_within(object: &ObjectOp, own: &Again) -> ValueOp {
    let members = object.members.iter().map(|member| match &member.action {
        MemberAction::Emit(emit) => {
            let emit = Emit { name: emit.name.clone(), op: lead_back(&emit.op, Some(own)) };
            Member { action: MemberAction::Emit(emit), ..member.clone() }
        }
        _ => member.clone(),
    });
    let close = object.close.iter().map(|close| match &close.from {
        CloseFrom::Captured { alternatives, absent } => {
            let alternatives =
                alternatives.iter().map(|one| Captured { op: lead_back(&one.op, Some(own)), ..one.clone() });
            let from = CloseFrom::Captured { alternatives: alternatives.collect(), absent: absent.clone() };
            Close { from, ..close.clone() }
        }
        _ => close.clone(),
    });
    let others = match &object.others {
        Others::Each(op) => Others::Each(lead_back(op, Some(own))),
        others => others.clone(),
    };
    ValueOp::Object(Arc::new(ObjectOp {
        name: object.name.clone(),
        members: members.collect(),
        others,
        close: close.collect(),
        captures: object.captures,
        supplied: object.supplied,
    }))
}

/// The op, unless it may yield nothing.
fn always_writes(op: ValueOp) -> ValueOp {
    fn may_be_silent(op: &ValueOp) -> bool {
        match op {
            ValueOp::Convert(_) => true,
            ValueOp::Attempt(attempt) => attempt.instead.is_none() || may_be_silent(&attempt.op),
            ValueOp::Wrap(inner) | ValueOp::Unwrap(inner) => may_be_silent(inner),
            _ => false,
        }
    }
    if may_be_silent(&op) { ValueOp::Keep } else { op }
}

/// A choice of two or three ops.
fn choose_op(inner: impl Strategy<Value = ValueOp> + Clone + 'static) -> impl Strategy<Value = ValueOp> {
    let arms = prop::collection::vec(inner.prop_map(always_writes), 2..4);
    let names = prop::collection::vec(prop::option::of(name()), 3);
    (arms, name(), names, any::<bool>()).prop_map(|(arms, member, names, by_constant)| {
        let by = if by_constant {
            let texts = ["\"x\"", "7", "true", "null", "\"\""].into_iter();
            let values = texts.zip(0..).map(|(text, at)| (raw(text), at % arms.len() as u16)).collect();
            ChooseBy::Constant { member: key(member), values }
        } else {
            ChooseBy::OwnField(names.into_iter().take(arms.len()).map(|name| name.map(key)).collect())
        };
        ValueOp::Choose(Arc::new(ChooseOp { name: "Choice".into(), by, arms, origin: origin() }))
    })
}

/// An object of which two members are captured and read in every way by what closes it.
fn object_op(inner: impl Strategy<Value = ValueOp> + Clone + 'static) -> impl Strategy<Value = ValueOp> {
    let action = prop_oneof![
        1 => Just(None),
        4 => inner.clone().prop_map(Some),
    ];
    let others = prop_oneof![
        3 => Just(Others::Drop),
        3 => Just(Others::Keep),
        3 => inner.prop_map(|op| Others::Each(always_writes(op))),
        1 => Just(Others::Refuse(ReasonId(4))),
    ];
    let members = prop::collection::btree_map(name(), (action, any::<bool>(), 0u8..40), 0..7);
    let captured_op = prop_oneof![9 => leaf_op(), 1 => Just(ValueOp::Constant(raw(BACK)))];
    let places = prop::collection::vec(
        (0u16..2, prop::collection::vec(name(), 0..3), prop::option::of(kinds()), captured_op),
        0..3,
    );
    let closes = prop::collection::vec((0u8..6, places, prop::option::of(constant())), 0..4);
    (members, others, closes).prop_map(|(members, others, closes)| {
        let mut slot = 0;
        let count = members.len() as u16;
        let members: Vec<_> = members
            .into_iter()
            .map(|(name, (action, same, odd))| {
                let to = if same { name.to_owned() } else { format!("{name}_") };
                let mut made = match action {
                    _ if odd == 0 => member(name, MemberAction::Refuse(ReasonId(3))),
                    None => member(name, MemberAction::Drop),
                    Some(op) => emit(name, &to, op),
                };
                if odd % 3 == 0 && slot < 2 {
                    made = captured(made, slot);
                    slot += 1;
                }
                made
            })
            .collect();
        let closes = closes.into_iter().enumerate().map(|(at, (kind, places, value))| {
            let value_or = |text: &str| value.clone().unwrap_or_else(|| raw(text));
            let places: Vec<_> = places
                .into_iter()
                .filter(|(used, ..)| *used < slot)
                .map(|(slot, path, only, op)| Captured {
                    slot,
                    path: path.into_iter().map(key).collect(),
                    only,
                    op,
                })
                .collect();
            let absent = value.clone().map_or(Absent::Omit, Absent::Value);
            let from = match kind {
                0 => CloseFrom::Constant(value_or("1")),
                1 if count > 0 => {
                    CloseFrom::Default { unless_written: at as u16 % count, value: value_or("2") }
                }
                2 => CloseFrom::Supplied(at as u16 % 2),
                3 => CloseFrom::Setting(u16::from(at == 3)),
                4 => {
                    let inner = Close { needed: at % 2 == 1, ..close("in", first_of(places, absent)) };
                    let deep = close("deep", CloseFrom::Object(vec![inner]));
                    let deep = Close { needed: value.is_some(), null: at % 3 == 0, ..deep };
                    CloseFrom::Object(vec![deep, close("of", CloseFrom::Supplied(1))])
                }
                _ => first_of(places, absent),
            };
            close(&format!("close{at}"), from)
        });
        let closes = closes.collect();
        object(members, others, closes)
    })
}

/// A body whose names are those of plans and a few others, some of them escaped.
pub(super) fn body() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        prop::sample::select(vec![
            "",
            "x",
            "]}",
            "a,b:{",
            "7",
            "2024-01-01 10:00:00",
            "é😀",
            "a text that is a little longer than the others, to cross a block"
        ])
        .prop_map(Str::new),
        Just(Str::from_raw("esc\\\"aped\\\\ \\u00e9 \\ud83d\\ude00 \\n").expect("escapes are right")),
    ];
    let number = prop::sample::select(vec!["0", "-1", "7", "1.10", "1e400", "12345678901234567890"]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number.prop_map(|text| Value::from(Number::from_text(text).expect("a number"))),
        text.prop_map(Value::String),
    ];
    let any_name = prop_oneof![
        8 => name().prop_map(Str::new),
        1 => Just(Str::from_raw("\\u0061").expect("an escape")),
        2 => prop::sample::select(vec!["other", "x", "stranger", ""]).prop_map(Str::new),
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        prop_oneof![
            2 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => prop::collection::vec((any_name.clone(), inner.clone()), 0..8)
                .prop_map(|members| Value::from(members.into_iter().collect::<Object>())),
            1 => (prop::collection::vec((any_name.clone(), inner), 0..6), 2usize..5).prop_map(|(members, count)| {
                let members = Value::from(members.into_iter().collect::<Object>());
                Value::from(vec![members; count])
            }),
        ]
    })
}
