//! Notices to operators by webhook, about changes that need their attention. [`NoticeWatch`] finds
//! changes where they are recorded; [`NoticeSender`] queues and sends them. The store lets one of
//! the gateways that share it send each notice.
//!
//! The queue is in memory: notices that wait when the process ends are recorded as failed.

mod body;
mod deliver;
mod notice;
mod receiver;
mod watch;

pub use body::NoticeForm;
pub use deliver::NoticeSender;
pub use notice::{Notice, NoticeKind};
pub use receiver::{NoticeAnswer, NoticeEndpoint, NoticeReceiver, NoticeSettings};
pub use watch::NoticeWatch;
