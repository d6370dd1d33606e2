//! Months and years, which are of different lengths.

use assay_storage_model::event::{civil_from_days, days_from_civil, days_of_month};

const MICROS_PER_DAY: i64 = 86_400_000_000;

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
}
