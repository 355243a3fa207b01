//! Evaluates expressions of the mapping in the context document.

use super::context::Context;
use super::document::{Env, part};
use super::fault::{Fault, FaultKind, Sender, Stop};
use super::overlay;
use super::settings::Settings;
use super::text::text;
use std::sync::Arc;
use switchback_json::{Limits, Object, Value};
use switchback_plan::convert::{Conversion, Yield};
use switchback_plan::function::{ApplyElse, Function};
use switchback_plan::{Aggregate, Decimal, Expr, Key, NullElse, Overlay, Pack, Raw, ValueOp};

/// Everything that an expression can refer to.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub pack: &'a Pack,
    pub settings: &'a Settings,
    /// Index into [`Pack::languages`].
    pub language: usize,
    pub context: &'a Context,
    pub limits: &'a Limits,
}

impl Scope<'_> {
    /// Returns the value, or `None` to omit its target. The recursion is bounded by the nesting of
    /// expressions in the mapping.
    pub(super) fn value(&self, expr: &Expr) -> Result<Option<Value>, Stop> {
        match expr {
            Expr::Constant(raw) => Ok(Some(constant(raw))),
            Expr::At(location) => Ok(self.context.value(location).map(std::borrow::Cow::into_owned)),
            Expr::Convert { from, conversion } => {
                let value = self.value(from)?;
                convert(value, conversion, Sender::from_expr(from))
            }
            Expr::Apply { from, functions, otherwise } => self.apply(from, functions, otherwise),
            Expr::Object(members) => {
                let mut object = Object::new();
                for (key, expr) in members {
                    if let Some(value) = self.value(expr)? {
                        object.insert(&*key.text, value);
                    }
                }
                Ok(Some(Value::Object(object)))
            }
            Expr::Array(values) => {
                let values = values.iter().filter_map(|expr| self.value(expr).transpose());
                Ok(Some(Value::from(values.collect::<Result<Vec<_>, _>>()?)))
            }
            Expr::Text { reason, with } => {
                let mut filled = Vec::with_capacity(with.len());
                for (name, expr) in with {
                    let value = self.value(expr)?;
                    filled.push((name.as_str(), value.as_ref().and_then(plain).unwrap_or_default()));
                }
                Ok(Some(Value::string(&text(self.pack, *reason, self.language, &filled))))
            }
            Expr::FirstOf(values) => {
                let Some((last, others)) = values.split_last() else { return Ok(None) };
                for expr in others {
                    if let Some(value) = self.value(expr)?.filter(|value| !value.is_null()) {
                        return Ok(Some(value));
                    }
                }
                // The last value is the fallback, even if it is null.
                self.value(last)
            }
            Expr::Present(values) => {
                let mut present = Vec::with_capacity(values.len());
                for expr in values {
                    present.extend(self.value(expr)?.filter(|value| !value.is_null()));
                }
                Ok(Some(Value::from(present)))
            }
            Expr::Each { name, list, give } => self.each(name, list, give),
            Expr::Lookup { value, list, by, field } => {
                let Some(wanted) = self.value(value)? else { return Ok(None) };
                let Some(index) = self.context.index(list, by) else { return Ok(None) };
                let find = |key: &Value| {
                    let found = self.context.element(list, index.find(key)?)?;
                    match field {
                        Some(field) => found.get(&field.text).cloned(),
                        None => Some(found.clone()),
                    }
                };
                Ok(match &wanted {
                    Value::Array(keys) => Some(Value::from(keys.iter().filter_map(find).collect::<Vec<_>>())),
                    key => find(key),
                })
            }
            Expr::Aggregate { what, list } => self.aggregate(*what, list),
            Expr::If { predicate, then, otherwise } => match self.context.holds(predicate) {
                true => self.value(then),
                false => otherwise.as_ref().map_or(Ok(None), |expr| self.value(expr)),
            },
            Expr::Lines { plain, numbered } => {
                let mut lines = self.lines(plain)?;
                let numbered = self.lines(numbered)?.into_iter().zip(1..);
                lines.extend(numbered.map(|(line, number)| format!("{number}. {line}")));
                Ok(Some(Value::string(&lines.join("\n"))))
            }
            Expr::Shape { op, from, with, over, null_as, null_else } => {
                let mut supplied = Vec::with_capacity(with.len());
                for expr in with {
                    supplied.push(self.value(expr)?.map(|value| value.to_vec()));
                }
                let source = self.value(from)?;
                let made = self.shape(op, source, &supplied, over.as_deref(), Sender::from_expr(from))?;
                Ok(made.map(|value| clean(value, null_as, *null_else)))
            }
        }
    }

    /// Evaluates `give` for each element, which is in the context under `name`.
    fn each(&self, name: &Key, list: &Expr, give: &Expr) -> Result<Option<Value>, Stop> {
        let list = match self.value(list)? {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(broken(Sender::from_expr(list), "a list was expected")),
        };
        // The copy shares all values.
        let mut context = self.context.clone();
        let mut given = Vec::with_capacity(list.len());
        for element in list {
            context.set(&name.text, element);
            given.extend(Scope { context: &context, ..*self }.value(give)?);
        }
        Ok(Some(Value::from(given)))
    }

    /// Applies functions in order.
    fn apply(
        &self,
        from: &Expr,
        functions: &[Arc<dyn Function>],
        otherwise: &ApplyElse,
    ) -> Result<Option<Value>, Stop> {
        let Some(mut value) = self.value(from)? else { return Ok(None) };
        for function in functions {
            if value.is_null() {
                break;
            }
            value = match (function.apply(value), otherwise) {
                (Some(result), _) => result,
                (None, ApplyElse::Absent) => return Ok(None),
                (None, ApplyElse::Value(raw)) => return Ok(Some(constant(raw))),
                (None, ApplyElse::Error) => {
                    let detail = format!("`{}` expects {}", function.name(), function.domain_text());
                    return Err(broken(Sender::from_expr(from), &detail));
                }
            };
        }
        Ok(Some(value))
    }

    /// Computes an aggregate over the elements of a list.
    fn aggregate(&self, what: Aggregate, list: &Expr) -> Result<Option<Value>, Stop> {
        let elements = match self.value(list)? {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(elements)) => elements,
            Some(_) => return Err(broken(Sender::from_expr(list), "a list was expected")),
        };
        if what == Aggregate::Count {
            return Ok(Some(Value::from(elements.len() as i64)));
        }
        // Exact decimal arithmetic, so that 0.1 + 0.2 is 0.3.
        let mut sum = Decimal::from(0);
        for element in elements.iter().filter(|element| !element.is_null()) {
            let number = element.as_number().and_then(|number| Decimal::parse(number.text().as_bytes()));
            let next = number.and_then(|number| sum.plus(number));
            sum = next.ok_or_else(|| {
                broken(Sender::from_expr(list), "numbers of at most 30 digits were expected")
            })?;
        }
        let text = sum.text().ok_or_else(|| broken(Sender::from_expr(list), "the sum is too long"))?;
        Ok(Some(own(text.as_bytes())))
    }

    /// Returns the texts of scalars and of list elements.
    fn lines(&self, values: &[Expr]) -> Result<Vec<String>, Stop> {
        let mut lines = Vec::new();
        for expr in values {
            match self.value(expr)? {
                Some(Value::Array(list)) => lines.extend(list.iter().filter_map(plain)),
                value => lines.extend(value.as_ref().and_then(plain)),
            }
        }
        Ok(lines)
    }

    fn shape(
        &self,
        op: &ValueOp,
        source: Option<Value>,
        supplied: &[Option<Vec<u8>>],
        over: Option<&Overlay>,
        sender: Sender,
    ) -> Result<Option<Value>, Stop> {
        let Some(overlay) = over else {
            let Some(source) = source else { return Ok(None) };
            return self.run(op, &source, supplied, sender);
        };
        let base = self.value(&overlay.base)?;
        let base = overlay::cut(base, &overlay.fields).map_err(|found| {
            broken(
                Sender::from_expr(&overlay.base),
                &format!("an object to lay over was expected, found {found}"),
            )
        })?;
        // Without a source, the old value is overlaid with an empty object and remains unchanged.
        let source = source.unwrap_or_else(|| Value::Object(Object::new()));
        let env = Env { settings: self.settings, supplied };
        let laid = overlay::put(op, &source, base, &env, self.limits);
        laid.map(Some).map_err(|error| Stop::of_body(sender, &error))
    }

    fn run(
        &self,
        op: &ValueOp,
        source: &Value,
        supplied: &[Option<Vec<u8>>],
        sender: Sender,
    ) -> Result<Option<Value>, Stop> {
        let env = Env { settings: self.settings, supplied };
        let mut out = Vec::new();
        let made = part(op, &source.to_vec(), &env, self.limits, &mut out);
        Ok(made.map_err(|error| Stop::of_body(sender, &error))?.then(|| own(&out)))
    }
}

