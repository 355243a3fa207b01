//! The client port: assembles and starts the path of a call, from the connection to the layer that
//! forwards it.
//!
//! The module is not generic, so it is compiled with this crate. A program may then optimize its
//! own code for size without slowing down calls.

use crate::events::receive::{Intake, Receiving};
use crate::proxy::stack::{self, StackParts};
use crate::server::{Bound, CoreRuntimes, Drain, ServerOptions, Serving};
use std::io;
use std::sync::Arc;
use tokio::sync::watch;

/// Replaces the stack and the limits for new connections.
pub type Replace = Box<dyn Fn(StackParts, ServerOptions) + Send>;

/// Serves calls and events of clients with one thread per listener until `drain` starts. Returns
/// once all threads accept connections.
///
/// # Errors
///
/// A socket cannot be registered with the runtime, or the system refuses to start a thread.
pub fn serve(
    listeners: Vec<Bound>,
    parts: StackParts,
    intake: Intake,
    options: ServerOptions,
    drain: &Drain,
) -> io::Result<(CoreRuntimes, Replace)> {
    let receiving = Receiving::new(stack::stack(parts), intake);
    let serving = Serving { service: receiving.clone(), options: Arc::new(options) };
    let (serving, current) = watch::channel(serving);
    let cores = CoreRuntimes::start(listeners, &current, drain)?;
    let replace = move |parts, options| {
        let service = receiving.before(stack::stack(parts));
        serving.send_replace(Serving { service, options: Arc::new(options) });
    };
    Ok((cores, Box::new(replace)))
}
