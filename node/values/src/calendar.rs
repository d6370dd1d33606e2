//! Calendar arithmetic: intervals including months and years, truncation to units, and parts of times.

use std::ops::RangeInclusive;

use assay_storage_model::event::{civil_from_days, days_from_civil, days_of_month};

use crate::time_units::{DatePart, Interval, Unit};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// Years 1 to 9999, which four digits can write.
const WRITABLE: RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// A time so much later (D-63), if it can be written.
pub fn moved(time: i64, by: Interval) -> Option<i64> {
    let many = by.value.checked_mul(size(by.unit))?;
    let moved = if is_calendar(by.unit) { months_later(time, many) } else { time.checked_add(many) };
    moved.filter(|time| WRITABLE.contains(time))
}

/// Moves a time by months; a day that the month does not have becomes its last day.
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

/// Returns the length of a unit in microseconds, or in months for units of months.
pub fn size(unit: Unit) -> i64 {
    match unit {
        Unit::Year => 12,
        Unit::Month | Unit::Microsecond => 1,
        Unit::Week => 7 * MICROS_PER_DAY,
        Unit::Day => MICROS_PER_DAY,
        Unit::Hour => 3_600 * MICROS_PER_SECOND,
        Unit::Minute => 60 * MICROS_PER_SECOND,
        Unit::Second => MICROS_PER_SECOND,
        Unit::Millisecond => 1_000,
    }
}

/// Whether it is months that such a unit counts.
pub(crate) fn is_calendar(unit: Unit) -> bool {
    matches!(unit, Unit::Month | Unit::Year)
}

/// `7 days`.
pub fn interval(text: &str) -> Option<Interval> {
    let mut words = text.split_whitespace();
    let (value, unit) = (words.next()?.parse().ok()?, Unit::of(words.next()?)?);
    words.next().is_none().then_some(Interval { value, unit })
}

pub fn negative(interval: Interval) -> Option<Interval> {
    Some(Interval { value: interval.value.checked_neg()?, ..interval })
}

/// One and the other, in their unit, in months or in microseconds; months and what is always as long do not add up.
pub fn sum(one: Interval, other: Interval) -> Option<Interval> {
    if one.unit == other.unit {
        return Some(Interval { value: one.value.checked_add(other.value)?, ..one });
    }
    if is_calendar(one.unit) != is_calendar(other.unit) {
        return None;
    }
    let unit = if is_calendar(one.unit) { Unit::Month } else { Unit::Microsecond };
    let each = |of: Interval| i128::from(of.value) * i128::from(size(of.unit));
    Some(Interval { value: i64::try_from(each(one) + each(other)).ok()?, unit })
}

/// D-64 to D-66: the start of so many units in local time, as the instant that it is in UTC.
pub fn truncate(time: i64, unit: Unit, many: u32, tz_offset: i32) -> Option<i64> {
    let shift = i64::from(tz_offset) * 60 * MICROS_PER_SECOND;
    let local = time.checked_sub(shift)?;
    let day = local.div_euclid(MICROS_PER_DAY);
    let start = match unit {
        Unit::Year | Unit::Month => {
            let (year, month, _) = civil_from_days(day);
            let month = if unit == Unit::Year { 1 } else { month };
            days_from_civil(year, month, 1).checked_mul(MICROS_PER_DAY)?
        }
        Unit::Week => monday(day).checked_mul(MICROS_PER_DAY)?,
        _ => {
            let bin = size(unit).checked_mul(many.into()).filter(|bin| *bin > 0)?;
            local.checked_sub(local.rem_euclid(bin))?
        }
    };
    start.checked_add(shift)
}

/// The day that its week starts with; 1970-01-01 was a Thursday.
fn monday(day: i64) -> i64 {
    day - (day + 3).rem_euclid(7)
}

/// D-67: a part of a time, as the local calendar and clock have it.
pub fn part(time: i64, part: DatePart, tz_offset: i32) -> Option<i64> {
    let local = time.checked_sub(i64::from(tz_offset) * 60 * MICROS_PER_SECOND)?;
    let (days, of_day) = (local.div_euclid(MICROS_PER_DAY), local.rem_euclid(MICROS_PER_DAY));
    let civil = || civil_from_days(days);
    let of_minute = of_day % size(Unit::Minute);
    Some(match part {
        DatePart::Epoch => time.div_euclid(MICROS_PER_SECOND),
        DatePart::DayOfWeek => (days + 4).rem_euclid(7),
        DatePart::DayOfYear => days - days_from_civil(civil().0, 1, 1) + 1,
        DatePart::Quarter => (civil().1 - 1) / 3 + 1,
        DatePart::Unit(unit) => match unit {
            Unit::Year => civil().0,
            Unit::Month => civil().1,
            Unit::Week => {
                // ISO 8601: a week belongs to the year that its Thursday is in.
                let thursday = monday(days) + 3;
                (thursday - days_from_civil(civil_from_days(thursday).0, 1, 1)) / 7 + 1
            }
            Unit::Day => civil().2,
            Unit::Hour => of_day / size(Unit::Hour),
            Unit::Minute => of_day % size(Unit::Hour) / size(Unit::Minute),
            Unit::Second => of_minute / MICROS_PER_SECOND,
            Unit::Millisecond => of_minute / 1_000,
            Unit::Microsecond => of_minute,
        },
    })
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
