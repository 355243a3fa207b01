//! `switchback reference`: the pages of the documentation that are generated from the program.

use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::process::ExitCode;
use switchback_gateway::telemetry::metrics::METRICS;

/// Print a reference page as Markdown: every key, metric or admin call of this version.
#[derive(clap::Args)]
#[command(
    after_help = "`switchback schema config` and `GET /api/openapi.json` on the admin port have the same as JSON."
)]
pub struct ReferenceArgs {
    /// Content of the page
    #[arg(value_enum)]
    of: ReferencePage,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ReferencePage {
    /// Keys of the gateway's configuration
    Config,
    /// Metrics of the admin port
    Metrics,
    /// Calls of the admin port
    Api,
}

pub fn run(args: &ReferenceArgs) -> ExitCode {
    let page = match args.of {
        ReferencePage::Config => config_page(&crate::config::schema()),
        ReferencePage::Metrics => metrics_page(),
        ReferencePage::Api => api_page(&crate::admin::description()),
    };
    print!("{page}");
    ExitCode::SUCCESS
}

/// Escapes a text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn metrics_page() -> String {
    let mut page = "# Metrics\n\n\
                    `/metrics` on the admin port has these metrics in the text format of Prometheus. \
                    `switchback reference metrics` prints this page.\n\n\
                    | Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n"
        .to_owned();
    for metric in METRICS {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (kind, labels) = (metric.kind.word(), labels.join(", "));
        _ = writeln!(page, "| `{}` | {kind} | {labels} | {} |", metric.name, cell(metric.about));
    }
    page
}

/// A map of the configuration.
struct ConfigSection {
    /// Its place, such as `upstreams.NAME.tls`; empty for the file itself.
    path: String,
    /// Number of alternative forms, each with keys of its own.
    forms: usize,
    keys: Vec<ConfigKey>,
}

#[derive(PartialEq)]
struct ConfigKey {
    name: String,
    kind: String,
    /// The default; empty without one.
    default: String,
    about: String,
    /// Number of forms of the section that require the key.
    required: usize,
}

fn config_page(schema: &Value) -> String {
    let mut sections = Vec::new();
    collect(schema, "", &mut sections);
    let mut page = "# Configuration reference\n\n\
                    Every key of the file that `switchback serve --config FILE` reads. `NAME` stands for a name that \
                    the file defines, such as a side, and `[]` for the entries of a list. Values can contain \
                    `${NAME}` and `${NAME:-default}` from the environment, and secrets can be `file:PATH`. Durations: \
                    `250ms`, `15s`, `5m`, `2h`, `30d`; sizes: `512`, `64KiB`, `10MiB`, `1GiB`. \
                    [The sample](../deploy/switchback.sample.yaml) shows all keys in one file. \
                    `switchback reference config` prints this page.\n"
        .to_owned();
    for (at, section) in sections.iter().enumerate() {
        let title =
            if section.path.is_empty() { "The file".to_owned() } else { format!("`{}`", section.path) };
        _ = write!(page, "\n## {title}\n\n");
        if let Some(equal) = sections[..at].iter().find(|earlier| earlier.keys == section.keys) {
            _ = writeln!(page, "The keys are those of `{}`.", equal.path);
            continue;
        }
        page.push_str("| Key | Value | Default | Meaning |\n|---|---|---|---|\n");
        for key in &section.keys {
            let is_required = key.required == section.forms;
            let default = if is_required { "required" } else { key.default.as_str() };
            _ = writeln!(page, "| `{}` | {} | {default} | {} |", key.name, key.kind, cell(&key.about));
        }
    }
    page
}

/// Adds the maps of a schema, outermost first. Alternative forms of one map become one section.
fn collect(schema: &Value, path: &str, sections: &mut Vec<ConfigSection>) {
    let empty = Map::new();
    let members = |key: &str| schema[key].as_object().unwrap_or(&empty);
    let named = members("properties").iter().map(|(name, value)| (name.clone(), value));
    // Names such as `v2_token` begin with the name of a side.
    let patterns = members("patternProperties").iter();
    let patterns = patterns.map(|(name, value)| (name.replace("^.+", "SIDE").replace('$', ""), value));
    let keys: Vec<(String, &Value)> = named.chain(patterns).collect();
    if !keys.is_empty() {
        let at = sections.iter().position(|section| section.path == path).unwrap_or_else(|| {
            sections.push(ConfigSection { path: path.to_owned(), forms: 0, keys: Vec::new() });
            sections.len() - 1
        });
        sections[at].forms += 1;
        for (name, value) in &keys {
            merge(config_key(name, value, schema), &mut sections[at].keys);
        }
    }
    for (name, value) in keys {
        collect(value, &[path, &name].join(if path.is_empty() { "" } else { "." }), sections);
    }
    if schema["additionalProperties"].is_object() {
        collect(&schema["additionalProperties"], &format!("{path}.NAME"), sections);
    }
    if schema["items"].is_object() {
        collect(&schema["items"], &format!("{path}[]"), sections);
    }
    for form in schema["anyOf"].as_array().into_iter().flatten() {
        collect(form, path, sections);
    }
}

