//! The shadow at work: a bounded queue of requests whose other side is to be asked, and a bounded number of tasks that do it.
//! It never makes anyone wait: what finds no place is dropped and counted.

use super::job::{Job, Subject};
use super::judge::Judge;
use super::phase::{Phase, Share};
use super::record::{self, Entry};
use super::recorder::Recorder;
use super::thread::{Priority, ShadowRuntime};
use super::waiting::{Refused, Waiting, is_late};
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

/// What the shadow may cost.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Share of the requests, of operations in `shadow` and `canary`, for which the other side is asked.
    pub sample: Share,
    /// Share of these, reads only, for which one side is asked twice.
    pub noise: Share,
    /// Share of these, reads only, for which both sides are read once more and timed.
    pub timed: Share,
    /// Share of these, writes only, after which what they changed is read on both sides, where the pack says how.
    pub read_back: Share,
    /// Writes being read back at one time.
    pub read_backs: usize,
    /// Requests that may wait.
    pub queue: usize,
    /// Bytes of all bodies that are kept.
    pub queue_bytes: u64,
    /// Bytes kept of one body.
    pub body_bytes: usize,
    /// Requests at work at one time.
    pub workers: usize,
    /// For the other side's answer.
    pub timeout: Duration,
    /// How long what was recorded is kept.
    pub keep: Duration,
    /// Records kept per operation and kind.
    pub records: u32,
    /// Of its thread.
    pub priority: Priority,
}

