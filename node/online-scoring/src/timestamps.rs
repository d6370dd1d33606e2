//! Times of requests and rows: milliseconds since the epoch, and their texts in UTC.

const MILLIS_PER_DAY: u64 = 86_400_000;
/// Days from 0000-03-01, where the arithmetic begins, to the epoch.
const EPOCH_DAYS: u64 = 719_468;
const DAYS_PER_ERA: u64 = 146_097;
const YEAR_MAX: u64 = 9_999;

/// Returns the time as `2025-05-12T10:00:00.000Z`.
pub fn timestamp_text(millis: u64) -> String {
    let (year, month, day) = date_of(millis / MILLIS_PER_DAY);
    let (seconds, rest) = (millis % MILLIS_PER_DAY / 1000, millis % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest:03}Z")
}

/// Parses a date, or a date and time with its offset, from 1970 on.
pub fn parse_timestamp(text: &str) -> Option<u64> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let (year, month, day) = (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let is_date = parts.next().is_none() && (1970..=YEAR_MAX).contains(&year) && (1..=12).contains(&month);
    let days = is_date.then(|| days_of(year, month, day))?;
    // a day that the month does not have comes back as another date
    if date_of(days) != (year, month, day) {
        return None;
    }
    let millis = days * MILLIS_PER_DAY;
    match time {
        None => Some(millis),
        Some(time) => millis.checked_add_signed(time_of_day(time)?),
    }
}

fn time_of_day(text: &str) -> Option<i64> {
    let zone = text.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = text.split_at(zone);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.split(':');
    let (hour, minute, second) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let millis: String = fraction.chars().chain("000".chars()).take(3).collect();
    let of_day = ((hour * 60 + minute) * 60 + second) * 1000 + digits(&millis, 3)?;
    Some(of_day.cast_signed() - offset(zone)?)
}

/// Returns the offset of a zone in milliseconds.
fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours < 24 && minutes < 60).then(|| sign * ((hours * 60 + minutes) * 60_000).cast_signed())
}

fn digits(text: &str, count: usize) -> Option<u64> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Returns the days from the epoch to a date. Years begin in March, so that the leap day is the last one.
fn days_of(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day.saturating_sub(1);
    era * DAYS_PER_ERA + year * 365 + year / 4 - year / 100 + of_year - EPOCH_DAYS
}

/// Returns year, month and day of a day after the epoch.
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + EPOCH_DAYS;
    let (era, of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_times_are_parsed_with_their_offsets() {
        let cases = [
            ("1970-01-01", 0),
            ("2000-02-29T12:34:56Z", 951_827_696_000),
            ("2025-05-12T10:00:00.1234+02:00", 1_747_036_800_123),
            ("2025-05-12 10:00:00.5-00:30", 1_747_045_800_500),
        ];
        for (text, millis) in cases {
            assert_eq!(parse_timestamp(text), Some(millis), "{text}");
        }
        assert_eq!(timestamp_text(951_827_696_000), "2000-02-29T12:34:56.000Z");
    }

    #[test]
    fn other_texts_are_no_times() {
        let texts = [
            "",
            "2025",
            "2025-02-30",
            "2025-02-00",
            "2025-13-01",
            "1969-12-31",
            "2025-05-12T10:00:00",
            "2025-05-12T10:00Z",
            "2025-05-12T24:00:00Z",
            "2025-05-12T10:00:00.Z",
            "2025-05-12T10:00:00+2",
            "1970-01-01T00:00:00+01:00",
            "+025-01-01",
            "2025-05-12T10:00:00+aa:00",
        ];
        for text in texts {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_time_is_found_again_in_its_text(millis in 0_u64..253_402_300_800_000) {
            prop_assert_eq!(parse_timestamp(&timestamp_text(millis)), Some(millis));
        }
    }
}
