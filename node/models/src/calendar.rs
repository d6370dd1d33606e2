//! Dates of prices and of HTTP headers, as milliseconds since 1970.

const DAY_MS: i64 = 86_400_000;
const YEAR_MAX: i64 = 9999;
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Returns the start of a day in UTC, or `None` if the text is not a date `YYYY-MM-DD`.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) = (digits(text.get(..4)?)?, digits(text.get(5..7)?)?, digits(text.get(8..)?)?);
    Some(day_number(year, month, day)? * DAY_MS)
}

/// Returns the time of an HTTP date such as `Sun, 06 Nov 1994 08:49:37 GMT`. Servers may send only this form.
pub(crate) fn parse_http_date(text: &str) -> Option<i64> {
    let (_, rest) = text.trim().split_once(", ")?;
    let mut words = rest.split(' ');
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let (time, zone) = (words.next()?, words.next()?);
    if zone != "GMT" || words.next().is_some() {
        return None;
    }
    let month = MONTHS.iter().position(|name| *name == month)?;
    let day = day_number(digits(year)?, i64::try_from(month).ok()? + 1, digits(day)?)?;
    let mut parts = time.split(':').map(digits);
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    // A value of 60 is a leap second.
    if parts.next().is_some() || hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    Some(day * DAY_MS + ((hours * 60 + minutes) * 60 + seconds) * 1000)
}

fn digits(text: &str) -> Option<i64> {
    if text.is_empty() || text.len() > 4 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Returns the days since 1970-01-01 in the Gregorian calendar, using Howard Hinnant's `days_from_civil`.
fn day_number(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1970..=YEAR_MAX).contains(&year) || !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year / 400;
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_the_begin_of_its_day_in_utc() {
        assert_eq!(parse_date("1970-01-01"), Some(0));
        assert_eq!(parse_date("1970-03-01"), Some(59 * DAY_MS));
        assert_eq!(parse_date("2024-02-29"), Some(1_709_164_800_000));
        assert_eq!(parse_date("2026-11-27"), Some(1_795_737_600_000));
        for wrong in ["", "2026-13-01", "2026-02-29", "2026-1-1", "26-01-01", "2026-01-01T00:00", "2026-+1-01"] {
            assert_eq!(parse_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_http_date_is_read_and_other_forms_are_not() {
        assert_eq!(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777_000));
        assert_eq!(parse_http_date("Fri, 27 Nov 2026 00:00:00 GMT"), parse_date("2026-11-27"));
        for wrong in
            ["", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 24:00:00 GMT"]
        {
            assert_eq!(parse_http_date(wrong), None, "{wrong}");
        }
    }
}
