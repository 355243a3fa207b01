//! Findings about shapes.

use super::fields::{SpannedPlace, field_at};
use super::{Direction, LensEnv, Partial};
use crate::contract::{Difference, ScalarLimits, Type, TypeIn, TypeKind};
use crate::diagnostic::{Code, Finding, NameKind, Span};
use crate::mapping::ast::{FieldPlace, Spanned};
use crate::mapping::faults::{list, wrong_arguments};
use crate::yaml::Node;
use switchback_plan::convert::{ArgumentError, Arguments};

fn from_to(way: Direction<'_>, from: TypeIn<'_>, to: TypeIn<'_>) -> String {
    format!("from {} ({}) to {} ({})", way.from(), from.ty, way.to(), to.ty)
}

fn dotted_path(place: &FieldPlace) -> String {
    place.0.join(".")
}

pub(super) fn declared_twice(name: &Spanned<String>, first: Span) -> Finding {
    Finding::error(Code::DeclaredTwice, name.span, format!("the shape `{}` is declared twice", name.value))
        .with_related(first, "first declared here")
}

pub(super) fn unknown_shape(name: &Spanned<String>, known: Vec<&str>) -> Finding {
    Finding::error(Code::UnknownShape, name.span, format!("there is no shape `{}`", name.value))
        .help("declare it under `shapes:`")
        .did_you_mean(&name.value, known)
        .with_declarations(NameKind::Shape, &name.value)
}

pub(super) fn unknown_type(name: &Spanned<String>, world: &LensEnv<'_>, at: usize) -> Finding {
    let known = world.contracts[at].types.iter().map(|named| &*named.name);
    let message = format!("the contract of {} has no type `{}`", world.side(at), name.value);
    Finding::error(Code::UnknownType, name.span, message)
        .help("name a schema of its `components`")
        .did_you_mean(&name.value, known)
}

pub(super) fn not_an_object(name: &Spanned<String>, ty: &Type) -> Finding {
    let message = format!("a shape relates objects, and `{}` is {ty}", name.value);
    Finding::error(Code::ShapeType, name.span, message)
}

pub(super) fn inline_not_an_object(span: Span, side: &str, ty: &Type) -> Finding {
    let message = format!("a shape in place relates objects, and the body of {} is {ty}", side);
    Finding::error(Code::ShapeType, span, message).help("name a shape, `[Shape]` for a list, or write `keep`")
}

pub(super) fn not_a_list(name: &Spanned<String>, side: &str, ty: &Type) -> Finding {
    let message = format!("`[{}]` is for lists, and {} has {ty} there", name.value, side);
    Finding::error(Code::ShapeType, name.span, message)
        .help(format!("write `{}` without brackets", name.value))
}

pub(super) fn not_a_map(name: &Spanned<String>, side: &str, ty: &Type) -> Finding {
    let message = format!(
        "`each_value` is for maps, objects with `additionalProperties` alone, and {} has {ty} there",
        side
    );
    Finding::error(Code::ShapeType, name.span, message)
        .help("write `shape:` with a shape for the object, and a line for `'*'` in it")
}

pub(super) fn other_type(name: &Spanned<String>, side: &str, ty: &Type, why: &Difference) -> Finding {
    let message = format!("the shape `{}` is not for what {} has there, {ty}", name.value, side);
    Finding::error(Code::ShapeType, name.span, message).help(format!("{why}"))
}

pub(super) fn unused_shape(name: &Spanned<String>) -> Finding {
    Finding::error(Code::Unused, name.span, format!("nothing uses the shape `{}`", name.value))
        .help("remove it, or use it")
        .with_uses(NameKind::Shape, &name.value)
}

pub(super) fn like_itself(name: &Spanned<String>) -> Finding {
    let message = format!("`like: {}` leads back to where it started", name.value);
    Finding::error(Code::LeadsToItself, name.span, message)
}

