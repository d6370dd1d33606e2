//! Times so much later, by months and years of different lengths as well.

use std::ops::RangeInclusive;

use assay_storage_model::event::{civil_from_days, days_from_civil, days_of_month};

use crate::ast::{Interval, Unit};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// Years 1 to 9999, which four digits can write.
const WRITABLE: RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// A time so much later (D-63), if it can be written.
pub fn moved(time: i64, by: Interval) -> Option<i64> {
    let micros = |each: i64| by.value.checked_mul(each).and_then(|by| time.checked_add(by));
    let moved = match by.unit {
        Unit::Microsecond => micros(1),
        Unit::Millisecond => micros(1_000),
        Unit::Second => micros(MICROS_PER_SECOND),
        Unit::Minute => micros(60 * MICROS_PER_SECOND),
        Unit::Hour => micros(3_600 * MICROS_PER_SECOND),
        Unit::Day => micros(MICROS_PER_DAY),
        Unit::Week => micros(7 * MICROS_PER_DAY),
        Unit::Month => months_later(time, by.value),
        Unit::Year => months_later(time, by.value.checked_mul(12)?),
    };
    moved.filter(|time| WRITABLE.contains(time))
}

/// The same time of the day so many months later, or earlier; on the last day of a month that is too short.
pub fn months_later(time: i64, months: i64) -> Option<i64> {
    let (days, of_day) = (time.div_euclid(MICROS_PER_DAY), time.rem_euclid(MICROS_PER_DAY));
    let (year, month, day) = civil_from_days(days);
    let months = year.checked_mul(12)?.checked_add(month - 1)?.checked_add(months)?;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    if !(-9_999..=9_999).contains(&year) {
        return None;
    }
    let days = days_from_civil(year, month, day.min(days_of_month(year, month)));
    days.checked_mul(MICROS_PER_DAY)?.checked_add(of_day)
}

#[cfg(test)]
mod tests {
    use assay_storage_model::event::{format_micros, parse_created};

    use super::*;

    #[test]
    fn a_month_that_is_too_short_ends_where_it_ends() {
        let later = |time: &str, months| {
            months_later(parse_created(time).expect("a time"), months).map(format_micros).expect("a time")
        };
        assert_eq!(later("2026-01-31T10:00:00Z", 1), "2026-02-28T10:00:00.000Z");
        assert_eq!(later("2024-01-31T10:00:00Z", 1), "2024-02-29T10:00:00.000Z");
        assert_eq!(later("2024-02-29T00:00:00Z", 12), "2025-02-28T00:00:00.000Z");
        assert_eq!(later("2026-03-31T00:00:00Z", -1), "2026-02-28T00:00:00.000Z");
        assert_eq!(later("2026-01-15T00:00:00Z", -25), "2023-12-15T00:00:00.000Z");
        assert_eq!(months_later(0, i64::MAX), None);
    }

    #[test]
    fn what_four_digits_cannot_write_is_no_time() {
        let moved = |time: &str, value, unit| moved(parse_created(time).expect("a time"), Interval { value, unit });
        assert!(moved("9999-12-31", 23, Unit::Hour).is_some());
        assert_eq!(moved("9999-12-31", 1, Unit::Day), None);
        assert_eq!(moved("0001-06-01", -1, Unit::Year), None);
        assert_eq!(moved("2026-01-01", i64::MAX, Unit::Week), None);
    }
}
