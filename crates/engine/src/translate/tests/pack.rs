//! A pack written as plans: a pair, an edit by overlay, a resumable creation, a search over pages
//! with a decision, and a refusal.

use super::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use switchback_plan::{
    Answer, Beyond, Block, BodyExpected, BodyFormat, BodyPlan, CallHead, Carrier, Cell, Check, CheckElse,
    Choice, Class, Column, Credential, Decision, Direction, Effect, End, ErrorPiece, ErrorStyle, Expr,
    HeaderRule, HostId, ListStyle, Location, NullElse, OnFail, Operation, Outcome, Overlay, Pack, Pages,
    Pair, ParameterKind, Path, PathPart, Predicate, QueryFrom, QueryRule, Reason, ReasonId, Refusal,
    RefusePolicy, Response, ResponseBody, Root, Route, RouteId, RouteKind, Row, Scheme, Segment, Selection,
    Serve, Setting, SettingKind, Side, SideId, StatusFrom, StatusTo, Step, StepAction, StepCall, Take,
    ValueOp, Variable, Verdict,
};

pub(super) const GET: RouteId = RouteId(0);
pub(super) const EDIT: RouteId = RouteId(1);
pub(super) const CREATE: RouteId = RouteId(2);
pub(super) const SEARCH: RouteId = RouteId(3);
pub(super) const REFUSED: RouteId = RouteId(4);
pub(super) const SEND: RouteId = RouteId(5);

pub(super) fn pack() -> Arc<Pack> {
    let routes = vec![get(), edit(), create(), search(), refused(), send()];
    let bearer = || Carrier::Header { name: "x-token".into(), scheme: Scheme::Word("Bearer".into()) };
    let side = |name: &str| Side {
        name: name.into(),
        credential: Credential {
            read: vec![bearer()],
            send: vec![bearer()],
            tokens: Default::default(),
            headers: Vec::new(),
        },
        hosts: Vec::new(),
        scope: None,
    };
    let error = || plan(shape().emit("reason", "error", ValueOp::Keep).op());
    Arc::new(Pack {
        name: "notes".into(),
        sides: [side("old"), side("new")],
        directions: [
            Direction { serves: SideId::OLD, routes, error: error() },
            Direction { serves: SideId::NEW, routes: Vec::new(), error: error() },
        ],
        languages: vec!["en".into(), "es".into()],
        reasons: vec![
            reason("incomplete", "Give a title, {who}.", Some("Dé un título, {who}.")),
            reason("none_open", "Nothing is open.", None),
            reason("no_colour", "Colours are gone.", Some("Ya no hay colores.")),
        ],
        errors: [(); 2].map(|()| ErrorStyle {
            body: vec![ErrorPiece::Json(raw("{\"error\":")), ErrorPiece::Text, ErrorPiece::Json(raw("}"))],
            content_type: "application/json".into(),
            statuses: BTreeMap::new(),
            texts: BTreeMap::new(),
            words: BTreeMap::new(),
            status: None,
            form: None,
            xml: None,
        }),
        failures: Default::default(),
        events: None,
        refuse: RefusePolicy {
            legacy_forward: [true, true],
            status: 501,
            after_date: None,
            after_status: 410,
        },
        settings: vec![Setting {
            name: "notes.max".into(),
            kind: SettingKind::Integer,
            default: Some(raw("5")),
            is_required: false,
            values: Vec::new(),
            about: String::new(),
            reading: None,
            origin: origin(),
        }],
        approximate_header: None,
        archives: Vec::new(),
        harvests: Vec::new(),
        shapes: Vec::new(),
        examples: Vec::new(),
        json_types: Vec::new(),
        compared_headers: Vec::new(),
        compared_errors: [Vec::new(), Vec::new()],
        disclosures: Default::default(),
    })
}

pub(super) fn plan(op: ValueOp) -> BodyPlan {
    BodyPlan { op, root: Root::ANY, class: Class::Document, because: String::new() }
}

fn reason(name: &str, en: &str, es: Option<&str>) -> Reason {
    let texts = [("en", Some(en)), ("es", es)];
    let texts = texts.into_iter().filter_map(|(tag, text)| Some((tag.to_owned(), text?.to_owned())));
    Reason { name: name.into(), texts: texts.collect(), origin: origin() }
}

/// Parses a place in the notation of mappings.
pub(super) fn location(text: &str) -> Location {
    let path = if text.contains('[') {
        Path::Query(Arc::new(jsonpath_rust::parser::parse_json_path(text).unwrap()))
    } else {
        Path::Singular(text.split('.').skip(1).map(|name| Segment::Member(key(name))).collect())
    };
    Location { text: text.into(), path }
}

pub(super) fn at(text: &str) -> Expr {
    Expr::At(location(text))
}

