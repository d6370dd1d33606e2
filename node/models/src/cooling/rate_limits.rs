//! Delays in the headers of a 429 from an upstream.

use crate::calendar::parse_http_date;

/// Upper bound of a delay from an upstream.
pub const RETRY_AFTER_MS_MAX: u64 = 60 * 60 * 1000;
/// Upper bound of the inspected headers.
const HEADERS_MAX: usize = 256;
/// Bound above which a number is not a delay but a time in seconds since 1970.
const EPOCH_SECONDS_MIN: f64 = 1e9;
/// Bound above which a number is a time in milliseconds since 1970.
const EPOCH_MS_MIN: f64 = 1e12;

const RESET: &str = "x-ratelimit-reset";
const REMAINING: &str = "x-ratelimit-remaining";

/// Returns the delay in the headers of a response, at most [`RETRY_AFTER_MS_MAX`]. Names may be in any case.
///
/// `retry-after-ms` and `retry-after` take precedence over `x-ratelimit-reset*`. Among several resets, the latest one
/// of the exhausted limits counts. If no limit is exhausted, the earliest reset counts.
pub fn retry_after_ms<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>, now_ms: u64) -> Option<u64> {
    let (mut in_ms, mut retry_after) = (None, None);
    let (mut resets, mut exhausted) = (Vec::new(), Vec::new());
    for (name, value) in headers.into_iter().take(HEADERS_MAX) {
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        if name == "retry-after-ms" {
            in_ms = number(value);
        } else if name == "retry-after" {
            retry_after =
                number(value).map(|seconds| seconds * 1000.0).or_else(|| until(parse_http_date(value)?, now_ms));
        } else if let Some(limit) = name.strip_prefix(RESET) {
            resets.extend(reset(value, now_ms).map(|delay| (limit.to_owned(), delay)));
        } else if let Some(limit) = name.strip_prefix(REMAINING)
            && number(value) == Some(0.0)
        {
            exhausted.push(limit.to_owned());
        }
    }
    let of_exhausted = resets.iter().filter(|(limit, _)| exhausted.contains(limit)).map(|(_, delay)| *delay);
    let latest = of_exhausted.reduce(f64::max);
    let earliest = resets.iter().map(|(_, delay)| *delay).reduce(f64::min);
    let delay = in_ms.or(retry_after).or(latest).or(earliest)?;
    Some(delay.ceil().min(RETRY_AFTER_MS_MAX as f64) as u64)
}

/// Returns the delay until a time in milliseconds, or zero for a past time.
fn until(at_ms: i64, now_ms: u64) -> Option<f64> {
    Some((at_ms as f64 - now_ms as f64).max(0.0))
}

/// Reads `120ms`, `1.5s`, `6m0s`, `1h2m`, seconds, or a time since 1970. Returns a delay in milliseconds.
fn reset(value: &str, now_ms: u64) -> Option<f64> {
    match number(value) {
        Some(at) if at >= EPOCH_MS_MIN => Some((at - now_ms as f64).max(0.0)),
        Some(at) if at >= EPOCH_SECONDS_MIN => Some((at * 1000.0 - now_ms as f64).max(0.0)),
        Some(seconds) => Some(seconds * 1000.0),
        None => duration(value),
    }
}

fn duration(value: &str) -> Option<f64> {
    /// Upper bound of the parts of a duration, such as the hours.
    const PARTS_MAX: usize = 5;
    let (mut rest, mut total) = (value, 0.0);
    for _ in 0..PARTS_MAX {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (amount, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let ms = match unit {
            "ms" => 1.0,
            "s" => 1000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            "d" => 86_400_000.0,
            _ => return None,
        };
        total += number(amount)? * ms;
        if after.is_empty() {
            return Some(total);
        }
        rest = after;
    }
    None
}

/// Reads a decimal number without sign or exponent.
fn number(text: &str) -> Option<f64> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_decimal { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Start of 2026-11-27.
    const NOW: u64 = 1_795_737_600_000;

    #[test]
    fn delays_are_read_in_all_their_forms() {
        for (headers, expected) in [
            (vec![("Retry-After", "7")], Some(7_000)),
            (vec![("retry-after", "0")], Some(0)),
            (vec![("retry-after", "1.5")], Some(1_500)),
            (vec![("retry-after", "Fri, 27 Nov 2026 00:00:09 GMT")], Some(9_000)),
            (vec![("retry-after", "Thu, 26 Nov 2026 00:00:00 GMT")], Some(0)),
            (vec![("retry-after", "7"), ("retry-after-ms", "250")], Some(250)),
            (vec![("retry-after", "86400")], Some(RETRY_AFTER_MS_MAX)),
            (vec![("x-ratelimit-reset", "120ms")], Some(120)),
            (vec![("x-ratelimit-reset-requests", "8.64s")], Some(8_640)),
            (vec![("x-ratelimit-reset-requests", "1m30s")], Some(90_000)),
            (vec![("x-ratelimit-reset-tokens", "6m0s"), ("x-ratelimit-reset-requests", "1s")], Some(1_000)),
            (
                vec![
                    ("x-ratelimit-reset-tokens", "6m0s"),
                    ("x-ratelimit-reset-requests", "1s"),
                    ("x-ratelimit-remaining-tokens", "0"),
                    ("x-ratelimit-remaining-requests", "9"),
                ],
                Some(360_000),
            ),
            (vec![("x-ratelimit-reset", "12")], Some(12_000)),
            (vec![("x-ratelimit-reset", "1795737605")], Some(5_000)),
            (vec![("x-ratelimit-reset", "1795737600500")], Some(500)),
            (vec![("retry-after", "5"), ("x-ratelimit-reset", "50s")], Some(5_000)),
            (vec![("retry-after", "soon"), ("x-ratelimit-reset", "50s")], Some(50_000)),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "inf")], None),
            (vec![("retry-after", "")], None),
            (vec![("x-ratelimit-reset", "1y")], None),
            (vec![("x-ratelimit-reset", "s")], None),
            (vec![("x-ratelimit-reset", "1.2.3s")], None),
            (vec![("date", "Fri, 27 Nov 2026 00:00:09 GMT")], None),
        ] {
            assert_eq!(retry_after_ms(headers.iter().copied(), NOW), expected, "{headers:?}");
        }
    }
}
