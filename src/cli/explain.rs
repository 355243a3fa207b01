//! `switchback explain`: prints how a request is translated.

use super::output::HAS_FINDINGS;
use super::pack::{PackArg, could_not_use, fail};
use bytes::Bytes;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use switchback_compiler::diagnostic::did_you_mean;
use switchback_engine::translate::{Env, Event, Next, Request, Run, Settings, document};
use switchback_json::{Limits, Object, Value};
use switchback_plan::router::{Found, Router};
use switchback_plan::{self as plan, ArchiveId, BodyPlan, EventRoute, Pack, RouteId, SideId};

/// Shows the route of a request: its calls, and the source of each field with the mapping line.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  switchback explain 'GET /v2/things/7' mappings/things")]
pub struct ExplainArgs {
    /// Method and path, such as 'GET /v2/things/7': the side, then the path of an operation; or
    /// 'event' and its name
    #[arg(value_name = "REQUEST")]
    request: String,

    #[command(flatten)]
    pack: PackArg,

    /// Request body: also shows the first step of such a request. For an event: shows the delivered body
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
}

pub fn run(args: &ExplainArgs) -> Result<ExitCode, ExitCode> {
    let pack = args.pack.pack()?;
    let said = match args.request.trim().strip_prefix("event ") {
        Some(name) => event(&pack, name.trim(), args)?,
        None => request(&pack, args)?,
    };
    print!("{said}");
    Ok(ExitCode::SUCCESS)
}

impl ExplainArgs {
    fn read_body(&self) -> Result<Option<Vec<u8>>, ExitCode> {
        let read = |path: &PathBuf| std::fs::read(path).map_err(|error| could_not_use(path, &error));
        self.body.as_ref().map(read).transpose()
    }
}

/// Explains the route of a request.
fn request(pack: &Arc<Pack>, args: &ExplainArgs) -> Result<String, ExitCode> {
    let at = find(pack, &args.request).map_err(|why| fail(HAS_FINDINGS, why))?;
    let route = &pack.directions[at.serves].routes[at.route];
    let mut said = plan::explain(pack, at.serves, route);
    for instead in &route.instead {
        let setting = &pack.settings[usize::from(instead.setting)].name;
        said.push_str(&format!("\nwhile {setting} is on:\n"));
        said.push_str(&plan::explain(pack, at.serves, &instead.route));
    }
    if let Some(body) = args.read_body()? {
        said.push_str(&first_step(pack, at, body));
    }
    Ok(said)
}

/// Explains the events with this name, on the sending or the receiving side.
fn event(pack: &Pack, name: &str, args: &ExplainArgs) -> Result<String, ExitCode> {
    let Some(events) = &pack.events else {
        return Err(fail(HAS_FINDINGS, "the pack carries no events"));
    };
    let is_told = |route: &EventRoute| route.delivered().is_some_and(|told| **told.name == *name);
    let found: Vec<&EventRoute> =
        events.routes.iter().filter(|route| *route.sent == *name || is_told(route)).collect();
    if found.is_empty() {
        let known: Vec<&str> = events.routes.iter().map(|route| &*route.sent).collect();
        let why = format!("the pack has no event `{name}`; the events are {}", known.join(", "));
        return Err(fail(HAS_FINDINGS, why));
    }
    let body = args.read_body()?;
    let mut said = String::new();
    // A name can be that of a sent event and of a delivered one; both are printed.
    for route in found {
        said.push_str(&plan::explain_event(pack, events, route));
        if let (Some(body), Some(told)) = (&body, route.delivered()) {
            let made = translate_body(pack, told.body, body);
            said.push_str(&format!("{} receivers get: {made}\n", given(pack)));
        }
    }
    Ok(said)
}

/// Translates a body with the pack's default settings.
fn translate_body(pack: &Pack, plan: &BodyPlan, body: &[u8]) -> String {
    let settings = Settings::new(pack, &Value::Object(Object::new())).unwrap_or_default();
    let mut out = Vec::new();
    match document(&plan.op, body, &Env::new(&settings), &Limits::DOCUMENT, &mut out) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(error) => format!("nothing, for it cannot be translated: {error}"),
    }
}

/// The route of a request.
#[derive(Debug)]
struct RequestTarget {
    serves: SideId,
    route: RouteId,
    /// Values of the path parameters.
    values: Vec<String>,
    query: Option<String>,
}

/// Describes the first step of a request with this body, with the pack's default settings.
fn first_step(pack: &Arc<Pack>, at: RequestTarget, body: Vec<u8>) -> String {
    let settings = Settings::new(pack, &Value::Object(Object::new())).unwrap_or_default();
    // The configuration is unknown here. Required settings are absent, and the output names them.
    let missing = settings.missing(pack).join(", ");
    let request = Request { path: at.values, query: at.query, body: body.into(), ..Request::default() };
    let mut run =
        Run::new(Arc::clone(pack), at.serves, at.route, request, Arc::new(settings), Limits::DOCUMENT);
    let json = |body: Option<&Bytes>| body.map(|body| String::from_utf8_lossy(body).into_owned());
    let archive = |id: ArchiveId| pack.archives.get(usize::from(id.0)).map_or("", |archive| &archive.name);
    let step = match run.next(Event::Start) {
        Ok(Next::Call(call)) => {
            format!("{} {} {}", call.method, call.target, json(call.body.as_ref()).unwrap_or_default())
        }
        Ok(Next::Answer(answer)) => {
            format!("is answered {} {}", answer.status, json(answer.body.as_ref()).unwrap_or_default())
        }
        Ok(Next::Refuse(refused)) => format!("is refused: {}", refused.text),
        Ok(Next::Recall(lookup)) => format!("looks into the archive {}", archive(lookup.archive)),
        Ok(Next::Keep(entries)) => format!("keeps something in the archive {}", archive(entries.archive)),
        Ok(Next::Wait(wait)) => format!("waits {:?}", wait.pause),
        Err(fault) => format!("fails: {fault}"),
    };
    let note =
        if missing.is_empty() { String::new() } else { format!("  (without the settings {missing})\n") };
    format!("first, {}: {}\n{note}", given(pack), step.trim_end())
}

