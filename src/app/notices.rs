//! Connects the receivers of notices, and looks for changes that they are about.

use super::StartError;
use crate::admin::Board;
use crate::config::NoticesConfig;
use std::time::Duration;
use switchback_gateway::clock::Clock;
use switchback_gateway::notices::{NoticeEndpoint, NoticeWatch};

/// Interval between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// Prepares requests to the configured receivers.
pub fn notice_endpoints(config: &NoticesConfig) -> Result<Vec<NoticeEndpoint>, StartError> {
    let endpoint = |receiver: &_| NoticeEndpoint::new(Clone::clone(receiver), config.settings);
    config.receivers.iter().map(endpoint).collect::<Result<_, _>>().map_err(StartError::Notices)
}

/// Looks for changes until dropped.
pub(super) async fn keep_watch(mut watch: NoticeWatch, board: Board, clock: Clock) {
    let mut is_failing = false;
    loop {
        clock.sleep(EVERY).await;
        let status = board.load_full();
        let certificates = status.certificates.iter().map(|one| (one.key.as_str(), one.ends_ms));
        let outcome = watch.look(&certificates.collect::<Vec<_>>()).await;
        if let Err(error) = &outcome
            && !is_failing
        {
            tracing::warn!(%error, "changes cannot be read from the store; notices about them are sent later");
        }
        is_failing = outcome.is_err();
    }
}
