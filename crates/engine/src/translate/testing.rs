//! Helpers for tests of this module and of streaming: builders for plans, and generated plans and
//! bodies.

use proptest::prelude::*;
use std::sync::Arc;
use switchback_json::{Number, Value};
use switchback_plan::convert::{Conversion, ConversionKind, Otherwise, SPECS};
use switchback_plan::{
    Absent, Captured, Close, CloseFrom, Emit, Key, Kinds, Member, MemberAction, ObjectOp, Origin, Others,
    Raw, ReasonId, ValueOp,
};

pub(crate) fn raw(json: &str) -> Raw {
    json.as_bytes().into()
}

pub(crate) fn key(name: &str) -> Key {
    Key { text: name.into(), json: raw(&Value::string(name).to_string()) }
}

pub(crate) fn origin() -> Origin {
    Origin { file: "test.map.yaml".into(), line: 1 }
}

/// A builder for an object operation.
pub(crate) struct Shape(ObjectOp);

/// Starts an operation that drops every member without a rule.
pub(crate) fn shape() -> Shape {
    Shape(ObjectOp {
        name: "test".into(),
        members: Vec::new(),
        others: Others::Drop,
        close: Vec::new(),
        captures: 0,
        supplied: 0,
    })
}

impl Shape {
    pub(crate) fn emit(self, from: &str, to: &str, op: ValueOp) -> Shape {
        self.member(from, MemberAction::Emit(Emit { name: key(to), op }), None)
    }

    pub(crate) fn same(self, name: &str) -> Shape {
        self.emit(name, name, ValueOp::Keep)
    }

    pub(crate) fn refuse(self, name: &str, reason: u16) -> Shape {
        self.member(name, MemberAction::Refuse(ReasonId(reason)), None)
    }

    /// Captures a member's text in a slot and drops it from the output.
    pub(crate) fn capture(mut self, name: &str, slot: u16) -> Shape {
        self.0.captures = self.0.captures.max(slot + 1);
        self.member(name, MemberAction::Drop, Some(slot))
    }

    pub(crate) fn member(mut self, name: &str, action: MemberAction, capture: Option<u16>) -> Shape {
        if let Some(slot) = capture {
            self.0.captures = self.0.captures.max(slot + 1);
        }
        self.0.members.push(Member { name: key(name), action, capture, origin: origin() });
        self.0.members.sort_by(|a, b| a.name.text.cmp(&b.name.text));
        self
    }

    pub(crate) fn others(mut self, others: Others) -> Shape {
        self.0.others = others;
        self
    }

    pub(crate) fn close(mut self, name: &str, from: CloseFrom) -> Shape {
        self.0.close.push(close(name, from));
        self
    }

    /// Like `close`, for a required member.
    pub(crate) fn required(mut self, name: &str, from: CloseFrom) -> Shape {
        self.0.close.push(Close { needed: true, ..close(name, from) });
        self
    }

    pub(crate) fn supplied(mut self, count: u16) -> Shape {
        self.0.supplied = count;
        self
    }

    /// Returns the index of the member of this name.
    pub(crate) fn index(&self, name: &str) -> u16 {
        self.0.member(name).map(|(at, _)| u16::try_from(at).unwrap()).unwrap()
    }

    pub(crate) fn op(self) -> ValueOp {
        ValueOp::Object(Arc::new(self.0))
    }
}

pub(crate) fn close(name: &str, from: CloseFrom) -> Close {
    Close { name: key(name), from, needed: false, null: false, origin: origin() }
}

pub(crate) fn captured(slot: u16, path: &[&str], op: ValueOp) -> Captured {
    Captured { slot, path: path.iter().map(|name| key(name)).collect(), only: None, op }
}

pub(crate) fn convert(kind: ConversionKind, forward: bool) -> ValueOp {
    ValueOp::Convert(Conversion::new(kind, forward))
}

/// Names that generated plans and bodies share, so that they match.
const NAMES: [&str; 5] = ["a", "b", "c", "é", "x y"];

