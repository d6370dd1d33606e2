//! Tests of events and their parser.

use proptest::prelude::*;

use super::*;

fn event(name: Option<&str>, data: &str) -> SseEvent {
    SseEvent { event: name.map(str::to_owned), data: data.to_owned() }
}

fn parse(pieces: &[&[u8]]) -> Vec<SseEvent> {
    let mut parser = SseParser::new();
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(parser.push(piece).expect("short events"));
    }
    events.extend(parser.finish().expect("short events"));
    events
}

/// A text, and the types and data of its events.
type EventSample<'a> = (&'a str, &'a [(Option<&'a str>, &'a str)]);

#[test]
fn fields_make_events() {
    let table: &[EventSample] = &[
        ("data: a\n\n", &[(None, "a")]),
        ("data:a\n\n", &[(None, "a")]),
        ("data:  a\n\n", &[(None, " a")]),
        ("data: a\ndata: b\n\n", &[(None, "a\nb")]),
        ("data\n\n", &[(None, "")]),
        ("data\ndata\n\n", &[(None, "\n")]),
        ("event: x\ndata: a\n\ndata: b\n\n", &[(Some("x"), "a"), (None, "b")]),
        ("event: x\n\ndata: b\n\n", &[(None, "b")]),
        ("event:\ndata: b\n\n", &[(None, "b")]),
        (": ping\n\ndata: a\n: ping\n\n", &[(None, "a")]),
        ("id: 1\nretry: 5\nother: 2\ndata: a\n\n", &[(None, "a")]),
        ("\u{feff}data: a\n\n", &[(None, "a")]),
        ("\u{feff}\u{feff}data: a\n\ndata: b\n\n", &[(None, "b")]),
        ("data: a\r\n\r\ndata: b\r\rdata: c\n\r\n", &[(None, "a"), (None, "b"), (None, "c")]),
        ("data: {\"a\":\"b: c\"}\n\n", &[(None, "{\"a\":\"b: c\"}")]),
        ("data: [DONE]", &[(None, "[DONE]")]),
        ("data: a\n", &[(None, "a")]),
        ("", &[]),
        ("\n\n\n", &[]),
        ("nothing\n\n", &[]),
    ];
    for (text, expected) in table {
        let expected: Vec<_> = expected.iter().map(|(name, data)| event(*name, data)).collect();
        assert_eq!(parse(&[text.as_bytes()]), expected, "{text:?}");
    }
}

#[test]
fn a_stream_cut_at_every_byte_gives_the_same_events() {
    let text =
        "\u{feff}: hello\r\nevent: größe\r\ndata: 日本\r\ndata: 🦀 é\r\n\r\ndata: b\rdata: c\r\r: ping\n\ndata: d\n\n";
    let bytes = text.as_bytes();
    let whole = parse(&[bytes]);
    assert_eq!(whole.len(), 3);
    for first in 0..=bytes.len() {
        for second in first..=bytes.len() {
            let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
            assert_eq!(parse(&pieces), whole, "{first} {second}");
        }
    }
    assert_eq!(parse(&bytes.chunks(1).collect::<Vec<_>>()), whole);
}

#[test]
fn invalid_text_is_replaced_and_not_lost() {
    assert_eq!(parse(&[b"data: a\xFFb\n\n"]), [event(None, "a\u{fffd}b")]);
    assert_eq!(parse(&[b"\xEF\xBBdata: a\n\ndata: b\n\n"]), [event(None, "b")]);
}

#[test]
fn an_event_of_the_largest_size_is_read_and_a_larger_one_is_refused() {
    let line = |bytes: usize| [b"data: ".as_slice(), &vec![b'a'; bytes - 6], b"\n\n"].concat();
    let mut parser = SseParser::new();
    assert_eq!(parser.push(&line(SSE_EVENT_BYTES_MAX)).expect("fits").len(), 1);
    let error = Err(SseError::EventTooLong { max: SSE_EVENT_BYTES_MAX });
    assert_eq!(parser.push(&line(SSE_EVENT_BYTES_MAX + 1)), error);
    assert_eq!(parser.push(b"data: a\n\n"), error, "what follows is not read");
    assert_eq!(parser.finish(), Err(SseError::EventTooLong { max: SSE_EVENT_BYTES_MAX }));
}

#[test]
fn lines_of_an_event_count_together_and_empty_lines_are_bounded() {
    let mut parser = SseParser::with_limit(20);
    assert!(parser.push(b"data: 12345678\ndata: 12345678\n").is_err());
    let mut parser = SseParser::with_limit(20);
    let refused = (0..100).any(|_| parser.push(b"data\n").is_err());
    assert!(refused);
}

#[test]
fn events_before_a_long_one_are_returned_first() {
    let mut parser = SseParser::with_limit(20);
    assert_eq!(parser.push(b"data: a\n\ndata: 0123456789012345\n\n"), Ok(vec![event(None, "a")]));
    assert!(parser.push(b"").is_err());
}

#[test]
fn comments_are_written_and_skipped() {
    assert_eq!(write_comment("ping"), b": ping\n\n");
    assert_eq!(parse(&[&write_comment("a\nb"), b"data: c\n\n"]), [event(None, "c")]);
}

fn any_event() -> impl Strategy<Value = SseEvent> {
    let text = "[a-z:{}\" \u{e9}\u{65e5}\u{1f980}\n]{0,20}";
    let name = proptest::option::of("[a-z._\u{e9}]{1,8}");
    (name, text).prop_map(|(event, data)| SseEvent { event, data })
}

proptest! {
    #[test]
    fn written_events_are_read(events in proptest::collection::vec(any_event(), 0..8), size in 1..40usize) {
        let bytes: Vec<u8> = events.iter().flat_map(write_event).collect();
        prop_assert_eq!(parse(&bytes.chunks(size).collect::<Vec<_>>()), events);
    }

    #[test]
    fn any_bytes_are_read_the_same_however_they_are_cut(
        bytes in proptest::collection::vec(
            prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), Just(0xEF), any::<u8>()], 0..80
        ),
        size in 1..10usize,
    ) {
        prop_assert_eq!(parse(&bytes.chunks(size).collect::<Vec<_>>()), parse(&[&bytes]));
    }
}
