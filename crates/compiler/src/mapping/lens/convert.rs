//! Compiles conversions, and checks whether they fit the types of their two places.

mod entries;

pub(super) use entries::passed_over;

use super::facts::{closed_values, facts_of, is_digits, kinds_of};
use super::{LensEnv, faults};
use crate::contract::{
    Difference, Literal, Narrowing, Scalar, ScalarKind, ScalarLimits, TypeIn, TypeKind,
    assignable_but_for_null, compare_but_for_null, exclusions, is_out_of_bounds,
};
use crate::diagnostic::{Findings, Span};
use crate::mapping::ast::ConversionUse;
use crate::mapping::language::PAIRS;
use crate::mapping::literal;
use crate::yaml::{self, Node, TextStyle};
use entries::{EntryMisfit, check_entries, exceeding_entries, object_in};
use std::sync::Arc;
use switchback_json::raw::Kind;
use switchback_json::{Limits, Value};
use switchback_plan::convert::{
    Arguments, Conversion, ConversionKind, Facts, Given, Law, Otherwise, SPECS, Spec, Table,
};
use switchback_plan::{Kinds, Message, Raw, SideId};

/// A conversion with parsed arguments.
pub(crate) enum ParsedConversion {
    Convert(ReadyConversion),
    /// `single_in_array` has an op of its own, because the wrapped value may be of any size.
    SingleInArray(Elses),
}

/// A compiled conversion, usable in both directions.
pub(crate) struct ReadyConversion {
    pub kind: ConversionKind,
    pub elses: Elses,
    /// Set if the conversion applies to each element of a list.
    pub each: Option<Span>,
}

/// Fallbacks for values outside the domain, by the side that is built.
pub(crate) struct Elses(pub [Else; 2]);

/// Fallback for values outside the domain towards one side.
#[derive(Clone)]
pub(crate) struct Else {
    pub otherwise: Otherwise,
    /// Whether the fallback is declared. An undeclared fallback is an error.
    pub is_said: bool,
    /// The literal, if the fallback is one.
    pub literal: Option<Node>,
}

/// Name of the conversion with an op of its own.
pub(crate) const SINGLE_IN_ARRAY: &str = "single_in_array";
/// Name of the conversion that falls back to the pack's `unknown_values`.
const TABLE: &str = "table";