pub(super) fn too_deep(name: &str, span: Span, max: usize) -> Finding {
    let message = format!("the shape `{name}` lies within more than {max} others");
    Finding::error(Code::LeadsToItself, span, message).help("copy one of the values around it whole")
}

pub(super) fn others_form(span: Span, old: &str, new: &str) -> Finding {
    Finding::error(Code::OthersForm, span, "`*` stands for all members that nothing names, and goes to `*`")
        .help(format!(
            "write `same: ['*']`, `rename: {{'*': {{{new}: '*', shape: …}}}}`, or `only: {{{old}: {{'*': none}}}}` to drop them"
        ))
}

pub(super) fn others_left_out(span: Span) -> Finding {
    Finding::error(Code::OthersForm, span, "a value under `*` cannot be left out")
        .help("convert it with something that always gives a value, or turn it by a `shape:`")
}

pub(super) fn others_unaccounted(shape: Span, why: &Difference, way: Direction<'_>) -> Finding {
    let message = format!(
        "no line for `*`: what {} has under names of its own does not go to {}",
        way.from(),
        way.to()
    );
    let [old, new] = [0, 1].map(|at| way.world.side(at));
    Finding::error(Code::Unaccounted, shape, message).help(format!(
        "{why}; add `'*': {{{new}: '*', shape: …}}` to `rename`, or `'*'` to `only: {{{old}: …}}` to drop them"
    ))
}

pub(super) fn alternatives_and_lines(span: Span) -> Finding {
    Finding::error(Code::AlternativeShapes, span, "a shape has `alternatives` or lines, not both")
        .help("write the lines in the shapes of the alternatives")
}

pub(super) fn needs_alternatives(name: &Spanned<String>, ty: &Type) -> Finding {
    let message = format!("`{}` is one of several objects, {ty}", name.value);
    Finding::error(Code::ShapeType, name.span, message)
        .help("write `alternatives: [Shape, …]`, with a shape for each of them")
}

pub(super) fn no_alternatives(span: Span) -> Finding {
    Finding::error(Code::AlternativeShapes, span, "neither side has alternatives here")
        .help("write lines, or name types that are one of several objects")
}

pub(super) fn alternative_of_alternatives(name: &Spanned<String>) -> Finding {
    let message = format!("`{}` has alternatives itself", name.value);
    Finding::error(Code::AlternativeShapes, name.span, message)
        .help("name a shape with lines for each alternative")
}

pub(super) fn no_such_alternative(name: &Spanned<String>, side: &str, ty: &Type) -> Finding {
    let message = format!("the shape `{}` is for none of what {} has here, {ty}", name.value, side);
    Finding::error(Code::AlternativeShapes, name.span, message)
        .help("name a shape of one of the alternatives")
}

pub(super) fn alternative_twice(name: &Spanned<String>, first: Span, side: &str) -> Finding {
    let message = format!("two shapes read the same alternative of {}", side);
    Finding::error(Code::AlternativeShapes, name.span, message).with_related(first, "the other one")
}

pub(super) fn no_shape_for(shape: Span, ty: &Type, why: &Difference, way: Direction<'_>) -> Finding {
    let message = format!("no shape for {ty}, an alternative of {}", way.from());
    Finding::error(Code::AlternativeShapes, shape, message)
        .help(format!("{why}; add a shape that relates it to one of {}", way.to()))
}

pub(super) fn alternatives_over(shape: Span) -> Finding {
    let message = "one of several objects cannot be laid over an old value, which may be another of them";
    Finding::error(Code::AlternativeShapes, shape, message)
        .help("leave `over:` out: the value is replaced as one")
}

pub(super) fn nothing_tells(shape: Span, way: Direction<'_>) -> Finding {
    let message = format!(
        "{} has one object here, and nothing tells which alternative of {} to build",
        way.from(),
        way.to()
    );
    Finding::error(Code::AlternativeShapes, shape, message)
        .help("serve one side only (`front:`), or build it in the route with `if`")
}

