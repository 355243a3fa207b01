//! Translates a body that arrives in two chunks. The plan renames one member, keeps one, and drops
//! all others; a pack's plans come from `switchback-compiler`.
//!
//! ```console
//! $ cargo run -q -p switchback-engine --example translate
//! {"id":7.00,"name":"a"}
//! ```

use std::error::Error;
use std::sync::Arc;
use switchback_engine::translate::stream::{Bounds, Program, Transcoder, Values};
use switchback_plan::{Emit, Key, Member, MemberAction, ObjectOp, Origin, Others, Raw, ValueOp};

fn main() -> Result<(), Box<dyn Error>> {
    let op = ValueOp::Object(Arc::new(ObjectOp {
        name: "Example".into(),
        members: vec![rename("id", "id"), rename("title", "name")],
        others: Others::Drop,
        close: Vec::new(),
        captures: 0,
        supplied: 0,
    }));
    // A program is compiled once per plan and shared by all bodies.
    let program = Arc::new(Program::compile(&op));
    let mut body = Transcoder::new(program, Arc::new(Values::default()), Bounds::default());
    let mut out = Vec::new();
    for chunk in [r#"{"id": 7.00, "ti"#, r#"tle": "a", "other": [1, 2]}"#] {
        body.push_into(chunk.as_bytes(), &mut out).map_err(|error| format!("{error:?}"))?;
    }
    body.finish(&mut out).map_err(|error| format!("{error:?}"))?;
    println!("{}", String::from_utf8(out)?);
    Ok(())
}

fn rename(from: &str, to: &str) -> Member {
    let action = MemberAction::Emit(Emit { name: key(to), op: ValueOp::Keep });
    Member { name: key(from), action, capture: None, origin: Origin { file: "example".into(), line: 1 } }
}

fn key(name: &str) -> Key {
    Key { text: name.into(), json: Raw::from(format!("\"{name}\"").as_bytes()) }
}
