//! The keys of every kind of map in a pack, and the words of closed lists. The reader and the JSON
//! schema for editors share these tables.

use crate::yaml::Keys;

// pack.yaml
pub(in crate::mapping) const PACK: Keys = Keys::new(
    "a pack",
    &["pack", "sides", "contracts", "credentials", "languages", "errors", "refuse"],
    &[
        "scope",
        "hosts",
        "send",
        "serves",
        "rest",
        "identical",
        "paging",
        "headers",
        "settings",
        "compare",
        "events",
        "unknown_values",
    ],
);
pub(in crate::mapping) const SIDES: Keys = Keys::new("`sides`", &["old", "new"], &[]);
pub(in crate::mapping) const CREDENTIAL: Keys =
    Keys::new("a credential", &["read", "send"], &["scheme", "headers", "oauth"]);
pub(in crate::mapping) const CARRIER: Keys =
    Keys::new("a place of a token", &[], &["header", "scheme", "basic", "query", "form"]);
pub(in crate::mapping) const OAUTH: Keys =
    Keys::new("`oauth`", &[], &["body", "client_auth", "refresh_sends"]);
pub(in crate::mapping) const SENT: Keys = Keys::new("`send`", &[], &["headers", "query"]);
pub(in crate::mapping) const PAGING: Keys = Keys::new("`paging`", &["query", "first", "size"], &[]);
pub(in crate::mapping) const OWN_HEADERS: Keys = Keys::new("`headers`", &[], &["approximate"]);
pub(in crate::mapping) const ERRORS: Keys =
    Keys::new("`errors`", &["body"], &["types", "shape", "status", "text", "kind", "sides", "failures"]);
pub(in crate::mapping) const SIDE_ERRORS: Keys =
    Keys::new("the errors of a side", &[], &["body", "status", "kind"]);
pub(in crate::mapping) const FAILURE: Keys = Keys::new("a failure", &["when", "status"], &[]);
pub(in crate::mapping) const SETTING: Keys =
    Keys::new("a setting", &["type", "about"], &["default", "values", "reading"]);
pub(in crate::mapping) const COMPARE: Keys =
    Keys::new("`compare`", &[], &["headers", "types", "read_back", "shows"]);
pub(in crate::mapping) const COMPARE_TYPE: Keys =
    Keys::new("a comparison", &[], &["key", "noise", "unordered", "secret", "harmless"]);
pub(in crate::mapping) const POLICY: Keys =
    Keys::new("a policy of refusal", &[], &["legacy", "status", "after"]);
pub(in crate::mapping) const AFTER: Keys = Keys::new("`after`", &["date"], &["status"]);

// mapping files
pub(in crate::mapping) const FILE: Keys = Keys::new(
    "a mapping file",
    &["mapping"],
    &["shapes", "routes", "reasons", "archives", "harvests", "events", "examples"],
);

// shapes
/// Keys for the lines of a shape. A named shape also has `of`, `alternatives` and `like`.
pub(in crate::mapping) const LINES: &[&str] =
    &["same", "rename", "copy", "constant", "by_kind", "only", "rest"];
pub(in crate::mapping) const SHAPE: Keys = Keys::new(
    "a shape",
    &["of"],
    &["alternatives", "like", "same", "rename", "copy", "constant", "by_kind", "only", "rest"],
);
pub(in crate::mapping) const SHAPE_IN_PLACE: Keys = Keys::new("a shape in place", &[], LINES);
/// A body that uses a shape with options.
pub(in crate::mapping) const SHAPED_BODY: Keys = Keys::new("a body", &["shape"], &["else"]);
/// Keys of a rename, in addition to the name of the new side.
pub(in crate::mapping) const RENAME: &[&str] = &["shape", "each_value", "as", "else", "default"];
/// JSON kinds that `by_kind` distinguishes.
pub(in crate::mapping) const KINDS: &[&str] = &["integer", "number", "boolean", "string", "object", "array"];
pub(in crate::mapping) const FILL_VALUE: Keys = Keys::new("a value", &["value"], &["despite"]);
pub(in crate::mapping) const FILL_REFUSE: Keys = Keys::new("a refusal", &["refuse"], &[]);
/// A keyword in map form, for writers that quote every text.
pub(in crate::mapping) const WORD: Keys = Keys::new("a word", &["word"], &[]);

