//! Runs the shadow's jobs: a bounded queue of requests whose other side is to be called, and a
//! bounded number of tasks that do so. It never blocks a caller: jobs beyond the limits are dropped
//! and counted.

use super::job::{Job, Subject};
use super::judge::ShadowJudge;
use super::phase::{Phase, Share};
use super::record::{self, RecordEntry};
use super::recorder::Recorder;
use super::thread::{Priority, ShadowRuntime};
use super::waiting::{BoundedQueue, QueueError, is_late};
use crate::clock::Clock;
use crate::memory::Memory;
use crate::secret::Secret;
use crate::store::seal::HashOf;
use crate::store::{Store, StoreError};
use crate::telemetry::metrics;
use futures_util::FutureExt as _;
use std::fmt;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchback_engine::diff::{Candidate, Comparison, NotReadBack, SkipReason, View};
use switchback_engine::redact::{Redactor, Salt};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Limits of the shadow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShadowSettings {
    /// Shares of requests that are compared.
    pub shares: ShadowShares,
    /// Maximum number of concurrent read-backs.
    pub read_backs: usize,
    /// Maximum number of queued requests.
    pub queue: usize,
    /// Maximum total size of buffered bodies, in bytes.
    pub queue_bytes: u64,
    /// Maximum size of one buffered body, in bytes.
    pub body_bytes: usize,
    /// Maximum number of concurrent jobs.
    pub workers: usize,
    /// Time limit for the other side's response.
    pub timeout: Duration,
    /// Retention time of records.
    pub keep: Duration,
    /// Maximum number of records per operation and kind.
    pub records: u32,
    /// Priority of the shadow's thread.
    pub priority: Priority,
}

/// Shares of requests that the shadow compares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShadowShares {
    /// Share of requests, of operations in `shadow` and `canary`, for which the other side is
    /// called.
    pub sample: Share,
    /// Share of these, reads only, for which one side is called twice.
    pub noise: Share,
    /// Share of these, reads only, for which both sides are read once more and timed.
    pub timed: Share,
    /// Share of these, writes only, whose effect is read back on both sides, if the pack defines
    /// how.
    pub read_back: Share,
}

impl Default for ShadowSettings {
    /// Returns the defaults of the configuration.
    fn default() -> ShadowSettings {
        ShadowSettings {
            shares: ShadowShares {
                sample: Share::ALL,
                noise: Share::NONE,
                timed: Share::NONE,
                read_back: Share::NONE,
            },
            read_backs: 4,
            queue: 256,
            queue_bytes: 32 << 20,
            body_bytes: 256 << 10,
            workers: 16,
            timeout: Duration::from_secs(5),
            keep: Duration::from_secs(30 * 86_400),
            records: 200,
            priority: Priority::Low,
        }
    }
}

/// Time limit for all work on a request, as a multiple of the response timeout. The longest case is
/// a read that differs and is timed: it awaits the credential and calls each side up to three
/// times.
const WORK_TIMEOUTS: u32 = 7;

/// An error that prevents starting the shadow.
#[derive(Debug, thiserror::Error)]
pub enum ShadowStartError {
    /// The learned noise cannot be read from the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system refuses to start another thread.
    #[error("its thread: {0}")]
    Thread(#[from] io::Error),
}

/// A handle of the shadow for the data path. Clones share it.
#[derive(Clone)]
pub struct Shadow {
    shared: Arc<ShadowInner>,
    jobs: Arc<BoundedQueue<Job>>,
}

struct ShadowInner {
    settings: ShadowSettings,
    memory: Memory,
    judge: ShadowJudge,
    recorder: Recorder,
    clock: Clock,
}

/// The shadow's background tasks.
pub struct Workers {
    stop: watch::Sender<bool>,
    finish: watch::Sender<bool>,
    tasks: TaskTracker,
    dealing: JoinHandle<()>,
    writing: JoinHandle<()>,
    /// The last field, so that it is dropped after the tasks on it have finished or been abandoned.
    apart: ShadowRuntime,
}

impl Shadow {
    /// Starts the shadow and reads the learned noise from the store.
    ///
    /// # Errors
    ///
    /// The learned noise cannot be read, or the system refuses to start another thread.
    pub async fn start(
        store: Store,
        settings: ShadowSettings,
    ) -> Result<(Shadow, Workers), ShadowStartError> {
        let learnt = record::learnt(&store).await?;
        let salt = Salt::new(store.hasher().hash(HashOf::SampleSalt, b""));
        let (finish, finished) = watch::channel(false);
        let (recorder, writer) = Recorder::new(store.clone(), settings.records, settings.keep, finished);
        let shared = Arc::new(ShadowInner {
            settings,
            memory: Memory::new(settings.queue_bytes),
            judge: ShadowJudge::new(Redactor::new(salt), learnt),
            recorder,
            clock: store.clock().clone(),
        });
        let apart = ShadowRuntime::start(settings.priority)?;
        let jobs = Arc::new(BoundedQueue::new(settings.queue));
        let (stop, stopped) = watch::channel(false);
        let tasks = TaskTracker::new();
        let places = (tasks.clone(), apart.handle());
        // The dispatcher runs on the shadow's thread too, or it would compete with serving threads.
        // The writer does not: store connections that it opened would close with the thread, but
        // the store outlives it.
        let dealing = apart.handle().spawn(deal(Arc::clone(&shared), Arc::clone(&jobs), places, stopped));
        let writing = tokio::spawn(writer.run());
        Ok((Shadow { shared, jobs }, Workers { stop, finish, tasks, dealing, writing, apart }))
    }

    /// Returns the limits.
    pub fn settings(&self) -> &ShadowSettings {
        &self.shared.settings
    }