pub(super) fn unknown_field(at: &SpannedPlace, index: usize, ty: TypeIn<'_>, side: &str) -> Finding {
    let around = FieldPlace(at.value.0[..index].to_vec());
    let inside = field_at(ty, &around).ok().and_then(|found| found.ty.object());
    let known: Vec<&str> =
        inside.map(|o| o.fields.iter().map(|f| f.name.as_str()).collect()).unwrap_or_default();
    let name = &at.value.0[index];
    let owner = if index == 0 { ty.ty.to_string() } else { format!("{} of {}", dotted_path(&around), ty.ty) };
    let finding =
        Finding::error(Code::UnknownField, at.span, format!("`{name}` is not a field of {} {owner}", side))
            // A long list of fields would hide the finding.
            .maybe_help(
                (!known.is_empty() && known.len() <= 12).then(|| format!("its fields are {}", list(&known))),
            );
    match at.value.0.as_slice() {
        [_] => finding.did_you_mean(name, known),
        // The name is only a part of the place.
        _ => finding.did_you_mean_within(name, known),
    }
}

pub(super) fn claimed_twice(at: &SpannedPlace, first: Span, side: &str) -> Finding {
    let message = format!("`{}` of {} has two lines", dotted_path(&at.value), side);
    Finding::error(Code::ClaimedTwice, at.span, message).with_related(first, "the other one")
}

