//! Runs one request through a compiled pack, with a model of the called service.

use super::judge::{Answered, Asked};
use std::sync::Arc;
use std::time::Duration;
use switchback_engine::translate::{Call, Event, Next, Reply, Request, Run, Settings};
use switchback_json::{Limits, Value};
use switchback_plan::{Pack, RouteId, SideId};

/// The end of an exchange.
#[derive(Debug)]
pub enum Ended {
    Answered(Answered),
    /// Refused with a reason of the pack, or a fault of the engine.
    Stopped(String),
}

/// A call as the called service sees it.
pub fn asked(call: &Call) -> Asked {
    Asked {
        target: call.target.clone(),
        headers: call.headers.clone(),
        body: call.body.as_ref().map(|body| body.to_vec()).unwrap_or_default(),
    }
}

/// Runs a request of a client of `served`; `service` answers the calls.
pub fn run(
    pack: &Arc<Pack>,
    served: usize,
    route: RouteId,
    sent: &Asked,
    service: &mut dyn FnMut(&Call) -> Answered,
) -> Ended {
    let (path, query) = sent.target.split_once('?').unwrap_or((&sent.target, ""));
    let side = if served == 0 { SideId::OLD } else { SideId::NEW };
    let operation = &pack.directions[side].routes[usize::from(route.0)].operation;
    let key = operation.key.to_string();
    let template = key.split_once(' ').map(|(_, path)| path).unwrap_or_default();
    let values = template.split('/').zip(path.split('/')).filter(|(part, _)| part.starts_with('{'));
    let decode = |raw: &str| percent_encoding::percent_decode_str(raw).decode_utf8_lossy().into_owned();
    let request = Request {
        path: values.map(|(_, raw)| decode(raw)).collect(),
        query: (!query.is_empty()).then(|| query.to_owned()),
        headers: sent.headers.clone(),
        body: sent.body.clone().into(),
        language: 0,
        arrival: None,
    };
    let none = Value::Object(switchback_json::Object::new());
    let settings = Arc::new(Settings::new(pack, &none).expect("no setting is given"));
    let mut run = Run::new(Arc::clone(pack), side, route, request, settings, Limits::DOCUMENT);
    let (mut event, mut now) = (Event::Start, Duration::ZERO);
    for _ in 0..200 {
        event = match run.next(event) {
            Ok(Next::Call(call)) => {
                let Answered { status, headers, body } = service(&call);
                Event::Reply(Reply { status, headers, body: body.into() })
            }
            Ok(Next::Answer(answer)) => {
                let body = answer.body.map(|body| body.to_vec()).unwrap_or_default();
                return Ended::Answered(Answered { status: answer.status, headers: answer.headers, body });
            }
            Ok(Next::Refuse(refused)) => return Ended::Stopped(format!("refused: {}", refused.text)),
            Ok(Next::Recall(lookup)) => lookup.nothing(),
            Ok(Next::Keep(_)) => Event::Kept,
            Ok(Next::Wait(wait)) => wait.simulate(&mut now),
            Err(fault) => return Ended::Stopped(fault.to_string()),
        };
    }
    Ended::Stopped("the run does not end".to_owned())
}
