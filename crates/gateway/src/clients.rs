//! The port for clients: what calls run through, from a connection to the layer that forwards, put together and started.
//!
//! None of it is generic, so that it is compiled with this crate: a program may have its own code made small without a call
//! taking longer.

use crate::events::receive::{Intake, Receiving};
use crate::proxy::stack::{self, Parts};
use crate::server::{Bound, CoreRuntimes, Drain, Options, Serving};
use std::io;
use std::sync::Arc;
use tokio::sync::watch;

/// Has new connections answered by other parts, within other limits.
pub type Replace = Box<dyn Fn(Parts, Options) + Send>;

/// Answers the calls and events of clients with a thread per listener, until `drain` begins. Returns when all of them accept.
///
/// # Errors
///
/// A socket cannot be taken up, or the system gives no more threads.
pub fn serve(
    listeners: Vec<Bound>,
    parts: Parts,
    intake: Intake,
    options: Options,
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
