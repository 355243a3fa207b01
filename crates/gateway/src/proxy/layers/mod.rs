//! What sits between a connection and the answer, one layer in each file, outermost first in `stack.rs`. A layer sees the
//! request and its context; it knows neither its neighbours nor how an answer is made.

pub(crate) mod access_log;
pub(crate) mod announce;
pub(crate) mod authenticate;
pub(crate) mod count;
mod ending;
pub(crate) mod form_token;
pub(crate) mod limit;
pub(crate) mod middleware;
pub(crate) mod record;
pub(crate) mod request_id;
pub(crate) mod rescue;
pub(crate) mod retire;
pub(crate) mod route;
pub(crate) mod timeout;
pub(crate) mod trace;
pub(crate) mod validate;
