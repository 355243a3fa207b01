//! The header field `Link` as pages are found by it: an address that is given stands in the field,
//! between brackets.

#![no_main]

use http::{HeaderMap, HeaderValue, header};
use libfuzzer_sys::fuzz_target;
use switchback_engine::translate::link_target;

fuzz_target!(|field: &[u8]| {
    let Ok(value) = HeaderValue::from_bytes(field) else { return };
    let mut headers = HeaderMap::new();
    headers.insert(header::LINK, value);
    if let Some(target) = link_target(&headers, "next").map(str::to_owned) {
        let text = std::str::from_utf8(field).expect("a field that is no text has no links");
        assert!(text.contains(&format!("<{target}>")) && !target.contains('>'));
        assert!(text.to_ascii_lowercase().contains("next"));
        // What stands before a link does not change what follows it.
        headers.insert(header::LINK, HeaderValue::from_str(&format!("<x>; rel=other, {text}")).expect("a field"));
        assert_eq!(link_target(&headers, "next"), Some(&*target));
    }
});
