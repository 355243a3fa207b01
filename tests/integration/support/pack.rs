//! A pack of a fictitious service, built as plans: the data path is tested independently of the
//! mapping language and of any real pack.
//!
//! The old side has things, the new one has items:
//!
//! | old | new |
//! |---|---|
//! | `GET /things/{name}` | `GET /items/{name}`, `title` becomes `name`; `x-labels` is `x-tags`, and `x-left` in answers is `x-rest` |
//! | `POST /things` | `POST /items`, answered 201 without a body |
//! | `PUT /things/{name}` | `PUT /items/{name}`, not repeatable |
//! | `GET /relics/{name}` | refused, or forwarded to the old service |

use http::Method;
use std::collections::BTreeMap;
use std::sync::Arc;
use switchback_plan::{
    BodyExpected, BodyFormat, BodyPlan, CallHead, Carrier, Class, Credential, Direction, Effect, Emit,
    ErrorPiece, ErrorStyle, Expr, HeaderRule, HostId, Key, ListStyle, Location, Member, MemberAction,
    ObjectOp, Operation, Origin, Others, Pack, Pair, ParameterKind, Path, PathPart, QueryFrom, QueryRule,
    Raw, Reason, ReasonId, Refusal, RefusePolicy, Response, ResponseBody, Root, Route, RouteId, RouteKind,
    Scheme, Segment, Side, SideId, StatusFrom, StatusTo, ValueOp, Variable, Verdict,
};

