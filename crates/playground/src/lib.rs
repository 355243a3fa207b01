//! Compiles the pack of the manual's first page and runs one request by it, in a browser. The page
//! writes its input into a buffer of this module and reads the output from another:
//!
//! ```text
//! input:  {files: {NAME: TEXT}, side, method, target, body, reply: {status, body}}
//! output: {findings, calls: [{method, target, body}], answer: {status, body}, fault}
//! ```
//!
//! `findings` is the text of `switchback check`. `calls` and `answer` are absent while it has errors.
//! Each call gets the same reply.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use switchback_compiler::diagnostic::{Colour, to_text};
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;
use switchback_engine::translate::{Answer, Arrival, Event, Next, Reply, Request, Run, Settings};
use switchback_json::Limits;
use switchback_plan::router::{Found, Router};
use switchback_plan::{Pack, SideId};

/// Most calls of one request; plans of a served pack are bounded, edited ones may not be.
const CALLS_MAX: usize = 20;

#[derive(Debug, Deserialize)]
struct Input {
    files: BTreeMap<String, String>,
    /// The side of the client.
    side: String,
    method: String,
    /// Path and query.
    target: String,
    #[serde(default)]
    body: String,
    reply: Message,
}

/// A response of the service or the gateway.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Message {
    status: u16,
    body: String,
}

/// A call to the service.
#[derive(Clone, Debug, Serialize)]
struct MadeCall {
    method: String,
    target: String,
    body: String,
}

#[derive(Debug, Default, Serialize)]
struct Output {
    findings: String,
    calls: Vec<MadeCall>,
    answer: Option<Message>,
    /// Why there is no answer, or why it is one of the gateway.
    fault: Option<String>,
}

/// Runs `input` as the module documentation describes it. An input of another form is a fault.
pub fn run(input: &[u8]) -> Vec<u8> {
    let output = match serde_json::from_slice(input) {
        Ok(input) => run_input(&input),
        Err(error) => Output { fault: Some(error.to_string()), ..Output::default() },
    };
    serde_json::to_vec(&output).unwrap_or_default()
}

fn run_input(input: &Input) -> Output {
    let files = input.files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes())).collect();
    let compiled = compile(&PackSource::from_files::<Vec<u8>>(files));
    let findings = to_text(&compiled.sources, &compiled.findings, Colour::Never);
    let mut output = Output { findings, ..Output::default() };
    let Some(pack) = compiled.pack else { return output };
    output.fault = drive(&pack, input, &mut output);
    output
}

/// Runs the request until there is an answer. Returns why there is none, or why it is one of the
/// gateway.
fn drive(pack: &Arc<Pack>, input: &Input, output: &mut Output) -> Option<String> {
    let Some(serves) = SideId::BOTH.into_iter().find(|side| pack.sides[*side].name == input.side) else {
        return Some(format!("the pack has no side `{}`", input.side));
    };
    let Ok(method) = input.method.parse::<Method>() else {
        return Some(format!("`{}` is no method", input.method));
    };
    let (path, query) =
        input.target.split_once('?').map_or((&*input.target, None), |(path, query)| (path, Some(query)));
    let router = Router::new(&pack.directions[serves]);
    let (route, values) = match router.find(&method, path) {
        Found::Route { route, values } => (route, values.into_iter().map(Cow::into_owned).collect()),
        _ => return Some(format!("{} has no operation {method} {path}", input.side)),
    };
    let request = Request {
        path: values,
        query: query.map(str::to_owned),
        headers: json_headers(),
        body: Bytes::from(input.body.clone()),
        language: 0,
        arrival: Some(Arrival { unix_ms: 0, id: 1 }),
    };
    let mut run =
        Run::new(Arc::clone(pack), serves, route, request, Arc::new(Settings::default()), Limits::DOCUMENT);
    let (mut event, mut now) = (Event::Start, Duration::ZERO);
    loop {
        event = match run.next(event) {
            Ok(Next::Call(_)) if output.calls.len() >= CALLS_MAX => {
                return Some(format!("more than {CALLS_MAX} calls"));
            }
            Ok(Next::Call(call)) => {
                output.calls.push(MadeCall {
                    method: call.method.to_string(),
                    target: call.target.clone(),
                    body: text(call.body.as_deref().unwrap_or_default()),
                });
                let Message { status, body } = input.reply.clone();
                Event::Reply(Reply { status, headers: json_headers(), body: Bytes::from(body) })
            }
            Ok(Next::Recall(lookup)) => lookup.nothing(),
            Ok(Next::Keep(_)) => Event::Kept,
            Ok(Next::Wait(wait)) => wait.simulate(&mut now),
            Ok(Next::Answer(answer)) => {
                output.answer = Some(message(&answer));
                return None;
            }
            Ok(Next::Refuse(refused)) => {
                output.answer = Some(message(&refused.answer(pack, serves)));
                return Some("the pack refuses the request".to_owned());
            }
            Err(fault) => {
                output.answer = Some(message(&fault.answer(pack, serves, 0)));
                return Some(fault.to_string());
            }
        };
    }
}

