//! A conversion as a function: always from the old side to the new one.

use super::{Function, Gives, Takes};
use crate::convert::{Conversion, ConversionKind, Facts, Yield};
use crate::{Kinds, SideId};
use std::sync::Arc;
use switchback_json::raw::Kind;
use switchback_json::{Limits, Value};

/// Returns the function of a conversion.
pub fn converted(kind: ConversionKind) -> Arc<dyn Function> {
    Arc::new(Converted(Conversion::new(kind, true)))
}

#[derive(Debug)]
struct Converted(Conversion);

const ANY: Kinds =
    Kinds::from_kinds(&[Kind::Null, Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object]);

impl Function for Converted {
    fn name(&self) -> &'static str {
        self.0.kind.spec().name
    }

    fn takes(&self) -> Takes {
        Takes { kinds: self.0.kind.kinds(SideId::OLD), elements: ANY }
    }

    fn gives(&self, _facts: &Facts) -> Gives {
        let kind = &self.0.kind;
        if matches!(self.name(), "split" | "csv") {
            return Gives::Texts;
        }
        Gives::Kinds { kinds: kind.kinds(SideId::NEW), integer: kind.is_integer(SideId::NEW) }
    }

    fn takes_all(&self, facts: &Facts) -> bool {
        self.0.kind.takes_all(SideId::OLD, facts)
    }

    fn domain_text(&self) -> &'static str {
        self.0.domain_text()
    }

    fn apply(&self, value: Value) -> Option<Value> {
        let mut out = Vec::new();
        match self.0.apply(&value.to_vec(), &mut out) {
            Ok(Yield::Written) => Value::parse(&out, &Limits::UNLIMITED).ok(),
            // The result of a conversion without a value is absent, which a function never is.
            Ok(Yield::Nothing) | Err(_) => None,
        }
    }
}
