//! One listener per core, each with its own thread and current-thread runtime. A connection stays
//! on the core that accepted it, its requests never change threads, and no scheduler is shared.
//! Background work of a connection (upstream calls, work that outlives its client) runs on the same
//! core, so the threads keep running after draining until [`CoreRuntimes::join`].

use super::permits::ConnectionPermits;
use super::{Bound, CurrentServing, Drain, Drained, RequestService, serve_among};
use crate::shard;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Per-core runtimes that serve one address. Dropping the value stops all of them without waiting
/// for work in flight.
pub struct CoreRuntimes {
    ends: Vec<oneshot::Receiver<Drained>>,
    threads: Vec<JoinHandle<()>>,
    join: CancellationToken,
}

impl CoreRuntimes {
    /// Serves with one thread per listener, as [`super::serve`] does. The connection limit is
    /// shared by all of them. Returns once every listener is open.
    ///
    /// # Errors
    ///
    /// Returns an error if a socket cannot be registered with its runtime or a thread cannot be
    /// spawned.
    pub fn start<S: RequestService>(
        listeners: Vec<Bound>,
        current: &CurrentServing<S>,
        drain: &Drain,
    ) -> io::Result<CoreRuntimes> {
        let permits = ConnectionPermits::new(current.borrow().options.connections.clone());
        let mut cores =
            CoreRuntimes { ends: Vec::new(), threads: Vec::new(), join: CancellationToken::new() };
        for (number, bound) in listeners.into_iter().enumerate() {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let listener = {
                // The socket registers with the runtime that is entered, and must be polled by this
                // one.
                let _inside = runtime.enter();
                bound.open()?
            };
            let serving = serve_among(listener, current.clone(), drain.clone(), Arc::clone(&permits));
            let (sender, end) = oneshot::channel();
            let join = cores.join.clone();
            let thread = std::thread::Builder::new().name(format!("core-{number}"));
            cores.threads.push(thread.spawn(move || {
                shard::is_core(number);
                run(runtime, serving, sender, &join);
            })?);
            cores.ends.push(end);
        }
        Ok(cores)
    }

    /// Waits until all listeners have drained. Background work continues.
    pub async fn wait_drained(&mut self) -> Drained {
        let mut all = Drained::default();
        for end in self.ends.drain(..) {
            // A panicked core has dropped its sender; count no cut connections for it.
            all.cut += end.await.unwrap_or_default().cut;
        }
        all
    }

    /// Stops the threads, and with them all background work.
    pub async fn join(mut self) {
        self.join.cancel();
        let threads = std::mem::take(&mut self.threads);
        // Joining blocks, and the threads may need this runtime to finish their work.
        let joined = tokio::task::spawn_blocking(|| {
            for thread in threads {
                if thread.join().is_err() {
                    tracing::error!("the thread of a core panicked; its connections are lost");
                }
            }
        });
        let _ = joined.await;
    }
}

impl Drop for CoreRuntimes {
    fn drop(&mut self) {
        self.join.cancel();
    }
}

/// Runs one core's thread: serves until drained, then keeps the runtime alive until `join`.
fn run(
    runtime: Runtime,
    serving: impl Future<Output = Drained>,
    ended: oneshot::Sender<Drained>,
    join: &CancellationToken,
) {
    runtime.block_on(async {
        tokio::select! {
            () = join.cancelled() => {}
            drained = serving => {
                let _ = ended.send(drained);
                join.cancelled().await;
            }
        }
    });
    // Do not wait for blocking name lookups: they can take long, and their results are unused now.
    runtime.shutdown_background();
}