    /// Returns the memory budget for bodies.
    pub fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// Returns whether a request of an operation in this phase is to be compared.
    pub fn takes(&self, phase: Phase, sample_roll: u64) -> bool {
        match phase {
            Phase::Legacy => false,
            Phase::Shadow | Phase::Canary(_) => self.shared.settings.shares.sample.takes(sample_roll),
            Phase::Translated { check } => check.takes(sample_roll),
        }
    }

    /// Queues a job, or drops and counts it if the queue is full or closed.
    pub(crate) fn submit(&self, job: Job) {
        match self.jobs.put(Instant::now(), job) {
            Ok(()) => {}
            Err(QueueError::Full(job)) => self.record_skip(&job.subject, SkipReason::Queue),
            Err(QueueError::Closed(job)) => self.record_skip(&job.subject, SkipReason::Stopping),
        }
        metrics::shadow_waiting(self.jobs.len());
        metrics::shadow_bytes(self.shared.memory.bytes_used());
    }

    /// Drops expired jobs. Called by a reload, because queued jobs hold references to the previous
    /// program.
    pub fn expire(&self) {
        for job in self.jobs.take_expired(Instant::now()) {
            self.record_skip(&job.subject, SkipReason::Time);
        }
        metrics::shadow_waiting(self.jobs.len());
        metrics::shadow_bytes(self.shared.memory.bytes_used());
    }

    /// Returns a comparer for the responses to a request with these secrets.
    pub(crate) fn judging(&self, secrets: &[Secret<String>]) -> Judging {
        Judging { shared: Arc::clone(&self.shared), redactor: self.shared.judge.redactor(secrets) }
    }

    /// Counts a completed write whose effect is not read back.
    pub(crate) fn not_read_back(&self, subject: &Subject, why: NotReadBack) {
        self.shared.recorder.record(RecordEntry::not_read_back(subject, why, self.shared.clock.unix_ms()));
    }

    /// Counts a request that is excluded from its planned comparison.
    pub(crate) fn record_skip(&self, subject: &Subject, why: SkipReason) {
        self.shared.recorder.record(RecordEntry::skip(subject, why, self.shared.clock.unix_ms()));
    }
}

impl fmt::Debug for Shadow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shadow({:?})", self.shared.settings)
    }
}

/// Compares the responses to one request while both sides can still be called again.
pub(crate) struct Judging {
    shared: Arc<ShadowInner>,
    redactor: Redactor,
}

impl Judging {
    /// Compares two responses as a client would see them.
    pub(crate) fn compare(&self, subject: &Subject, reference: &View, candidate: &Candidate) -> Comparison {
        self.shared.judge.compare(subject, &self.redactor, reference, candidate)
    }
}

/// Dispatches jobs to tasks, up to the concurrency limit.
async fn deal(
    shared: Arc<ShadowInner>,
    jobs: Arc<BoundedQueue<Job>>,
    (tasks, apart): (TaskTracker, Handle),
    mut stopped: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(shared.settings.workers));
    loop {
        let next = async {
            // Acquire the permit first, so that waiting jobs remain in the queue, where they are
            // counted.
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((place, jobs.next().await))
        };
        let next = tokio::select! {
            next = next => next,
            _ = stopped.wait_for(|stop| *stop) => None,
        };
        let Some((place, (came, job))) = next else { break };
        metrics::shadow_waiting(jobs.len());
        if is_late(came, Instant::now()) {
            shared.recorder.record(RecordEntry::skip(&job.subject, SkipReason::Time, shared.clock.unix_ms()));
            continue;
        }
        let shared = Arc::clone(&shared);
        let working = async move {
            work(&shared, job).await;
            drop(place);
        };
        tasks.spawn_on(working, &apart);
    }
    for job in jobs.close() {
        let now_ms = shared.clock.unix_ms();
        shared.recorder.record(RecordEntry::skip(&job.subject, SkipReason::Stopping, now_ms));
    }
}

async fn work(shared: &ShadowInner, job: Job) {
    let Job { subject, work, share } = job;
    let work = AssertUnwindSafe(work).catch_unwind();
    let done = tokio::time::timeout(shared.settings.timeout * WORK_TIMEOUTS, work).await;
    let now_ms = shared.clock.unix_ms();
    match done {
        Ok(Ok(done)) => {
            for entry in shared.judge.entries(&subject, done, now_ms) {
                shared.recorder.record(entry);
            }
        }
        // The panic hook has already reported it.
        Ok(Err(_)) => shared.recorder.record(RecordEntry::skip(&subject, SkipReason::Panicked, now_ms)),
        Err(_) => shared.recorder.record(RecordEntry::skip(&subject, SkipReason::Time, now_ms)),
    }
    drop(share);
    metrics::shadow_bytes(shared.memory.bytes_used());
}

impl Workers {
    /// Stops accepting jobs, waits up to `grace` for running ones, and writes the results.
    pub async fn stop(self, grace: Duration) {
        let Workers { stop, finish, tasks, dealing, writing, apart } = self;
        stop.send_replace(true);
        tasks.close();
        let ended = async {
            if dealing.await.is_ok() {
                tasks.wait().await;
            }
        };
        if tokio::time::timeout(grace, ended).await.is_err() {
            tracing::warn!(pairs = tasks.len(), "comparisons did not finish in time and are not recorded");
        }
        // The writer stops last, so that it records the results of the last jobs.
        finish.send_replace(true);
        if tokio::time::timeout(grace, writing).await.is_err() {
            tracing::warn!("the last records of the dual run were not written in time and are lost");
        }
        drop(apart);
    }
}
