//! Counts of the items in a protobuf body before it is decoded.
//!
//! An empty message of two bytes needs a hundred bytes in memory. Signals that are not stored are only counted.

/// Shape of a message for counting: its fields with messages, and its own class.
#[derive(Debug)]
pub(crate) struct Shape {
    pub holds: &'static [(u64, &'static Shape)],
    pub counts: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// Span, log record or data point.
    Item,
    /// Group of items: a resource or a scope.
    Group,
    Other,
}

/// Counts of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub items: usize,
    pub groups: usize,
    /// Number of messages of every kind, including items and groups.
    pub all: usize,
}

/// Upper bound of the nesting, equal to that of the decoder.
const DEPTH_MAX: usize = 100;

macro_rules! shapes {
    ($($name:ident $counts:ident [$(($tag:literal, $held:ident)),*];)*) => {
        $(pub(crate) static $name: Shape = Shape { holds: &[$(($tag, &$held)),*], counts: Counts::$counts };)*
    };
}

shapes! {
    TRACES Other [(1, RESOURCE_SPANS)];
    RESOURCE_SPANS Group [(1, ATTRIBUTES_FIRST), (2, SCOPE_SPANS)];
    SCOPE_SPANS Group [(1, SCOPE), (2, SPAN)];
    SCOPE Other [(3, KEY_VALUE)];
    SPAN Item [(9, KEY_VALUE), (11, EVENT), (13, LINK)];
    EVENT Other [(3, KEY_VALUE)];
    LINK Other [(4, KEY_VALUE)];
    KEY_VALUE Other [(2, ANY_VALUE)];
    ANY_VALUE Other [(5, ARRAY_VALUE), (6, ATTRIBUTES_FIRST)];
    ARRAY_VALUE Other [(1, ANY_VALUE)];
    // This shape covers resources and lists of pairs, which have pairs in their first field.
    ATTRIBUTES_FIRST Other [(1, KEY_VALUE)];
    LOGS Other [(1, RESOURCE_LOGS)];
    RESOURCE_LOGS Group [(2, SCOPE_LOGS)];
    SCOPE_LOGS Group [(2, LEAF)];
    METRICS Other [(1, RESOURCE_METRICS)];
    RESOURCE_METRICS Group [(2, SCOPE_METRICS)];
    SCOPE_METRICS Group [(2, METRIC)];
    // The fields are gauge, sum, histogram, exponential histogram and summary.
    METRIC Other [(5, POINTS), (7, POINTS), (9, POINTS), (10, POINTS), (11, POINTS)];
    POINTS Other [(1, LEAF)];
    LEAF Item [];
}

/// Counts the messages in a body. The error names the position of malformed bytes.
pub(crate) fn count(bytes: &[u8], shape: &Shape) -> Result<Counted, String> {
    let mut counted = Counted::default();
    let mut scan = Scan { bytes, at: 0 };
    scan.message(bytes.len(), shape, 0, &mut counted)?;
    Ok(counted)
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn message(&mut self, end: usize, shape: &Shape, depth: usize, counted: &mut Counted) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("messages are nested more than {DEPTH_MAX} deep at byte {}", self.at));
        }
        while self.at < end {
            let tag = self.varint(end)?;
            match tag & 7 {
                0 => self.varint(end).map(drop)?,
                1 => self.skip(8, end)?,
                2 => {
                    let length = self.varint(end)?;
                    let within = self.end_of(length, end)?;
                    if let Some((_, held)) = shape.holds.iter().find(|(field, _)| *field == tag >> 3) {
                        counted.all += 1;
                        counted.items += usize::from(held.counts == Counts::Item);
                        counted.groups += usize::from(held.counts == Counts::Group);
                        self.message(within, held, depth + 1, counted)?;
                    }
                    self.at = within;
                }
                5 => self.skip(4, end)?,
                kind => return Err(format!("a field of wire type {kind} at byte {}", self.at)),
            }
        }
        Ok(())
    }

    fn end_of(&self, length: u64, end: usize) -> Result<usize, String> {
        let within = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        within
            .filter(|within| *within <= end)
            .ok_or_else(|| format!("a field of {length} bytes at byte {} goes beyond its message", self.at))
    }

    fn skip(&mut self, bytes: u64, end: usize) -> Result<(), String> {
        self.at = self.end_of(bytes, end)?;
        Ok(())
    }

    fn varint(&mut self, end: usize) -> Result<u64, String> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let Some(byte) = self.bytes[..end].get(self.at) else {
                return Err(format!("a number is truncated at byte {}", self.at));
            };
            self.at += 1;
            value |= u64::from(byte & 127) << shift;
            if byte & 128 == 0 {
                return Ok(value);
            }
        }
        Err(format!("a number has more than ten bytes at byte {}", self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{Event, ExportTraceServiceRequest, KeyValue, ResourceSpans, ScopeSpans, Span};
    use prost::Message;

    #[test]
    fn messages_are_counted_by_what_they_are() {
        let span = Span {
            attributes: vec![KeyValue::default(), KeyValue::default()],
            events: vec![Event { attributes: vec![KeyValue::default()], ..Event::default() }],
            ..Span::default()
        };
        let scope = ScopeSpans { spans: vec![span.clone(), span], scope: None };
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans { resource: None, scope_spans: vec![scope] }],
        };
        let counted = count(&request.encode_to_vec(), &TRACES);
        assert_eq!(counted, Ok(Counted { items: 2, groups: 2, all: 12 }));
    }

    #[test]
    fn what_is_cut_off_or_lies_about_its_length_is_an_error() {
        for bytes in [&[0x0a, 5, 1][..], &[0x0a], &[0x80], &[0x0b], &[0x09, 1], &[0xff; 11]] {
            assert!(count(bytes, &TRACES).is_err(), "{bytes:?}");
        }
        assert_eq!(count(&[], &TRACES), Ok(Counted::default()));
    }

    #[test]
    fn nesting_ends_with_an_error_and_not_with_the_stack() {
        let mut bytes = Vec::new();
        for _ in 0..2 * DEPTH_MAX {
            // A pair is in a list, a list in a value, and a value in a pair. The innermost message comes first.
            for tag in [0x0a_u8, 0x32, 0x12] {
                let mut outer = vec![tag];
                prost::encoding::encode_varint(bytes.len() as u64, &mut outer);
                outer.extend_from_slice(&bytes);
                bytes = outer;
            }
        }
        assert!(count(&bytes, &KEY_VALUE).is_err());
    }
}