/// Generates JSON values whose objects share a few names.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?(e[+-]?[0-9]{1,2})?"
            .prop_map(|text| Value::Number(Number::from_text(&text).unwrap())),
        "[a-z0-9,\"\\\\\u{e9}\u{1F600}\n]{0,8}".prop_map(|text| Value::string(&text)),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((proptest::sample::select(&NAMES[..]), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Generates JSON texts, with random white space and escaped names.
pub(crate) fn any_text() -> impl Strategy<Value = Vec<u8>> {
    (any_json(), any::<u64>()).prop_map(|(value, seed)| strew(&value, seed))
}

/// Serializes a value with random white space and escaped member names.
pub(crate) fn strew(value: &Value, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut out = Vec::new();
    strew_value(value, &mut random, &mut out);
    out
}

fn blank(random: &mut fastrand::Rng, out: &mut Vec<u8>) {
    for _ in 0..random.usize(0..3).saturating_sub(1) {
        out.push(b" \t\n\r"[random.usize(0..4)]);
    }
}

fn strew_value(value: &Value, random: &mut fastrand::Rng, out: &mut Vec<u8>) {
    blank(random, out);
    match value {
        Value::Array(values) => {
            out.push(b'[');
            for (at, value) in values.iter().enumerate() {
                out.extend_from_slice(if at == 0 { b"" } else { b"," });
                strew_value(value, random, out);
            }
            blank(random, out);
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (at, (name, value)) in members.iter().enumerate() {
                out.extend_from_slice(if at == 0 { b"" } else { b"," });
                blank(random, out);
                out.push(b'"');
                for letter in name.decode().chars() {
                    match random.u8(0..8) {
                        0 => out.extend_from_slice(format!("\\u{:04x}", u32::from(letter)).as_bytes()),
                        _ => out
                            .extend_from_slice(switchback_json::text::escape(&letter.to_string()).as_bytes()),
                    }
                }
                out.push(b'"');
                blank(random, out);
                out.push(b':');
                strew_value(value, random, out);
            }
            blank(random, out);
            out.push(b'}');
        }
        scalar => scalar.write(out),
    }
    blank(random, out);
}

/// Generates operation trees that a compiler could produce: every target member has a unique name.
pub(crate) fn any_op() -> impl Strategy<Value = ValueOp> {
    let leaf = prop_oneof![
        3 => Just(ValueOp::Keep),
        1 => Just(ValueOp::Constant(raw("{\"made\":1}"))),
        2 => any_conversion().prop_map(ValueOp::Convert),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            1 => inner.clone().prop_map(|op| ValueOp::Array(Box::new(op))),
            1 => inner.clone().prop_map(|op| ValueOp::Wrap(Box::new(op))),
            1 => inner.clone().prop_map(|op| ValueOp::Unwrap(Box::new(op))),
            4 => any_object(inner),
        ]
    })
}

/// Generates conversions that never refuse a value.
pub(crate) fn any_conversion() -> impl Strategy<Value = Conversion> {
    let examples = SPECS.iter().flat_map(|spec| spec.examples).map(|example| (example.kind)());
    let kind = proptest::sample::select(examples.collect::<Vec<_>>());
    let otherwise =
        prop_oneof![Just(Otherwise::Keep), Just(Otherwise::Drop), Just(Otherwise::Value(raw("0")))];
    (kind, any::<bool>(), otherwise).prop_map(|(kind, forward, otherwise)| Conversion {
        kind,
        forward,
        otherwise,
    })
}

fn any_object(inner: impl Strategy<Value = ValueOp> + Clone + 'static) -> impl Strategy<Value = ValueOp> {
    let member = (any::<bool>(), any::<bool>(), inner.clone());
    let members = proptest::collection::btree_map(proptest::sample::select(&NAMES[..]), member, 0..5);
    let path = proptest::collection::vec(proptest::sample::select(&NAMES[..]), 0..3);
    let closing = (0u16..4, path, any::<bool>(), any::<bool>(), inner);
    (members, proptest::collection::vec(closing, 0..4), any::<bool>()).prop_map(
        |(members, closings, keep)| {
            let mut made = shape();
            let mut slots = 0;
            for (at, (name, (emitted, kept, op))) in members.into_iter().enumerate() {
                let capture = kept.then(|| {
                    slots += 1;
                    slots - 1
                });
                made = match emitted {
                    true => made.member(
                        name,
                        MemberAction::Emit(Emit { name: key(&format!("m{at}")), op }),
                        capture,
                    ),
                    false => made.member(name, MemberAction::Drop, capture),
                };
            }
            for (at, (kind, path, flag, only, op)) in closings.into_iter().enumerate() {
                let from = match kind {
                    0 => CloseFrom::Constant(raw("\"made\"")),
                    1 if !made.0.members.is_empty() => {
                        let unless_written = u16::try_from(at % made.0.members.len()).unwrap_or(0);
                        CloseFrom::Default { unless_written, value: raw("null") }
                    }
                    2 => {
                        let inner = close("in", capture_close(slots, &path, flag, only, op));
                        let inner = Close { needed: at % 2 == 1, ..inner };
                        let deep = close("deep", CloseFrom::Object(vec![inner]));
                        let deep = Close { needed: only, ..deep };
                        CloseFrom::Object(vec![deep, close("fixed", CloseFrom::Supplied(0))])
                    }
                    _ => capture_close(slots, &path, flag, only, op),
                };
                made = made.close(&format!("c{at}"), from);
            }
            let others = if keep { Others::Keep } else { Others::Drop };
            made.supplied(1).others(others).op()
        },
    )
}

fn capture_close(slots: u16, path: &[&str], flag: bool, only: bool, op: ValueOp) -> CloseFrom {
    use switchback_json::raw::Kind;
    let absent = if flag { Absent::Value(raw("[]")) } else { Absent::Omit };
    let only = only.then(|| Kinds::from_kinds(&[Kind::String, Kind::Object]));
    let alternatives = (0..slots).map(|slot| Captured { only, ..captured(slot, path, op.clone()) });
    CloseFrom::Captured { alternatives: alternatives.collect(), absent }
}
