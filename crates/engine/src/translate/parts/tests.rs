//! Translation of fields and files, for any split of the body and any order of its parts.

use super::*;
use proptest::prelude::*;
use switchback_json::Value;
use switchback_plan::{Emit, Form, FormField, FormFormat, Key, Origin};

const NAMES: [(&str, &str); 5] =
    [("title", "name"), ("meta", "about"), ("tags", "labels"), ("scan", "image"), ("marks", "notes")];

/// A title, JSON, a list of texts, files and a list of JSON, with the names of one side.
fn format(is_new: bool, style: ListStyle) -> Arc<MultipartFormat> {
    let name = |at: usize| Key::new(if is_new { NAMES[at].1 } else { NAMES[at].0 });
    let form = |kind| Arc::new(Form { kind, nullable: false });
    let text = || form(FormKind::String(None));
    let list = |items| form(FormKind::Array { items, items_min: 0, items_max: None });
    let any = || form(FormKind::Any);
    let forms = [(0, text()), (1, any()), (2, list(text())), (4, list(any()))];
    let fields = forms.into_iter();
    let fields = fields.map(|(at, form)| FormField { name: name(at), form, required: false }).collect();
    let lists = vec![(name(2), style)];
    let fields = FormFormat { form: form(FormKind::Object { fields, others: None }), lists };
    let json = || PartKind::Json("application/json".into());
    let parts = vec![(name(1), json()), (name(3), PartKind::File), (name(4), json())];
    Arc::new(MultipartFormat { fields, parts })
}

fn op(to_new: bool) -> ValueOp {
    let member = |(old, new): (&str, &str)| {
        let (from, to) = if to_new { (old, new) } else { (new, old) };
        Member {
            name: Key::new(from),
            action: MemberAction::Emit(Emit { name: Key::new(to), op: ValueOp::Keep }),
            capture: None,
            origin: Origin { file: "t".into(), line: 1 },
        }
    };
    let mut members: Vec<Member> = NAMES.into_iter().map(member).collect();
    members.sort_by(|a, b| a.name.text.cmp(&b.name.text));
    let others = Others::Drop;
    let close = Vec::new();
    ValueOp::Object(Arc::new(ObjectOp { name: "t".into(), members, others, close, captures: 0, supplied: 0 }))
}

/// Translates a body in these chunks. Returns the result with its boundary.
fn mapped(pieces: &[&[u8]], boundary: &str, to_new: bool) -> Result<(Vec<u8>, String), String> {
    mapped_to(pieces, boundary, to_new, ListStyle::Repeated)
}

/// Like `mapped`, with this style for lists of texts.
fn mapped_to(
    pieces: &[&[u8]],
    boundary: &str,
    to_new: bool,
    style: ListStyle,
) -> Result<(Vec<u8>, String), String> {
    let (from, to) = (format(!to_new, ListStyle::Repeated), format(to_new, style));
    let (limits, op, named) = (Limits::DOCUMENT, op(to_new), multipart::media_type(boundary));
    let target = BodyFormat::Multipart(Arc::clone(&to));
    let mut parts =
        Parts::new(&named, &from, &target, &op, limits, 10_000).map_err(|fault| fault.to_string())?;
    let mut pieces = pieces.iter();
    let mut run = || {
        let gathered = loop {
            let gathered = parts.gather(&mut |_| true)?;
            if gathered != Gathered::More {
                break gathered;
            }
            match pieces.next() {
                Some(piece) => parts.push(Bytes::copy_from_slice(piece)),
                None => break gathered,
            }
        };
        if gathered == Gathered::More {
            parts.finish()?;
        }
        let fields = parts.fields(gathered)?;
        let mut json = Vec::new();
        let settings = Arc::new(Settings::default());
        document(&op, &fields.json, &Env::new(&settings), &limits, &mut json)
            .map_err(|error| Fault::of_body(Sender::ClientBody, &error))?;
        let (mut out, boundary) = write_fields(&to, &json, Some(boundary), 7, &limits)?;
        parts.begin(&boundary, settings);
        loop {
            while let Some(more) = parts.pass(&mut |_| true)? {
                out.extend(more);
            }
            let Some(piece) = pieces.next() else { break };
            parts.push(Bytes::copy_from_slice(piece));
        }
        out.extend(parts.end()?);
        Ok((out, boundary))
    };
    run().map_err(|fault: Fault| fault.to_string())
}

fn body(parts: &[(usize, String)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, content) in parts {
        let head = match at {
            3 => "name=scan; filename=\"f\"\r\nContent-Type: a/b".to_owned(),
            5 => "name=other; filename=x".to_owned(),
            at => format!("name={}", NAMES[*at].0),
        };
        let content = match at {
            1 => format!("[{}]", content.len()),
            4 => content.len().to_string(),
            _ => content.clone(),
        };
        out.extend(format!("--B\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n").bytes());
    }
    out.extend(b"--B--\r\n");
    out
}

