//! Tests of translation through the public functions of the module.

mod bodies;
mod examples;
mod pack;
mod read_back;
mod routes;

use super::testing::{captured, close, convert, key, origin, raw, shape};
use super::*;
use switchback_json::{Limits, Value};
