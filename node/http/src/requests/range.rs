//! Pure parser of the `Range` header, which selects one range of bytes of a file.

use std::ops::Range;

use actix_web::http::header::{self, HeaderMap};

/// Part of a file that a request selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedRange {
    Whole,
    /// Range within the file, which is never empty.
    Part(Range<u64>),
    /// Range beyond the end of the file.
    Beyond,
}

/// Returns the requested range. Anything except a single range of bytes selects the whole file, as RFC 9110 allows.
pub fn requested_range(headers: &HeaderMap, length: u64) -> RequestedRange {
    let text = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let Some(one) = text.and_then(|text| text.trim().strip_prefix("bytes=")).map(str::trim) else {
        return RequestedRange::Whole;
    };
    let Some((first, last)) = one.split_once('-').filter(|_| !one.contains(',')) else { return RequestedRange::Whole };
    let number = |text: &str| text.parse::<u64>().ok();
    let range = match (first, last) {
        ("", "") => return RequestedRange::Whole,
        ("", last) => number(last).map(|last| length.saturating_sub(last)..length),
        (first, "") => number(first).map(|first| first..length),
        (first, last) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first > last => return RequestedRange::Whole,
            (Some(first), Some(last)) => Some(first..last.saturating_add(1).min(length)),
            _ => None,
        },
    };
    match range {
        None => RequestedRange::Whole,
        Some(range) if range.start >= length || range.is_empty() => RequestedRange::Beyond,
        Some(range) => RequestedRange::Part(range),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn ranges_are_read() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, HeaderValue::from_str(text).expect("a value"));
            requested_range(&headers, 10)
        };
        for (text, wanted) in [
            ("bytes=0-0", RequestedRange::Part(0..1)),
            ("bytes=2-5", RequestedRange::Part(2..6)),
            ("bytes=2-", RequestedRange::Part(2..10)),
            ("bytes=5-100", RequestedRange::Part(5..10)),
            ("bytes=-3", RequestedRange::Part(7..10)),
            ("bytes=-30", RequestedRange::Part(0..10)),
            ("bytes=10-", RequestedRange::Beyond),
            ("bytes=-0", RequestedRange::Beyond),
            ("bytes=5-2", RequestedRange::Whole),
            ("bytes=0-1,3-4", RequestedRange::Whole),
            ("bytes=a-b", RequestedRange::Whole),
            ("bytes=-", RequestedRange::Whole),
            ("rows=0-1", RequestedRange::Whole),
            ("bytes=0-18446744073709551615", RequestedRange::Part(0..10)),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
        assert_eq!(requested_range(&HeaderMap::new(), 10), RequestedRange::Whole);
    }
}
