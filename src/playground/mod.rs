//! Trying requests and mapping texts without serving them: which calls would be made, what every step has to work with, what
//! the client would get, and which line of the mapping and which place of which message is behind each field of it.
//!
//! What lives here: the pack as it is tried ([`Workbench`]), one dry run ([`Ask`], [`Ran`]), recorded exchanges through a
//! changed pack ([`WhatIf`]), and the letter to a client's owner. What lives elsewhere: running plans (`translate`), following a value
//! back (`translate::sources`), comparing (`replay`), recording (`capture`).
//!
//! Decisions to know: nothing with an effect is ever sent; a service is asked for reads alone, and only when that is asked for;
//! what recordings and services say is masked before it is run, so that no page can show it.

mod files;
mod letter;
mod replies;
mod run;
mod shelf;
mod tried;
mod what_if;

pub use files::{Kept, KeptContracts, KeptFiles};
pub use letter::Letter;
pub use run::{Ask, Part, Place, Ran, RanAnswer, RanCall, RanStep, TriedRequest};
pub use shelf::Shown as ShelfEntry;
pub use switchback_engine::translate::sources::member_place;
pub use tried::{ExampleRequest, Served, TryError, Workbench};
pub use what_if::{Group, WhatIf};
