//! Rejects calls during a brownout, and calls of clients whose side is retired. Before the
//! retirement it adds the configured deprecation notice to the request context.

use super::middleware::Middleware;
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::{Request, Response};
use crate::retire::{CallStanding, Retirement};
use std::ops::ControlFlow;

#[derive(Clone)]
pub(crate) struct Retire {
    retirement: Retirement,
}

impl Retire {
    pub(crate) fn new(retirement: Retirement) -> Retire {
        Retire { retirement }
    }
}

impl Middleware<Request> for Retire {
    type Inward = Request;
    type Kept = ();
    type Fault = GatewayError;

    fn before(&self, request: Request) -> ControlFlow<Result<Response, GatewayError>, (Request, ())> {
        let context = &request.context;
        let front = context.front().expect("`route` sits outside and leaves the front");
        let side = &context.program.side(front.serves).name;
        let error = match self.retirement.standing(side, context.operation(), context.client()) {
            None | Some(CallStanding::Open(None)) => return ControlFlow::Continue((request, ())),
            Some(CallStanding::Open(Some(notice))) => {
                context.set_notice(notice);
                return ControlFlow::Continue((request, ()));
            }
            Some(CallStanding::Retired(notice)) => {
                if let Some(notice) = notice {
                    context.set_notice(notice);
                }
                GatewayError::new(ErrorKind::Retired, "the side has ended for this client")
            }
            Some(CallStanding::Brownout { retry_after, reason, id }) => {
                let error = GatewayError::new(ErrorKind::Brownout { retry_after }, format!("brownout {id}"));
                if reason.is_empty() { error } else { error.saying(reason) }
            }
        };
        ControlFlow::Break(Err(error))
    }
}