fn message(answer: &Answer) -> Message {
    Message { status: answer.status, body: text(answer.body.as_deref().unwrap_or_default()) }
}

fn json_headers() -> HeaderMap {
    HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes room for an input of `bytes` and returns its address.
#[expect(unsafe_code, reason = "the page finds the function by its name, which no other one has")]
#[unsafe(no_mangle)]
pub extern "C" fn switchback_input(bytes: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(bytes, 0);
        input.as_mut_ptr()
    })
}

/// Runs the input. Returns the number of bytes of the output.
#[expect(unsafe_code, reason = "the page finds the function by its name, which no other one has")]
#[unsafe(no_mangle)]
pub extern "C" fn switchback_run() -> usize {
    let output = INPUT.with_borrow(|input| run(input));
    OUTPUT.replace(output);
    OUTPUT.with_borrow(Vec::len)
}

/// Returns the address of the output, valid until the next run.
#[expect(unsafe_code, reason = "the page finds the function by its name, which no other one has")]
#[unsafe(no_mangle)]
pub extern "C" fn switchback_output() -> *const u8 {
    OUTPUT.with_borrow(Vec::as_ptr)
}

#[cfg(test)]
mod tests {
    use super::run;
    use serde_json::{Value, json};

    /// Runs a request by the pack of the manual's first page, with one text of its mapping replaced.
    fn run_first_pair(side: &str, target: &str, reply: &str, (from, to): (&str, &str)) -> Value {
        let page = include_str!("../../../docs/manual/first-pair.md");
        let blocks = page.split("# file: first/").skip(1).filter_map(|block| block.split_once('\n'));
        let files: Vec<(&str, &str)> =
            blocks.map(|(name, rest)| (name, rest.split("```").next().unwrap_or_default())).collect();
        assert_eq!(files.len(), 4);
        assert!(files.iter().any(|(_, text)| text.contains(from)), "{from}");
        let files: serde_json::Map<String, Value> =
            files.iter().map(|(name, text)| ((*name).to_owned(), json!(text.replace(from, to)))).collect();
        let input = json!({
            "files": files, "side": side, "method": "GET", "target": target, "body": "",
            "reply": {"status": 200, "body": reply},
        });
        serde_json::from_slice(&run(input.to_string().as_bytes())).expect("JSON")
    }

    const NEW: &str = r#"{"id":7,"title":"Tea","cents":1999}"#;

    #[test]
    fn a_request_is_translated_in_both_directions() {
        let ran = run_first_pair("v1", "/books/7", NEW, ("scale: 100", "scale: 100"));
        assert_eq!(ran["findings"], "");
        assert_eq!(ran["calls"], json!([{"method": "GET", "target": "/library/books/7", "body": ""}]));
        assert_eq!(ran["answer"], json!({"status": 200, "body": r#"{"id":7,"name":"Tea","price":19.99}"#}));
        assert_eq!(ran["fault"], Value::Null);
        let old = r#"{"id":7,"name":"Tea","price":0.5}"#;
        let ran = run_first_pair("v2", "/library/books/7", old, ("scale: 100", "scale: 100"));
        assert_eq!(ran["answer"]["body"], r#"{"id":7,"title":"Tea","cents":50}"#);
    }

    #[test]
    fn a_changed_line_changes_the_answer() {
        let ran = run_first_pair("v1", "/books/7", NEW, ("scale: 100}", "scale: 1000}"));
        assert_eq!(ran["answer"]["body"], r#"{"id":7,"name":"Tea","price":1.999}"#);
    }

    #[test]
    fn mistakes_are_findings_and_faults() {
        let ran = run_first_pair("v1", "/books/7", NEW, ("name: title", "name: titel"));
        let findings = ran["findings"].as_str().expect("a text");
        assert!(findings.contains("titel") && findings.contains("title"), "{findings}");
        assert_eq!(ran["answer"], Value::Null);
        let ran = run_first_pair("v1", "/boks/7", NEW, ("name: title", "name: title"));
        assert_eq!(ran["fault"], "v1 has no operation GET /boks/7");
        let ran = run_first_pair("v1", "/books/7", "no JSON", ("name: title", "name: title"));
        assert_eq!(ran["answer"]["status"], 502);
        assert!(ran["fault"].is_string());
        let ran: Value = serde_json::from_slice(&run(b"{}")).expect("JSON");
        assert!(ran["fault"].is_string());
    }
}
