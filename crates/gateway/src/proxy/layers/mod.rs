//! What sits between a connection and the answer, one layer in each file, outermost first in `stack.rs`. A layer sees the
//! request and its facts; it knows neither its neighbours nor how an answer is made.

pub mod access_log;
pub mod announce;
pub mod authenticate;
pub mod limit;
pub mod metrics;
pub mod middleware;
pub mod record;
pub mod request_id;
pub mod rescue;
pub mod retire;
pub mod route;
pub mod timeout;
pub mod trace;
pub mod usage;
pub mod validate;
