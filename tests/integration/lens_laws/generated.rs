//! Generated packs: two contracts and the shapes between them, from a seed. They contain maps, all
//! kinds of unions, recursive types, null and absence, formats, nested places, every conversion,
//! and undeclared members. A pack that does not compile is discarded; at least half of them must
//! compile.

use std::fmt::Write as _;
use switchback_compiler::mapping::compile;
use switchback_compiler::mapping::load::PackSource;

/// A pack out of a seed.
pub struct Drawn {
    pub source: PackSource,
    /// Returns whether a line declares an error for values outside the domain of its conversion.
    pub means_errors: bool,
}

/// The choices of one pack.
struct Draw {
    state: u64,
}

impl Draw {
    fn new(seed: u64) -> Draw {
        Draw { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd1b5_4a32_d192_ed03 }
    }

    /// A number below a bound.
    fn below(&mut self, bound: usize) -> usize {
        // xorshift64*, of which the upper bits are good.
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

/// Schemas that are the same on both sides.
const SAME: &[&str] = &[
    "{type: string}",
    "{type: integer}",
    "{type: number}",
    "{type: boolean}",
    "{type: [string, 'null']}",
    "{enum: [x, w, z]}",
    "{type: string, format: date-time}",
    "{type: array, items: {type: string}}",
    "{type: array, items: {type: [integer, 'null']}, maxItems: 3}",
    "{oneOf: [{type: string}, {type: integer}]}",
    "{oneOf: [{type: boolean}, {type: array, items: {type: integer}}, {type: 'null'}]}",
    "{type: object, additionalProperties: {type: integer}}",
    "{type: object, required: [p], properties: {p: {type: string}, q: {type: [number, 'null']}}}",
    "{type: object, properties: {p: {type: string}}, additionalProperties: false}",
    "{}",
];

/// Conversions with the schemas of both places.
const CONVERSIONS: &[(&str, &str, &str)] = &[
    ("as: integer_to_string", "{type: integer}", "{type: string, pattern: '^(0|[1-9][0-9]*)$'}"),
    ("as: integer_to_string, else: {a: 0}", "{type: integer}", "{type: string}"),
    ("as: string_to_integer, else: error", "{type: string}", "{type: integer}"),
    ("as: string_to_integer, else: {b: null}", "{type: [string, 'null']}", "{type: [integer, 'null']}"),
    (
        "as: integer",
        "{type: integer}",
        "{oneOf: [{type: integer}, {type: string, pattern: '^[1-9][0-9]*$'}]}",
    ),
    ("as: csv, else: error", "{type: string}", "{type: array, items: {type: string}}"),
    ("as: csv, else: {a: none}", "{type: string}", "{type: array, items: {type: string}}"),
    ("as: csv", "{type: string}", "{type: array, items: {enum: [x, w]}}"),
    (
        "as: {split: ' '}, else: error",
        "{type: [string, 'null']}",
        "{type: [array, 'null'], items: {type: string}}",
    ),
    ("as: {split: ''}, else: {a: x}", "{type: string}", "{type: array, items: {type: string}}"),
    (
        "as: {join: ', '}, else: error",
        "{type: [array, 'null'], items: {type: string}}",
        "{type: [string, 'null']}",
    ),
    ("as: {join: ''}, else: {b: none}", "{type: array, items: {type: string}}", "{type: string}"),
    ("as: text_to_base64, else: error", "{type: string}", "{type: string, format: byte}"),
    ("as: base64_to_text, else: {b: none}", "{type: string}", "{type: string}"),
    ("as: {split: ' '}, else: {a: ''}", "{type: string}", "{type: array, items: {type: string}}"),
    ("as: {table: {x: A, w: B, z: C}}", "{enum: [x, w, z]}", "{enum: [A, B, C]}"),
    ("as: {table: {x: A, w: [B, C]}}, else: {b: C}", "{enum: [x, w, z]}", "{enum: [A, B, C]}"),
    ("as: {table: {x: A, w: B}}, else: keep", "{type: string}", "{type: string}"),
    ("as: {table: {x: A, w: B}}, else: {a: w, b: A}", "{type: string}", "{enum: [A, B]}"),
    (
        "as: {date: {a: '%d/%m/%Y', b: '%Y-%m-%d'}}, else: {b: error}",
        "{type: string}",
        "{type: string, format: date}",
    ),
    (
        "as: {date: {a: '%d/%m/%Y', b: '%Y-%m-%d'}}, else: {b: '1970-01-01'}",
        "{type: string}",
        "{type: string, format: date}",
    ),
    (
        "as: {date: {a: epoch_second, b: rfc3339}}, else: error",
        "{type: integer}",
        "{type: string, format: date-time}",
    ),
    (
        "as: {date: {a: epoch_millis, b: ['%Y-%m-%dT%H:%M:%S%z', rfc3339]}}, else: error",
        "{type: integer}",
        "{type: string}",
    ),
    (
        "as: {date: {a: '%Y-%m-%d %H:%M:%S', b: rfc3339, zone: Europe/Berlin}}, else: error",
        "{type: string}",
        "{type: string, format: date-time}",
    ),
    ("as: {duration: {a: seconds, b: iso8601}}, else: error", "{type: integer}", "{type: string}"),
    ("as: {duration: {a: iso8601, b: days}}, else: {a: PT0S, b: 0}", "{type: string}", "{type: number}"),
    ("as: {scale: 100}, else: error", "{type: number}", "{type: integer}"),
    ("as: {scale: 60}, else: error", "{type: integer}", "{type: integer}"),
    ("as: {scale: 1000}, else: {b: 0}", "{type: number}", "{type: integer}"),
    ("as: {prefix: '#'}, else: error", "{type: string}", "{type: string}"),
    ("as: {prefix: '#'}, else: keep", "{type: string}", "{type: string}"),
    ("as: {template: 'urn:{}:x'}, else: error", "{type: integer}", "{type: string}"),
    ("as: {template: 'urn:{}:x'}, else: {a: 0}", "{type: integer}", "{type: string}"),
    (
        "as: {each: {prefix: '#'}}, else: error",
        "{type: array, items: {type: string}}",
        "{type: array, items: {type: string}}",
    ),
    (
        "as: {each: {table: {x: A, w: B}}}, else: drop",
        "{type: array, items: {type: string}}",
        "{type: array, items: {type: string}}",
    ),
    (
        "as: {pairs: {key: k, value: v}}, else: error",
        "{type: object, additionalProperties: {type: integer}}",
        "{type: array, items: {type: object, required: [k, v], properties: {k: {type: string}, v: {type: integer}}}}",
    ),
    (
        "as: {pairs: {key: k, value: v}}, else: error",
        "{type: object, additionalProperties: {type: string}}",
        "{type: array, items: {type: object, required: [k, v], properties: {k: {type: string}, v: {type: string}}, additionalProperties: false}}",
    ),
    (
        "as: {pairs_to_object: {key: k, value: v}}, else: error",
        "{type: array, items: {type: object, required: [k, v], properties: {k: {type: string}, v: {type: integer}}}}",
        "{type: object, additionalProperties: {type: integer}}",
    ),
    ("as: lower_case", "{type: string}", "{type: string}"),
    ("as: digits, else: keep", "{type: string}", "{type: string}"),
    ("as: single_in_array, else: error", "{type: string}", "{type: array, items: {type: string}}"),
    (
        "as: single_in_array",
        "{type: integer}",
        "{type: array, items: {type: integer}, minItems: 1, maxItems: 1}",
    ),
    (
        "as: empty_is_array",
        "{oneOf: [{type: object, additionalProperties: {type: string}}, {type: array, maxItems: 0, items: {}}]}",
        "{type: [object, 'null'], additionalProperties: {type: string}}",
    ),
    ("as: [{prefix: 'a:'}, {prefix: 'b:'}], else: error", "{type: string}", "{type: string}"),
];

/// Types for a root, on both sides, with the shapes between them: named as in a shape line.
const FAMILIES: &[(&str, &str, &str, &str)] = &[
    (
        "Item",
        "    Item: {type: object, required: [k, old], properties: {k: {type: integer}, old: {type: [string, 'null']}, gone: {type: string}}, additionalProperties: false}\n",
        "    Item: {type: object, required: [k, new], properties: {k: {type: integer}, new: {type: [string, 'null']}}, additionalProperties: false}\n",
        "  Item: {of: {a: Item, b: Item}, same: [k], rename: {old: new}, only: {a: {gone: absent}}}\n",
    ),
    (
        "Label",
        "    Label: {type: object, required: [text], properties: {text: {type: string}}, additionalProperties: false}\n",
        "    Label: {type: object, required: [value], properties: {value: {type: string}}, additionalProperties: false}\n",
        "  Label: {of: {a: Label, b: Label}, rename: {text: value}}\n",
    ),
    (
        // Not every one is taken, in either direction.
        "Timed",
        "    Timed: {type: object, required: [k, at], properties: {k: {type: integer}, at: {type: string}}, additionalProperties: false}\n",
        "    Timed: {type: object, required: [k, on], properties: {k: {type: string}, on: {type: string, format: date}}, additionalProperties: false}\n",
        "  Timed: {of: {a: Timed, b: Timed}, rename: {k: {b: k, as: integer_to_string}, at: {b: 'on', as: {date: {a: '%d/%m/%Y', b: '%Y-%m-%d'}}}}}\n",
    ),
    (
        // Distinguished by a constant.
        "Animal",
        "    Cat: {type: object, required: [kind], properties: {kind: {enum: [cat]}, lives: {type: integer}}}\n    Dog: {type: object, required: [kind, bark], properties: {kind: {enum: [dog]}, bark: {type: string}}}\n    Animal: {oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'}]}\n",
        "    Cat: {type: object, required: [kind], properties: {kind: {enum: [cat]}, left: {type: integer}}}\n    Dog: {type: object, required: [kind, says], properties: {kind: {enum: [dog]}, says: {type: string}}}\n    Animal: {oneOf: [{$ref: '#/components/schemas/Cat'}, {$ref: '#/components/schemas/Dog'}]}\n",
        "  Animal: {of: {a: Animal, b: Animal}, alternatives: [Cat, Dog]}\n  Cat: {of: {a: Cat, b: Cat}, same: [kind], rename: {lives: left}}\n  Dog: {of: {a: Dog, b: Dog}, same: [kind], rename: {bark: says}}\n",
    ),
    (
        // Distinguished by a member of their own; one of them is kept.
        "Food",
        "    Hay: {type: object, required: [bales], properties: {bales: {type: integer}}, additionalProperties: false}\n    Fish: {type: object, required: [fins], properties: {fins: {type: integer}}}\n    Food: {oneOf: [{$ref: '#/components/schemas/Hay'}, {$ref: '#/components/schemas/Fish'}]}\n",
        "    Hay: {type: object, required: [rolls], properties: {rolls: {type: integer}}, additionalProperties: false}\n    Fish: {type: object, required: [fins], properties: {fins: {type: integer}}}\n    Food: {oneOf: [{$ref: '#/components/schemas/Hay'}, {$ref: '#/components/schemas/Fish'}]}\n",
        "  Food: {of: {a: Food, b: Food}, alternatives: [Hay]}\n  Hay: {of: {a: Hay, b: Hay}, rename: {bales: rolls}}\n",
    ),
    (
        // Distinguished by a discriminator.
        "Way",
        "    Road: {type: object, required: [sort, cars], properties: {sort: {type: string}, cars: {type: integer}}}\n    Rail: {type: object, required: [sort], properties: {sort: {type: string}, gauge: {type: [number, 'null']}}}\n    Way: {oneOf: [{$ref: '#/components/schemas/Road'}, {$ref: '#/components/schemas/Rail'}], discriminator: {propertyName: sort, mapping: {road: '#/components/schemas/Road', rail: '#/components/schemas/Rail'}}}\n",
        "    Road: {type: object, required: [sort, lanes], properties: {sort: {type: string}, lanes: {type: integer}}}\n    Rail: {type: object, required: [sort], properties: {sort: {type: string}, width: {type: [number, 'null']}}}\n    Way: {oneOf: [{$ref: '#/components/schemas/Road'}, {$ref: '#/components/schemas/Rail'}], discriminator: {propertyName: sort, mapping: {road: '#/components/schemas/Road', rail: '#/components/schemas/Rail'}}}\n",
        "  Way: {of: {a: Way, b: Way}, alternatives: [Road, Rail]}\n  Road: {of: {a: Road, b: Road}, same: [sort], rename: {cars: lanes}}\n  Rail: {of: {a: Rail, b: Rail}, same: [sort], rename: {gauge: width}}\n",
    ),
    (
        "Cages",
        "    Cage: {type: object, required: [bars], properties: {bars: {type: integer}}, additionalProperties: false}\n    Cages: {type: object, additionalProperties: {$ref: '#/components/schemas/Cage'}}\n",
        "    Cage: {type: object, required: [rods], properties: {rods: {type: integer}}, additionalProperties: false}\n    Cages: {type: object, additionalProperties: {$ref: '#/components/schemas/Cage'}}\n",
        "  Cages: {of: {a: Cages, b: Cages}, rename: {'*': {b: '*', shape: Cage}}}\n  Cage: {of: {a: Cage, b: Cage}, rename: {bars: rods}}\n",
    ),
];

/// The declarations for members of one side.
#[derive(Default)]
struct Side {
    properties: String,
    required: Vec<String>,
    /// `only:` lines.
    only: String,
    /// `copy:` lines.
    copy: String,
    /// `rest:`, if present.
    rest: Option<&'static str>,
}

impl Side {
    fn field(&mut self, name: &str, schema: &str, required: bool) {
        let _ = writeln!(self.properties, "        {name}: {schema}");
        if required {
            self.required.push(name.to_owned());
        }
    }
}

/// The lines of a shape.
#[derive(Default)]
struct Lines {
    same: Vec<String>,
    rename: String,
    constant: String,
    by_kind: String,
}

/// A pack of this seed, whether it compiles or not.
fn drawn(seed: u64, front: &str) -> Drawn {
    let mut draw = Draw::new(seed);
    let means_errors = draw.below(2) == 0;
    let (mut sides, mut lines) = ([Side::default(), Side::default()], Lines::default());
    for at in 0..2 + draw.below(7) {
        field(&mut draw, means_errors, at, &mut sides, &mut lines);
    }
    let open =
        ["", "", "      additionalProperties: false\n", "      additionalProperties: {type: string}\n"];
    let rest = [draw.below(4), draw.below(4)];
    let others = if rest == [3, 3] { "      '*': '*'\n" } else { "" };
    let [old, new] = &sides;
    let block = |key: &str, lines: &str| match lines.is_empty() {
        true => String::new(),
        false => format!("{key}:\n{lines}"),
    };
    let by_side = |key: &str, of: [&String; 2]| {
        block(key, &format!("{}{}", block("      a", of[0]), block("      b", of[1])))
    };
    let unsaid: Vec<String> = [("a", old.rest), ("b", new.rest)]
        .iter()
        .filter_map(|(side, rest)| Some(format!("{side}: {}", (*rest)?)))
        .collect();
    let rest_of =
        if unsaid.is_empty() { String::new() } else { format!("    rest: {{{}}}\n", unsaid.join(", ")) };
    let mut shape = format!(
        "mapping: 1\nshapes:\n  Root:\n    of: {{a: Root, b: Root}}\n    same: [{}]\n{}{}{}{}{}{rest_of}",
        lines.same.join(", "),
        block("    rename", &format!("{}{others}", lines.rename)),
        block("    constant", &lines.constant),
        block("    by_kind", &lines.by_kind),
        by_side("    only", [&old.only, &new.only]),
        by_side("    copy", [&old.copy, &new.copy]),
    );
    let mut types = [String::new(), String::new()];
    // Unused shapes are not a part of a pack.
    let used = |name: &&(&str, _, _, _)| {
        lines.rename.contains(&format!(": {name}}}", name = name.0))
            || lines.rename.contains(&format!("[{}]", name.0))
            || lines.rename.contains(&format!("shape: {}, else", name.0))
    };
    for (_, a, b, of) in FAMILIES.iter().filter(used) {
        types[0].push_str(a);
        types[1].push_str(b);
        shape.push_str(of);
    }
    let _ = write!(shape, "routes:\n  - {{pair: {{a: GET /x, b: GET /x{front}}}, response: Root}}\n");
    let contract = |side: &Side, at: usize| {
        format!(
            "openapi: 3.1.0\ninfo: {{title: x, version: '1'}}\npaths:\n  /x:\n    get:\n      responses:\n        '200': {{description: ok, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Root'}}}}}}}}\ncomponents:\n  schemas:\n    Error: {{type: object, required: [error], properties: {{error: {{type: string}}}}}}\n{}    Root:\n      type: object\n      required: [{}]\n{}      properties:\n{}",
            types[at],
            side.required.join(", "),
            open[rest[at]],
            side.properties,
        )
    };
    let pack = "pack: drawn\nsides: {old: a, new: b}\ncontracts: {a: a.yaml, b: b.yaml}\nrest: refuse\ncredentials:\n  a: {read: [x-token], send: x-token, scheme: Bearer}\n  b: {read: [authorization], send: authorization, scheme: Bearer}\nlanguages: [en]\nerrors: {body: {error: $text}, types: {a: Error, b: Error}}\nrefuse: {legacy: never, status: 501}\n";
    let files = [
        ("pack.yaml", pack.to_owned()),
        ("a.yaml", contract(old, 0)),
        ("b.yaml", contract(new, 1)),
        ("x.map.yaml", shape),
    ];
    let files = files.into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes()));
    Drawn { source: PackSource::from_files(files.collect()), means_errors }
}

