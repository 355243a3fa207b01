//! The supported content codings without the feature `codings`: none, so coded bodies are errors of
//! their sender.

use super::{CodedBody, Decoder};
use std::pin::Pin;

#[derive(Clone, Copy)]
pub(super) enum Coding {}

impl Coding {
    pub(super) fn from_name(_: &str) -> Option<Coding> {
        None
    }

    pub(super) fn first_bytes(self) -> usize {
        match self {}
    }

    pub(super) fn decoder(self, _: &[u8], _: CodedBody) -> Pin<Box<dyn Decoder>> {
        match self {}
    }
}
