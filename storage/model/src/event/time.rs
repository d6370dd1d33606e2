//! Conversion of ISO 8601 to microseconds and back. UTC is written with `Z`, and with three or six digits, as needed.

use std::ops::RangeInclusive;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// Years 1 to 9999, which four digits can write.
const WRITABLE: RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// Parses a time into microseconds since the epoch. Accepts a date alone (midnight), optional seconds, any number of
/// digits behind them (cut after six), `Z`, an offset, or no zone, which means UTC.
pub fn parse_created(text: &str) -> Option<i64> {
    let mut rest = text.as_bytes();
    let (year, month, day) = date(&mut rest)?;
    let mut micros = days_from_civil(year, month, day) * SECONDS_PER_DAY * MICROS_PER_SECOND;
    if let Some((b'T' | b't' | b' ', after)) = rest.split_first() {
        rest = after;
        micros += time_of_day(&mut rest)?;
        micros -= zone_seconds(&mut rest)? * MICROS_PER_SECOND;
    }
    (rest.is_empty() && WRITABLE.contains(&micros)).then_some(micros)
}

/// Formats as `2026-11-21T05:44:00.123Z`, with six digits if three are not exact.
pub fn format_micros(micros: i64) -> String {
    let seconds = micros.div_euclid(MICROS_PER_SECOND);
    let fraction = micros.rem_euclid(MICROS_PER_SECOND);
    let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
    let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let start = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if fraction % 1000 == 0 { format!("{start}.{:03}Z", fraction / 1000) } else { format!("{start}.{fraction:06}Z") }
}

fn date(rest: &mut &[u8]) -> Option<(i64, i64, i64)> {
    let year = number(rest, 4)?;
    literal(rest, b'-')?;
    let month = number(rest, 2).filter(|month| (1..=12).contains(month))?;
    literal(rest, b'-')?;
    let day = number(rest, 2).filter(|day| (1..=days_of_month(year, month)).contains(day))?;
    Some((year, month, day))
}

/// Microseconds since midnight.
fn time_of_day(rest: &mut &[u8]) -> Option<i64> {
    let hour = number(rest, 2).filter(|hour| *hour < 24)?;
    literal(rest, b':')?;
    let minute = number(rest, 2).filter(|minute| *minute < 60)?;
    let mut micros = (hour * 3600 + minute * 60) * MICROS_PER_SECOND;
    if literal(rest, b':').is_some() {
        micros += number(rest, 2).filter(|second| *second < 60)? * MICROS_PER_SECOND;
        if literal(rest, b'.').or_else(|| literal(rest, b',')).is_some() {
            micros += fraction(rest)?;
        }
    }
    Some(micros)
}

fn fraction(rest: &mut &[u8]) -> Option<i64> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (fraction, after) = rest.split_at(digits);
    *rest = after;
    let padded = fraction.iter().copied().chain(std::iter::repeat(b'0')).take(6);
    (digits > 0).then(|| padded.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

/// Seconds east of UTC.
fn zone_seconds(rest: &mut &[u8]) -> Option<i64> {
    let Some((sign, after)) = rest.split_first() else {
        return Some(0);
    };
    *rest = after;
    let sign = match sign {
        b'Z' | b'z' => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = number(rest, 2).filter(|hours| *hours < 24)?;
    let colon = literal(rest, b':').is_some();
    let minutes = if colon || !rest.is_empty() { number(rest, 2).filter(|minutes| *minutes < 60)? } else { 0 };
    Some(sign * (hours * 3600 + minutes * 60))
}

fn number(rest: &mut &[u8], digits: usize) -> Option<i64> {
    let (text, after) = rest.split_at_checked(digits)?;
    *rest = after;
    let all_digits = text.iter().all(u8::is_ascii_digit);
    all_digits.then(|| text.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

fn literal(rest: &mut &[u8], byte: u8) -> Option<()> {
    *rest = rest.strip_prefix(&[byte])?;
    Some(())
}

pub fn days_of_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar. Years are counted from March, so that the leap day
/// is the last; 400 of them are one era.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let from_march = if month <= 2 { year - 1 } else { year };
    let era = from_march.div_euclid(400);
    let of_era = from_march.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of days since 1970-01-01.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_that_clients_send_are_read() {
        let cases = [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
            ("2026-11-21T05:44:00.123Z", "2026-11-21T05:44:00.123Z"),
            ("2026-11-21T05:44:00.123456+00:00", "2026-11-21T05:44:00.123456Z"),
            ("2026-11-21T05:44:00.120000+00:00", "2026-11-21T05:44:00.120Z"),
            ("2026-11-21T00:14:00-05:30", "2026-11-21T05:44:00.000Z"),
            ("2026-01-01T00:30:00+0100", "2025-12-31T23:30:00.000Z"),
            ("2026-01-01T00:30:00+01", "2025-12-31T23:30:00.000Z"),
            ("2024-02-29 12:00:00,5", "2024-02-29T12:00:00.500Z"),
            ("2026-11-21t05:44z", "2026-11-21T05:44:00.000Z"),
            ("2026-11-21T05:44:00.1234567890Z", "2026-11-21T05:44:00.123456Z"),
            ("2026-11-21", "2026-11-21T00:00:00.000Z"),
            ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
        ];
        for (text, normal) in cases {
            let micros = parse_created(text).expect(text);
            assert_eq!(format_micros(micros), normal, "{text}");
            assert_eq!(parse_created(normal), Some(micros), "{text}");
        }
        assert_eq!(parse_created("2001-09-09T01:46:40.000001Z"), Some(1_000_000_000_000_001));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let cases = [
            "",
            "now",
            "1700000000",
            "2026-13-01",
            "2026-00-01",
            "2026-02-29",
            "1900-02-29",
            "2026-04-31",
            "2026-1-1",
            "2026-11-21T",
            "2026-11-21T24:00:00Z",
            "2026-11-21T05:60:00Z",
            "2026-11-21T05:44:60Z",
            "2026-11-21T05:44:00.Z",
            "2026-11-21T05:44:00 Z",
            "2026-11-21T05:44:00Zz",
            "2026-11-21T05:44:00+1",
            "2026-11-21T05:44:00+24:00",
            "2026-11-21T05:44:00+01:60",
            "2026-11-21T05:44:00+01:",
            "0000-12-31",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "+2026-11-21",
            "２０２６-11-21",
        ];
        for text in cases {
            assert_eq!(parse_created(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_of_eight_centuries_survives() {
        let first = days_from_civil(1600, 1, 1);
        for days in first..first + 2 * 146_097 {
            let (year, month, day) = civil_from_days(days);
            assert!((1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day));
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }

    #[test]
    fn any_number_can_be_written() {
        for micros in [i64::MIN, i64::MAX, 0, -1] {
            assert!(format_micros(micros).ends_with('Z'));
        }
    }
}
