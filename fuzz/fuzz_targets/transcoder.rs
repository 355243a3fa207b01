//! Streams equal the document reference, whatever the plan, the body, the cuts and the way of scanning.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use switchback_json::{Limits, validate};
use switchback_json::scan::Level;
use switchback_plan::convert::{Conversion, ConversionKind, Otherwise};
use switchback_plan::{
    Absent, Captured, Close, CloseFrom, Emit, Key, Member, MemberAction, ObjectOp, Origin, Others, Raw,
    ValueOp,
};
use switchback_engine::translate::stream::{Bounds, Program, Transcoder, Values};
use switchback_engine::translate::{Env, document};

const NAMES: [&str; 5] = ["a", "b", "c", "in", "text"];

/// Makes decisions out of bytes; zeros when they are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn next(&mut self, below: u8) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first % below
    }
}

fn key(name: &str) -> Key {
    Key { text: name.into(), json: Raw::from(format!("\"{name}\"").as_bytes()) }
}

fn origin() -> Origin {
    Origin { file: "fuzz".into(), line: 1 }
}

fn op(choices: &mut Choices<'_>, depth: u8) -> ValueOp {
    let convert = |kind, otherwise| ValueOp::Convert(Conversion { kind, forward: false, otherwise });
    match choices.next(if depth == 0 { 4 } else { 9 }) {
        0 => ValueOp::Keep,
        1 => convert(ConversionKind::AbsentToNull, Otherwise::Keep),
        2 => convert(ConversionKind::IntegerToString, Otherwise::Keep),
        3 => ValueOp::Constant(Raw::from(&b"7"[..])),
        4 => ValueOp::Array(Box::new(op(choices, depth - 1))),
        5 => ValueOp::Wrap(Box::new(op(choices, depth - 1))),
        6 => ValueOp::Unwrap(Box::new(op(choices, depth - 1))),
        _ => object(choices, depth - 1),
    }
}

fn object(choices: &mut Choices<'_>, depth: u8) -> ValueOp {
    let mut members = Vec::new();
    let mut captures = 0;
    for name in NAMES {
        let action = match choices.next(4) {
            0 => continue,
            1 => MemberAction::Drop,
            _ => MemberAction::Emit(Emit {
                name: key(if choices.next(2) == 0 { name } else { "new" }),
                op: op(choices, depth),
            }),
        };
        let capture = (choices.next(3) == 0).then_some(captures);
        captures += u16::from(capture.is_some());
        members.push(Member { name: key(name), action, capture, origin: origin() });
    }
    let mut close = Vec::new();
    for slot in 0..captures {
        let path = (0..choices.next(3)).map(|_| key(NAMES[usize::from(choices.next(5))])).collect();
        let captured = Captured { slot, path, only: None, op: op(choices, 0) };
        let from = CloseFrom::Captured { alternatives: vec![captured], absent: Absent::Omit };
        close.push(Close { name: key("moved"), from, needed: false, null: false, origin: origin() });
    }
    if !members.is_empty() {
        let from = CloseFrom::Default { unless_written: 0, value: Raw::from(&b"null"[..]) };
        close.push(Close { name: key("default"), from, needed: false, null: false, origin: origin() });
    }
    let others = if choices.next(2) == 0 { Others::Drop } else { Others::Keep };
    let name = "Fuzz".into();
    ValueOp::Object(Arc::new(ObjectOp { name, members, others, close, captures, supplied: 0 }))
}

fn stream(program: &Arc<Program>, level: Level, size: usize, body: &[u8]) -> Option<Vec<u8>> {
    let values = Arc::new(Values::default());
    let mut transcoder = Transcoder::new(program.clone(), values, Bounds::default()).at_level(level);
    let mut out = Vec::new();
    for chunk in body.chunks(size) {
        transcoder.push_into(chunk, &mut out).ok()?;
    }
    transcoder.finish(&mut out).ok().map(|()| out)
}

fuzz_target!(|input: &[u8]| {
    let Some((head, body)) = input.split_at_checked(24) else { return };
    let mut choices = Choices(head);
    let level = Level::ALL[usize::from(choices.next(3))];
    let size = [1, 2, 5, 31, 64, 100, 4096][usize::from(choices.next(7))];
    let op = op(&mut choices, 3);
    let program = Arc::new(Program::compile(&op));
    let values = Values::default();
    let mut expected = Vec::new();
    let env = Env { settings: &values.settings, supplied: &values.supplied };
    let accepted = document(&op, body, &env, &Limits::STREAM, &mut expected).is_ok().then_some(expected);
    // Bytes one by one go through the machine alone; whole, the body takes the edges that it has taught.
    let by_machine = stream(&program, Level::Portable, 1, body);
    assert!(validate(body, &Limits::STREAM).is_err() || by_machine == accepted);
    for size in [size, 4096, 4096] {
        assert_eq!(stream(&program, level, size, body), by_machine);
    }
});