fn route(id: RouteId, method: &str, template: &str, body: BodyExpected, kind: RouteKind) -> Route {
    let variables = template.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let variable = |name: &str, kind| Variable::single(name, kind, false);
    Route {
        id,
        operation: Operation {
            key: format!("{method} {template}").into(),
            host: HostId::MAIN,
            method: method.parse().unwrap(),
            template: template.into(),
            variables: variables.map(|name| variable(name, ParameterKind::Integer)).collect(),
            query: vec![variable("page", ParameterKind::Integer), variable("q", ParameterKind::String)],
            body,
            takes_null: false,
            format: BodyFormat::Json,
            answers: BodyFormat::Json,
            effect: Effect::None,
        },
        kind,
        verdict: Verdict::Exact,
        notes: Vec::new(),
        losses: Vec::new(),
        calls_min: 0,
        calls_max: 9,
        business_errors: Vec::new(),
        compare: Vec::new(),
        paging: None,
        read_back: None,
        instead: Vec::new(),
        origin: origin(),
    }
}

fn head(method: &str, path: Vec<PathPart>) -> CallHead {
    let method: http::Method = method.parse().unwrap();
    CallHead {
        operation: format!("{method} …").into(),
        host: HostId::MAIN,
        effect: if method == http::Method::GET { Effect::None } else { Effect::Write },
        repeatable: method == http::Method::GET,
        method,
        path,
        query: Vec::new(),
        headers: Vec::new(),
        format: BodyFormat::Json,
        answers: BodyFormat::Json,
        partial: false,
        origin: origin(),
    }
}

fn literal(text: &str) -> PathPart {
    PathPart::Literal(text.into())
}

fn step(name: Option<&str>, action: StepAction) -> Step {
    Step { name: name.map(key), action, origin: origin() }
}

fn step_call(head: CallHead, body: Option<Expr>, on_fail: OnFail) -> StepCall {
    StepCall {
        head,
        body,
        when: None,
        each: None,
        pages: None,
        poll: None,
        promises: Vec::new(),
        on_fail,
        resume: None,
    }
}

fn call(head: CallHead, body: Option<Expr>, on_fail: OnFail) -> StepAction {
    StepAction::Call(Box::new(step_call(head, body, on_fail)))
}

fn answer(status: u16, body: Option<Expr>) -> End {
    End::Answer(Answer { status, headers: Vec::new(), body, legacy_forward: false })
}

fn refusal(reason: u16) -> Refusal {
    Refusal {
        reason: ReasonId(reason),
        legacy_forward: true,
        status: 501,
        after_date: None,
        after_status: 410,
    }
}

fn get() -> Route {
    let responses = vec![
        Response {
            from: StatusFrom::Class(2),
            to: StatusTo::Exact(200),
            headers: vec![HeaderRule { name: key("x-age"), value: at("$.reply.headers.age") }],
            body: ResponseBody::Plan(plan(shape().emit("body", "text", ValueOp::Keep).op())),
        },
        Response {
            from: StatusFrom::Class(4),
            to: StatusTo::Same,
            headers: Vec::new(),
            body: ResponseBody::Error(plan(shape().emit("reason", "error", ValueOp::Keep).op()).into()),
        },
    ];
    let mut call = head("GET", vec![literal("/items/"), PathPart::Variable(0)]);
    call.query = vec![
        QueryRule { name: "p".into(), from: QueryFrom::Client("page".into()), style: ListStyle::Repeated },
        QueryRule {
            name: "max".into(),
            from: QueryFrom::Value(at("$.config.notes.max")),
            style: ListStyle::Repeated,
        },
    ];
    call.headers = vec![HeaderRule { name: key("x-trace"), value: at("$.request.headers.x-trace") }];
    let pair = Pair { refused: Vec::new(), constants: Vec::new(), call, request: None, responses };
    route(GET, "GET", "/notes/{id}", BodyExpected::No, RouteKind::Pair(Box::new(pair)))
}

fn edit_shape() -> ValueOp {
    let made = shape().same("title").same("author");
    let author = made.index("author");
    made.close(
        "author",
        switchback_plan::CloseFrom::Default { unless_written: author, value: raw("\"nobody\"") },
    )
    .close("kind", switchback_plan::CloseFrom::Constant(raw("\"note\"")))
    .op()
}

fn edit() -> Route {
    let item = || head("PUT", vec![literal("/items/"), PathPart::Variable(0)]);
    let body = Expr::Shape {
        op: edit_shape(),
        from: Box::new(at("$.request.body")),
        with: Vec::new(),
        over: Some(Box::new(Overlay {
            base: at("$.old.body"),
            fields: ["title", "author", "kind", "city"].map(key).to_vec(),
        })),
        null_as: vec![(key("title"), raw("\"\""))],
        null_else: NullElse::Absent,
    };
    let serve = Serve {
        reads_arrival: false,
        checks: vec![Check {
            predicate: Predicate::AnyPresent(vec![
                location("$.request.body.title"),
                location("$.request.body.author"),
            ]),
            only_if: None,
            unless: None,
            otherwise: CheckElse::Answer { status: 400, reason: ReasonId(0) },
            origin: origin(),
        }],
        fill: Vec::new(),
        block: Block {
            steps: vec![
                step(Some("old"), call(CallHead { ..head("GET", item().path) }, None, OnFail::Pass)),
                step(None, call(item(), Some(body), OnFail::Pass)),
            ],
            end: answer(204, None),
        },
    };
    route(EDIT, "POST", "/notes/{id}", BodyExpected::Required, RouteKind::Serve(Box::new(serve)))
}

