//! Backfills archives from a live side. The pages of a harvest are read sequentially at a bounded
//! rate, and the entries of a page are stored together with the progress, so that an interrupted
//! run resumes where it stopped.
//!
//! This module drives one harvest. The pack defines the harvests, the store holds the entries, and
//! `cli` reports the progress.

use crate::replay::{Live, LiveCallError, wait_for};
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchback_engine::translate::{Answer, Entries, Entry, Event, Fault, Lookup, Next, Run, Settings};
use switchback_gateway::store::{ArchiveOwner, HarvestRow, NewEntries, Store, StoreError};
use switchback_json::{Limits, Value};
use switchback_plan::{ArchiveId, Harvest, Pack};

/// Attempts per page before the run fails. It can be resumed.
const TRIES: u32 = 5;
/// Most rounds for the nested lists of a page, against a list without an end.
const ROUNDS_MAX: u32 = 1_000;
/// Delay before the second attempt; doubles with each further one.
const WAIT: Duration = Duration::from_secs(1);

/// Runs harvests.
#[derive(Debug)]
pub struct Harvester {
    pub pack: Arc<Pack>,
    pub settings: Arc<Settings>,
    pub store: Store,
    /// The service to read, with the owner's credential.
    pub live: Live,
    /// Minimum time between two calls.
    pub pace: Duration,
}

/// Why a harvest stopped before its last page. The pages before are stored.
#[derive(Debug, thiserror::Error)]
pub enum HarvestError {
    #[error(
        "page {page} cannot be read: {why}; what was read is kept, and the same command goes on from there"
    )]
    Page { page: i64, why: PageError },
    /// The service returns the same page repeatedly, so the list would never end.
    #[error("page {0} is the same as the one before: the service does not page this list as the pack says")]
    SamePage(i64),
    /// Another process has stored a page of the same harvest in the meantime.
    #[error("another `archive fill` reads it for this client; `archive status` shows how far it is")]
    Taken,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why the service's answer is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    #[error("it has {elements} elements, and the pack says at most {size}")]
    TooLong { elements: u32, size: u32 },
    #[error("a list within it goes on after {0} rounds of pages")]
    Endless(u32),
    #[error("the page is no list")]
    NoList,
    #[error("the service answers {0}")]
    Status(u16),
    #[error("the pack refuses it")]
    Refused,
    #[error(transparent)]
    Fault(Box<Fault>),
    #[error(transparent)]
    Call(#[from] LiveCallError),
}

/// The content of one page.
struct HarvestPage {
    /// JSON text of its list.
    list: Vec<u8>,
    elements: u32,
    kept: Vec<Entries>,
    /// Whether a nested list has further pages, for the next round.
    goes_on: bool,
}

impl Harvester {
    /// Runs a harvest (index into [`Pack::harvests`]) from the page of `row` to its end. Reports
    /// progress after each page. `known` is the row in the store.
    ///
    /// # Errors
    ///
    /// The service does not return a page after several attempts, or its pages do not end; another
    /// process runs the same harvest; the store fails.
    pub async fn run(
        &self,
        owner: &ArchiveOwner,
        harvest: usize,
        (mut row, mut known): (HarvestRow, Option<HarvestRow>),
        told: &mut dyn FnMut(&HarvestRow),
    ) -> Result<HarvestRow, HarvestError> {
        let size = self.pack.harvests.get(harvest).map_or(0, |harvest| harvest.page_size);
        let mut before: Option<Vec<u8>> = None;
        while row.finished_ms.is_none() {
            let mut kept = 0;
            for round in 0.. {
                let page = self.patiently(owner, harvest, (row.page, round)).await?;
                let why = if page.elements > size {
                    Some(PageError::TooLong { elements: page.elements, size })
                } else if round >= ROUNDS_MAX {
                    Some(PageError::Endless(round))
                } else {
                    None
                };
                if let Some(why) = why {
                    return Err(HarvestError::Page { page: row.page, why });
                }
                // Later rounds read the same page again, for its nested lists.
                if round == 0 && page.elements > 0 && before.as_ref() == Some(&page.list) {
                    return Err(HarvestError::SamePage(row.page));
                }
                let names: Vec<String> = page.kept.iter().map(|kept| self.archive(kept.archive)).collect();
                let both = names.iter().zip(&page.kept);
                let new: Vec<_> =
                    both.map(|(archive, kept)| NewEntries { archive, entries: &kept.entries }).collect();
                kept += new.iter().map(|new| new.entries.len() as i64).sum::<i64>();
                row.changed_ms = self.store.clock().unix_ms();
                if !page.goes_on {
                    row.page += 1;
                    row.elements += i64::from(page.elements);
                    row.kept += kept;
                    // A short page is the last one.
                    row.finished_ms = (page.elements < size).then_some(row.changed_ms);
                }
                // Fails if the stored row differs from `known`: another process has advanced it.
                if !self.store.harvest_page(owner, &new, known.as_ref(), &row).await? {
                    return Err(HarvestError::Taken);
                }
                known = Some(row.clone());
                if !page.goes_on {
                    told(&row);
                    before = Some(page.list);
                    break;
                }
            }
        }
        Ok(row)
    }