fn some_parts() -> impl Strategy<Value = Vec<(usize, String)>> {
    let content = "[a\r\n-]{0,8}";
    let files = prop::collection::vec((2_usize..6, content), 0..6);
    (prop::option::of(content), any::<bool>(), files).prop_map(|(title, has_meta, files)| {
        let title = title.map(|title| (0, title)).into_iter();
        let meta = has_meta.then(|| (1, "x".to_owned())).into_iter();
        title.chain(meta).chain(files).collect()
    })
}

proptest! {
    #[test]
    fn every_cut_of_a_body_is_mapped_the_same_and_back_again(
        parts in some_parts(),
        cuts in prop::collection::vec(0_usize..400, 0..6),
    ) {
        let body = body(&parts);
        let whole = mapped(&[&body], "B", true).map_err(TestCaseError::fail)?;
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect();
        prop_assert_eq!(&mapped(&pieces, "B", true), &Ok(whole.clone()));
        let single: Vec<&[u8]> = body.chunks(1).collect();
        prop_assert_eq!(&mapped(&single, "B", true), &Ok(whole.clone()));
        // The round trip loses only the order and undeclared parts.
        let (back, boundary) = mapped(&[&whole.0], &whole.1, false).map_err(TestCaseError::fail)?;
        let known: Vec<(usize, String)> = parts.into_iter().filter(|(at, _)| *at != 5).collect();
        let wanted = example_of("a/b; boundary=B", &self::body(&known)).expect("parts");
        let found = example_of(&multipart::media_type(&boundary), &back).expect("parts");
        let json = |value: &Value| {
            let value: serde_json::Value = serde_json::from_slice(&value.to_vec()).expect("it is JSON");
            let mut value = value;
            // The gateway labels JSON with its media type.
            let parsed = |value: &serde_json::Value| {
                value.as_str().map_or(value.clone(), |text| serde_json::from_str(text).expect("JSON"))
            };
            for name in ["meta", "marks"] {
                match value.get_mut(name) {
                    Some(serde_json::Value::Array(all)) => all.iter_mut().for_each(|one| *one = parsed(one)),
                    Some(one) => *one = parsed(one),
                    None => {}
                }
            }
            value
        };
        prop_assert_eq!(json(&found), json(&wanted));
    }
}

#[test]
fn a_field_after_a_file_is_taken_where_it_is_in_time() {
    let part = |at: usize| (at, "x".to_owned());
    let told = |parts: &[(usize, String)]| mapped(&[&body(parts)], "B", true).map(drop);
    assert_eq!(told(&[part(3), part(0)]), Ok(()));
    assert_eq!(told(&[part(2), part(3), part(2), part(2)]), Ok(()));
    // A scalar is repeated, before and after a file.
    let twice = told(&[part(0), part(3), part(0)]).expect_err("it comes twice");
    assert!(twice.contains("the field `title` comes after a file"), "{twice}");
    assert!(told(&[part(3), part(1), part(1)]).is_err());
    let cut = mapped(&[&body(&[part(0), part(3)])[..90]], "B", true).expect_err("it is cut");
    assert!(cut.contains("before its final boundary"), "{cut}");
    let large = told(&[(0, "x".repeat(10_001))]).expect_err("too large");
    assert!(large.starts_with("too_large"), "{large}");
}

/// Encodes parts with these names and contents.
fn named(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, content) in parts {
        multipart::write_part("B", name, None, content.as_bytes(), &mut out);
    }
    multipart::write_end("B", &mut out);
    String::from_utf8(out).expect("text").replace("\"scan\"", "scan; filename=f").into_bytes()
}

#[test]
fn a_member_that_came_before_the_files_does_not_come_again_after_them() {
    let file = ("scan", "x");
    for parts in [
        // Brackets refer to a member that a later field sets completely.
        &[("title[a]", "1"), file, ("title", "2")][..],
        &[file, ("title[a]", "1")],
        &[file, ("title", "1"), ("title", "2")],
        // A part with an entire list, and an element: they would be nested among the fields.
        &[("marks", "[1]"), file, ("marks", "2")],
        &[file, ("marks", "[1]"), ("marks", "2")],
        &[("marks", "1"), file, ("marks", "[2]")],
    ] {
        let fault = mapped(&[&named(parts)], "B", true).expect_err("it comes again");
        assert!(fault.contains("comes after a file"), "{parts:?}: {fault}");
    }
    for parts in [&[("marks", "1"), file, ("marks", "2"), ("marks", "3")][..], &[file, ("marks", "[1,2]")]] {
        assert_eq!(mapped(&[&named(parts)], "B", true).map(drop), Ok(()), "{parts:?}");
    }
}

