//! Reads a JSON document from standard input, sets one member, and writes the document to standard
//! output. All other numbers, escapes and names keep their text.
//!
//! ```console
//! $ echo '{"id": 12345678901234567890, "price": 1.50}' | cargo run -q -p switchback-json --example edit
//! {"id":12345678901234567890,"price":1.50,"edited":true}
//! ```

use std::error::Error;
use std::io::{Read, Write, stdin, stdout};
use switchback_json::{Limits, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = Vec::new();
    stdin().read_to_end(&mut text)?;
    let mut value = Value::parse(&text, &Limits::DOCUMENT)?;
    value.as_object_mut().ok_or("the document is no object")?.insert("edited", true);
    let mut out = value.to_vec();
    out.push(b'\n');
    stdout().write_all(&out)?;
    Ok(())
}
