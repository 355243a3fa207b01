//! All tests through the outside of the program, in one binary so that it links once.

mod borders;
mod contract_walk;
mod sandbox;
