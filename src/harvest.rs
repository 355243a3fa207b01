//! Filling archives out of a side while it lives: the pages of a harvest are read one after the other, at a bounded rate, and
//! what each brought is kept together with the note that it is read. So it can end at any moment and go on where it was.
//!
//! What lives here: the driving of one harvest. What does not: which harvests there are (the pack), where entries lie (the
//! store), the words of the verb (`cli`).

use crate::replay::{Live, waited};
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchback_engine::translate::{Answer, Entries, Entry, Event, Lookup, Next, Run, Settings};
use switchback_gateway::store::{HarvestRow, NewEntries, Owner, Store, StoreError};
use switchback_json::{Limits, Value};
use switchback_plan::{ArchiveId, Harvest, Pack};

/// How often a page is tried before the harvest gives up, to be gone on with later.
const TRIES: u32 = 5;
/// Rounds that the lists within a page are read in, before the harvest gives up: a list without an end has no last one.
const ROUNDS_MAX: u32 = 1_000;
/// The wait before the second try; it doubles from try to try.
const WAIT: Duration = Duration::from_secs(1);

/// What harvests are run with.
#[derive(Debug)]
pub struct Harvester {
    pub pack: Arc<Pack>,
    pub settings: Arc<Settings>,
    pub store: Store,
    /// The service that is read, with the credential of the owner.
    pub live: Live,
    /// Least time between two calls.
    pub pace: Duration,
}

/// Why a harvest ended before its last page. What was read until then is kept.
#[derive(Debug, thiserror::Error)]
pub enum HarvestError {
    #[error(
        "page {page} cannot be read: {why}; what was read is kept, and the same command goes on from there"
    )]
    Page { page: i64, why: String },
    /// The service gives the same page again and again, or has no end.
    #[error("page {0} is the same as the one before: the service does not page this list as the pack says")]
    SamePage(i64),
    /// Another process has noted a page of the same harvest meanwhile.
    #[error("another `archive fill` reads it for this client; `archive status` shows how far it is")]
    Taken,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What one page brought.
struct Page {
    /// JSON text of its list.
    list: Vec<u8>,
    elements: u32,
    kept: Vec<Entries>,
    /// Whether a list within it has pages that the next round reads.
    goes_on: bool,
}

impl Harvester {
    /// Reads a harvest (index into [`Pack::harvests`]) from the page at which `row` stands to its end, and tells after each
    /// page how far it has come. `known` is what the store has of it.
    ///
    /// # Errors
    /// The service gives no page, after several tries, or pages without an end; another process reads the same; the store
    /// takes nothing.
    pub async fn run(
        &self,
        owner: &Owner,
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
                    Some(format!("it has {} elements, and the pack says at most {size}", page.elements))
                } else if round >= ROUNDS_MAX {
                    Some(format!("a list within it goes on after {round} rounds of pages"))
                } else {
                    None
                };
                if let Some(why) = why {
                    return Err(HarvestError::Page { page: row.page, why });
                }
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
                    row.finished_ms = (page.elements < size).then_some(row.changed_ms);
                }
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

    /// A page, tried several times.
    async fn patiently(&self, owner: &Owner, harvest: usize, at: (i64, u32)) -> Result<Page, HarvestError> {
        let mut wait = WAIT;
        for _ in 1..TRIES {
            if let Ok(read) = self.page(owner, harvest, at).await? {
                return Ok(read);
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        self.page(owner, harvest, at).await?.map_err(|why| HarvestError::Page { page: at.0, why })
    }

    /// One round of a page, or why there is none; the outer error is none of the service's.
    async fn page(
        &self,
        owner: &Owner,
        harvest: usize,
        at: (i64, u32),
    ) -> Result<Result<Page, String>, StoreError> {
        let (pack, settings) = (Arc::clone(&self.pack), Arc::clone(&self.settings));
        let mut run = Run::of_harvest(pack, harvest, at, settings, Limits::DOCUMENT);
        let mut kept: Vec<Entries> = Vec::new();
        let (mut event, clock) = (Event::Start, Instant::now());
        loop {
            event = match run.next(event) {
                Ok(Next::Call(call)) => {
                    tokio::time::sleep(self.pace).await;
                    match self.live.call(call, None).await {
                        Ok(event) => event,
                        Err(why) => return Ok(Err(why)),
                    }
                }
                Ok(Next::Recall(lookup)) => self.recall(owner, &lookup).await?,
                Ok(Next::Wait(wait)) => waited(&wait, clock).await,
                // With the page, once it is whole.
                Ok(Next::Keep(entries)) => {
                    kept.push(entries);
                    Event::Kept
                }
                Ok(Next::Answer(Answer { status: 200, body: Some(list), .. })) => {
                    let elements = match Value::parse(&list, &Limits::DOCUMENT) {
                        Ok(Value::Array(list)) => u32::try_from(list.len()).unwrap_or(u32::MAX),
                        _ => return Ok(Err("the page is no list".to_owned())),
                    };
                    return Ok(Ok(Page { list: list.to_vec(), elements, kept, goes_on: run.goes_on() }));
                }
                Ok(Next::Answer(answer)) => return Ok(Err(format!("the service answers {}", answer.status))),
                Ok(Next::Refuse(_)) => return Ok(Err("the pack refuses it".to_owned())),
                Err(fault) => return Ok(Err(fault.to_string())),
            };
        }
    }

    async fn recall(&self, owner: &Owner, lookup: &Lookup) -> Result<Event, StoreError> {
        let found = self.store.archive_get(owner, &self.archive(lookup.archive), &lookup.keys).await?;
        let now = self.store.clock().unix_ms();
        let entries = found.into_iter().map(|found| {
            found.map(|entry| Entry {
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

/// A harvest that has read nothing yet.
pub fn begun(owner: &Owner, harvest: &Harvest) -> HarvestRow {
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