/// Generates one field, or several related ones, and its line in a shape.
fn field(draw: &mut Draw, means_errors: bool, at: usize, sides: &mut [Side; 2], lines: &mut Lines) {
    let (old, new) = (format!("o{at}"), format!("n{at}"));
    let required = draw.below(2) == 0;
    let [a, b] = sides;
    match draw.below(21) {
        0 | 1 => {
            let schema = draw.one(SAME);
            a.field(&old, schema, required);
            b.field(&old, schema, required);
            lines.same.push(old);
        }
        2 => {
            let schema = draw.one(SAME);
            a.field(&old, schema, required);
            b.field(&new, schema, required);
            let _ = writeln!(lines.rename, "      {old}: {new}");
        }
        3 => {
            let (schema, more) = (draw.one(SAME), draw.one(&["", ", additionalProperties: false"]));
            let inner = if required { "required: [p], " } else { "" };
            a.field(&old, schema, required);
            b.field(&new, &format!("{{type: object, {inner}properties: {{p: {schema}}}{more}}}"), required);
            let _ = writeln!(lines.rename, "      {old}: $.{new}.p");
        }
        4 => taken_apart(draw, at, sides, lines),
        5..=8 => {
            let fits = |line: &&(&str, &str, &str)| means_errors || !line.0.contains("error");
            let fitting: Vec<_> = CONVERSIONS.iter().filter(fits).collect();
            let (as_, from, to) = fitting[draw.below(fitting.len())];
            a.field(&old, from, required);
            b.field(&new, to, required);
            let _ = writeln!(lines.rename, "      {old}: {{b: {new}, {as_}}}");
        }
        9 => {
            a.field(&old, "{type: string}", false);
            b.field(&new, "{type: [string, 'null']}", true);
            let _ = writeln!(lines.rename, "      {old}: {{b: {new}, as: null_is_absent}}");
        }
        10 => {
            let map = "{type: object, additionalProperties: {$ref: '#/components/schemas/Label'}}";
            a.field(&old, map, required);
            b.field(&new, map, required);
            let _ = writeln!(lines.rename, "      {old}: {{b: {new}, each_value: Label}}");
        }
        // Earlier parts are unchanged: no further random numbers are consumed.
        11 if draw.state.is_multiple_of(2) => tolerated(draw.state / 2, at, sides, lines),
        11 => {
            let list = "{type: array, items: {$ref: '#/components/schemas/Item'}}";
            a.field(&old, list, required);
            b.field(&new, list, required);
            let _ = writeln!(lines.rename, "      {old}: {{b: {new}, shape: [Item]}}");
        }
        12 => {
            a.field(&old, "{$ref: '#/components/schemas/Root'}", false);
            b.field(&new, "{$ref: '#/components/schemas/Root'}", false);
            let _ = writeln!(lines.rename, "      {old}: {{b: {new}, shape: Root}}");
        }
        13 => {
            let name = draw.one(&["Animal", "Food", "Way", "Cages", "Item"]);
            let schema = format!("{{$ref: '#/components/schemas/{name}'}}");
            a.field(&old, &schema, required);
            b.field(&new, &schema, required);
            let _ = writeln!(lines.rename, "      {old}: {{b: {new}, shape: {name}}}");
        }
        14 => {
            let list = "{type: array, items: {$ref: '#/components/schemas/Animal'}}";
            a.field(&old, list, required);
            b.field(&new, list, required);
            let _ = writeln!(lines.rename, "      {old}: {{b: {new}, shape: [Animal]}}");
        }
        15 => {
            a.field(&old, "{enum: [x]}", required);
            b.field(&old, "{enum: [w]}", required);
            let _ = writeln!(lines.constant, "      {old}: {{a: x, b: w}}");
        }
        16 => {
            a.field(&old, "{oneOf: [{type: integer}, {type: string}]}", true);
            b.field(
                &new,
                "{type: object, properties: {number: {type: integer}, name: {type: string}}}",
                required,
            );
            let _ = writeln!(
                lines.by_kind,
                "      {old}: {{integer: $.{new}.number, string: $.{new}.name, default: {{a: 0}}}}"
            );
        }
        17 => {
            let (schema, value) =
                [("{type: integer}", "1"), ("{type: string}", "x"), ("{enum: [x, w]}", "w")][draw.below(3)];
            a.field(&old, schema, false);
            b.field(&new, schema, true);
            let _ = writeln!(lines.rename, "      {old}: {{b: {new}, default: {{b: {value}}}}}");
        }
        18 => {
            let schema = draw.one(SAME);
            a.field(&old, schema, true);
            b.field(&new, schema, true);
            a.field(&format!("c{at}"), schema, required);
            let _ = writeln!(lines.rename, "      {old}: {new}");
            let _ = writeln!(a.copy, "        c{at}: $.{new}");
        }
        19 => {
            let side = if draw.below(2) == 0 { a } else { b };
            side.field(
                &format!("r{at}"),
                draw.one(&["{type: [string, 'null']}", "{type: [integer, 'null']}"]),
                required,
            );
            side.rest = Some(draw.one(&["lost", "null"]));
        }
        _ => {
            let side = if draw.below(2) == 0 { a } else { b };
            let name = format!("s{at}");
            side.field(&name, "{type: [string, 'null']}", required);
            let fill = if required {
                draw.one(&["'made up'", "null", "none"])
            } else {
                draw.one(&["absent", "'x'"])
            };
            let _ = writeln!(side.only, "        {name}: {fill}");
        }
    }
}