    /// Reads a page, with several attempts.
    async fn patiently(
        &self,
        owner: &ArchiveOwner,
        harvest: usize,
        at: (i64, u32),
    ) -> Result<HarvestPage, HarvestError> {
        let mut wait = WAIT;
        for _ in 1..TRIES {
            // Only the service is retried; an error of the store aborts the run.
            if let Ok(read) = self.page(owner, harvest, at).await? {
                return Ok(read);
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        self.page(owner, harvest, at).await?.map_err(|why| HarvestError::Page { page: at.0, why })
    }

    /// Reads one round of a page. The inner error is the service's, the outer one the store's.
    async fn page(
        &self,
        owner: &ArchiveOwner,
        harvest: usize,
        at: (i64, u32),
    ) -> Result<Result<HarvestPage, PageError>, StoreError> {
        let (pack, settings) = (Arc::clone(&self.pack), Arc::clone(&self.settings));
        let mut run = Run::of_harvest(pack, harvest, at, settings, Limits::DOCUMENT);
        let mut kept: Vec<Entries> = Vec::new();
        let (mut event, clock) = (Event::Start, Instant::now());
        loop {
            event = match run.next(event) {
                Ok(Next::Call(call)) => {
                    // Before every call, so that the rate holds while calls fail and are repeated.
                    tokio::time::sleep(self.pace).await;
                    match self.live.call(call, None).await {
                        Ok(event) => event,
                        Err(error) => return Ok(Err(error.into())),
                    }
                }
                Ok(Next::Recall(lookup)) => self.recall(owner, &lookup).await?,
                Ok(Next::Wait(wait)) => wait_for(&wait, clock).await,
                // Stored together with the page, once that is complete.
                Ok(Next::Keep(entries)) => {
                    kept.push(entries);
                    Event::Kept
                }
                Ok(Next::Answer(Answer { status: 200, body: Some(list), .. })) => {
                    let elements = match Value::parse(&list, &Limits::DOCUMENT) {
                        Ok(Value::Array(list)) => u32::try_from(list.len()).unwrap_or(u32::MAX),
                        _ => return Ok(Err(PageError::NoList)),
                    };
                    return Ok(Ok(HarvestPage {
                        list: list.to_vec(),
                        elements,
                        kept,
                        goes_on: run.goes_on(),
                    }));
                }
                Ok(Next::Answer(answer)) => return Ok(Err(PageError::Status(answer.status))),
                Ok(Next::Refuse(_)) => return Ok(Err(PageError::Refused)),
                Err(fault) => return Ok(Err(PageError::Fault(fault.into()))),
            };
        }
    }

    async fn recall(&self, owner: &ArchiveOwner, lookup: &Lookup) -> Result<Event, StoreError> {
        let found = self.store.archive_get(owner, &self.archive(lookup.archive), &lookup.keys).await?;
        let now = self.store.clock().unix_ms();
        let entries = found.into_iter().map(|found| {
            found.map(|entry| Entry {
                // The clock of the replica that stored the entry may be ahead.
                age: u64::try_from((now - entry.kept_ms) / 1000).unwrap_or(0),
                value: entry.value.map(|value| value.expose().clone().into()),
            })
        });
        Ok(Event::Recalled(entries.collect()))
    }

    fn archive(&self, id: ArchiveId) -> String {
        let archive = self.pack.archives.get(usize::from(id.0));
        archive.map_or_else(String::new, |archive| archive.name.clone())
    }
}

/// Returns the row of a harvest that has not read a page yet.
pub fn new_harvest_row(owner: &ArchiveOwner, harvest: &Harvest) -> HarvestRow {
    HarvestRow {
        client: owner.client.clone(),
        account: owner.account.clone(),
        harvest: harvest.name.clone(),
        page: harvest.first,
        elements: 0,
        kept: 0,
        finished_ms: None,
        changed_ms: 0,
    }
}
