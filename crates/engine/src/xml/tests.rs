use super::{XmlCause, decode, encode};
use proptest::prelude::*;
use switchback_json::{Limits, Object, Value};
use switchback_plan::{Key, XmlFormat, XmlKind, XmlMember, XmlName, XmlPlace, XmlScalar, XmlType};

const STRING: XmlScalar = XmlScalar { string: true, boolean: false, integer: false, number: false };
const INTEGER: XmlScalar = XmlScalar { string: false, boolean: false, integer: true, number: false };
const NUMBER: XmlScalar = XmlScalar { string: false, boolean: false, integer: true, number: true };
const BOOLEAN: XmlScalar = XmlScalar { string: false, boolean: true, integer: false, number: false };

fn name(local: &str) -> XmlName {
    XmlName { local: local.into(), namespace: None, prefix: None }
}

fn in_namespace(local: &str, prefix: Option<&str>, namespace: &str) -> XmlName {
    XmlName { local: local.into(), namespace: Some(namespace.into()), prefix: prefix.map(Into::into) }
}

fn scalar(of: XmlScalar) -> XmlType {
    XmlType { kind: XmlKind::Scalar(of), nullable: false }
}

fn member(key: &str, place: XmlPlace, of: usize) -> XmlMember {
    XmlMember { key: Key::new(key), place, of, required: false }
}

/// An order: 0 string, 1 integer, 2 number or null, 3 boolean, 4 wrapped list of strings, 5 item, 6
/// order, 7 money.
fn order() -> XmlFormat {
    let element = |key: &str, of| member(key, XmlPlace::Element(name(key)), of);
    let item = vec![
        member("sku", XmlPlace::Attribute(name("sku")), 0),
        element("amount", 1),
        element("weight", 2),
        member("items", XmlPlace::Repeated(name("item")), 5),
    ];
    let order = vec![
        member("id", XmlPlace::Attribute(name("id")), 1),
        member("note", XmlPlace::Element(in_namespace("Note", Some("n"), "urn:n")), 0),
        element("paid", 3),
        XmlMember { required: true, ..member("items", XmlPlace::Repeated(name("item")), 5) },
        member("tags", XmlPlace::Element(name("tags")), 4),
        element("total", 7),
    ];
    let money = vec![
        member("currency", XmlPlace::Attribute(name("currency")), 0),
        member("value", XmlPlace::Text, 2),
    ];
    let object = |members| XmlType { kind: XmlKind::Object { members, others: None }, nullable: false };
    XmlFormat {
        content_type: "application/xml".into(),
        root: in_namespace("Order", None, "urn:orders"),
        of: 6,
        types: vec![
            scalar(STRING),
            scalar(INTEGER),
            XmlType { nullable: true, ..scalar(NUMBER) },
            scalar(BOOLEAN),
            XmlType { kind: XmlKind::List { item: name("tag"), of: 0 }, nullable: true },
            object(item),
            object(order),
            object(money),
        ],
    }
}

fn read_with(text: &[u8], limits: &Limits) -> Result<String, super::XmlError> {
    Ok(String::from_utf8(decode(&order(), text, limits)?).expect("JSON is UTF-8"))
}

fn read(content: &str) -> Result<String, super::XmlError> {
    read_with(format!("<Order xmlns='urn:orders'>{content}</Order>").as_bytes(), &Limits::DOCUMENT)
}