#[test]
fn elements_come_after_a_file_where_each_is_written_by_itself() {
    let late = named(&[("scan", "x"), ("tags", "a"), ("tags", "b")]);
    assert_eq!(mapped_to(&[&late], "B", true, ListStyle::Repeated).map(drop), Ok(()));
    for style in [ListStyle::Comma, ListStyle::Space, ListStyle::Pipe] {
        let fault = mapped_to(&[&late], "B", true, style).expect_err("it is one text");
        assert!(fault.contains("the field `tags` comes after a file"), "{fault}");
        let all = named(&[("scan", "x"), ("tags", "a")]);
        assert_eq!(mapped_to(&[&all], "B", true, style).map(drop), Ok(()));
    }
}

fn parts() -> Parts {
    let (from, to) = (format(false, ListStyle::Repeated), format(true, ListStyle::Repeated));
    let named = multipart::media_type("B");
    Parts::new(&named, &from, &BodyFormat::Multipart(to), &op(true), Limits::DOCUMENT, 10_000)
        .expect("they are parts")
}

#[test]
fn fields_are_counted_before_they_are_held_and_the_same_however_they_come() {
    let body =
        named(&[("title", &"x".repeat(1000)), ("tags", "a"), ("scan", "y"), ("tags", &"z".repeat(500))]);
    let mut counts = Vec::new();
    for size in [1, 7, body.len()] {
        let (mut parts, mut given) = (parts(), 0);
        for piece in body.chunks(size) {
            parts.push(Bytes::copy_from_slice(piece));
            if parts
                .gather(&mut |bytes| {
                    given += bytes;
                    true
                })
                .expect("fields")
                == Gathered::File
            {
                break;
            }
        }
        assert_eq!((given, parts.buffered_bytes()), (HELD_TIMES * (1000 + 1 + 9) + 2 * FIELD_BYTES, given));
        let fields = parts.fields(Gathered::File).expect("an object");
        assert!(fields.json.len() < given);
        counts.push(given);
    }
    assert_eq!(counts, [counts[0]; 3]);
    // The first byte beyond the budget is not buffered.
    for room in [0, 100, 2000, 4000] {
        let mut parts = parts();
        parts.push(Bytes::copy_from_slice(&body));
        let mut left = room;
        let fault = parts.gather(&mut |bytes| match bytes <= left {
            true => {
                left -= bytes;
                true
            }
            false => false,
        });
        let fault = fault.expect_err("there is no room");
        assert_eq!((fault.kind, parts.begun_bytes()), (FaultKind::Overloaded, 0));
    }
}

#[test]
fn what_a_late_field_took_is_given_back_but_for_its_name() {
    let late: Vec<(&str, &str)> = [("scan", "y")].into_iter().chain([("tags", "abc"); 20]).collect();
    let mut parts = parts();
    parts.push(named(&late).into());
    assert_eq!(parts.gather(&mut |_| true).map_err(|fault| fault.to_string()), Ok(Gathered::File));
    parts.fields(Gathered::File).expect("an object");
    parts.begin("B0", Arc::new(Settings::default()));
    let mut given = 0;
    while parts
        .pass(&mut |bytes| {
            given += bytes;
            true
        })
        .expect("they go on")
        .is_some()
    {}
    assert_eq!(parts.buffered_bytes(), 20 * (HELD_TIMES * 4 + FIELD_BYTES));
    assert_eq!(given, parts.buffered_bytes() + HELD_TIMES * 3, "one at a time");
}

#[test]
fn a_body_that_nobody_calls_a_form_of_parts_is_none() {
    let (from, to) = (format(false, ListStyle::Repeated), BodyFormat::Json);
    for (named, kind) in [
        ("", FaultKind::UnsupportedMedia),
        ("multipart/mixed; boundary=B", FaultKind::UnsupportedMedia),
        ("multipart/form-data", FaultKind::BadBody),
    ] {
        let fault = Parts::new(named, &from, &to, &op(true), Limits::DOCUMENT, 1).expect_err("none");
        assert_eq!(fault.kind, kind, "{named}");
    }
}

