//! Differences: rules that modify a field in the answers of one side, so that the two versions
//! disagree.

use super::faults::path_fits;
use crate::Side;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A rule, as it is sent and listed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Assigned by the sandbox.
    #[serde(default)]
    pub id: u64,
    pub side: Side,
    /// The kind of resource: `chat`, `message`, `contact`, `agent` …; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// A documented path below the version; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Only the resource with this `id`, as an integer or a numeric string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// Path of the field in each resource: `$.chatCustomer.name`, `$.channels[0].id`,
    /// `$.channels[*].id`, `$['a.b']`; `$` is the resource itself.
    pub field: String,
    /// Whether `field` starts at the body of a list instead of at each entry.
    #[serde(default)]
    pub whole: bool,
    pub change: Change,
}

/// The modification of a value.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// Sets the value, even if it is absent.
    Set(Value),
    /// Removes the value.
    Remove,
    /// Changes the type: swaps numbers and strings, turns booleans into 0 and 1, and other values
    /// into strings.
    Retype,
    /// Reverses the order of an array or of an object's members.
    Reverse,
    /// Appends members to an object, or an entry to an array.
    Add(Value),
    /// Sets a different text in every answer, so that the side contradicts itself.
    Renew,
}

/// The active rules.
#[derive(Default)]
pub struct Differences {
    rules: Vec<(Difference, Vec<Step>)>,
    next_id: u64,
    renewed: AtomicU64,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
    Every,
}

/// The field of a rule is not a path.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is no field: write $.name, $.list[0].name, $.list[*].name or $['dotted.name']")]
pub struct FieldError(String);

impl Differences {
    /// Activates a rule and returns its id, or an error if its field is invalid.
    pub fn add(&mut self, mut difference: Difference) -> Result<u64, FieldError> {
        let steps = steps(&difference.field)?;
        self.next_id += 1;
        difference.id = self.next_id;
        self.rules.push((difference, steps));
        Ok(self.next_id)
    }

    pub fn remove(&mut self, id: u64) -> bool {
        let before = self.rules.len();
        self.rules.retain(|(rule, _)| rule.id != id);
        self.rules.len() < before
    }

    pub fn clear(&mut self) {
        self.rules.clear();
    }

    pub fn all(&self) -> Vec<&Difference> {
        self.rules.iter().map(|(rule, _)| rule).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the modified body of an answer, or `None` if no rule applies.
    pub fn apply<S: AsRef<str>>(
        &self,
        side: Side,
        resource: &str,
        segments: &[S],
        body: &[u8],
    ) -> Option<Vec<u8>> {
        let fits = |rule: &Difference| {
            rule.side == side
                && rule.resource.as_ref().is_none_or(|wanted| wanted == resource)
                && rule.path.as_ref().is_none_or(|pattern| path_fits(pattern, segments))
        };
        let mut fitting = self.rules.iter().filter(|(rule, _)| fits(rule)).peekable();
        // Parse the body only if a rule applies.
        fitting.peek()?;
        let mut body: Value = serde_json::from_slice(body).ok()?;
        for (rule, steps) in fitting {
            let what = self.this_time(&rule.change);
            match &mut body {
                Value::Array(entries) if !rule.whole => {
                    entries
                        .iter_mut()
                        .filter(|entry| rule.is_about(entry))
                        .for_each(|entry| change(entry, steps, &what));
                }
                body if rule.is_about(body) => change(body, steps, &what),
                _ => {}
            }
        }
        serde_json::to_vec(&body).ok()
    }

    /// Resolves the modification for the current answer.
    fn this_time<'c>(&self, change: &'c Change) -> Cow<'c, Change> {
        match change {
            Change::Renew => {
                let times = self.renewed.fetch_add(1, Relaxed);
                Cow::Owned(Change::Set(format!("renewed {times} times").into()))
            }
            same => Cow::Borrowed(same),
        }
    }
}

impl Difference {
    fn is_about(&self, thing: &Value) -> bool {
        // Some representations have ids as numbers, others as numeric strings, and a rule covers both.
        let Some(wanted) = self.of else { return true };
        match thing.get("id") {
            Some(Value::Number(id)) => id.as_u64() == Some(wanted),
            Some(Value::String(id)) => id.parse() == Ok(wanted),
            _ => false,
        }
    }
}

fn change(value: &mut Value, steps: &[Step], what: &Change) {
    match steps {
        [] => change_here(value, what),
        [Step::Key(key)] => match (value, what) {
            // `shift_remove` retains the order of the other members. A difference of order would be a
            // second difference, which the test did not ask for.
            (Value::Object(map), Change::Remove) => drop(map.shift_remove(key)),
            // Setting a value also creates a missing member.
            (Value::Object(map), Change::Set(new)) => drop(map.insert(key.clone(), new.clone())),
            (value, what) => value.get_mut(key).into_iter().for_each(|value| change_here(value, what)),
        },
        [Step::Index(index)] if matches!(what, Change::Remove) => {
            if let Some(entries) = value.as_array_mut().filter(|entries| *index < entries.len()) {
                entries.remove(*index);
            }
        }
        [Step::Key(key), rest @ ..] => {
            value.get_mut(key).into_iter().for_each(|value| change(value, rest, what))
        }
        [Step::Index(index), rest @ ..] => {
            value.get_mut(index).into_iter().for_each(|value| change(value, rest, what))
        }
        [Step::Every, rest @ ..] => {
            value.as_array_mut().into_iter().flatten().for_each(|value| change(value, rest, what))
        }
    }
}