pub(super) fn unclaimed_field(
    place: &FieldPlace,
    types: [TypeIn<'_>; 2],
    shape: Span,
    world: &LensEnv<'_>,
    of: usize,
) -> Finding {
    let field = field_at(types[of], place);
    let required = if field.is_ok_and(|found| found.required) { "required" } else { "optional" };
    let (name, own, other) = (dotted_path(place), world.side(of), world.side(1 - of));
    let message = format!("no line for `{name}` ({own}, {required})");
    // A field with the same name on the other side is probably its counterpart.
    let twin = field_at(types[1 - of], place).is_ok();
    let help = if twin {
        format!("{other} has it too: add it to `same`, or to `only: {{{own}: …}}` if they are not the same")
    } else {
        format!("add a `rename` if {other} has it under another name, else `only: {{{own}: {{{name}: …}}}}`")
    };
    Finding::error(Code::Unaccounted, shape, message).help(help)
}

pub(super) fn empty_rest(span: Span, side: &str) -> Finding {
    let message = format!("every field of {} has a line: nothing is left for `rest`", side);
    Finding::error(Code::EmptyRest, span, message).help("remove it")
}

pub(super) fn types(
    at: &SpannedPlace,
    why: &Difference,
    way: Direction<'_>,
    from: TypeIn<'_>,
    to: TypeIn<'_>,
) -> Finding {
    let message = format!("`{}` does not go {}", dotted_path(&at.value), from_to(way, from, to));
    Finding::error(Code::Types, at.span, message)
        .help(format!("{why}; convert it with `as:`, or turn it by a `shape:`"))
}

pub(super) fn null_through_shape(name: &Spanned<String>, [from, into]: [&str; 2], to: &Type) -> Finding {
    let message = format!("{from} may have null here, and {into} needs {to}");
    Finding::error(Code::Types, name.span, message).help("a shape passes null on")
}

pub(super) fn may_be_absent(
    source: &SpannedPlace,
    target: &SpannedPlace,
    way: Direction<'_>,
    by_conversion: bool,
) -> Finding {
    let (from, to) = (way.from(), way.to());
    let why = if by_conversion { "may be left out by its conversion" } else { "may be absent" };
    let message = format!(
        "`{}` of {from} {why}, and `{}` of {to} is required",
        dotted_path(&source.value),
        dotted_path(&target.value)
    );
    Finding::error(Code::MayBeAbsent, source.span, message).help(format!("add `default: {{{to}: …}}`"))
}

pub(super) fn literal(span: Span, place: &FieldPlace, ty: TypeIn<'_>, side: &str) -> Finding {
    let bounds = match ty.kind() {
        TypeKind::Scalar(scalar) if *scalar.limits != ScalarLimits::default() => " within bounds",
        _ => "",
    };
    let (place, side) = (dotted_path(place), side);
    let message = format!("this does not fit `{place}` of {side}, which is {}{bounds}", ty.ty);
    Finding::error(Code::LiteralType, span, message)
        .help("write a value of that type, or `{value: …, despite: type}` if it must be so")
}

pub(super) fn despite_nothing(span: Span, place: &FieldPlace, ty: TypeIn<'_>) -> Finding {
    let message = format!("the value fits `{}`, which is {}", dotted_path(place), ty.ty);
    Finding::error(Code::LiteralType, span, message).help("write the value alone")
}

pub(super) fn setting_optional(name: &Spanned<String>) -> Finding {
    let message = format!("the setting `{}` may have no value, and a field needs one", name.value);
    Finding::error(Code::SettingType, name.span, message)
        .help("give the setting a default, or none, so that the operator must say")
}

pub(super) fn setting_type(name: &Spanned<String>, ty: TypeIn<'_>) -> Finding {
    let message = format!("the setting `{}` does not fit {}", name.value, ty.ty);
    Finding::error(Code::SettingType, name.span, message)
}

pub(super) fn absent_but_required(at: &SpannedPlace, side: &str) -> Finding {
    let message = format!("`{}` of {} is required and cannot be left out", dotted_path(&at.value), side);
    Finding::error(Code::NoSource, at.span, message).help("give it a value, or `none` if a route supplies it")
}

pub(super) fn no_source(shape: &str, at: &SpannedPlace, side: &str) -> Finding {
    let (name, own) = (dotted_path(&at.value), side);
    let message = format!("no source for `{name}` ({own}, required) where `{shape}` builds {own}");
    Finding::error(Code::NoSource, at.span, message).help(format!(
        "supply it under `with: {{{name}: …}}`, give it a value here, or serve one side only (`front:`)"
    ))
}

pub(super) fn computed_elsewhere(shape: &str, at: &SpannedPlace, side: &str) -> Finding {
    let name = dotted_path(&at.value);
    let message =
        format!("`{name}` ({side}) is computed where a value has the form `$shape: {shape}`, and not here");
    Finding::error(Code::NoSource, at.span, message).help(format!(
        "answer with a `serve` route that uses `$shape: {shape}`, or serve one side only (`front:`)"
    ))
}

/// A `rest` literal that does not fit some of the fields.
pub(super) fn rest_misfits(span: Span, names: &[String], side: &str) -> Finding {
    let message = format!("this does not fit {} of {}", some(names), side);
    Finding::error(Code::LiteralType, span, message)
        .help("give these lines of their own under `only`, or write `{value: …, despite: type}`")
}

pub(super) fn rest_fits(span: Span) -> Finding {
    Finding::error(Code::LiteralType, span, "the value fits every field that it stands for")
        .help("write the value alone")
}

/// Returns a list of the first names.
fn some(names: &[String]) -> String {
    let list = list(names.iter().take(8));
    let more = if names.len() > 8 { format!(" and {} more", names.len() - 8) } else { String::new() };
    list + &more
}

pub(super) fn rest_has_no_source(shape: &str, span: Span, names: &[String], side: &str) -> Finding {
    let own = side;
    let message = format!("no source for {} ({own}, required) where `{shape}` builds {own}", some(names));
    Finding::error(Code::NoSource, span, message).help(format!(
        "give them lines under `only: {{{own}: …}}`, a value for all (`rest: {{{own}: null}}`), supply them under `with:`, or \
         serve one side only (`front:`)"
    ))
}

pub(super) fn refuse_within(at: &SpannedPlace) -> Finding {
    Finding::error(Code::RefuseWithin, at.span, "only a member of the body itself can refuse a call")
        .help("write a shape for the object that holds it, and refuse there")
}

pub(super) fn supplied_twice(name: &Spanned<String>, line: Span) -> Finding {
    let message = format!("the shape already has a source for `{}`", name.value);
    Finding::error(Code::ClaimedTwice, name.span, message).with_related(line, "its line")
}

pub(super) fn unknown_conversion(name: &Spanned<String>, known: Vec<&str>) -> Finding {
    Finding::error(Code::UnknownConversion, name.span, format!("there is no conversion `{}`", name.value))
        .help(format!("the conversions are {}", list(&known)))
        .did_you_mean(&name.value, known)
}

pub(super) fn not_one_of_several(name: &Spanned<String>) -> Finding {
    let message = format!("`{}` cannot be one of several conversions", name.value);
    Finding::error(Code::ConversionArguments, name.span, message)
        .help("it does not turn values into others: use it alone")
}

pub(super) fn no_arguments(name: &Spanned<String>, span: Span) -> Finding {
    Finding::error(Code::ConversionArguments, span, format!("`{}` takes no arguments", name.value))
        .help(format!("write `as: {}`", name.value))
}

pub(super) fn needs_arguments(name: &Spanned<String>, arguments: Arguments, world: &LensEnv<'_>) -> Finding {
    let form = match arguments {
        Arguments::Table => "{table: {old: new, …}}".to_owned(),
        Arguments::Pairs => format!("{{{}: {{key: name, value: name}}}}", name.value),
        Arguments::Own { such_as, .. } => with_sides(such_as, world),
        Arguments::None => name.value.clone(),
    };
    Finding::error(Code::ConversionArguments, name.span, format!("`{}` needs arguments", name.value))
        .help(format!("write `as: {form}`"))
}

pub(super) fn table_scalar(span: Span) -> Finding {
    Finding::error(Code::ConversionArguments, span, "a table relates scalars")
}

pub(super) fn table_not_one_to_one(span: Span) -> Finding {
    Finding::error(Code::ConversionArguments, span, "two rows give this value, so there is no way back")
        .help("a row may have several values of the new side, `{old: [new, other]}`, and not the other way")
}

pub(super) fn arguments_wrong(
    name: &Spanned<String>,
    arguments: &Node,
    form: Arguments,
    why: &ArgumentError,
    world: &LensEnv<'_>,
) -> Finding {
    let such_as = match form {
        Arguments::Own { such_as, .. } => Some(format!("such as `as: {}`", with_sides(such_as, world))),
        _ => None,
    };
    wrong_arguments(name, arguments, why, such_as)
}

/// Inserts the names of the sides into an example.
fn with_sides(example: &str, world: &LensEnv<'_>) -> String {
    example.replace("OLD", world.side(0)).replace("NEW", world.side(1))
}

pub(super) fn not_of_each(name: &Spanned<String>) -> Finding {
    let message = format!("`{}` is no conversion of the elements of a list", name.value);
    Finding::error(Code::ConversionArguments, name.span, message).help("an element is never absent")
}

pub(super) fn single_else(name: &Spanned<String>) -> Finding {
    let message = "a list of several has no one element: `else:` can say `error` alone";
    Finding::error(Code::ConversionTypes, name.span, message)
        .help("take a list apart in a route: `steps: [one: {pick: path, take: first}]`")
}

pub(super) fn else_keeps(name: &Spanned<String>, way: Direction<'_>, to: TypeIn<'_>) -> Finding {
    let message = format!("`else: keep` may write what {} does not have there, {}", way.to(), to.ty);
    Finding::error(Code::ConversionTypes, name.span, message)
        .help("write `else:` with a literal, `drop` or `error`")
}

/// A conversion rejects valid values and has no fallback. This is an error after a write, because
/// the client would repeat it.
pub(super) fn partial(partial: &Partial) -> Finding {
    let Partial { name, span, from, to, ty, .. } = partial;
    let message = format!(
        "`{name}` does not take every {ty} that {from} may have, and nothing says what {to} gets then"
    );
    let help = match partial.is_function {
        true => "add `else:` with a value, `drop` or `error`".to_owned(),
        false => format!(
            "add `else:` with a value, `keep`, `drop` or `error`; or say it for one side, `else: {{{to}: …}}`"
        ),
    };
    match &partial.wrote {
        None => Finding::warning(Code::PartialConversion, *span, message).help(help),
        Some(write) => Finding::error(Code::PartialConversion, *span, message)
            .label(format!("after `{write}` was called: a client that gets an error calls again"))
            .help(help),
    }
}

/// The fallback of a shape must fit the place of its result.
pub(super) fn shape_else(
    shape: &Spanned<String>,
    literal: &crate::yaml::Node,
    to: TypeIn<'_>,
    side: &str,
) -> Finding {
    let message = format!(
        "this cannot stand where {side} has {}, in place of what `{}` does not take",
        to.ty, shape.value
    );
    Finding::error(Code::ShapeElse, literal.span, message)
        .help("write `drop` (without quotes), `error`, or a value of that type")
}

/// The shape accepts every valid value, so its `else:` is unused.
pub(super) fn nothing_turned_away(shape: &str, span: Span) -> Finding {
    let message = format!("`{shape}` takes all that may come, and `else:` says nothing");
    Finding::warning(Code::NothingTurnedAway, span, message)
        .help("leave it out; it is for what a conversion without an `else:` of its own, or with `else: error`, does not take")
}

pub(super) fn conversion(name: &Spanned<String>, why: &str) -> Finding {
    Finding::error(Code::ConversionTypes, name.span, format!("`{}` does not fit here: {why}", name.value))
}

pub(super) fn conversion_types(
    name: &Spanned<String>,
    why: &str,
    way: Direction<'_>,
    from: TypeIn<'_>,
    to: TypeIn<'_>,
) -> Finding {
    let message = format!("`{}` does not lead {}", name.value, from_to(way, from, to));
    Finding::error(Code::ConversionTypes, name.span, message).help(why.to_owned())
}

pub(super) fn shape_and_conversion(shape: &Spanned<String>, conversion: &Spanned<String>) -> Finding {
    let message = format!("`{}` and a shape cannot both turn one value", conversion.value);
    Finding::error(Code::ConversionTypes, conversion.span, message)
        .with_related(shape.span, "the shape")
        .help("only `single_in_array` goes with a shape")
}

pub(super) fn by_kind_gap(old: &SpannedPlace, missing: &[&str]) -> Finding {
    let message =
        format!("`{}` may also be {}, which has no place", dotted_path(&old.value), missing.join(" or "));
    Finding::error(Code::ByKindGap, old.span, message).help("add a line for each kind that the type allows")
}

pub(super) fn by_kind_other(new: &SpannedPlace, kind: &str, others: &[&str]) -> Finding {
    let message = format!(
        "`{}` stands for {kind} of `by_kind`, and may also be {}",
        dotted_path(&new.value),
        others.join(" or ")
    );
    Finding::error(Code::Types, new.span, message).help("a place of `by_kind` holds one kind of value")
}

pub(super) fn by_kind_chosen(new: &SpannedPlace, side: &str) -> Finding {
    let message = format!(
        "`{}` of {} is required, and `by_kind` writes one of its places only",
        dotted_path(&new.value),
        side
    );
    Finding::error(Code::MayBeAbsent, new.span, message)
        .help("serve the other side only (`front:`), or build it over an old value")
}

pub(super) fn by_kind_silent(old: &SpannedPlace, way: Direction<'_>) -> Finding {
    let (other, own) = (way.from(), way.to());
    let message = format!(
        "none of the places of {other} may be there, and `{}` of {own} is required",
        dotted_path(&old.value)
    );
    Finding::error(Code::MayBeAbsent, old.span, message).help(format!("add `default: {{{own}: …}}`"))
}
