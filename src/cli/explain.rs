//! `switchback explain`: what a request would become.

use super::pack::{COULD_NOT_RUN, HAS_FINDINGS, PackArg};
use crate::plan::{self, Pack, RouteId, SideId};
use crate::route::{Found, Router};
use std::io::{self, Write};
use std::process::ExitCode;

/// Shows the route that a request would take: the calls it would make, and for each field of what goes out where it comes
/// from, with the line of the mapping that says so.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  switchback explain 'POST /v2/chats/7/close' mappings/messaging")]
pub struct Args {
    /// Method and path, such as 'GET /v2/things/7': the side, then the path of an operation
    #[arg(value_name = "REQUEST")]
    request: String,

    #[command(flatten)]
    pack: PackArg,
}

/// Runs the verb.
pub fn run(args: &Args) -> ExitCode {
    let pack = match args.pack.pack() {
        Ok(pack) => pack,
        Err(code) => return code,
    };
    match find(&pack, &args.request) {
        Ok((serves, route)) => {
            let route = &pack.directions[usize::from(serves.0)].routes[usize::from(route.0)];
            let said = plan::explain(&pack, serves, route);
            match io::stdout().write_all(said.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::from(COULD_NOT_RUN),
            }
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(HAS_FINDINGS)
        }
    }
}

/// The side and the route that a request line is for.
fn find(pack: &Pack, request: &str) -> Result<(SideId, RouteId), String> {
    let names = pack.sides.each_ref().map(|side| side.name.as_str());
    let form = || {
        format!("a request is written as 'GET /{}/things/7'; the sides are {}", names[0], names.join(" and "))
    };
    let (method, path) = request.trim().split_once(' ').ok_or_else(form)?;
    let method = method.parse().map_err(|_| form())?;
    let path = path.split('?').next().unwrap_or(path);
    let (side, rest) = path.strip_prefix('/').and_then(|path| path.split_once('/')).ok_or_else(form)?;
    let serves = names.iter().position(|name| *name == side).ok_or_else(form)?;
    let router = Router::new(&pack.directions[serves]);
    match router.find(&method, &format!("/{rest}")) {
        Found::Route { route, .. } => Ok((SideId(serves as u8), route)),
        Found::WrongMethod { allow } => {
            let allow: Vec<&str> = allow.iter().map(http::Method::as_str).collect();
            Err(format!("this path has {} only", allow.join(", ")))
        }
        Found::NotFound => Err(format!("{side} has no operation at this path")),
        Found::Bad(error) => Err(format!("the path is not safe to route: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::compile;
    use crate::mapping::load::PackSource;
    use std::path::Path;

    fn explained(request: &str) -> Result<String, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging");
        let source = PackSource::from_dir(&folder).expect("the pack lies beside the sources");
        let pack = compile(&source).pack.expect("the pack compiles");
        find(&pack, request).map(|(serves, route)| {
            plan::explain(&pack, serves, &pack.directions[usize::from(serves.0)].routes[usize::from(route.0)])
        })
    }

    #[test]
    fn every_operation_of_both_sides_can_be_explained() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging");
        let source = PackSource::from_dir(&folder).expect("the pack lies beside the sources");
        let pack = compile(&source).pack.expect("the pack compiles");
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
        assert!(explained("GET").unwrap_err().contains("the sides are"));
        assert!(explained("GET /v9/a").unwrap_err().contains("the sides are"));
        assert!(explained("GET /v2/nowhere").unwrap_err().contains("no operation"));
        assert!(explained("PATCH /v2/chats").unwrap_err().contains("only"));
    }
}
