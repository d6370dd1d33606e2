//! Times of rows: seconds for metrics, and texts for `created`.

const DAY_MS: u64 = 86_400_000;

/// Returns a time as metrics have it, in seconds.
pub(crate) fn seconds(time_ms: u64) -> f64 {
    time_ms as f64 / 1000.0
}

/// Returns a time since 1970 as an ISO 8601 text in UTC.
pub(crate) fn iso_text(time_ms: u64) -> String {
    let (days, ms) = (time_ms / DAY_MS, time_ms % DAY_MS);
    let (year, month, day) = civil(days);
    let (hour, minute, second, fraction) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z")
}

/// Returns the year, month and day of a number of days since 1970, by the algorithm of Howard Hinnant.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years begin in March, so that the day that some years add is their last one.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_text() {
        for (time_ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_123, "2024-02-29T23:59:59.123Z"),
            (1_735_689_600_000, "2025-01-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso_text(time_ms), text);
        }
        assert!((seconds(1_500) - 1.5).abs() < f64::EPSILON);
    }
}
