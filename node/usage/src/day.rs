//! Days in UTC, as numbers and as texts.

use std::fmt;

use serde::{Deserialize, Serialize};

const MICROS_PER_DAY: i64 = 86_400_000_000;
/// Bytes of a date such as `2026-11-30`.
const DATE_BYTES: usize = 10;
const DAYS_PER_ERA: i64 = 146_097;

/// Day in UTC: the number of days since 1970-01-01.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Day(pub u32);

impl Day {
    /// Returns the day of a time in microseconds since 1970.
    pub fn of_micros(micros: i64) -> Day {
        Day(u32::try_from(micros.max(0) / MICROS_PER_DAY).unwrap_or(u32::MAX))
    }

    /// Reads a date such as `2026-11-30`. A date before 1970 is the first day, because nothing is older.
    pub fn parse(text: &str) -> Option<Day> {
        if text.len() != DATE_BYTES {
            return None;
        }
        let mut parts = text.split('-').map(|part| part.parse::<i64>().ok());
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        // The calendar of a year begins in March, so that the leap day is its last day.
        let (shifted, month_of_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let (era, of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
        let of_year = (153 * month_of_march + 2) / 5 + day - 1;
        let days = era * DAYS_PER_ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
        let is_date = parts.next().is_none() && date_text(days) == text;
        is_date.then(|| Day(u32::try_from(days.max(0)).unwrap_or(u32::MAX)))
    }

    #[must_use]
    pub fn minus(self, days: u32) -> Day {
        Day(self.0.saturating_sub(days))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&date_text(i64::from(self.0)))
    }
}

/// Returns the date of a number of days since 1970-01-01.
fn date_text(days: i64) -> String {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month_of_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_of_march + 2) / 5 + 1;
    let month = if month_of_march < 10 { month_of_march + 3 } else { month_of_march - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_are_dates() {
        for (number, text) in
            [(0, "1970-01-01"), (11_016, "2000-02-29"), (20_787, "2026-11-30"), (47_540, "2100-02-28")]
        {
            assert_eq!(Day(number).to_string(), text);
            assert_eq!(Day::parse(text), Some(Day(number)), "{text}");
        }
        assert_eq!(Day::parse("0856-06-01"), Some(Day(0)), "nothing is older");
        assert_eq!(Day::of_micros(86_400_000_000 * 20_787 + 5), Day(20_787));
        for wrong in [
            "",
            "2026",
            "2026-13-01",
            "2026-02-30",
            "2026-1-1",
            "2026-11-30-1",
            "a-b-c",
            "2100-02-29",
            "9223372036854775807-01-01",
        ] {
            assert_eq!(Day::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_day_reads_back(number in 0_u32..2_900_000) {
            prop_assert_eq!(Day::parse(&Day(number).to_string()), Some(Day(number)));
            prop_assert!(Day(number).to_string() < Day(number + 1).to_string());
        }
    }
}
