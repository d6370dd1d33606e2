//! Times and intervals: parsing, formatting, arithmetic, truncation and parts (btql.md, sections 10 and 11.1).

use assay_node_btql::ast::{Interval, Unit};
use assay_node_btql::bound::DatePart;
use assay_storage_model::event::{civil_from_days, days_from_civil, days_of_month, format_micros};

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEARS: std::ops::RangeInclusive<i64> = 1..=9999;

/// D-66: to the second, and more only where there is more.
pub fn format(micros: i64) -> String {
    let text = format_micros(micros);
    match text.strip_suffix(".000Z") {
        Some(seconds) => format!("{seconds}Z"),
        None => text,
    }
}

/// `7 day`.
pub fn interval_text(interval: Interval) -> String {
    format!("{} {}", interval.value, interval.unit.name())
}

/// `7 days`.
pub fn interval_in(text: &str) -> Option<Interval> {
    let mut words = text.split_whitespace();
    let interval = Interval { value: words.next()?.parse().ok()?, unit: Unit::of(words.next()?)? };
    words.next().is_none().then_some(interval)
}

/// Microseconds, or months where those are what is counted.
pub fn interval_size(Interval { value, unit }: Interval) -> i128 {
    let each = match unit {
        Unit::Year => 12,
        Unit::Month => 1,
        Unit::Week => 7 * DAY,
        Unit::Day => DAY,
        Unit::Hour => HOUR,
        Unit::Minute => MINUTE,
        Unit::Second => SECOND,
        Unit::Millisecond => 1_000,
        Unit::Microsecond => 1,
    };
    i128::from(value) * i128::from(each)
}

fn is_calendar(unit: Unit) -> bool {
    matches!(unit, Unit::Month | Unit::Year)
}

/// D-63: months are the calendar's, and end where the month does. Years have four digits, from 0001 on.
pub fn moved(time: i64, by: Interval) -> Option<i64> {
    let size = interval_size(by);
    let moved = if is_calendar(by.unit) {
        let (year, month, day) = civil_from_days(time.div_euclid(DAY));
        let months = i128::from(year) * 12 + i128::from(month) - 1 + size;
        let (year, month) = (i64::try_from(months.div_euclid(12)).ok()?, months.rem_euclid(12) as i64 + 1);
        if !YEARS.contains(&year) {
            return None;
        }
        days_from_civil(year, month, day.min(days_of_month(year, month))) * DAY + time.rem_euclid(DAY)
    } else {
        i64::try_from(i128::from(time) + size).ok()?
    };
    Some(moved).filter(|time| YEARS.contains(&civil_from_days(time.div_euclid(DAY)).0))
}

/// One and the other, in months or in the finer of both units.
pub fn sum(one: Interval, other: Interval) -> Option<Interval> {
    if is_calendar(one.unit) != is_calendar(other.unit) {
        return None;
    }
    let unit = match (one.unit == other.unit, is_calendar(one.unit)) {
        (true, _) => one.unit,
        (false, true) => Unit::Month,
        (false, false) => Unit::Microsecond,
    };
    let value = if one.unit == other.unit {
        i128::from(one.value) + i128::from(other.value)
    } else {
        interval_size(one) + interval_size(other)
    };
    Some(Interval { value: i64::try_from(value).ok()?, unit })
}

pub fn negative(interval: Interval) -> Option<Interval> {
    Some(Interval { value: interval.value.checked_neg()?, ..interval })
}

/// D-64 to D-66: the start of so many units in local time, as the instant that it is in UTC.
pub fn truncate(time: i64, unit: Unit, many: u32, tz_offset: i32) -> Option<i64> {
    let shift = i64::from(tz_offset) * MINUTE;
    let local = time - shift;
    let day = local.div_euclid(DAY);
    let (year, month, _) = civil_from_days(day);
    let start = match unit {
        Unit::Year => days_from_civil(year, 1, 1) * DAY,
        Unit::Month => days_from_civil(year, month, 1) * DAY,
        Unit::Week => monday(day) * DAY,
        Unit::Day | Unit::Hour | Unit::Minute | Unit::Second | Unit::Millisecond | Unit::Microsecond => {
            let bin = interval_size(Interval { value: i64::from(many), unit });
            let bin = i64::try_from(bin).ok().filter(|bin| *bin > 0)?;
            local.div_euclid(bin) * bin
        }
    };
    Some(start + shift)
}

/// Number of the unit that a local time lies in, for its distance to another one.
pub fn number_of(time: i64, unit: Unit, tz_offset: i32) -> i64 {
    let local = time - i64::from(tz_offset) * MINUTE;
    let day = local.div_euclid(DAY);
    let (year, month, _) = civil_from_days(day);
    match unit {
        Unit::Year => year,
        Unit::Month => year * 12 + month,
        Unit::Week => monday(day).div_euclid(7),
        Unit::Day => day,
        Unit::Hour => local.div_euclid(HOUR),
        Unit::Minute => local.div_euclid(MINUTE),
        Unit::Second => local.div_euclid(SECOND),
        Unit::Millisecond => local.div_euclid(1_000),
        Unit::Microsecond => local,
    }
}

/// The day that its week starts with; 1970-01-01 was a Thursday.
fn monday(day: i64) -> i64 {
    day - (day + 3).rem_euclid(7)
}

/// D-67: a part of a time, as the local calendar and clock have it.
pub fn part(time: i64, part: DatePart, tz_offset: i32) -> i64 {
    let local = time - i64::from(tz_offset) * MINUTE;
    let (days, of_day) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    let (year, month, day) = civil_from_days(days);
    match part {
        DatePart::Epoch => time.div_euclid(SECOND),
        DatePart::DayOfWeek => (days + 4).rem_euclid(7),
        DatePart::DayOfYear => days - days_from_civil(year, 1, 1) + 1,
        DatePart::Quarter => (month - 1) / 3 + 1,
        DatePart::Unit(unit) => match unit {
            Unit::Year => year,
            Unit::Month => month,
            Unit::Week => week_of_year(days),
            Unit::Day => day,
            Unit::Hour => of_day / HOUR,
            Unit::Minute => of_day % HOUR / MINUTE,
            Unit::Second => of_day % MINUTE / SECOND,
            Unit::Millisecond => of_day % MINUTE / 1_000,
            Unit::Microsecond => of_day % MINUTE,
        },
    }
}

/// ISO 8601: a week belongs to the year that its Thursday is in.
fn week_of_year(day: i64) -> i64 {
    let thursday = monday(day) + 3;
    let (year, _, _) = civil_from_days(thursday);
    (thursday - days_from_civil(year, 1, 1)) / 7 + 1
}