/// Objects of which some are rejected, and the result then: elements of a list, or a member.
fn tolerated(choice: u64, at: usize, sides: &mut [Side; 2], lines: &mut Lines) {
    let (old, new) = (format!("o{at}"), format!("n{at}"));
    let one = "{$ref: '#/components/schemas/Timed'}";
    let or_null = format!("{{oneOf: [{one}, {{type: 'null'}}]}}");
    let list = |item: &str| format!("{{type: array, items: {item}}}");
    let (schema, used, required) = match choice % 6 {
        0 | 1 => (list(one), "shape: [Timed], else: drop", true),
        2 => (list(&or_null), "shape: [Timed], else: null", false),
        3 => (list(one), "shape: [Timed], else: {a: drop, b: {k: '0', 'on': '1970-01-01'}}", true),
        4 => (or_null, "shape: Timed, else: null", true),
        _ => (one.to_owned(), "shape: Timed, else: drop", false),
    };
    let [a, b] = sides;
    a.field(&old, &schema, required);
    b.field(&new, &schema, required);
    let _ = writeln!(lines.rename, "      {old}: {{b: {new}, {used}}}");
}

/// An object of one side with members at other places of the other: next to one another, in another
/// object, or nested.
fn taken_apart(draw: &mut Draw, at: usize, sides: &mut [Side; 2], lines: &mut Lines) {
    let (old, new) = (format!("o{at}"), format!("n{at}"));
    let (p, q) = (draw.one(SAME), draw.one(SAME));
    let object = draw.one(&["object", "[object, 'null']"]);
    let must = draw.one(&["", "required: [p], ", "required: [p, q], "]);
    let more = draw.one(&["", ", additionalProperties: false"]);
    let is_there = draw.below(2) == 0;
    let holder = format!("{{type: {object}, {must}properties: {{p: {p}, q: {q}}}{more}}}");
    let form = draw.below(4);
    let (apart, together) = match draw.below(2) {
        0 => (0, 1),
        _ => (1, 0),
    };
    let always = |name: &str| is_there && object == "object" && must.contains(name);
    sides[together].field(if together == 0 { &old } else { &new }, &holder, is_there);
    let whole = if together == 0 { &old } else { &new };
    let other = if apart == 0 { &old } else { &new };
    let mut say = |one: String, two: String| {
        let (left, right) = if together == 0 { (one, two) } else { (two, one) };
        let quoted = |place: String| if place.starts_with('$') { format!("'{place}'") } else { place };
        let _ = writeln!(lines.rename, "      {}: {}", quoted(left), quoted(right));
    };
    match form {
        0 | 1 => {
            sides[apart].field(&format!("{other}p"), p, always("p"));
            sides[apart].field(&format!("{other}q"), q, always("q"));
            say(format!("$.{whole}.p"), format!("{other}p"));
            say(format!("$.{whole}.q"), format!("{other}q"));
        }
        2 => {
            sides[apart].field(
                other,
                &format!("{{type: object, {must}properties: {{p: {p}, q: {q}}}}}"),
                is_there,
            );
            say(format!("$.{whole}.p"), format!("$.{other}.p"));
            say(format!("$.{whole}.q"), format!("$.{other}.q"));
        }
        _ => {
            let inner = format!("{{type: object, properties: {{p: {p}, q: {q}}}}}");
            sides[apart].field(other, &format!("{{type: object, properties: {{in: {inner}}}}}"), is_there);
            say(format!("$.{whole}.p"), format!("$.{other}.in.p"));
            say(format!("$.{whole}.q"), format!("$.{other}.in.q"));
        }
    }
}

/// Returns the pack of a seed in its possible directions; `None` if it does not compile.
pub fn pack(seed: u64) -> Option<Drawn> {
    let fronts = ["", ", front: a", ", front: b"];
    fronts.into_iter().map(|front| drawn(seed, front)).find(|drawn| compile(&drawn.source).pack.is_some())
}

/// Whether a line of the pack uses the conversion of this name.
pub fn converts(drawn: &Drawn, name: &str) -> bool {
    let text = text(drawn);
    let plain = text.lines().filter_map(|line| line.split_once("as: "));
    plain.map(|(_, used)| used.trim_start_matches(['{', '[', ' '])).any(|used| {
        let used = used.strip_prefix("each: ").unwrap_or(used).trim_start_matches('{');
        used.strip_prefix(name)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// The content of a generated pack.
pub fn text(drawn: &Drawn) -> String {
    let files = drawn.source.files().iter().filter(|(name, _)| name != "pack.yaml");
    files.map(|(name, bytes)| format!("# {name}\n{}\n", String::from_utf8_lossy(bytes))).collect()
}