/// Translates a body by a modified version of the usual operation.
fn changed(parts: &[u8], change: impl FnOnce(&mut ObjectOp)) -> Result<String, String> {
    let ValueOp::Object(usual) = op(true) else { unreachable!("it is one") };
    let mut own = Arc::into_inner(usual).expect("nobody else has it");
    change(&mut own);
    let (from, to) = (format(false, ListStyle::Repeated), format(true, ListStyle::Repeated));
    let (named, target) = (multipart::media_type("B"), BodyFormat::Multipart(Arc::clone(&to)));
    let op = ValueOp::Object(Arc::new(own));
    let run = || {
        let limits = Limits::DOCUMENT;
        let mut reading = Parts::new(&named, &from, &target, &op, limits, 10_000)?;
        reading.push(Bytes::copy_from_slice(parts));
        let gathered = reading.gather(&mut |_| true)?;
        let fields = reading.fields(gathered)?;
        let (settings, mut json) = (Arc::new(Settings::default()), Vec::new());
        document(&op, &fields.json, &Env::new(&settings), &limits, &mut json)
            .map_err(|error| Fault::of_body(Sender::ClientBody, &error))?;
        let (mut out, boundary) = write_fields(&to, &json, Some("B"), 7, &limits)?;
        reading.begin(&boundary, settings);
        while let Some(more) = reading.pass(&mut |_| true)? {
            out.extend(more);
        }
        out.extend(reading.end()?);
        Ok(String::from_utf8_lossy(&out).into_owned())
    };
    run().map_err(|fault: Fault| fault.to_string())
}

#[test]
fn what_more_is_made_of_a_member_wants_it_before_the_files() {
    let late = named(&[("scan", "x"), ("title", "Lake")]);
    let title = |op: &ObjectOp| op.member("title").expect("it is mapped").0;
    assert!(changed(&late, |_| {}).is_ok());
    let needs = "the field `title` comes after a file";
    let captured = changed(&late, |op| {
        let at = title(op);
        op.members[at].capture = Some(0);
        op.captures = 1;
    });
    assert!(captured.as_ref().is_err_and(|fault| fault.contains(needs)), "{captured:?}");
    // Its default is already written.
    let default = changed(&late, |op| {
        let unless_written = title(op) as u16;
        let from = CloseFrom::Default { unless_written, value: switchback_plan::Raw::from(&b"\"none\""[..]) };
        let origin = Origin { file: "t".into(), line: 1 };
        op.close.push(switchback_plan::Close {
            name: Key::new("name"),
            from,
            needed: false,
            null: false,
            origin,
        });
    });
    assert!(default.as_ref().is_err_and(|fault| fault.contains(needs)), "{default:?}");
}

#[test]
fn fields_that_the_mapping_drops_come_whenever_they_like() {
    let late = named(&[("scan", "x"), ("junk", "j1"), ("junk", "j2"), ("junk[a]", "j3"), ("tags", "a")]);
    let out = changed(&late, |_| {}).expect("they are dropped");
    assert!(!out.contains('j') && out.contains("labels"), "{out}");
}

#[test]
fn a_part_is_what_its_header_says_where_no_contract_does() {
    let keep = |op: &mut ObjectOp| op.others = Others::Keep;
    let body = |head: &str, content: &str| {
        format!("--B\r\nContent-Disposition: form-data; name=more{head}\r\n\r\n{content}\r\n--B--\r\n")
            .into_bytes()
    };
    let json = changed(&body("\r\nContent-Type: application/a+json; x=y", "{\"a\":1}"), keep);
    assert!(json.as_ref().is_ok_and(|out| out.contains("more[a]\"\r\n\r\n1\r\n")), "{json:?}");
    let text = changed(&body("", "{\"a\":1}"), keep);
    assert!(text.as_ref().is_ok_and(|out| out.contains("more\"\r\n\r\n{\"a\":1}\r\n")), "{text:?}");
    let file = changed(&body("; filename=x\r\nContent-Type: a/b\r\nX: y", "1"), keep);
    let wanted = "more\"; filename=x\r\nContent-Type: a/b\r\nX: y\r\n\r\n1\r\n";
    assert!(file.as_ref().is_ok_and(|out| out.contains(wanted)), "{file:?}");
    let coded = "\r\nContent-Transfer-Encoding: base64";
    assert!(changed(&body(coded, "MQ=="), keep).is_err_and(|fault| fault.contains("coded")));
    assert!(changed(&body(&format!("; filename=x{coded}"), "MQ=="), keep).is_ok());
}

#[test]
fn late_fields_are_bounded_one_by_one_and_hold_no_boundary() {
    let large = "x".repeat(3_000);
    let many: Vec<_> = [("scan", "x")].into_iter().chain([("tags", &*large); 5]).collect();
    assert!(changed(&named(&many), |_| {}).is_ok());
    let large = "x".repeat(10_001);
    let fault = changed(&named(&[("scan", "x"), ("tags", &large)]), |_| {});
    assert!(fault.is_err_and(|fault| fault.starts_with("too_large")));
    let fault = changed(&named(&[("scan", "x"), ("tags", "B0000000000000007")]), |_| {});
    assert!(fault.is_err_and(|fault| fault.contains("holds the boundary")));
}