fn create() -> Route {
    let title = Expr::Object(vec![(key("title"), at("$.request.body.title"))]);
    let made = StepAction::Call(Box::new(StepCall {
        resume: Some(vec![at("$.request.body.title")]),
        ..step_call(head("POST", vec![literal("/items")]), Some(title), OnFail::Pass)
    }));
    let item = |method| head(method, vec![literal("/items/"), PathPart::Value(at("$.made.body.id"))]);
    let created = HeaderRule { name: key("x-created-id"), value: at("$.made.body.id") };
    let serve = Serve {
        reads_arrival: false,
        checks: Vec::new(),
        fill: vec![(key("tags"), raw("[]"))],
        block: Block {
            steps: vec![
                step(Some("made"), made),
                step(None, call(item("PUT"), Some(at("$.request.body")), OnFail::PassWith(vec![created]))),
                step(Some("full"), call(item("GET"), None, OnFail::Use(at("$.made.body")))),
            ],
            end: answer(201, Some(Expr::Array(vec![at("$.full.body")]))),
        },
    };
    route(CREATE, "POST", "/notes", BodyExpected::Required, RouteKind::Serve(Box::new(serve)))
}

fn search() -> Route {
    let mut items = head("GET", vec![literal("/items")]);
    items.query = vec![QueryRule {
        name: "owner".into(),
        from: QueryFrom::Value(at("$.request.path.id")),
        style: ListStyle::Repeated,
    }];
    let open = "$.items.body[?@.open == true && @.owner == $.request.path.id]";
    let pages = StepAction::Call(Box::new(StepCall {
        pages: Some(Pages {
            parameter: "page".into(),
            first: 0,
            upto: 3,
            size: 2,
            until: Some(location(open)),
            beyond: Beyond::Cut,
        }),
        ..step_call(items, None, OnFail::Pass)
    }));
    let pick = StepAction::Select(Selection {
        choices: vec![Choice { when: None, from: location(open), take: Take::Newest(vec![key("at")]) }],
    });
    let outcome =
        |name: &str, block| Outcome { name: name.into(), block, notes: Vec::new(), origin: origin() };
    let row = |cells, outcome| Row { cells, outcome, origin: origin() };
    let decision = Decision {
        columns: vec![
            Column::Place(location("$.item.state")),
            Column::Holds(Predicate::Present(location("$.request.body.force"))),
        ],
        rows: vec![
            row(vec![Cell::Absent, Cell::Any], 2),
            row(vec![Cell::OneOf(vec![raw("\"done\""), raw("1")]), Cell::OneOf(vec![raw("false")])], 0),
            row(vec![Cell::Any, Cell::Any], 1),
        ],
        outcomes: vec![
            outcome("skip", Block { steps: Vec::new(), end: answer(200, Some(at("$.item.id"))) }),
            outcome(
                "run",
                Block {
                    steps: vec![step(
                        None,
                        call(
                            head(
                                "POST",
                                vec![literal("/items/"), PathPart::Value(at("$.item.id")), literal("/run")],
                            ),
                            None,
                            OnFail::Refuse(refusal(2)),
                        ),
                    )],
                    end: answer(
                        200,
                        Some(Expr::Object(vec![
                            (key("ran"), at("$.item.id")),
                            (
                                key("say"),
                                Expr::Text {
                                    reason: ReasonId(0),
                                    with: vec![("who".into(), at("$.item.id"))],
                                },
                            ),
                        ])),
                    ),
                },
            ),
            outcome("none", Block { steps: Vec::new(), end: End::Refuse(refusal(1)) }),
        ],
    };
    let serve = Serve {
        reads_arrival: false,
        checks: Vec::new(),
        fill: Vec::new(),
        block: Block {
            steps: vec![step(Some("items"), pages), step(Some("item"), pick)],
            end: End::Decide(Box::new(decision)),
        },
    };
    route(SEARCH, "POST", "/owners/{id}/run", BodyExpected::Optional, RouteKind::Serve(Box::new(serve)))
}

fn refused() -> Route {
    route(REFUSED, "DELETE", "/notes/{id}", BodyExpected::No, RouteKind::Refuse(refusal(2)))
}

fn send() -> Route {
    let pair = Pair {
        constants: Vec::new(),
        refused: Vec::new(),
        call: head("PUT", vec![literal("/items/"), PathPart::Variable(0), literal("/send")]),
        request: Some(plan(shape().same("text").refuse("colour", 2).op())),
        responses: vec![
            Response {
                from: StatusFrom::Class(2),
                to: StatusTo::Exact(201),
                headers: Vec::new(),
                body: ResponseBody::Empty,
            },
            Response {
                from: StatusFrom::Class(5),
                to: StatusTo::Same,
                headers: Vec::new(),
                body: ResponseBody::Error(plan(ValueOp::Keep).into()),
            },
        ],
    };
    route(SEND, "POST", "/notes/{id}/send", BodyExpected::Required, RouteKind::Pair(Box::new(pair)))
}
