//! Time windows of budgets in UTC, at whose end the use of a budget is reset.

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
const WEEK_MS: i64 = 7 * DAY_MS;
/// Number of days from the preceding Monday to 1970-01-01, which was a Thursday.
const DAYS_FROM_MONDAY: i64 = 3;

/// Length of the windows of a budget.
///
/// Weeks begin on Monday, and months on their first day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BudgetWindow {
    Minute,
    Hour,
    Day,
    Week,
    Month,
    /// Single window without an end.
    Total,
}

/// Start and end of one window, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowBounds {
    pub begins_ms: i64,
    /// First moment after the window, or `None` if the window never ends.
    pub ends_ms: Option<i64>,
}

impl BudgetWindow {
    pub const ALL: [BudgetWindow; 6] = [
        BudgetWindow::Minute,
        BudgetWindow::Hour,
        BudgetWindow::Day,
        BudgetWindow::Week,
        BudgetWindow::Month,
        BudgetWindow::Total,
    ];

    /// Returns the name of the window in records and responses.
    pub fn word(self) -> &'static str {
        match self {
            BudgetWindow::Minute => "minute",
            BudgetWindow::Hour => "hour",
            BudgetWindow::Day => "day",
            BudgetWindow::Week => "week",
            BudgetWindow::Month => "month",
            BudgetWindow::Total => "total",
        }
    }

    pub fn parse(word: &str) -> Option<BudgetWindow> {
        BudgetWindow::ALL.into_iter().find(|window| window.word() == word)
    }

    /// Returns the window that contains a moment.
    pub fn around(self, now_ms: i64) -> WindowBounds {
        let fixed = |length: i64, offset: i64| {
            let begins_ms = now_ms - (now_ms + offset).rem_euclid(length);
            WindowBounds { begins_ms, ends_ms: Some(begins_ms + length) }
        };
        match self {
            BudgetWindow::Minute => fixed(MINUTE_MS, 0),
            BudgetWindow::Hour => fixed(HOUR_MS, 0),
            BudgetWindow::Day => fixed(DAY_MS, 0),
            BudgetWindow::Week => fixed(WEEK_MS, DAYS_FROM_MONDAY * DAY_MS),
            BudgetWindow::Month => month_around(now_ms),
            BudgetWindow::Total => WindowBounds { begins_ms: 0, ends_ms: None },
        }
    }
}

fn month_around(now_ms: i64) -> WindowBounds {
    let day = now_ms.div_euclid(DAY_MS);
    let (year, month, day_of_month) = date_of(day);
    let first = day - (day_of_month - 1);
    let next = first + days_in(year, month);
    WindowBounds { begins_ms: first * DAY_MS, ends_ms: Some(next * DAY_MS) }
}

/// Returns the Gregorian year, month and day of a day number since 1970-01-01.
///
/// The algorithm is Howard Hinnant's `civil_from_days`.
fn date_of(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_month)
}

fn days_in(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-11-27T19:05:31.250Z, a Friday.
    const NOW: i64 = 1_795_806_331_250;
    /// 2026-11-27T00:00:00Z.
    const DAY: i64 = 1_795_737_600_000;

    #[test]
    fn windows_follow_the_calendar_in_utc() {
        let bounds = |window: BudgetWindow| {
            let found = window.around(NOW);
            (found.begins_ms, found.ends_ms)
        };
        assert_eq!(bounds(BudgetWindow::Minute), (NOW - 31_250, Some(NOW - 31_250 + MINUTE_MS)));
        assert_eq!(bounds(BudgetWindow::Hour), (DAY + 19 * HOUR_MS, Some(DAY + 20 * HOUR_MS)));
        assert_eq!(bounds(BudgetWindow::Day), (DAY, Some(DAY + DAY_MS)));
        assert_eq!(bounds(BudgetWindow::Week), (DAY - 4 * DAY_MS, Some(DAY + 3 * DAY_MS)));
        assert_eq!(bounds(BudgetWindow::Month), (DAY - 26 * DAY_MS, Some(DAY + 4 * DAY_MS)));
        assert_eq!(bounds(BudgetWindow::Total), (0, None));
    }

    #[test]
    fn february_has_its_leap_day() {
        // 2024-02-29T12:00Z, 2023-02-10T00:00Z
        for (now, days) in [(1_709_208_000_000, 29), (1_675_987_200_000, 28)] {
            let found = BudgetWindow::Month.around(now);
            assert_eq!(found.ends_ms, Some(found.begins_ms + days * DAY_MS));
        }
    }

    #[test]
    fn words_are_read_back() {
        for window in BudgetWindow::ALL {
            assert_eq!(BudgetWindow::parse(window.word()), Some(window));
        }
        assert_eq!(BudgetWindow::parse("year"), None);
    }

    proptest! {
        #[test]
        fn windows_contain_their_moment_and_follow_each_other(now in 0..4_102_444_800_000_i64) {
            for window in BudgetWindow::ALL {
                let found = window.around(now);
                prop_assert!(found.begins_ms <= now);
                let Some(ends) = found.ends_ms else { continue };
                prop_assert!(now < ends);
                prop_assert_eq!(window.around(found.begins_ms), found);
                prop_assert_eq!(window.around(ends - 1), found);
                prop_assert_eq!(window.around(ends).begins_ms, ends);
            }
        }
    }
}