/// Compiles a conversion. `types` are the types of its two places, if known.
pub(crate) fn parse_conversion(
    used: &ConversionUse,
    types: [Option<TypeIn<'_>>; 2],
    world: &LensEnv<'_>,
    findings: &mut Findings,
) -> Option<ParsedConversion> {
    let elses = elses(used, types, world);
    if used.name.value == SINGLE_IN_ARRAY {
        if !used.or.is_empty() || used.each.is_some() {
            findings.push(faults::not_one_of_several(&used.name));
            return None;
        }
        if let Some(arguments) = &used.arguments {
            findings.push(faults::no_arguments(&used.name, arguments.span));
        }
        return Some(ParsedConversion::SingleInArray(elses));
    }
    let types = match used.each {
        None => types,
        Some(_) => types.map(|ty| ty.and_then(TypeIn::items)),
    };
    let kind = kind(used, types, world, findings)?;
    let kind = match used.or.is_empty() {
        true => kind,
        false => first_of(kind, used, types, world, findings)?,
    };
    if used.each.is_some() && matches!(kind, ConversionKind::AbsentToNull) {
        findings.push(faults::not_of_each(&used.name));
        return None;
    }
    Some(ParsedConversion::Convert(ReadyConversion { kind, elses, each: used.each }))
}

/// Compiles a conversion by its name and arguments.
pub(crate) fn kind(
    used: &ConversionUse,
    types: [Option<TypeIn<'_>>; 2],
    world: &LensEnv<'_>,
    findings: &mut Findings,
) -> Option<ConversionKind> {
    let Some(spec) = Spec::by_name(&used.name.value) else {
        let known = SPECS.iter().map(|spec| spec.name).chain([SINGLE_IN_ARRAY]).collect();
        findings.push(faults::unknown_conversion(&used.name, known));
        return None;
    };
    match (spec.arguments, &used.arguments) {
        (Arguments::None, None) => plain(spec),
        (Arguments::None, Some(arguments)) => {
            findings.push(faults::no_arguments(&used.name, arguments.span));
            None
        }
        (_, None) => {
            findings.push(faults::needs_arguments(&used.name, spec.arguments, world));
            None
        }
        (Arguments::Table, Some(arguments)) => {
            Some(ConversionKind::Table(table(arguments, types, findings)?.into()))
        }
        (Arguments::Pairs, Some(arguments)) => {
            // The array is on the side that accepts arrays.
            let list = if spec.new.kinds.array { SideId::NEW } else { SideId::OLD };
            pairs(arguments, list, findings)
        }
        (Arguments::Own { read, .. }, Some(arguments)) => {
            let value = Value::parse(&literal::json(arguments), &Limits::DOCUMENT).ok()?;
            let facts = types.map(|ty| ty.map(facts_of));
            let given = Given {
                arguments: &value,
                sides: world.sides(),
                facts: facts.each_ref().map(Option::as_ref),
            };
            match read(&given) {
                Ok(kind) => Some(kind),
                Err(why) => {
                    findings.push(faults::arguments_wrong(
                        &used.name,
                        arguments,
                        spec.arguments,
                        &why,
                        world,
                    ));
                    None
                }
            }
        }
    }
}

/// Combines several conversions of one place. Conversions that handle absence or have an op of
/// their own cannot be combined.
fn first_of(
    first: ConversionKind,
    used: &ConversionUse,
    types: [Option<TypeIn<'_>>; 2],
    world: &LensEnv<'_>,
    findings: &mut Findings,
) -> Option<ConversionKind> {
    let mut kinds = vec![(&used.name, Some(first))];
    for one in &used.or {
        let is_one = one.name.value != SINGLE_IN_ARRAY && one.each.is_none();
        // Reported below, so do not report its arguments as well.
        let read = if is_one { Some(kind(one, types, world, findings)?) } else { None };
        kinds.push((&one.name, read));
    }
    let mut found = Vec::new();
    for (name, kind) in kinds {
        match kind {
            Some(kind) if !matches!(kind, ConversionKind::AbsentToNull) => found.push(kind),
            _ => findings.push(faults::not_one_of_several(name)),
        }
    }
    (found.len() == used.or.len() + 1).then(|| ConversionKind::FirstOf(found.into()))
}

/// Returns a conversion without arguments.
fn plain(spec: &Spec) -> Option<ConversionKind> {
    // Each example of a conversion holds a compiled one. Without arguments all of them are equal.
    spec.examples.first().map(|example| (example.kind)())
}

/// Returns the fallbacks: the `else:` of the line, or for tables the pack's `unknown_values` where
/// they fit the type.
fn elses(used: &ConversionUse, types: [Option<TypeIn<'_>>; 2], world: &LensEnv<'_>) -> Elses {
    // Other conversions in the list may accept the value, so the pack's fallback is for tables
    // alone.
    let tables = std::iter::once(used).chain(&used.or).all(|one| one.name.value == TABLE);
    Elses([0, 1].map(|side: usize| {
        let said = used.otherwise.as_ref().and_then(|node| for_side(node, side, world));
        let fits = |node: &&Node| types[side].is_none_or(|ty| literal::check(node, ty).is_ok());
        let unknown = &world.program.manifest.unknown_values[side];
        let said = said.or(unknown.as_ref().filter(|_| tables && used.otherwise.is_none()).filter(fits));
        said.map_or(Else { otherwise: Otherwise::Error, is_said: false, literal: None }, |node| {
            let otherwise = otherwise(node);
            let literal = matches!(otherwise, Otherwise::Value(_)).then(|| node.clone());
            Else { otherwise, is_said: true, literal }
        })
    }))
}

/// Returns the `else:` for a side, which may be common to both or given by side.
pub(super) fn for_side<'n>(node: &'n Node, side: usize, world: &LensEnv<'_>) -> Option<&'n Node> {
    let sides = world.sides();
    let by_side = node.as_map().filter(|entries| {
        !entries.is_empty() && entries.iter().all(|(key, _)| sides.contains(&key.name.as_str()))
    });
    match by_side {
        Some(entries) => entries.iter().find(|(key, _)| key.name == sides[side]).map(|(_, node)| node),
        None => Some(node),
    }
}

pub(crate) fn otherwise(node: &Node) -> Otherwise {
    match &node.kind {
        yaml::Kind::String(word, TextStyle::Plain) if word == "error" => Otherwise::Error,
        yaml::Kind::String(word, TextStyle::Plain) if word == "keep" => Otherwise::Keep,
        yaml::Kind::String(word, TextStyle::Plain) if word == "drop" => Otherwise::Drop,
        _ => Otherwise::Value(literal::json(node)),
    }
}

/// Reads `{old: new, …}` or `{old: [new, …], …}`. Keys in YAML are texts, so the type of the old
/// side determines their kind. The first of several new values is written.
fn table(node: &Node, types: [Option<TypeIn<'_>>; 2], findings: &mut Findings) -> Option<Table> {
    let mark = findings.len();
    let mut rows: Vec<(Raw, Raw)> = Vec::new();
    for (key, value) in node.map(findings)? {
        let several = match &value.kind {
            yaml::Kind::Seq(items) if !items.is_empty() => items.as_slice(),
            _ => std::slice::from_ref(value),
        };
        for value in several {
            if matches!(value.kind, yaml::Kind::Seq(_) | yaml::Kind::Map(_)) {
                findings.push(faults::table_scalar(value.span));
                continue;
            }
            let old = Raw::from(key_json(&key.name, types[0]));
            let new = literal::json(value);
            // Two rows with the same new value could not be distinguished on the way back.
            if rows.iter().any(|(_, have)| *have == new) {
                findings.push(faults::table_not_one_to_one(value.span));
            }
            rows.push((old, new));
        }
    }
    (!findings.errors_since(mark)).then_some(Table { rows })
}

fn key_json(text: &str, ty: Option<TypeIn<'_>>) -> Vec<u8> {
    let kinds = ty.map(kinds_of).unwrap_or_default();
    let plain = match text {
        "true" | "false" => kinds.boolean,
        // Ambiguous if the type permits both: prefer the text, as written.
        "null" => kinds.null && !kinds.string,
        _ => {
            kinds.number
                && switchback_json::Value::parse(text.as_bytes(), &switchback_json::Limits::default()).is_ok()
        }
    };
    if plain { text.as_bytes().to_vec() } else { serde_json::Value::from(text).to_string().into_bytes() }
}

fn pairs(node: &Node, list: SideId, findings: &mut Findings) -> Option<ConversionKind> {
    let fields = yaml::Fields::parse(node, &PAIRS, findings)?;
    let key = fields.get("key")?.text(findings)?;
    let value = fields.get("value")?.text(findings)?;
    Some(ConversionKind::Pairs { key: Arc::from(key), value: Arc::from(value), list })
}

const ALL_KINDS: [(Kind, &str); 6] = [
    (Kind::Null, "null"),
    (Kind::Bool, "boolean"),
    (Kind::Number, "number"),
    (Kind::String, "string"),
    (Kind::Array, "list"),
    (Kind::Object, "object"),
];

/// Returns the names of the kinds in `have` that `allowed` lacks.
fn beyond(have: Kinds, allowed: Kinds) -> Vec<&'static str> {
    ALL_KINDS
        .iter()
        .filter(|(kind, _)| have.contains(*kind) && !allowed.contains(*kind))
        .map(|(_, word)| *word)
        .collect()
}

/// Information that a conversion loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mapping) enum Lost {
    Nothing,
    /// Additional information in the source.
    Besides,
    /// The distinction between values with the same result, or their spelling.
    Spelling,
}

/// Why a conversion does not lead from one type to another.
#[derive(Debug, thiserror::Error)]
pub(in crate::mapping) enum ConversionMisfit {
    #[error(transparent)]
    Types(#[from] Difference),
    #[error("it does not take {0}, which may stand there")]
    Takes(String),
    #[error("it does not take null, which may stand there and would come back as absent")]
    NullBecomesAbsent,
    #[error("it takes integers, and any number may stand there")]
    Fraction,
    #[error("it gives {0}, which may not stand at the other place")]
    Gives(String),
    #[error("it may give other values than {0}, which is all that may stand there")]
    Unlisted(String),
    #[error(transparent)]
    Entries(#[from] EntryMisfit),
    #[error("its table has no row for {0}")]
    NoRow(String),
    #[error("its table lists {0}, which the type does not")]
    UnknownRow(String),
}

/// Checks that a conversion accepts the values of the source type and yields values of the target
/// type.
pub(in crate::mapping) fn check(
    conversion: &Conversion,
    from: TypeIn<'_>,
    to: TypeIn<'_>,
) -> Result<Lost, ConversionMisfit> {
    let from_side = conversion.from();
    if matches!(conversion.kind, ConversionKind::AbsentToNull) {
        assignable_but_for_null(from, to)?;
        let shown = !matches!(from.kind(), TypeKind::Any);
        if conversion.forward && shown && kinds_of(from).null {
            return Err(ConversionMisfit::NullBecomesAbsent);
        }
        let lands = !conversion.forward || kinds_of(to).null;
        return if lands { Ok(Lost::Nothing) } else { Err(ConversionMisfit::Gives("null".to_owned())) };
    }
    let is_any = |ty: TypeIn<'_>| matches!(ty.kind(), TypeKind::Any);
    // With a fallback, the source may contain values outside the domain.
    let strict = matches!(conversion.otherwise, Otherwise::Error);
    let alternatives = conversion.kind.alternatives();
    let passes = alternatives.iter().any(|kind| kind.spec().null_passes);
    let mut takes = conversion.kind.kinds(from_side);
    // Null bypasses a conversion that lets it pass.
    takes.null |= passes;
    let too_much = beyond(kinds_of(from), takes);
    if !is_any(from) && !too_much.is_empty() && strict {
        return Err(ConversionMisfit::Takes(too_much.join(" or ")));
    }
    let integers = |kind: &ConversionKind| kind.is_integer(from_side);
    if alternatives.iter().all(integers) && has_fraction(from) && strict {
        return Err(ConversionMisfit::Fraction);
    }
    let mut gives = conversion.kind.kinds(from_side.other());
    let to_side = from_side.other();
    let makes_null = |kind: &ConversionKind| !kind.spec().null_passes && kind.kinds(to_side).null;
    // Null passes through unless one of the conversions accepts it as a value.
    let takes_null = alternatives.iter().any(|kind| kind.kinds(from_side).null);
    gives.null = (passes && !takes_null && kinds_of(from).null) || alternatives.iter().any(makes_null);
    let not_taken = beyond(gives, kinds_of(to));
    if !is_any(to) && !not_taken.is_empty() {
        return Err(ConversionMisfit::Gives(not_taken.join(" or ")));
    }
    if let ConversionKind::Table(table) = &conversion.kind {
        check_table(table, conversion, from, to)?;
    } else {
        check_listed(conversion, from, to)?;
    }
    check_entries(conversion, from, to)?;
    let may_be_empty = |ty: TypeIn<'_>| {
        object_in(ty).is_some_and(|(_, object)| object.fields.iter().all(|field| !field.required))
    };
    if alternatives.iter().any(|kind| matches!(kind, ConversionKind::EmptyArrayToNull)) && may_be_empty(from)
    {
        // `{}` counts as empty on both sides, and the round trip respells it as `[]` or null.
        return Ok(Lost::Spelling);
    }
    let loses = |law| match law {
        Law::Iso => false,
        Law::Lens => !conversion.forward,
        Law::OldLens => conversion.forward,
        Law::Fold => true,
    };
    Ok(match alternatives.iter().any(|kind| loses(kind.law())) {
        false => Lost::Nothing,
        true if alternatives.iter().any(|kind| matches!(kind, ConversionKind::Pairs { .. })) => Lost::Besides,
        true => Lost::Spelling,
    })
}

/// Returns the name of the conversion with the list on the other side if that one leads from one
/// type to the other.
pub(super) fn mirror(conversion: &Conversion, from: TypeIn<'_>, to: TypeIn<'_>) -> Option<&'static str> {
    let ConversionKind::Pairs { key, value, list } = &conversion.kind else { return None };
    let kind = ConversionKind::Pairs { key: key.clone(), value: value.clone(), list: list.other() };
    let name = kind.spec().name;
    check(&Conversion { kind, ..conversion.clone() }, from, to).is_ok().then_some(name)
}

/// Returns the results of a conversion that violate the bounds of the target. Listed values are
/// converted and compared; for others, the bounds count that the kind of conversion does not
/// satisfy by itself.
pub(in crate::mapping) fn exceeding(
    conversion: &Conversion,
    from: TypeIn<'_>,
    to: TypeIn<'_>,
    message: Option<Message>,
) -> Vec<Narrowing> {
    // This conversion leaves present values unchanged, so the types can be compared.
    if matches!(conversion.kind, ConversionKind::AbsentToNull) {
        // The value is unchanged.
        return compare_but_for_null(from, to, message).unwrap_or_default();
    }
    let values = exceeding_values(conversion, from, to);
    let values = values.into_iter().map(Narrowing::of_both_messages);
    values.chain(exceeding_entries(conversion, from, to, message)).collect()
}

fn exceeding_values(conversion: &Conversion, from: TypeIn<'_>, to: TypeIn<'_>) -> Vec<String> {
    let target = match conversion.kind.kinds(conversion.from().other()).array {
        true => to.items(),
        false => Some(to),
    };
    let scalar = target.map(|target| target.kind());
    let Some(TypeKind::Scalar(scalar)) = scalar else { return Vec::new() };
    // `check_listed` and `check_table` handle closed lists.
    if scalar.values.as_ref().is_some_and(|values| !values.open) {
        return Vec::new();
    }
    // Fallbacks are literals with a check of their own. Here only converted results count.
    let strict = Conversion { otherwise: Otherwise::Error, ..conversion.clone() };
    let result = |value: &[u8]| {
        let mut out = Vec::new();
        strict.apply(value, &mut out).ok()?;
        serde_json::from_slice(&out).ok()
    };
    let is_outside = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => is_out_of_bounds(scalar, &Literal::String(text.clone())),
        serde_json::Value::Number(number) => is_out_of_bounds(scalar, &Literal::Number(number.to_string())),
        _ => false,
    };
    let listed = match &conversion.kind {
        ConversionKind::Table(table) => {
            let read = |(old, new): &(Raw, Raw)| if conversion.forward { old.to_vec() } else { new.to_vec() };
            Some(table.rows.iter().map(read).collect())
        }
        _ => closed_values(from),
    };
    if let Some(listed) = listed {
        let outside = listed.into_iter().filter(|value| result(value).as_ref().is_some_and(is_outside));
        return outside.map(|value| format!("the value {}", String::from_utf8_lossy(&value))).collect();
    }
    // Dates are written in the format of their contract, and integers without leading zeros.
    // Integers are assumed to fit 64 bits.
    let kept_to: &[&str] = match conversion.kind.spec().name {
        "date" => &["date", "date-time", "time"],
        "text_to_base64" | "base64_to_text" => &["byte"],
        _ => &["int64"],
    };
    let format = scalar.format.clone().filter(|format| !kept_to.contains(&&**format));
    let bounds = ScalarLimits {
        patterns: scalar.limits.patterns.iter().filter(|pattern| !is_digits(pattern)).cloned().collect(),
        ..(*scalar.limits).clone()
    };
    exclusions(&Scalar { format, limits: bounds.into(), ..scalar.clone() })
}

/// Returns whether a value of the source type may be outside the domain of a conversion.
pub(crate) fn is_partial(kind: &ConversionKind, from_side: SideId, from: TypeIn<'_>) -> bool {
    !matches!(kind, ConversionKind::AbsentToNull) && !kind.takes_all(from_side, &facts_of(from))
}

/// Returns whether the target accepts, unchanged, all values that the conversion rejects: every
/// kind is either converted completely or accepted by the target.
pub(crate) fn may_stay(conversion: &Conversion, from: TypeIn<'_>, to: TypeIn<'_>) -> bool {
    if matches!(to.kind(), TypeKind::Any) {
        return true;
    }
    let (have, taken) = (kinds_of(from), kinds_of(to));
    let facts = facts_of(from);
    let comes = |kind: &(Kind, &str)| have.contains(kind.0) && kind.0 != Kind::Null;
    ALL_KINDS.iter().filter(|kind| comes(kind)).all(|(kind, _)| {
        let of_kind = Facts { kinds: Kinds::from_kinds(&[*kind]), ..facts.clone() };
        let converts = conversion.kind.kinds(conversion.from()).contains(*kind)
            && conversion.kind.takes_all(conversion.from(), &of_kind);
        converts || taken.contains(*kind)
    })
}

/// Returns whether a list may have a number of elements other than one.
pub(crate) fn is_not_single(list: TypeIn<'_>) -> bool {
    let facts = facts_of(list);
    facts.items_least != 1 || facts.items_most != Some(1)
}

fn has_fraction(ty: TypeIn<'_>) -> bool {
    matches!(ty.kind(), TypeKind::Scalar(scalar) if scalar.kind == ScalarKind::Number)
}

/// Checks that a conversion only yields values that the target lists. This can only be proven if
/// the source lists its values as well.
fn check_listed(conversion: &Conversion, from: TypeIn<'_>, to: TypeIn<'_>) -> Result<(), ConversionMisfit> {
    let gives_list = conversion.kind.kinds(conversion.from().other()).array;
    let target = match gives_list {
        true => to.items(),
        false => Some(to),
    };
    let Some(listed) = target.and_then(closed_values) else { return Ok(()) };
    let is_listed = |value: &[u8]| listed.iter().any(|one| one == value);
    let fits = |value: &Vec<u8>| {
        let mut out = Vec::new();
        let strict = Conversion { otherwise: Otherwise::Error, ..conversion.clone() };
        match strict.apply(value, &mut out) {
            Ok(switchback_plan::convert::Yield::Written) if gives_list => {
                Value::parse(&out, &Limits::DOCUMENT)
                    .ok()
                    .and_then(|list| Some(list.as_array()?.iter().all(|item| is_listed(&item.to_vec()))))
                    .unwrap_or(false)
            }
            // Other values are rejected or omitted, so there is no result to compare.
            Ok(switchback_plan::convert::Yield::Written) => is_listed(&out),
            _ => true,
        }
    };
    if closed_values(from).is_some_and(|values| values.iter().all(fits)) {
        return Ok(());
    }
    let listed: Vec<_> = listed.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
    Err(ConversionMisfit::Unlisted(listed.join(", ")))
}

/// Checks that a table contains every listed value of the source, and only listed values of both
/// types.
fn check_table(
    table: &Table,
    conversion: &Conversion,
    from: TypeIn<'_>,
    to: TypeIn<'_>,
) -> Result<(), ConversionMisfit> {
    let cell =
        |row: &(Raw, Raw), side: SideId| if side == SideId::OLD { row.0.clone() } else { row.1.clone() };
    let (from_side, to_side) = (conversion.from(), conversion.from().other());
    let column = |side| table.rows.iter().map(|row| cell(row, side)).collect::<Vec<_>>();
    if let (Some(values), Otherwise::Error) = (closed_values(from), &conversion.otherwise) {
        let missing: Vec<_> =
            values.iter().filter(|value| !column(from_side).iter().any(|have| **have == ***value)).collect();
        if !missing.is_empty() {
            let words: Vec<_> =
                missing.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
            return Err(ConversionMisfit::NoRow(words.join(", ")));
        }
    }
    for (ty, side) in [(from, from_side), (to, to_side)] {
        let Some(values) = closed_values(ty) else { continue };
        let unknown = column(side)
            .into_iter()
            // Lists of values do not contain null; its use has been checked by kind.
            .find(|cell| &**cell != b"null" && !values.iter().any(|value| **value == **cell));
        if let Some(unknown) = unknown {
            return Err(ConversionMisfit::UnknownRow(String::from_utf8_lossy(&unknown).into_owned()));
        }
    }
    Ok(())
}
