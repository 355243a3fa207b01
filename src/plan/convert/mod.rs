//! The closed list of conversions (`as:`): one file each, with its kinds, inverse and examples.
//!
//! A conversion works on the JSON text of one bounded value and writes JSON text, or nothing (the member is left out).

use super::Raw;
use std::sync::Arc;

/// A conversion in one direction. `forward` leads from the old side to the new one.
#[derive(Clone, Debug)]
pub struct Conversion {
    pub kind: ConversionKind,
    pub forward: bool,
    /// What follows when the value is outside the conversion's domain.
    pub otherwise: Otherwise,
}

/// Which conversion.
#[derive(Clone, Debug)]
pub enum ConversionKind {
    /// old integer ↔ new numeric string.
    IntegerToString,
    /// old numeric string ↔ new integer.
    StringToInteger,
    /// old absent ↔ new null.
    AbsentToNull,
    /// old `[]` for none, else an object ↔ new null for none, else an object.
    EmptyArrayToNull,
    /// old value ↔ new value, one to one.
    Table(Arc<Table>),
    /// old comma-separated text ↔ new array of strings.
    CsvToArray,
    /// old object of key to value ↔ new array of two-member objects.
    ObjectToPairs { key: Arc<str>, value: Arc<str> },
    /// old text in the first date pattern ↔ new text in the second.
    Date { old: Arc<str>, new: Arc<str> },
}

/// A one-to-one table of scalars (JSON text), old to new.
#[derive(Debug)]
pub struct Table {
    pub rows: Vec<(Raw, Raw)>,
}

/// What follows when a value is outside a conversion's domain.
#[derive(Clone, Debug)]
pub enum Otherwise {
    /// The message is refused: it is not what its sender's contract says.
    Error,
    /// The value is copied as it stands.
    Keep,
    Value(Raw),
}