/// Arguments of the conversion `pairs`.
pub(in crate::mapping) const PAIRS: Keys = Keys::new("`pairs`", &["key", "value"], &[]);

// routes
pub(in crate::mapping) const PAIR: Keys = Keys::new(
    "a pair",
    &["pair"],
    &[
        "if",
        "path",
        "allow_slash",
        "query",
        "paging",
        "headers",
        "media",
        "request",
        "response",
        "status",
        "business_errors",
        "retry",
        "effect",
        "differs",
        "approximate",
        "verdict",
    ],
);
pub(in crate::mapping) const PAGED_SIDE: Keys = Keys::new(
    "the paging of a side",
    &[],
    &[
        "page", "offset", "cursor", "first", "start", "end", "size", "default", "maximum", "next", "more",
        "total", "items",
    ],
);
/// Keys of a route's `paging`, in addition to the names of the sides.
pub(in crate::mapping) const PAGED_ROUTE: &[&str] = &["call", "upto"];
pub(in crate::mapping) const PAGED_NEXT: Keys = Keys::new("`next`", &[], &["header", "link"]);
pub(in crate::mapping) const QUERY_REFUSE: Keys = Keys::new("a refused parameter", &["refuse"], &["unless"]);
/// Keys of a parameter or header, in addition to the name of the new side.
pub(in crate::mapping) const PARAMETER: &[&str] = &["as", "else"];
pub(in crate::mapping) const CONSTANT: Keys = Keys::new("a constant", &["constant"], &[]);
pub(in crate::mapping) const PAIR_HEADERS: Keys = Keys::new("`headers`", &[], &["request", "response"]);
pub(in crate::mapping) const PAIR_MEDIA: Keys = Keys::new("`media`", &[], &["request", "response"]);
pub(in crate::mapping) const SERVE: Keys = Keys::new(
    "a `serve` route",
    &["serve", "at"],
    &[
        "if",
        "allow_slash",
        "check",
        "fill",
        "query",
        "headers",
        "paging",
        "steps",
        "answer",
        "refuse",
        "policy",
        "decide",
        "outcomes",
        "business_errors",
        "differs",
        "approximate",
        "verdict",
    ],
);
pub(in crate::mapping) const ANSWER: Keys =
    Keys::new("an answer", &["status"], &["legacy", "headers", "body"]);
pub(in crate::mapping) const DECIDE: Keys = Keys::new("a decision", &["on", "rows"], &[]);
pub(in crate::mapping) const OUTCOME: Keys = Keys::new(
    "an outcome",
    &[],
    &["steps", "answer", "refuse", "policy", "decide", "outcomes", "differs", "approximate"],
);
/// Keys of a check, in addition to its condition.
pub(in crate::mapping) const CHECK: &[&str] = &["if", "unless", "else"];
pub(in crate::mapping) const CHECK_ELSE: Keys = Keys::new("`else`", &["status", "reason"], &[]);
pub(in crate::mapping) const CHECK_REFUSE: Keys = Keys::new("`else`", &["refuse"], &["policy"]);

// steps
/// Keys that identify an unnamed step.
pub(in crate::mapping) const ACTIONS: &[&str] = &["call", "pick", "first", "make", "recall", "keep"];
pub(in crate::mapping) const CALL: Keys = Keys::new(
    "a call",
    &["call"],
    &[
        "when", "each", "upto", "beyond", "query", "headers", "body", "pages", "until", "every", "within",
        "on_fail", "resume", "retry", "effect",
    ],
);
pub(in crate::mapping) const PAGES: Keys = Keys::new("`pages`", &["upto"], &["until", "beyond"]);
pub(in crate::mapping) const ON_FAIL: &[&str] = &["pass", "absent", "answer", "use", "refuse"];
pub(in crate::mapping) const PASS: Keys = Keys::new("`pass`", &["headers"], &[]);
pub(in crate::mapping) const FIRST: Keys = Keys::new("a step that chooses", &["first"], &[]);
pub(in crate::mapping) const PICK: Keys = Keys::new("a selection", &["pick"], &["take", "newest", "page"]);
pub(in crate::mapping) const CHOICE: Keys =
    Keys::new("a choice", &["pick"], &["when", "take", "newest", "page"]);