impl Default for Settings {
    /// Nothing is asked unless a phase says so; the bounds are those of the configuration's defaults.
    fn default() -> Settings {
        Settings {
            sample: Share::ALL,
            noise: Share::NONE,
            timed: Share::NONE,
            read_back: Share::NONE,
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

/// How much longer than the other side's answer all work on a request may take. The most is done for a reading that differs
/// and is timed: the credential is awaited, and each side is asked up to three times.
const WORK_TIMEOUTS: u32 = 7;

/// Why there is no shadow.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What was learnt before could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gives no more threads.
    #[error("its thread: {0}")]
    Thread(#[from] io::Error),
}

/// The shadow, as the data path sees it. Clones share it.
#[derive(Clone)]
pub struct Shadow {
    shared: Arc<Shared>,
    jobs: Arc<Waiting<Job>>,
}

struct Shared {
    settings: Settings,
    memory: Memory,
    judge: Judge,
    recorder: Recorder,
    clock: Clock,
}

/// The tasks behind it.
pub struct Workers {
    stop: watch::Sender<bool>,
    finish: watch::Sender<bool>,
    tasks: TaskTracker,
    dealing: JoinHandle<()>,
    writing: JoinHandle<()>,
    /// Last: what runs on it has ended, or is not waited for any longer.
    apart: ShadowRuntime,
}

impl Shadow {
    /// Starts the shadow. What was learnt before is read from the store.
    ///
    /// # Errors
    ///
    /// What was learnt before cannot be read, or the system gives no more threads.
    pub async fn start(store: Store, settings: Settings) -> Result<(Shadow, Workers), StartError> {
        let learnt = record::learnt(&store).await?;
        let salt = Salt::new(store.hasher().hash(HashOf::SampleSalt, b""));
        let (finish, finished) = watch::channel(false);
        let (recorder, writer) = Recorder::new(store.clone(), settings.records, settings.keep, finished);
        let shared = Arc::new(Shared {
            settings,
            memory: Memory::new(settings.queue_bytes),
            judge: Judge::new(Redactor::new(salt), learnt),
            recorder,
            clock: store.clock().clone(),
        });
        let apart = ShadowRuntime::start(settings.priority)?;
        let jobs = Arc::new(Waiting::new(settings.queue));
        let (stop, stopped) = watch::channel(false);
        let tasks = TaskTracker::new();
        let places = (tasks.clone(), apart.handle());
        // There too, or handing work over would be as urgent as answering. Writing is not: connections to the store that it
        // opened would end with the thread, and the store outlives it.
        let dealing = apart.handle().spawn(deal(Arc::clone(&shared), Arc::clone(&jobs), places, stopped));
        let writing = tokio::spawn(writer.run());
        Ok((Shadow { shared, jobs }, Workers { stop, finish, tasks, dealing, writing, apart }))
    }

    /// The bounds that it works within.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The memory for bodies.
    pub fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// Whether a request of an operation in this phase is to be compared.
    pub fn takes(&self, phase: Phase, sample_roll: u64) -> bool {
        match phase {
            Phase::Legacy => false,
            Phase::Shadow | Phase::Canary(_) => self.shared.settings.sample.takes(sample_roll),
            Phase::Translated { check } => check.takes(sample_roll),
        }
    }

    /// Queues work. Without a place for it, it is dropped.
    pub(crate) fn submit(&self, job: Job) {
        match self.jobs.put(Instant::now(), job) {
            Ok(()) => {}
            Err(Refused::Full(job)) => self.dropped(&job.subject, SkipReason::Queue),
            Err(Refused::Closed(job)) => self.dropped(&job.subject, SkipReason::Stopping),
        }
        metrics::shadow_waiting(self.jobs.len());
        metrics::shadow_bytes(self.shared.memory.used());
    }

    /// Lets go of what has waited too long. A reload asks for it: what waits holds on to the program that it came with.
    pub fn expire(&self) {
        for job in self.jobs.expired(Instant::now()) {
            self.dropped(&job.subject, SkipReason::Time);
        }
        metrics::shadow_waiting(self.jobs.len());
        metrics::shadow_bytes(self.shared.memory.used());
    }

    /// What compares the answers to a request that came with these secrets.
    pub(crate) fn judging(&self, secrets: &[Secret<String>]) -> Judging {
        Judging { shared: Arc::clone(&self.shared), redactor: self.shared.judge.redactor(secrets) }
    }

    /// Counts a write that was done and whose effect is not read back.
    pub(crate) fn not_read_back(&self, subject: &Subject, why: NotReadBack) {
        self.shared.recorder.record(Entry::not_read_back(subject, why, self.shared.clock.unix_ms()));
    }

    /// Counts a request that was to be compared and is not.
    pub(crate) fn dropped(&self, subject: &Subject, why: SkipReason) {
        self.shared.recorder.record(Entry::dropped(subject, why, self.shared.clock.unix_ms()));
    }
}

impl fmt::Debug for Shadow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shadow({:?})", self.shared.settings)
    }
}

/// Compares the answers to one request while both sides can still be asked once more.
pub(crate) struct Judging {
    shared: Arc<Shared>,
    redactor: Redactor,
}

impl Judging {
    /// What a client would notice.
    pub(crate) fn compared(&self, subject: &Subject, reference: &View, candidate: &Candidate) -> Comparison {
        self.shared.judge.compared(subject, &self.redactor, reference, candidate)
    }
}

/// Hands jobs to tasks, so many at one time.
async fn deal(
    shared: Arc<Shared>,
    jobs: Arc<Waiting<Job>>,
    (tasks, apart): (TaskTracker, Handle),
    mut stopped: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(shared.settings.workers));
    loop {
        let next = async {
            // A place first: what waits for one waits in the queue, where it counts.
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
            shared.recorder.record(Entry::dropped(&job.subject, SkipReason::Time, shared.clock.unix_ms()));
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
        shared.recorder.record(Entry::dropped(&job.subject, SkipReason::Stopping, now_ms));
    }
}

async fn work(shared: &Shared, job: Job) {
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
        // The panic has been reported where it happened.
        Ok(Err(_)) => shared.recorder.record(Entry::dropped(&subject, SkipReason::Panicked, now_ms)),
        Err(_) => shared.recorder.record(Entry::dropped(&subject, SkipReason::Time, now_ms)),
    }
    drop(share);
    metrics::shadow_bytes(shared.memory.used());
}

impl Workers {
    /// Takes no more work, waits for what is at work, `grace` at most, and writes what was found.
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
            tracing::warn!(pairs = tasks.len(), "pairs were still being compared; they are not recorded");
        }
        finish.send_replace(true);
        if tokio::time::timeout(grace, writing).await.is_err() {
            tracing::warn!("the record of the dual run was still being written");
        }
        drop(apart);
    }
}