/// Returns the conditions of a result: other settings may lead to another one.
fn given(pack: &Pack) -> &'static str {
    match pack.settings.is_empty() {
        true => "with this body",
        false => "with this body and the default settings",
    }
}

/// Finds the side and the route of a request line.
fn find(pack: &Pack, request: &str) -> Result<RequestTarget, String> {
    let names = pack.sides.each_ref().map(|side| side.name.as_str());
    let form = || {
        format!("a request is written as 'GET /{}/things/7'; the sides are {}", names[0], names.join(" and "))
    };
    let (method, path) = request.trim().split_once(' ').ok_or_else(form)?;
    let method = method.parse().map_err(|_| form())?;
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let (side, rest) = path.strip_prefix('/').and_then(|path| path.split_once('/')).ok_or_else(form)?;
    let serves = names.iter().position(|name| *name == side).ok_or_else(form)?;
    let router = Router::new(&pack.directions[serves]);
    match router.find(&method, &format!("/{rest}")) {
        Found::Route { route, values } => Ok(RequestTarget {
            serves: SideId(serves as u8),
            route,
            values: values.into_iter().map(std::borrow::Cow::into_owned).collect(),
            query: query.map(str::to_owned),
        }),
        Found::WrongMethod { allow } => {
            let allow: Vec<&str> = allow.iter().map(http::Method::as_str).collect();
            Err(format!("this path has {} only", allow.join(", ")))
        }
        Found::NotFound => {
            let routes = &pack.directions[serves].routes;
            let known = routes.iter().map(|route| route.operation.key.replacen(' ', &format!(" /{side}"), 1));
            let known: Vec<String> = known.collect();
            let help = did_you_mean(&format!("{method} /{side}/{rest}"), &known);
            let help = help.map(|help| format!("; {help}")).unwrap_or_default();
            Err(format!("{side} has no operation at this path{help}"))
        }
        Found::Bad(error) => Err(format!("the path is not safe to route: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use switchback_compiler::mapping::compile;
    use switchback_compiler::mapping::load::PackSource;

    fn pack() -> Arc<Pack> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging");
        let source = PackSource::from_dir(&folder).expect("the pack lies beside the sources");
        compile(&source).pack.expect("the pack compiles")
    }

    /// Returns a request of the old side for a route, with 7 for every path parameter.
    fn request_for(route: &plan::Route) -> String {
        let (method, template) = route.operation.key.split_once(' ').unwrap();
        let fill = |segment: &str| if segment.starts_with('{') { "7".to_owned() } else { segment.to_owned() };
        let path: Vec<String> = template.split('/').map(fill).collect();
        format!("{method} /v2{}", path.join("/"))
    }

    #[test]
    fn every_operation_of_both_sides_can_be_explained() {
        let pack = pack();
        for direction in &pack.directions {
            for route in &direction.routes {
                let said = plan::explain(&pack, direction.serves, route);
                assert!(said.starts_with(&*route.operation.key), "{said}");
                assert!(said.contains(".map.yaml:"), "{said}");
            }
        }
    }

    #[test]
    fn a_request_that_goes_nowhere_is_told_why() {
        let pack = pack();
        let another_method = request_for(&pack.directions[0].routes[0]).replacen("GET", "PATCH", 1);
        for (request, says) in [
            ("GET", "the sides are"),
            ("GET /v9/a", "the sides are"),
            ("GET /v2/nowhere", "no operation"),
            (another_method.as_str(), "only"),
        ] {
            let message = find(&pack, request).unwrap_err();
            assert!(message.contains(says), "{request}: {message}");
        }
        let plain = pack.directions[0].routes.iter().find(|route| !route.operation.key.contains('{'));
        let request = request_for(plain.expect("an operation without parameters"));
        let message = find(&pack, &format!("{request}x")).unwrap_err();
        assert!(message.ends_with(&format!("; did you mean `{request}`?")), "{message}");
    }

    #[test]
    fn a_body_shows_the_first_call_or_the_answer() {
        let pack = pack();
        let routes = pack.directions[0].routes.iter();
        let said = routes.map(|route| {
            let at = find(&pack, &request_for(route)).unwrap();
            first_step(&pack, at, b"{}".to_vec())
        });
        let said: Vec<String> = said.collect();
        assert!(said.iter().any(|step| step.contains("is answered 400")), "{said:?}");
        assert!(said.iter().any(|step| step.contains("GET /") && step.contains("/7")), "{said:?}");
    }
}
