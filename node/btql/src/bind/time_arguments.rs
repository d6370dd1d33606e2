//! Constant arguments of functions of times: bins, units and parts of dates.

use crate::ast::Unit;
use crate::bound::{BoundExpr, DatePart, Datum};

/// Parses a bin such as `'day'` or `'15 minutes'` (D-65). Weeks, months and years have no number.
pub(super) fn bin(text: &str) -> Option<(Unit, u32)> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    let (many, unit) = match words.next() {
        None => (1, Unit::of(first)?),
        Some(unit) => (first.parse().ok().filter(|many| *many > 0)?, Unit::of(unit)?),
    };
    let alone = matches!(unit, Unit::Week | Unit::Month | Unit::Year);
    let fine = !matches!(unit, Unit::Millisecond | Unit::Microsecond) && (many == 1 || !alone);
    (fine && words.next().is_none()).then_some((unit, many))
}

pub(super) fn date_part(name: &str) -> Option<DatePart> {
    Some(match name.to_ascii_lowercase().as_str() {
        "dow" | "dayofweek" => DatePart::DayOfWeek,
        "doy" | "dayofyear" => DatePart::DayOfYear,
        "quarter" => DatePart::Quarter,
        "epoch" => DatePart::Epoch,
        name => DatePart::Unit(Unit::of(name)?),
    })
}

/// Whether an argument may be the name of a unit: a row may have any text.
pub(super) fn can_be_unit(argument: &BoundExpr) -> bool {
    match argument {
        BoundExpr::Const(Datum::Text(name)) => Unit::of(name).is_some(),
        BoundExpr::Const(other) => *other == Datum::Null,
        _ => true,
    }
}
