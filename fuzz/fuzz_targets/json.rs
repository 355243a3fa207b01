//! One grammar: document, push reader and an independent reader agree on what is JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchback_json::{ErrorKind, Limits, Reader, Validator, Value};

fuzz_target!(|text: &[u8]| {
    let limits = Limits { depth: 127, ..Limits::UNLIMITED };
    let ours = Value::parse(text, &limits);
    for size in [1, 3, 64] {
        let mut reader = Reader::new(Validator::default(), limits);
        let fed = text.chunks(size).try_for_each(|chunk| reader.feed(chunk));
        let verdict = fed.and_then(|()| reader.finish().map(drop));
        assert_eq!(verdict, ours.as_ref().map(drop).map_err(|error| *error));
    }
    match (&ours, serde_json::from_slice::<serde_json::Value>(text)) {
        (Ok(value), theirs) => {
            assert!(
                theirs.is_ok()
                    || theirs.is_err_and(|error| error.to_string().contains("number out of range"))
            );
            let written = value.to_vec();
            let again = Value::parse(&written, &limits).expect("what we write is JSON");
            assert!(again == *value && again.same_text(value));
        }
        (Err(error), Ok(_)) => assert_eq!(error.kind, ErrorKind::DuplicateMember),
        (Err(_), Err(_)) => {}
    }
});
