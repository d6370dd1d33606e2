//! Times in the forms of AWS, as milliseconds since 1970.

const DAY_MS: i64 = 86_400_000;
const YEAR_MAX: i64 = 9999;

/// Returns the time as `20261127T191500Z`. None unless its year has four digits.
pub(crate) fn amz_date(now_ms: i64) -> Option<String> {
    let (year, month, day) = civil(now_ms.div_euclid(DAY_MS));
    if !(1970..=YEAR_MAX).contains(&year) {
        return None;
    }
    let seconds = now_ms.rem_euclid(DAY_MS) / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(format!("{year:04}{month:02}{day:02}T{hours:02}{minutes:02}{seconds:02}Z"))
}

/// Reads a time such as `2026-11-27T19:15:00Z`, with or without fractions of a second.
pub(crate) fn parse_iso(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let time = time.split('.').next()?;
    let (year, month, day) = three(date, '-')?;
    let (hours, minutes, seconds) = three(time, ':')?;
    let is_valid = (1970..=YEAR_MAX).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hours < 24
        && minutes < 60
        && seconds <= 60;
    is_valid.then(|| days(year, month, day) * DAY_MS + ((hours * 60 + minutes) * 60 + seconds) * 1000)
}

fn three(text: &str, separator: char) -> Option<(i64, i64, i64)> {
    let number = |text: &str| {
        let is_short = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_short { text.parse().ok() } else { None }
    };
    let mut parts = text.split(separator).map(number);
    let three = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(three)
}

/// Days since 1970-01-01 in the Gregorian calendar, after Howard Hinnant's `days_from_civil`.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a number of days since 1970-01-01, after `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_have_the_forms_of_aws() {
        assert_eq!(amz_date(1_440_938_160_000).as_deref(), Some("20150830T123600Z"));
        assert_eq!(amz_date(0).as_deref(), Some("19700101T000000Z"));
        assert_eq!(amz_date(-1), None);
        assert_eq!(amz_date(i64::MAX / 4), None);
        assert_eq!(parse_iso("2015-08-30T12:36:00Z"), Some(1_440_938_160_000));
        assert_eq!(parse_iso("2024-02-29T23:59:60.123Z"), Some(1_709_251_200_000));
        for wrong in ["", "2015-08-30", "2015-08-30T12:36:00", "2015-13-30T12:36:00Z", "2015-08-30T24:36:00Z", "T:Z"] {
            assert_eq!(parse_iso(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_written_time_is_read_again(seconds in 0i64..250_000_000_000) {
            let written = amz_date(seconds * 1000).expect("a year of four digits");
            let (date, time) = (&written[..8], &written[9..15]);
            let iso = format!(
                "{}-{}-{}T{}:{}:{}Z", &date[..4], &date[4..6], &date[6..], &time[..2], &time[2..4], &time[4..]
            );
            prop_assert_eq!(parse_iso(&iso), Some(seconds * 1000));
        }
    }
}
