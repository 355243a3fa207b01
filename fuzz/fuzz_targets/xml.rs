//! Reads any text as XML of a layout with elements, attributes, repeated and wrapped lists, a text,
//! scalars of all kinds and undeclared members.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use switchback_engine::xml::{decode, encode, tree};
use switchback_json::{Limits, Value};
use switchback_plan::{Key, XmlFormat, XmlKind, XmlMember, XmlName, XmlPlace, XmlScalar, XmlType};

fn layout() -> XmlFormat {
    let name = |local: &str| XmlName { local: local.into(), namespace: None, prefix: None };
    let member = |key: &str, place: XmlPlace, of| XmlMember { key: Key::new(key), place, of, required: key == "r" };
    let scalar = |string| {
        let kind = XmlKind::Scalar(XmlScalar { string, boolean: !string, integer: !string, number: !string });
        XmlType { kind, nullable: !string }
    };
    let members = vec![
        member("s", XmlPlace::Element(name("s")), 0),
        member("n", XmlPlace::Element(name("n")), 1),
        member("a", XmlPlace::Attribute(name("a")), 0),
        member("r", XmlPlace::Repeated(name("r")), 2),
        member("l", XmlPlace::Element(name("l")), 3),
        member("t", XmlPlace::Text, 0),
    ];
    let object = XmlType { kind: XmlKind::Object { members, others: None }, nullable: true };
    let list = XmlType { kind: XmlKind::List { item: name("i"), of: 2 }, nullable: false };
    let types = vec![scalar(true), scalar(false), object, list];
    let root = XmlName { local: "o".into(), namespace: Some("u".into()), prefix: Some("p".into()) };
    XmlFormat { content_type: "text/xml".into(), root, of: 2, types }
}

fuzz_target!(|data: &[u8]| {
    static LAYOUT: LazyLock<XmlFormat> = LazyLock::new(layout);
    let _ = tree(data, &Limits::DOCUMENT);
    let Ok(json) = decode(&LAYOUT, data, &Limits::DOCUMENT) else { return };
    let value = Value::parse(&json, &Limits::UNLIMITED).expect("a document is read as JSON");
    let text = encode(&LAYOUT, &json, &Limits::UNLIMITED).expect("JSON is written");
    let again = decode(&LAYOUT, &text, &Limits::UNLIMITED).expect("a written document is read");
    assert!(Value::parse(&again, &Limits::UNLIMITED).is_ok(), "{value:?}");
});
