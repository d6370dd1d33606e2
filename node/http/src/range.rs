//! Which part of a file a request wants: one range of bytes. Pure.

use std::ops::Range;

use actix_web::http::header::{self, HeaderMap};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Whole,
    /// Not empty.
    Part(Range<u64>),
    /// Of no byte that there is.
    Beyond,
}

/// What is no single range of bytes is passed over, as RFC 9110 allows: the answer is the whole.
pub fn asked(headers: &HeaderMap, length: u64) -> Asked {
    let text = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let Some(one) = text.and_then(|text| text.trim().strip_prefix("bytes=")).map(str::trim) else {
        return Asked::Whole;
    };
    let Some((first, last)) = one.split_once('-').filter(|_| !one.contains(',')) else { return Asked::Whole };
    let number = |text: &str| text.parse::<u64>().ok();
    let range = match (first, last) {
        ("", "") => return Asked::Whole,
        ("", last) => number(last).map(|last| length.saturating_sub(last)..length),
        (first, "") => number(first).map(|first| first..length),
        (first, last) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first > last => return Asked::Whole,
            (Some(first), Some(last)) => Some(first..last.saturating_add(1).min(length)),
            _ => None,
        },
    };
    match range {
        None => Asked::Whole,
        Some(range) if range.start >= length || range.is_empty() => Asked::Beyond,
        Some(range) => Asked::Part(range),
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
            asked(&headers, 10)
        };
        for (text, wanted) in [
            ("bytes=0-0", Asked::Part(0..1)),
            ("bytes=2-5", Asked::Part(2..6)),
            ("bytes=2-", Asked::Part(2..10)),
            ("bytes=5-100", Asked::Part(5..10)),
            ("bytes=-3", Asked::Part(7..10)),
            ("bytes=-30", Asked::Part(0..10)),
            ("bytes=10-", Asked::Beyond),
            ("bytes=-0", Asked::Beyond),
            ("bytes=5-2", Asked::Whole),
            ("bytes=0-1,3-4", Asked::Whole),
            ("bytes=a-b", Asked::Whole),
            ("bytes=-", Asked::Whole),
            ("rows=0-1", Asked::Whole),
            ("bytes=0-18446744073709551615", Asked::Part(0..10)),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
        assert_eq!(asked(&HeaderMap::new(), 10), Asked::Whole);
    }
}