fn change_here(value: &mut Value, what: &Change) {
    match what {
        Change::Set(new) => *value = new.clone(),
        Change::Remove | Change::Renew => *value = Value::Null,
        Change::Retype => *value = change_type(value),
        Change::Reverse => match value {
            Value::Array(entries) => entries.reverse(),
            Value::Object(map) => *map = std::mem::take(map).into_iter().rev().collect::<Map<_, _>>(),
            _ => {}
        },
        Change::Add(new) => match (value, new) {
            (Value::Object(map), Value::Object(new)) => map.extend(new.clone()),
            (Value::Array(entries), new) => entries.push(new.clone()),
            _ => {}
        },
    }
}

fn change_type(value: &Value) -> Value {
    match value {
        // A text that is no number becomes its length, so that the result is a number in every case.
        Value::String(text) => text.parse::<i64>().map_or_else(|_| Value::from(text.len()), Value::from),
        Value::Number(number) => Value::from(number.to_string()),
        Value::Bool(flag) => Value::from(i64::from(*flag)),
        Value::Null => Value::from(""),
        other => Value::from(other.to_string()),
    }
}

fn steps(field: &str) -> Result<Vec<Step>, FieldError> {
    let wrong = || FieldError(field.to_owned());
    let mut rest = field.strip_prefix('$').ok_or_else(wrong)?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, after) = if let Some(name) = rest.strip_prefix('.') {
            let end = name.find(['.', '[']).unwrap_or(name.len());
            (Step::Key(name[..end].to_owned()), &name[end..])
        } else if let Some(quoted) = rest.strip_prefix("['") {
            let (name, after) = quoted.split_once("']").ok_or_else(wrong)?;
            (Step::Key(name.to_owned()), after)
        } else {
            let inner = rest.strip_prefix('[').ok_or_else(wrong)?;
            let (index, after) = inner.split_once(']').ok_or_else(wrong)?;
            let step =
                if index == "*" { Step::Every } else { Step::Index(index.parse().map_err(|_| wrong())?) };
            (step, after)
        };
        // `$..name` would select descendants in JSONPath (RFC 9535, section 2.5.2), which rules do not
        // support.
        if step == Step::Key(String::new()) {
            return Err(wrong());
        }
        steps.push(step);
        rest = after;
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(rule: &str, body: &str) -> String {
        let mut differences = Differences::default();
        differences.add(serde_json::from_str(rule).expect("a rule")).expect("a field");
        let changed = differences.apply(Side::V2, "chat", &["chats"], body.as_bytes());
        changed.map_or_else(|| body.to_owned(), |body| String::from_utf8(body).expect("UTF-8"))
    }

    #[test]
    fn each_change_does_what_it_says() {
        let body = r#"{"id":1,"a":"7","b":{"c.d":[1,2]}}"#;
        for (rule, changed) in [
            (
                r#"{"side":"v2","field":"$.a","change":{"set":null}}"#,
                r#"{"id":1,"a":null,"b":{"c.d":[1,2]}}"#,
            ),
            (r#"{"side":"v2","field":"$.a","change":"remove"}"#, r#"{"id":1,"b":{"c.d":[1,2]}}"#),
            (r#"{"side":"v2","field":"$.a","change":"retype"}"#, r#"{"id":1,"a":7,"b":{"c.d":[1,2]}}"#),
            (
                r#"{"side":"v2","field":"$.b['c.d']","change":"reverse"}"#,
                r#"{"id":1,"a":"7","b":{"c.d":[2,1]}}"#,
            ),
            (
                r#"{"side":"v2","field":"$.b['c.d'][1]","change":"remove"}"#,
                r#"{"id":1,"a":"7","b":{"c.d":[1]}}"#,
            ),
            (
                r#"{"side":"v2","field":"$","change":{"add":{"z":0}}}"#,
                r#"{"id":1,"a":"7","b":{"c.d":[1,2]},"z":0}"#,
            ),
            (r#"{"side":"v2","of":2,"field":"$.a","change":"remove"}"#, body),
            (r#"{"side":"v3","field":"$.a","change":"remove"}"#, body),
            (r#"{"side":"v2","resource":"contact","field":"$.a","change":"remove"}"#, body),
        ] {
            assert_eq!(applied(rule, body), changed, "{rule}");
        }
    }

    #[test]
    fn what_is_renewed_is_another_text_each_time() {
        let mut differences = Differences::default();
        let rule = r#"{"side":"v2","field":"$.a","change":"renew"}"#;
        differences.add(serde_json::from_str(rule).expect("a rule")).expect("a field");
        let answer = || differences.apply(Side::V2, "chat", &["chats"], br#"{"id":1,"a":"7"}"#);
        let (first, second) = (answer().expect("it is changed"), answer().expect("it is changed"));
        assert_ne!(first, second);
        let first: Value = serde_json::from_slice(&first).expect("JSON");
        assert!(first["a"].is_string() && first["id"] == 1, "{first}");
    }

    #[test]
    fn lists_are_changed_entry_by_entry_or_as_a_whole() {
        let body = r#"[{"id":1,"a":1},{"id":"2","a":1}]"#;
        let rule = r#"{"side":"v2","of":2,"field":"$.a","change":{"set":5}}"#;
        assert_eq!(applied(rule, body), r#"[{"id":1,"a":1},{"id":"2","a":5}]"#);
        let rule = r#"{"side":"v2","whole":true,"field":"$[0]","change":"remove"}"#;
        assert_eq!(applied(rule, body), r#"[{"id":"2","a":1}]"#);
        let rule = r#"{"side":"v2","whole":true,"field":"$","change":"reverse"}"#;
        assert_eq!(applied(rule, body), r#"[{"id":"2","a":1},{"id":1,"a":1}]"#);
        assert!(steps("a.b").is_err());
        assert!(steps("$..a").is_err());
        assert!(steps("$[x]").is_err());
    }
}
