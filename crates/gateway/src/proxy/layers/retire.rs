//! Rejects calls during a brownout, and calls of clients whose side is retired. Before the
//! retirement it records the configured deprecation notice for `announce`.

use super::middleware::{Before, Middleware};
use crate::error::{ErrorKind, GatewayError};
use crate::proxy::request::Authenticated;
use crate::retire::{CallStanding, Retirement};
use std::ops::ControlFlow;

#[derive(Clone)]
pub(crate) struct Retire {
    pub retirement: Retirement,
}

impl Middleware<Authenticated> for Retire {
    type Inward = Authenticated;
    type Kept = ();
    type Fault = GatewayError;

    fn before(&self, request: Authenticated) -> Before<Self, Authenticated> {
        let (context, front, operation, client) = request.parts();
        let side = &context.program.side(front.serves).name;
        let operation =
            operation.map_or("", |route| &context.program.route(front.serves, route).operation.key);
        let client = client.map_or("", |client| &client.name);
        let error = match self.retirement.standing(side, operation, client) {
            None | Some(CallStanding::Open(None)) => return ControlFlow::Continue((request, ())),
            Some(CallStanding::Open(notice)) => {
                context.facts().notice = notice;
                return ControlFlow::Continue((request, ()));
            }
            Some(CallStanding::Retired(notice)) => {
                context.facts().notice = notice;
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
