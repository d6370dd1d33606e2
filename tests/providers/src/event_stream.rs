//! Binary event streams as AWS writes them.

use serde_json::{Value, json};

use crate::sse::WireEvent;

/// Reversed polynomial of CRC-32.
const POLYNOMIAL: u32 = 0xEDB8_8320;
/// Type of a header whose value is a text.
const TEXT: u8 = 7;

/// Checksum, bit by bit: frames of tests are short.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).expect("a short frame").to_be_bytes()
}

fn frame(headers: &[(&str, &str)], payload: &Value) -> WireEvent {
    let payload = payload.to_string();
    let mut named = Vec::new();
    for (name, value) in headers {
        named.push(u8::try_from(name.len()).expect("a short name"));
        named.extend(name.bytes());
        named.push(TEXT);
        named.extend(u16::try_from(value.len()).expect("a short value").to_be_bytes());
        named.extend(value.bytes());
    }
    let mut bytes = [length(16 + named.len() + payload.len()), length(named.len())].concat();
    bytes.extend(checksum(&bytes).to_be_bytes());
    bytes.extend(named);
    bytes.extend(payload.bytes());
    bytes.extend(checksum(&bytes).to_be_bytes());
    WireEvent(bytes)
}

pub(crate) fn event(kind: &str, payload: &Value) -> WireEvent {
    frame(&[(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")], payload)
}

pub(crate) fn exception(kind: &str, message: &str) -> WireEvent {
    let headers = [(":exception-type", kind), (":content-type", "application/json"), (":message-type", "exception")];
    frame(&headers, &json!({"message": message}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926);
    }
}