#[test]
fn a_document_is_the_tree_of_its_contract() {
    for (content, json) in [
        ("", r#"{"items":[]}"#),
        ("<paid> 1 </paid><!-- x --><?y z?>", r#"{"paid":true,"items":[]}"#),
        (
            "<item sku='a&lt;&#38;'/>\n  <paid>false</paid><item sku='b'><amount>+07</amount><weight/></item>",
            r#"{"items":[{"sku":"a<&"},{"sku":"b","amount":7,"weight":null}],"paid":false}"#,
        ),
        ("<item><item><item/></item></item>", r#"{"items":[{"items":[{"items":[{}]}]}]}"#),
        ("<tags><tag>a</tag> <tag> b\n</tag><tag/></tags>", r#"{"tags":["a"," b\n",""],"items":[]}"#),
        ("<tags/>", r#"{"tags":[],"items":[]}"#),
        (
            "<tags xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:nil='true'/>",
            r#"{"tags":null,"items":[]}"#,
        ),
        ("<total currency='EUR'> 12.50 </total>", r#"{"total":{"currency":"EUR","value":12.50},"items":[]}"#),
        ("<total/>", r#"{"total":{},"items":[]}"#),
        (
            "<x:Note xmlns:x='urn:n'>a &amp; b<![CDATA[<c>]]>&#xe4;</x:Note>",
            "{\"note\":\"a & b<c>ä\",\"items\":[]}",
        ),
        // The same name in another namespace is another element.
        ("<Note>n</Note>", r#"{"Note":"n","items":[]}"#),
        // JSON cannot have a member twice.
        ("<id>5</id>", r#"{"items":[]}"#),
        // Text that is no number stays a text, for the check of the contract.
        ("<item><amount>seven</amount></item>", r#"{"items":[{"amount":"seven"}]}"#),
        (
            "<item><weight>.5</weight><amount>1.5</amount></item>",
            r#"{"items":[{"weight":0.5,"amount":"1.5"}]}"#,
        ),
        (
            "<more a='1'>x<b/>y</more><two>1</two><two>2</two><z a='0'/>",
            r##"{"more":{"@a":"1","b":"","#text":"xy"},"two":["1","2"],"z":{"@a":"0"},"items":[]}"##,
        ),
    ] {
        assert_eq!(read(content).as_deref(), Ok(json), "{content}");
    }
}

#[test]
fn another_document_is_an_error_with_its_place() {
    for (text, line, column, cause) in [
        ("", 1, 1, "the text has no element"),
        ("<Order>", 1, 1, "the root element is not the one of the contract"),
        ("<Order xmlns='urn:orders'>\n <paid>", 2, 8, "the text ends within an element"),
        (
            "<Order xmlns='urn:orders'>\n <paid></x>",
            2,
            8,
            "an end tag that is not the one of the open element",
        ),
        ("<Order xmlns='urn:orders'/><Order xmlns='urn:orders'/>", 1, 28, "a second root element"),
        ("<Order xmlns='urn:orders'/>x", 1, 28, "text outside the root element"),
        ("<Order xmlns='urn:orders'>x</Order>", 1, 27, "text where the contract has elements"),
        (
            "<Order xmlns='urn:orders'><paid>1</paid><paid>0</paid></Order>",
            1,
            41,
            "an element or attribute that is no list, and is repeated",
        ),
        (
            "<Order xmlns='urn:orders' id='1' id='2'/>",
            1,
            1,
            "an element or attribute that is no list, and is repeated",
        ),
        (
            "<Order xmlns='urn:orders'><paid><b/></paid></Order>",
            1,
            33,
            "an element where the contract has a text",
        ),
        (
            "<!DOCTYPE Order [<!ENTITY a 'b'>]><Order/>",
            1,
            1,
            "a document type declaration, which is not accepted",
        ),
        ("<Order xmlns='urn:orders'><paid>&a;</paid></Order>", 1, 33, "an entity that is not predefined"),
        ("<Order xmlns='urn:orders'><paid>&#0;</paid></Order>", 1, 33, "an entity that is not predefined"),
        ("<Order xmlns='urn:orders' id='&a;'/>", 1, 1, "an attribute with an entity that is not predefined"),
        ("<Order xmlns='urn:orders'><p:paid/></Order>", 1, 27, "a prefix that is not declared"),
        ("<Order xmlns='urn:orders'><1/></Order>", 1, 27, "a name that XML does not allow"),
        ("<Order xmlns='urn:orders'>\u{1}</Order>", 1, 27, "a character that XML does not allow"),
        (
            "<?xml version='1.0' encoding='utf-16'?><Order/>",
            1,
            1,
            "the encoding is neither UTF-8 nor ISO-8859-1",
        ),
        (
            "<?xml version='1.1'?><Order/>",
            1,
            1,
            "an XML declaration that is not at the start, or not of version 1.0",
        ),
    ] {
        let error = read_with(text.as_bytes(), &Limits::DOCUMENT).expect_err(text);
        assert_eq!(error.cause, XmlCause::Malformed(cause), "{text}");
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
    }
    assert!(read_with(b"<Order xmlns='urn:orders'>\xff</Order>", &Limits::DOCUMENT).is_err());
    let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><Order xmlns='urn:orders'><x>\xe4</x></Order>";
    assert_eq!(read_with(latin, &Limits::DOCUMENT).as_deref(), Ok("{\"x\":\"ä\",\"items\":[]}"));
}

#[test]
fn every_limit_is_reached() {
    let root = |content: &str| format!("<Order xmlns='urn:orders'>{content}</Order>");
    let deep = |depth: usize| root(&format!("{}{}", "<item>".repeat(depth), "</item>".repeat(depth)));
    let limits = Limits { depth: 10, members: 5, nodes: 50, total_bytes: 1_000, ..Limits::DOCUMENT };
    let many = |count: usize| root(&(0..count).map(|n| format!("<k{n}/>")).collect::<String>());
    let attributes =
        |count: usize| root(&format!("<x {}/>", (0..count).map(|n| format!("a{n}='' ")).collect::<String>()));
    let wide = Limits { total_bytes: u64::MAX, nodes: usize::MAX, ..Limits::DOCUMENT };
    for (text, limits, fits) in [
        (deep(9), limits, true),
        (deep(10), limits, false),
        (many(5), limits, true),
        (many(6), limits, false),
        (root(&"<two/>".repeat(49)), limits, true),
        (root(&"<two/>".repeat(50)), limits, false),
        (root(&format!("<x>{}</x>", "a".repeat(900))), limits, true),
        (root(&format!("<x>{}</x><y/>", "a".repeat(1_000))), limits, false),
        (attributes(256), wide, true),
        (attributes(257), wide, false),
        // Recursion is bounded even without limits.
        (deep(255), Limits::UNLIMITED, true),
        (deep(100_000), Limits::UNLIMITED, false),
    ] {
        let read = read_with(text.as_bytes(), &limits);
        assert_eq!(read.is_ok(), fits, "{} bytes: {:?}", text.len(), read.err());
        assert!(read.err().is_none_or(|error| error.is_limit()));
    }
}

#[test]
fn repeated_elements_among_many_others_are_lists() {
    let names: String = (0..20).map(|n| format!("<k{n}/>")).collect();
    for (n, later) in [(0, 1), (7, 8), (8, 9), (12, 13)] {
        let json = read(&format!("{names}<k{n}>a</k{n}>")).expect("it is a document");
        assert!(json.contains(&format!(r#""k{n}":["","a"],"k{later}":"""#)), "{json}");
    }
}

#[test]
fn a_document_of_a_hundred_thousand_names_is_read() {
    // With linear searches, this would take minutes.
    let limits = Limits { members: usize::MAX, ..Limits::DOCUMENT };
    let flat: String = (0..100_000).map(|n| format!("<k{n}/>")).collect();
    assert!(read_with(format!("<Order xmlns='urn:orders'>{flat}</Order>").as_bytes(), &limits).is_ok());
}

fn write(json: &str) -> String {
    let text = encode(&order(), json.as_bytes(), &Limits::DOCUMENT).expect("it is JSON");
    String::from_utf8(text).expect("it is UTF-8")
}

#[test]
fn a_tree_is_written_as_its_contract_declares() {
    const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
    for (json, xml) in [
        ("{}", "<Order xmlns=\"urn:orders\"/>"),
        // Attributes first, elements in the order of the contract.
        (
            r#"{"total":{"value":12.50,"currency":"<\"\n"},"tags":["a",""],"paid":true,"note":"a<b&\r","id":7}"#,
            "<Order xmlns=\"urn:orders\" id=\"7\"><n:Note xmlns:n=\"urn:n\">a&lt;b&amp;&#13;</n:Note>\
             <paid>true</paid><tags><tag>a</tag><tag/></tags>\
             <total currency=\"&lt;&quot;&#10;\">12.50</total></Order>",
        ),
        (
            r#"{"items":[{"sku":null,"weight":null},{}],"tags":null}"#,
            "<Order xmlns=\"urn:orders\"><item><weight xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:nil=\"true\"/></item><item/><tags xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:nil=\"true\"/></Order>",
        ),
        // Names that XML does not allow have no element; characters that it does not allow are replaced.
        (
            r##"{"other":[1,{"@a":"b","#text":"c"}],"1 2":3,"text":"\u0001","deep":[[1]]}"##,
            "<Order xmlns=\"urn:orders\"><other>1</other><other a=\"b\">c</other><text>\u{fffd}</text>\
             <deep><deep>1</deep></deep></Order>",
        ),
    ] {
        assert_eq!(write(json), format!("{HEAD}{xml}"), "{json}");
    }
    assert!(encode(&order(), b"{\"a\":", &Limits::DOCUMENT).is_err());
    assert!(encode(&order(), &[b'['; 100_000], &Limits::UNLIMITED).is_err());
}

/// Generates a type with a value that XML can represent.
fn typed() -> impl Strategy<Value = Drawn> {
    let text = "[ -~\t\n\räß€]{0,6}".prop_map(|text| Drawn::Scalar(Value::string(&text), STRING));
    let integer = any::<i64>().prop_map(|n| Drawn::Scalar(Value::from(n), INTEGER));
    let boolean = any::<bool>().prop_map(|value| Drawn::Scalar(Value::Bool(value), BOOLEAN));
    let leaf = prop_oneof![text, integer, boolean, Just(Drawn::Null)];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let place = prop_oneof![Just(0), Just(1), Just(2), Just(3)];
        let members = proptest::collection::btree_map("[a-z_][a-z0-9.-]{0,4}", (place, inner.clone()), 0..5);
        let list = (inner, 0..4_usize).prop_map(|(item, count)| Drawn::List(Box::new(item), count));
        prop_oneof![2 => members.prop_map(|all| Drawn::Object(all.into_iter().collect())), 1 => list]
    })
}

#[derive(Clone, Debug)]
enum Drawn {
    Null,
    Scalar(Value, XmlScalar),
    List(Box<Drawn>, usize),
    /// Members with the number of a place, as far as their values permit it.
    Object(Vec<(String, (u8, Drawn))>),
}

/// Adds the type of a drawn value, and returns its index and the value.
fn lay_out(drawn: &Drawn, types: &mut Vec<XmlType>) -> (usize, Value) {
    let (kind, nullable, value) = match drawn {
        Drawn::Null => (XmlKind::Scalar(INTEGER), true, Value::Null),
        Drawn::Scalar(value, of) => (XmlKind::Scalar(*of), false, value.clone()),
        Drawn::List(item, count) => {
            let (of, value) = lay_out(item, types);
            (XmlKind::List { item: name("i"), of }, false, Value::from(vec![value; *count]))
        }
        Drawn::Object(all) => {
            let (mut object, mut members) = (Object::new(), Vec::new());
            for (key, (number, one)) in all {
                let (place, (of, value)) = match (number, one) {
                    (1, Drawn::Scalar(..)) => (XmlPlace::Attribute(name(key)), lay_out(one, types)),
                    (2, Drawn::List(item, count)) => {
                        let (of, value) = lay_out(item, types);
                        let list = Value::from(vec![value; *count]);
                        (XmlPlace::Repeated(in_namespace(key, Some("r"), "urn:r")), (of, list))
                    }
                    (3, _) => (XmlPlace::Element(in_namespace(key, None, "urn:e")), lay_out(one, types)),
                    _ => (XmlPlace::Element(name(key)), lay_out(one, types)),
                };
                object.insert(&**key, value);
                members.push(XmlMember { required: true, ..member(key, place, of) });
            }
            // An object whose other members are attributes may have a text.
            if members.iter().all(|member| matches!(member.place, XmlPlace::Attribute(_))) {
                types.push(scalar(STRING));
                object.insert("$", Value::string(" text\t"));
                let text = member("$", XmlPlace::Text, types.len() - 1);
                members.push(XmlMember { required: true, ..text });
            }
            (XmlKind::Object { members, others: None }, false, Value::Object(object))
        }
    };
    types.push(XmlType { kind, nullable });
    (types.len() - 1, value)
}

proptest! {
    #[test]
    fn a_tree_of_any_layout_is_read_as_it_was_written(drawn in typed()) {
        let mut types = Vec::new();
        let (of, value) = lay_out(&drawn, &mut types);
        let root = in_namespace("root", Some("x"), "urn:x");
        let format = XmlFormat { content_type: "text/xml".into(), root, of, types };
        let xml = encode(&format, &value.to_vec(), &Limits::DOCUMENT).expect("it is JSON");
        let read = decode(&format, &xml, &Limits::DOCUMENT).map(|out| Value::parse(&out, &Limits::DOCUMENT));
        prop_assert_eq!(read, Ok(Ok(value)), "{}", String::from_utf8_lossy(&xml));
    }

    #[test]
    fn no_text_makes_anything_but_json_or_an_error(text in "(<[/?!]?|>|/>|['\"=& a-c;:#1]|<Order xmlns='urn:orders'>|</Order>|<!\\[CDATA\\[|\\]\\]>|<item>|</item>|&amp;|xmlns:a='b'){0,30}") {
        for text in [text.clone(), format!("<Order xmlns='urn:orders'>{text}</Order>")] {
            if let Ok(json) = decode(&order(), text.as_bytes(), &Limits::DOCUMENT) {
                let value = Value::parse(&json, &Limits::DOCUMENT);
                prop_assert!(value.is_ok(), "{}", String::from_utf8_lossy(&json));
                // A document that was read can be written and read again.
                let again = encode(&order(), &json, &Limits::DOCUMENT).expect("it is JSON");
                prop_assert!(decode(&order(), &again, &Limits::DOCUMENT).is_ok(), "{}", String::from_utf8_lossy(&again));
            }
        }
    }
}