/// Adds a key, or another form of its value.
fn merge(key: ConfigKey, keys: &mut Vec<ConfigKey>) {
    match keys.iter_mut().find(|known| known.name == key.name) {
        None => keys.push(key),
        Some(known) => {
            known.kind = alternatives([known.kind.as_str(), key.kind.as_str()]);
            known.required += key.required;
        }
    }
}

/// Joins kinds of values, each once.
fn alternatives<'k>(kinds: impl IntoIterator<Item = &'k str>) -> String {
    let mut all: Vec<&str> = Vec::new();
    for kind in kinds.into_iter().flat_map(|kind| kind.split(" or ")) {
        if !all.contains(&kind) {
            all.push(kind);
        }
    }
    all.join(" or ")
}

fn config_key(name: &str, value: &Value, section: &Value) -> ConfigKey {
    let mut required = section["required"].as_array().into_iter().flatten();
    // The keys of a map have their own defaults.
    let default = match &value["default"] {
        Value::Null | Value::Object(_) => String::new(),
        Value::Array(items) => quoted(items),
        Value::String(text) if text.is_empty() => String::new(),
        other => quoted(std::slice::from_ref(other)),
    };
    ConfigKey {
        name: name.to_owned(),
        kind: kind(value),
        default,
        about: value["description"].as_str().unwrap_or_default().to_owned(),
        required: usize::from(required.any(|required| required == name)),
    }
}

/// Quotes values as they are written.
fn quoted(values: &[Value]) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    values.iter().map(|value| format!("`{}`", text(value))).collect::<Vec<_>>().join(", ")
}

/// Names of the kinds of values that the schema describes by this first example.
const KINDS: [(&str, &str); 8] = [
    ("${NAME}", "secret"),
    ("15s", "duration"),
    ("10MiB", "size"),
    ("127.0.0.1:8080", "address"),
    ("10.0.0.0/8", "network"),
    ("a text", "text"),
    ("mappings/messaging", "path"),
    ("https://api.example.com/v3", "URL"),
];

/// Describes the form of a value.
fn kind(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        return quoted(words);
    }
    if schema["const"].is_string() {
        return quoted(std::slice::from_ref(&schema["const"]));
    }
    if let Some(forms) = schema["anyOf"].as_array() {
        let kinds: Vec<String> = forms.iter().map(kind).collect();
        return alternatives(kinds.iter().map(String::as_str));
    }
    if let Some(examples) = schema["examples"].as_array() {
        let known = KINDS.iter().find(|(example, _)| examples.first().is_some_and(|first| first == example));
        return known.map_or_else(|| format!("such as {}", quoted(examples)), |(_, name)| (*name).to_owned());
    }
    let (word, of) = (schema["type"].as_str().unwrap_or("any"), &schema["additionalProperties"]);
    match word {
        "array" => format!("list: {}", kind(&schema["items"])),
        "object" if of.is_object() => format!("map: {}", kind(of)),
        "object" => "map".to_owned(),
        "string" => "text".to_owned(),
        word => word.to_owned(),
    }
}

fn api_page(document: &Value) -> String {
    let mut page = "# Admin API\n\n\
                    The calls of the admin port. *Access*: `open` needs no token; `read` takes `admin.read_token` or \
                    `admin.token`, `change` only the latter, and records the name in `X-Operator` as the author. \
                    Bodies are JSON; `?` marks a member that may be left out. `GET /api/openapi.json` has the schemas \
                    of bodies and responses. `switchback reference api` prints this page.\n\n\
                    | Call | Access | Query or body | Meaning |\n|---|---|---|---|\n"
        .to_owned();
    for (path, operations) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            let access = match operation["security"].as_array().map_or(0, Vec::len) {
                0 => "open",
                1 => "change",
                _ => "read",
            };
            let about = cell(operation["summary"].as_str().unwrap_or_default());
            let takes = [query(operation), body(operation, document)].concat().join(", ");
            _ = writeln!(page, "| `{} {path}` | {access} | {takes} | {about} |", method.to_ascii_uppercase());
        }
    }
    page
}

fn query(operation: &Value) -> Vec<String> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let of_query = parameters.filter(|parameter| parameter["in"] == "query");
    of_query.filter_map(|parameter| Some(format!("`{}?`", parameter["name"].as_str()?))).collect()
}

/// Returns the members of the request body.
fn body(operation: &Value, document: &Value) -> Vec<String> {
    let mut schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    if let Some(pointer) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        schema = document.pointer(pointer).unwrap_or(&Value::Null);
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let members = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name);
    let mark = |name: &String| if required.iter().any(|one| one == name.as_str()) { "" } else { "?" };
    members.map(|name| format!("`{name}{}`", mark(name))).collect()
}