/// Parses JSON text that the gateway or the compiler wrote.
fn own(json: &[u8]) -> Value {
    Value::parse(json, &Limits::UNLIMITED).unwrap_or(Value::Null)
}

/// Returns the value of a plan's constant.
pub(super) fn constant(raw: &Raw) -> Value {
    own(raw)
}

fn convert(value: Option<Value>, conversion: &Conversion, sender: Sender) -> Result<Option<Value>, Stop> {
    let Some(value) = value else {
        return Ok(conversion.absent().as_ref().map(constant));
    };
    let mut out = Vec::new();
    match conversion.apply(&value.to_vec(), &mut out) {
        Ok(Yield::Written) => Ok(Some(own(&out))),
        Ok(Yield::Nothing) => Ok(None),
        Err(error) => Err(broken(sender, &error.to_string())),
    }
}

/// Returns the error for an unexpected value, attributed to its sender.
pub(super) fn broken(sender: Sender, detail: &str) -> Stop {
    let kind = match sender {
        Sender::ClientBody => FaultKind::BadBody,
        Sender::Client => FaultKind::BadRequest,
        Sender::Upstream => FaultKind::UpstreamBroken,
        Sender::Operator => FaultKind::Internal,
    };
    Fault::new(kind, detail).into()
}

/// Returns the text of a scalar other than null, for targets, headers and sentences.
pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => Some(number.text().to_owned()),
        Value::String(text) => Some(text.decode().into_owned()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Replaces or removes the nulls of an object, or of each object in an array.
fn clean(mut value: Value, null_as: &[(Key, Raw)], null_else: NullElse) -> Value {
    match &mut value {
        Value::Object(members) => clean_members(members, null_as, null_else),
        Value::Array(values) => {
            values
                .iter_mut()
                .filter_map(Value::as_object_mut)
                .for_each(|m| clean_members(m, null_as, null_else));
        }
        _ => {}
    }
    value
}

fn clean_members(members: &mut Object, null_as: &[(Key, Raw)], null_else: NullElse) {
    for (key, raw) in null_as {
        if let Some(value) = members.get_mut(&key.text).filter(|value| value.is_null()) {
            *value = constant(raw);
        }
    }
    if null_else == NullElse::Absent {
        members.retain(|_, value| !value.is_null());
    }
}
