//! The schema of `pack.yaml`.

use super::{KeyDoc, Sides, anything, by_side, keys, list_of, map_of, object, reference, text, words};
use serde_json::{Value, json};
use switchback_plan::{BasicPart, BodyForm, ClientAuth, GATEWAY_ERRORS, RefreshExtra, SettingKind};

pub(super) fn manifest(sides: Sides<'_>) -> Value {
    let side_names = object(
        &keys::SIDES,
        &[("old", "The retired side.", text()), ("new", "The side that replaces it.", text())],
    );
    let lines: &[KeyDoc<'_>] = &[
        ("pack", "Name of the pack.", text()),
        ("sides", "The names of the two API versions.", side_names),
        (
            "contracts",
            "The OpenAPI document of each side, as a path within the pack.",
            by_side(sides, 2, &text()),
        ),
        ("credentials", "How each side carries its token.", by_side(sides, 2, &credential())),
        (
            "send",
            "What every call to a side has; a route that says something else of it wins.",
            by_side(sides, 0, &sent()),
        ),
        (
            "scope",
            "Path prefix that selects a client's secondary account, with one `{variable}`.",
            by_side(sides, 0, &text()),
        ),
        (
            "hosts",
            "Hosts of a side besides the one at its own address, with the operations that each answers: `GET /files/{id}`, \
             or a server as the contract gives it to operations.",
            by_side(sides, 0, &map_of(&list_of(&text()))),
        ),
        (
            "serves",
            "The sides that clients speak; both when left out. The other side's operations then need no route.",
            list_of(&text()),
        ),
        (
            "rest",
            "What happens to operations that no route names: `refuse`, `forward` to the side's own service, or `keep` as they are.",
            json!({"anyOf": [words(&["refuse", "forward", "keep"]), by_side(sides, 0, &words(&["refuse", "forward", "keep"]))]}),
        ),
        (
            "identical",
            "Operations that are equal on both sides are pairs without being written.",
            words(&["keep"]),
        ),
        ("languages", "Languages of the reasons; the first is the default.", list_of(&text())),
        ("paging", "How lists are paged, for `pages:` of calls.", paging()),
        ("errors", "How errors look, the gateway's own and those of the service.", errors(sides)),
        (
            "refuse",
            "What happens to operations that are refused, unless their route says otherwise.",
            reference("policy"),
        ),
        (
            "headers",
            "Header fields with which answers say how they were made.",
            object(
                &keys::OWN_HEADERS,
                &[("approximate", "Names the approximations that an answer is made by.", text())],
            ),
        ),
        ("settings", "What the pack reads under `$.config`; the operator gives values.", map_of(&setting())),
        (
            "events",
            "The side that sends events, and where their names stand.",
            object(
                &keys::EVENTS,
                &[
                    ("from", "The side that sends.", text()),
                    (
                        "name",
                        "Where an event's name stands: `$.body.type` or `$.headers.x-event`. For the other side a header field, where not the body says it.",
                        by_side(sides, 1, &text()),
                    ),
                ],
            ),
        ),
        (
            "unknown_values",
            "What tables write on a side for values that they do not list, where the place takes it.",
            by_side(sides, 0, &anything()),
        ),
        ("compare", "What comparing two answers in a dual run looks at and looks away from.", compare(sides)),
    ];
    object(&keys::PACK, lines)
}

fn credential() -> Value {
    object(
        &keys::CREDENTIAL,
        &[
            (
                "read",
                "Places that a client's token is taken from; the first that is there wins.",
                list_of(&carrier()),
            ),
            (
                "send",
                "Place that a token is sent in; or a list of header fields, all of which carry it.",
                json!({"anyOf": [carrier(), list_of(&carrier())]}),
            ),
            (
                "scheme",
                "Authentication scheme before the token, such as `Bearer`; `none` where it stands alone.",
                text(),
            ),
            ("headers", "Header fields that every call to the side carries.", map_of(&text())),
            (
                "oauth",
                "How the authorization server wants to be asked for tokens; the configuration wins.",
                oauth(),
            ),
        ],
    )
}

fn carrier() -> Value {
    let written = object(
        &keys::CARRIER,
        &[
            ("header", "The field; with `basic` it is `authorization` if nothing is said.", text()),
            ("scheme", "The scheme in this field, instead of the side's.", text()),
            ("query", "A query parameter that is the token, instead of a header field.", text()),
            ("form", "A field of an urlencoded body that is the token, instead of a header field.", text()),
            (
                "basic",
                "What of user and password in HTTP Basic is the token.",
                json!({"enum": BasicPart::WORDS}),
            ),
        ],
    );
    json!({"anyOf": [text(), written]})
}

fn oauth() -> Value {
    object(
        &keys::OAUTH,
        &[
            ("body", "The form of the body; `form` unless said otherwise.", json!({"enum": BodyForm::WORDS})),
            (
                "client_auth",
                "How the application shows who it is: `client_secret_basic`, `client_secret_post` or `none`.",
                json!({"enum": ClientAuth::WORDS}),
            ),
            (
                "refresh_sends",
                "What a refresh carries besides the refresh token.",
                list_of(&json!({"enum": RefreshExtra::WORDS})),
            ),
        ],
    )
}

