//! Bytes of streams: the events are the same however the bytes are cut, and survive being written.

use assay_node_dialects::SseEvent;
use assay_node_dialects::sse::{SseParser, write_comment, write_event};
use assay_node_dialects_converse::{EventStreamMessage, EventStreamParser, read_invoke_event};

use crate::frames;
use crate::head::Head;

/// Bound of an event that inputs reach.
const SHORT_EVENT_BYTES_MAX: usize = 48;

pub fn run(input: &[u8]) {
    let Some((head, rest)) = Head::read(input) else { return };
    match head.server % 4 {
        0 => text(head, rest, usize::MAX),
        1 => text(head, rest, SHORT_EVENT_BYTES_MAX),
        2 => binary(head, rest),
        _ => binary(head, &repaired(rest)),
    }
}

/// Checks server-sent events.
fn text(head: Head, bytes: &[u8], bytes_max: usize) {
    let whole = read_text(&[bytes], bytes_max);
    assert_eq!(read_text(&head.cut(bytes), bytes_max), whole);
    // A type of CR is one that ends at once; so is the event that was never ended.
    let written: Vec<u8> = whole.0.iter().flat_map(write_event).collect();
    let (again, failure) = read_text(&[&written, &write_comment("a\r\nb")], usize::MAX);
    assert_eq!((again, failure), (whole.0, None));
}

fn read_text(pieces: &[&[u8]], bytes_max: usize) -> (Vec<SseEvent>, Option<String>) {
    let mut parser = SseParser::with_limit(bytes_max);
    let mut events = Vec::new();
    for piece in pieces.iter().chain([&&[][..]]) {
        match parser.push(piece) {
            Ok(read) => events.extend(read),
            Err(why) => return (events, Some(why.to_string())),
        }
    }
    match parser.finish() {
        Ok(last) => events.extend(last),
        Err(why) => return (events, Some(why.to_string())),
    }
    (events, None)
}

/// Checks binary event streams.
fn binary(head: Head, bytes: &[u8]) {
    let whole = read_binary(&[bytes]);
    assert_eq!(read_binary(&head.cut(bytes)), whole);
    for message in &whole.0 {
        let _ = read_invoke_event(&message.event());
    }
}

fn read_binary(pieces: &[&[u8]]) -> (Vec<EventStreamMessage>, Option<String>) {
    let mut parser = EventStreamParser::new();
    let mut messages = Vec::new();
    for piece in pieces.iter().chain([&&[][..]]) {
        match parser.push(piece) {
            Ok(read) => messages.extend(read),
            Err(why) => return (messages, Some(why.to_string())),
        }
    }
    (messages, parser.finish().err().map(|why| why.to_string()))
}

/// Makes messages with right checksums: the first two bytes of each are the lengths of its headers and payload.
fn repaired(bytes: &[u8]) -> Vec<u8> {
    let (mut rest, mut repaired) = (bytes, Vec::new());
    while let [headers, payload, after @ ..] = rest {
        let (headers, after) = after.split_at(after.len().min(usize::from(*headers)));
        let (payload, after) = after.split_at(after.len().min(usize::from(*payload)));
        repaired.extend(frames::message(headers, payload));
        rest = after;
    }
    repaired
}
