//! Counts who calls what, once per request, when it is known what became of it.

use super::middleware::Middleware;
use crate::error::Kind;
use crate::proxy::context::RequestContext;
use crate::proxy::unknown_calls::{label, method};
use crate::proxy::{Request, Response};
use crate::retire::Usage;
use crate::retire::UsageKind;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchback_plan::RouteKind;

#[derive(Clone)]
pub(crate) struct CountUsage {
    usage: Usage,
}

impl CountUsage {
    pub(crate) fn new(usage: Usage) -> CountUsage {
        CountUsage { usage }
    }
}

impl Middleware<Request> for CountUsage {
    type Inward = Request;
    type Kept = Call;
    type Fault = Infallible;

    fn before(&self, request: Request) -> ControlFlow<Result<Response, Infallible>, (Request, Call)> {
        let call = Call { context: Arc::clone(&request.context), usage: self.usage.clone() };
        ControlFlow::Continue((request, call))
    }
}

/// One call; counted when it is dropped, with its answer's head or its client gone.
pub(crate) struct Call {
    context: Arc<RequestContext>,
    usage: Usage,
}

impl Drop for Call {
    fn drop(&mut self) {
        let context = &*self.context;
        // What is below no front is nobody's API; who shows a wrong token calls nothing.
        let Some(front) = context.front() else { return };
        let Some(kind) = kind(context) else { return };
        let side = &context.program.side(front.serves).name;
        match context.operation() {
            "" => {
                let operation =
                    format!("{} {}", method(&context.method), label(front, &context.shown_path()));
                self.usage.count(side, context.client(), &operation, kind);
            }
            operation => self.usage.count(side, context.client(), operation, kind),
        }
    }
}

fn kind(context: &RequestContext) -> Option<UsageKind> {
    let is = |kind: &Kind| context.fault().is_some_and(|fault| fault.kind == kind.name());
    let brownout = Kind::Brownout { retry_after: std::time::Duration::ZERO };
    let is_refused = || {
        context.operation_matched().is_some_and(|matched| {
            let route = context.program.route(matched.front.serves, matched.route);
            matches!(route.kind, RouteKind::Refuse(_))
        })
    };
    if is(&Kind::UnknownToken) {
        None
    } else if is(&brownout) {
        Some(UsageKind::Brownout)
    } else if is(&Kind::Retired) {
        Some(UsageKind::Retired)
    } else if context.unknown().is_some() || context.operation_matched().is_none() {
        Some(UsageKind::Unknown)
    } else if is_refused() {
        Some(UsageKind::Refused)
    } else {
        Some(UsageKind::Answered)
    }
}
