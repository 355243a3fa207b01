//! One listener per core, each with a thread and a runtime of its own: a connection lives on the core that accepted it, its
//! requests never change threads, and no scheduler is shared. What connections do in the background (calls to upstreams,
//! work that outlives its client) runs on the same core, so the threads stay until they are let go, after the draining.

use super::permits::ConnectionPermits;
use super::{Bound, CurrentServing, Drain, Drained, bounds, serve_among};
use crate::body::Body;
use crate::shard;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tower::Service;

/// Runtimes of cores that serve one address. Dropped, they end at once, whatever is in flight.
pub struct CoreRuntimes {
    ends: Vec<oneshot::Receiver<Drained>>,
    threads: Vec<JoinHandle<()>>,
    join: CancellationToken,
}

impl CoreRuntimes {
    /// Serves with a thread per listener, as [`super::serve`] does. The limit of connections is one for all of them.
    /// Returns when all of them accept.
    ///
    /// # Errors
    ///
    /// A socket cannot be taken up by its runtime, or the system gives no more threads.
    pub fn start<S>(
        listeners: Vec<Bound>,
        current: &CurrentServing<S>,
        drain: &Drain,
    ) -> io::Result<CoreRuntimes>
    where
        S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        let permits = ConnectionPermits::new(bounds(&current.borrow().options));
        let mut cores =
            CoreRuntimes { ends: Vec::new(), threads: Vec::new(), join: CancellationToken::new() };
        for (number, bound) in listeners.into_iter().enumerate() {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let listener = {
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

    /// Waits until all listeners have drained. Work in the background goes on.
    pub async fn wait_drained(&mut self) -> Drained {
        let mut all = Drained::default();
        for end in self.ends.drain(..) {
            // A core that panicked has lost its connections; it reports none.
            all.cut += end.await.unwrap_or_default().cut;
        }
        all
    }

    /// Ends the threads, and with them whatever still runs on them.
    pub async fn join(mut self) {
        self.join.cancel();
        let threads = std::mem::take(&mut self.threads);
        let joined = tokio::task::spawn_blocking(|| {
            for thread in threads {
                if thread.join().is_err() {
                    tracing::error!("a core panicked");
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

/// The life of one core's thread.
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
    // Not waiting for threads that look up names: they may take long, and nobody asks for their answer any more.
    runtime.shutdown_background();
}