fn paging() -> Value {
    object(
        &keys::PAGING,
        &[
            ("query", "Query parameter with the number of the page.", text()),
            ("first", "Number of the first page.", json!({"type": "integer", "minimum": 0, "maximum": 1})),
            (
                "size",
                "Entries on a full page; a shorter one is the last.",
                json!({"type": "integer", "minimum": 1, "maximum": 10_000}),
            ),
        ],
    )
}

fn errors(sides: Sides<'_>) -> Value {
    let kinds: Vec<&str> = GATEWAY_ERRORS.iter().map(|(kind, ..)| *kind).collect();
    let by_kind = |value: Value| json!({"type": "object", "propertyNames": words(&kinds), "additionalProperties": value});
    let of_side = object(
        &keys::SIDE_ERRORS,
        &[
            ("body", "What an error looks like.", anything()),
            (
                "status",
                "One status that every error is answered with, or statuses by kind.",
                json!({"anyOf": [reference("status"), by_kind(reference("status"))]}),
            ),
            ("kind", "What `$kind` stands for.", by_kind(text())),
        ],
    );
    let failure = object(
        &keys::FAILURE,
        &[
            (
                "when",
                "Places such as `$.body.ok` or `$.headers.x-state`, each with its value or a list of values; all are there and hold.",
                map_of(&anything()),
            ),
            ("status", "The status that the answer is read as.", reference("status")),
        ],
    );
    object(
        &keys::ERRORS,
        &[
            (
                "body",
                "What an error of the gateway looks like; `$text` stands for its text, `$status` for the status of the answer, `$kind` for the word for its kind.",
                anything(),
            ),
            ("types", "The type of the service's errors, in each contract.", by_side(sides, 2, &text())),
            ("shape", "Shape that turns one into the other, where they differ.", text()),
            (
                "status",
                "Statuses of the gateway's errors, where not the usual ones; or one status that every error is answered with.",
                json!({"anyOf": [reference("status"), by_kind(reference("status"))]}),
            ),
            ("text", "Reasons for the gateway's errors, instead of the engine's English.", by_kind(text())),
            ("kind", "What `$kind` stands for, where not the engine's own name.", by_kind(text())),
            (
                "sides",
                "What errors look like to clients of one side, where that is not what both have.",
                by_side(sides, 0, &of_side),
            ),
            (
                "failures",
                "Answers of a side that are failures whatever their status says: the first that holds counts.",
                by_side(sides, 0, &list_of(&failure)),
            ),
        ],
    )
}

fn setting() -> Value {
    let kinds: Vec<&str> = SettingKind::WORDS.iter().map(|(word, _)| *word).collect();
    object(
        &keys::SETTING,
        &[
            ("type", "Type of the value.", words(&kinds)),
            ("about", "What it is for, for the operator.", text()),
            (
                "default",
                "Used when the operator gives nothing; `null` for no value at all. Without it, the operator must give one.",
                json!({"type": ["boolean", "integer", "string", "null"]}),
            ),
            ("values", "The only texts that it may be.", list_of(&text())),
            ("reading", "Which open point of a contract it settles.", text()),
        ],
    )
}

fn compare(sides: Sides<'_>) -> Value {
    let of_type = object(
        &keys::COMPARE_TYPE,
        &[
            ("key", "Member by whose value elements of a list of this type are the same.", text()),
            ("noise", "Members whose value differs from one asking to the next.", list_of(&text())),
            ("unordered", "Lists whose order says nothing.", list_of(&text())),
            (
                "secret",
                "Members whose value is never stored or shown, in requests and answers.",
                list_of(&text()),
            ),
            (
                "harmless",
                "Members whose texts may be stored and shown; other texts are masked.",
                list_of(&text()),
            ),
        ],
    );
    object(
        &keys::COMPARE,
        &[
            ("headers", "Header fields that are compared beside the usual ones.", list_of(&text())),
            ("types", "What is declared of types of the contracts.", by_side(sides, 0, &map_of(&of_type))),
            (
                "read_back",
                "Which reading of the same side shows what a write has changed: `GET /things/{id}`, with variables and places \
                 such as `{$.answer.body.id}` in its address.",
                by_side(sides, 0, &map_of(&text())),
            ),
            (
                "shows",
                "Members of a write's JSON body that its `read_back` shows at the same place with the same value. By them the \
                 effect of a write that the other side did is compared with what its client asked for.",
                by_side(sides, 0, &map_of(&list_of(&text()))),
            ),
        ],
    )
}

fn sent() -> Value {
    let values = map_of(&super::defs::constant_value());
    object(
        &keys::SENT,
        &[
            ("headers", "Header fields, by name.", values.clone()),
            ("query", "Query parameters, by name.", values),
        ],
    )
}