/// The pack.
pub fn things() -> Pack {
    let bearer = |name: &str| Carrier::Header { name: name.into(), scheme: Scheme::Word("Bearer".into()) };
    let side = |name: &str, send: &str, scope: Option<&str>| Side {
        name: name.into(),
        credential: Credential {
            read: ["x-own", "authorization"].map(bearer).into(),
            send: vec![bearer(send)],
            tokens: Default::default(),
            headers: Vec::new(),
        },
        hosts: Vec::new(),
        scope: scope.map(str::to_owned),
    };
    Pack {
        name: "things".into(),
        sides: [side("old", "x-own", None), side("new", "authorization", Some("/accounts/{account}"))],
        directions: [
            Direction { serves: SideId::OLD, routes: routes(), error: keep() },
            Direction { serves: SideId::NEW, routes: Vec::new(), error: keep() },
        ],
        languages: vec!["en".into(), "pt-br".into(), "es".into()],
        reasons: vec![
            reason("relics", "Relics are gone.", "Las reliquias ya no existen."),
            reason("not_found", "No such thing.", "No existe."),
        ],
        errors: [(); 2].map(|()| ErrorStyle {
            body: vec![ErrorPiece::Json(raw(r#"{"why":"#)), ErrorPiece::Text, ErrorPiece::Json(raw("}"))],
            words: BTreeMap::new(),
            status: None,
            form: None,
            xml: None,
            content_type: "application/json".into(),
            statuses: BTreeMap::from([("wrong_method".into(), 501)]),
            texts: BTreeMap::from([("not_found".into(), ReasonId(1))]),
        }),
        failures: Default::default(),
        events: None,
        refuse: RefusePolicy {
            legacy_forward: [true, true],
            status: 501,
            after_date: None,
            after_status: 410,
        },
        settings: Vec::new(),
        approximate_header: None,
        archives: Vec::new(),
        harvests: Vec::new(),
        shapes: Vec::new(),
        examples: Vec::new(),
        json_types: Vec::new(),
        compared_headers: Vec::new(),
        compared_errors: [Vec::new(), Vec::new()],
        disclosures: Default::default(),
    }
}

fn routes() -> Vec<Route> {
    let name = || Variable::single("name", ParameterKind::String, true);
    let item = || vec![PathPart::Literal("/items/".into()), PathPart::Variable(0)];
    let page =
        QueryRule { name: "page".into(), from: QueryFrom::Client("page".into()), style: ListStyle::Repeated };
    let mut get = pair(
        call("GET /items/{name}", Method::GET, item(), vec![page], Effect::None),
        None,
        ResponseBody::Plan(rename()),
    );
    if let RouteKind::Pair(pair) = &mut get {
        pair.call.headers = vec![header_from("x-tags", ["request", "headers", "x-labels"])];
        pair.responses[0].headers = vec![header_from("x-left", ["reply", "headers", "x-rest"])];
    }
    let items = vec![PathPart::Literal("/items".into())];
    let post = pair(
        call("POST /items", Method::POST, items, vec![], Effect::Write),
        Some(keep()),
        ResponseBody::Empty,
    );
    let put = pair(
        call("PUT /items/{name}", Method::PUT, item(), vec![], Effect::Write),
        Some(keep()),
        ResponseBody::Empty,
    );
    let refusal = Refusal {
        reason: ReasonId(0),
        legacy_forward: true,
        status: 501,
        after_date: None,
        after_status: 410,
    };
    let written = |mut kind: RouteKind| {
        if let RouteKind::Pair(pair) = &mut kind {
            pair.responses[0].to = StatusTo::Exact(201);
        }
        kind
    };
    vec![
        route(0, Method::GET, "/things/{name}", vec![name()], BodyExpected::No, get),
        route(1, Method::POST, "/things", vec![], BodyExpected::Required, written(post)),
        route(2, Method::PUT, "/things/{name}", vec![name()], BodyExpected::Required, written(put)),
        route(3, Method::GET, "/relics/{name}", vec![name()], BodyExpected::No, RouteKind::Refuse(refusal)),
    ]
}

/// A header field that is computed from another.
fn header_from(name: &str, place: [&str; 3]) -> HeaderRule {
    let path = Path::Singular(place.iter().map(|name| Segment::Member(key(name))).collect());
    HeaderRule { name: key(name), value: Expr::At(Location { text: place.join(".").into(), path }) }
}

fn route(
    id: u16,
    method: Method,
    template: &str,
    variables: Vec<Variable>,
    body: BodyExpected,
    kind: RouteKind,
) -> Route {
    let query = vec![Variable::single("page", ParameterKind::Integer, false)];
    let effect = if method == Method::GET { Effect::None } else { Effect::Write };
    let key = format!("{method} {template}").into();
    Route {
        id: RouteId(id),
        operation: Operation {
            key,
            host: HostId::MAIN,
            method,
            template: template.into(),
            variables,
            query,
            body,
            takes_null: false,
            format: BodyFormat::Json,
            answers: BodyFormat::Json,
            effect,
        },
        kind,
        verdict: Verdict::Exact,
        notes: Vec::new(),
        losses: Vec::new(),
        calls_min: 1,
        calls_max: 1,
        business_errors: Vec::new(),
        compare: Vec::new(),
        paging: None,
        read_back: None,
        instead: Vec::new(),
        origin: origin(),
    }
}

fn call(
    operation: &str,
    method: Method,
    path: Vec<PathPart>,
    query: Vec<QueryRule>,
    effect: Effect,
) -> CallHead {
    CallHead {
        operation: operation.into(),
        host: HostId::MAIN,
        repeatable: method == Method::GET,
        method,
        path,
        query,
        headers: Vec::new(),
        format: BodyFormat::Json,
        answers: BodyFormat::Json,
        partial: false,
        effect,
        origin: origin(),
    }
}

fn pair(call: CallHead, request: Option<BodyPlan>, answer: ResponseBody) -> RouteKind {
    let response = |from, body| Response { from, to: StatusTo::Same, headers: Vec::new(), body };
    let mut responses = vec![response(StatusFrom::Class(2), answer)];
    responses.extend(
        [3, 4, 5].map(|class| response(StatusFrom::Class(class), ResponseBody::Error(keep().into()))),
    );
    RouteKind::Pair(Box::new(Pair { refused: Vec::new(), constants: Vec::new(), call, request, responses }))
}

fn keep() -> BodyPlan {
    BodyPlan { op: ValueOp::Keep, root: Root::ANY, class: Class::Pass, because: String::new() }
}

fn rename() -> BodyPlan {
    let member = Member {
        name: key("title"),
        action: MemberAction::Emit(Emit { name: key("name"), op: ValueOp::Keep }),
        capture: None,
        origin: origin(),
    };
    let object = ObjectOp {
        name: "Thing".into(),
        members: vec![member],
        others: Others::Keep,
        close: vec![],
        captures: 0,
        supplied: 0,
    };
    BodyPlan {
        op: ValueOp::Object(Arc::new(object)),
        root: Root::ANY,
        class: Class::Tokens,
        because: String::new(),
    }
}

fn key(text: &str) -> Key {
    Key { text: text.into(), json: raw(&format!("\"{text}\"")) }
}

fn raw(text: &str) -> Raw {
    text.as_bytes().into()
}

fn reason(name: &str, en: &str, es: &str) -> Reason {
    let texts = BTreeMap::from([("en".to_owned(), en.to_owned()), ("es".to_owned(), es.to_owned())]);
    Reason { name: name.into(), texts, origin: origin() }
}

fn origin() -> Origin {
    Origin { file: "things.map.yaml".into(), line: 1 }
}
