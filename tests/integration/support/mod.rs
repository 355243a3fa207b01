//! What tests of the gateway share: both ends of the wire, a small pack, and a gateway that serves it.

pub mod gateway;
pub mod pack;
pub mod raw;
