//! Schema of expressions: literals, paths, and the `$` forms.

use super::{anything, keys, list_of, map_of, object, reference, text, words};
use serde_json::{Value, json};
pub(super) fn value() -> Value {
    let with = map_of(&reference("value"));
    let from = object(
        &keys::FROM,
        &[
            ("$from", "The value that is converted.", reference("value")),
            ("as", "The conversion.", reference("conversion")),
            ("else", "What follows outside its domain: `error`, `keep` or a literal.", anything()),
        ],
    );
    let localised = object(
        &keys::TEXT,
        &[
            ("$text", "A reason in the client's language.", text()),
            ("with", "Values of its placeholders.", with.clone()),
        ],
    );
    let shaped = object(
        &keys::SHAPED,
        &[
            ("$shape", "A shape run over a value; `[Name]` for each element.", reference("shapeUse")),
            ("from", "The value that is read.", reference("value")),
            (
                "else",
                "What follows for a value that the shape does not take: `drop`, `error` or a literal, or one of these for each side.",
                anything(),
            ),
            ("over", "The old value that the result is laid over.", reference("value")),
            ("with", "Fields that the shape cannot make up.", with),
            ("null_as", "Literals instead of null, by member.", map_of(&anything())),
            ("null_else", "What becomes of other nulls.", words(&["keep", "absent"])),
            ("despite", "Members that are left out may be required.", words(&["type"])),
        ],
    );
    let literal = object(
        &keys::VALUE,
        &[
            ("$value", "A literal, whatever it looks like.", anything()),
            ("despite", "It breaks the contract's type, and is listed in the report.", words(&["type"])),
        ],
    );
    let first = object(
        &keys::FIRST_OF,
        &[("$first", "The first that is there and not null.", list_of(&reference("value")))],
    );
    let present = object(
        &keys::PRESENT,
        &[("$present", "A list of those that are there and not null.", list_of(&reference("value")))],
    );
    let one = json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": reference("value")});
    let each = object(
        &keys::EACH,
        &[
            ("$each", "For each element of a list: `{name: list}`.", one),
            ("give", "What the element gives.", reference("value")),
        ],
    );
    let lookup = object(
        &keys::LOOKUP,
        &[
            ("$lookup", "The value that is looked up; of a list, each.", reference("value")),
            ("in", "The path of a list of objects.", text()),
            ("by", "The member that is the value.", text()),
            ("field", "The member that is given; the object itself without it.", text()),
        ],
    );
    let conditional = object(
        &keys::IF,
        &[
            ("$if", "A condition.", reference("predicate")),
            ("then", "The value while it holds.", reference("value")),
            ("else", "The value while it does not; nothing without it.", reference("value")),
        ],
    );
    let count = object(&keys::COUNT, &[("$count", "A list: how many elements it has.", reference("value"))]);
    let sum = object(&keys::SUM, &[("$sum", "A list of numbers: their exact sum.", reference("value"))]);
    let lines = object(
        &keys::NUMBERED,
        &[
            ("$lines", "Texts, each on a line of its own.", list_of(&reference("value"))),
            ("numbered", "Texts on further lines, numbered from one.", list_of(&reference("value"))),
        ],
    );
    let plain = json!({
        "type": "object", "propertyNames": {"not": {"pattern": "^\\$"}}, "additionalProperties": reference("value"),
    });
    let scalar = json!({"type": ["null", "boolean", "number", "string"]});
    json!({"anyOf": [
        scalar, list_of(&reference("value")), plain, from, localised, shaped, literal, first, present, each,
        lookup, conditional, lines, count, sum,
    ]})
}