pub(in crate::mapping) const MAKE: Keys = Keys::new("a step that makes a value", &["make"], &[]);

pub(in crate::mapping) const RECALL: Keys =
    Keys::new("a step that looks up", &["recall", "key"], &["each", "when"]);
pub(in crate::mapping) const KEEP: Keys =
    Keys::new("a step that keeps", &["keep", "key"], &["value", "each", "when"]);

// events
pub(in crate::mapping) const EVENTS: Keys = Keys::new("`events`", &["from", "name"], &[]);
pub(in crate::mapping) const EVENT: Keys =
    Keys::new("an event", &["event"], &["body", "key", "drop", "correlate"]);
pub(in crate::mapping) const CORRELATE: Keys = Keys::new("`correlate`", &["by", "within"], &[]);

// archives
pub(in crate::mapping) const ARCHIVE: Keys = Keys::new("an archive", &["about"], &["value"]);
pub(in crate::mapping) const HARVEST: Keys = Keys::new("a harvest", &["about", "from", "steps", "page"], &[]);

// values
/// Keys that make a map a special form.
pub(in crate::mapping) const FORMS: &[&str] = &[
    "$from", "$text", "$shape", "$value", "$first", "$present", "$each", "$lookup", "$if", "$lines",
    "$count", "$sum",
];
pub(in crate::mapping) const FROM: Keys = Keys::new("`$from`", &["$from", "as"], &["else"]);
pub(in crate::mapping) const TEXT: Keys = Keys::new("`$text`", &["$text"], &["with"]);
pub(in crate::mapping) const SHAPED: Keys =
    Keys::new("`$shape`", &["$shape", "from"], &["over", "with", "else", "null_as", "null_else", "despite"]);
pub(in crate::mapping) const VALUE: Keys = Keys::new("`$value`", &["$value"], &["despite"]);
pub(in crate::mapping) const FIRST_OF: Keys = Keys::new("`$first`", &["$first"], &[]);
pub(in crate::mapping) const PRESENT: Keys = Keys::new("`$present`", &["$present"], &[]);
pub(in crate::mapping) const EACH: Keys = Keys::new("`$each`", &["$each", "give"], &[]);
pub(in crate::mapping) const LOOKUP: Keys = Keys::new("`$lookup`", &["$lookup", "in", "by"], &["field"]);
pub(in crate::mapping) const IF: Keys = Keys::new("`$if`", &["$if", "then"], &["else"]);
pub(in crate::mapping) const COUNT: Keys = Keys::new("`$count`", &["$count"], &[]);
pub(in crate::mapping) const SUM: Keys = Keys::new("`$sum`", &["$sum"], &[]);
pub(in crate::mapping) const NUMBERED: Keys = Keys::new("`$lines`", &["$lines"], &["numbered"]);

// examples
pub(in crate::mapping) const ROUTE_EXAMPLE: Keys =
    Keys::new("an example", &["at"], &["send", "calls", "keeps", "answer", "refused", "again"]);
pub(in crate::mapping) const SEND: Keys =
    Keys::new("`send`", &[], &["headers", "body", "config", "archives"]);
pub(in crate::mapping) const AGAIN: Keys =
    Keys::new("`again`", &[], &["calls", "keeps", "answer", "refused"]);
pub(in crate::mapping) const HARVEST_EXAMPLE: Keys =
    Keys::new("an example of a harvest", &["harvest", "page"], &["calls", "keeps"]);
pub(in crate::mapping) const ARCHIVED: Keys = Keys::new("an entry", &["age"], &["value"]);
pub(in crate::mapping) const EXAMPLE_ANSWER: Keys = Keys::new("an answer", &["status"], &["headers", "body"]);
pub(in crate::mapping) const EXAMPLE_CALL: Keys =
    Keys::new("a call", &["expect", "reply"], &["headers", "body", "reply_headers"]);
/// Keys of a shape example, in addition to the names of the sides.
pub(in crate::mapping) const SHAPE_EXAMPLE: &[&str] = &["shape", "lost"];
