//! Turns away what is retired: calls within a brownout, and those of a client whose side has ended. Before that end its
//! answers say when it comes, if that is wanted.

use super::middleware::Middleware;
use crate::error::{GatewayError, Kind};
use crate::proxy::{Request, Response};
use crate::retire::{Retirement, Standing};
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
            None | Some(Standing::Open(None)) => return ControlFlow::Continue((request, ())),
            Some(Standing::Open(Some(notice))) => {
                context.set_notice(notice);
                return ControlFlow::Continue((request, ()));
            }
            Some(Standing::Retired(notice)) => {
                if let Some(notice) = notice {
                    context.set_notice(notice);
                }
                GatewayError::new(Kind::Retired, "the side has ended for this client")
            }
            Some(Standing::Brownout { retry_after, reason, id }) => {
                let error = GatewayError::new(Kind::Brownout { retry_after }, format!("brownout {id}"));
                if reason.is_empty() { error } else { error.saying(reason) }
            }
        };
        ControlFlow::Break(Err(error))
    }
}
