//! Messages between nodes: a version, and states in JSON. A node drops what it cannot read, such as a message of another
//! version.

use assay_node_models::cooling::{CoolingKey, CoolingState};
use bytes::Bytes;
use thiserror::Error;

const VERSION: u8 = 1;
/// Upper bound of one message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Upper bound of the states in one message.
pub(crate) const STATES_PER_MESSAGE_MAX: usize = 500;
/// Upper bound of the texts of a key. A longer key stays on its node.
pub(crate) const KEY_BYTES_MAX: usize = 4 << 10;

/// Message that was dropped.
#[derive(Debug, Error)]
pub(crate) enum CoolingMessageError {
    #[error("the message is empty")]
    Empty,
    #[error("the message has {0} bytes: the maximum is {MESSAGE_BYTES_MAX}")]
    TooLong(usize),
    #[error("the message has version {0}: this node reads version {VERSION}")]
    OtherVersion(u8),
    #[error("the message is not a list of states: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("the message has {0} states: the maximum is {STATES_PER_MESSAGE_MAX}")]
    TooMany(usize),
    #[error("a key has {0} bytes: the maximum is {KEY_BYTES_MAX}")]
    LongKey(usize),
}

pub(crate) fn key_bytes(key: &CoolingKey) -> usize {
    key.secret_id.len() + key.model.len()
}

/// Returns messages with all of the states whose keys are short enough.
pub(crate) fn encode(states: &[(CoolingKey, CoolingState)]) -> Vec<Bytes> {
    let mut messages = Vec::new();
    let (mut message, mut count) = (Vec::new(), 0);
    for state in states.iter().filter(|(key, _)| key_bytes(key) <= KEY_BYTES_MAX) {
        let text = serde_json::to_vec(state).expect("a state has text keys and numbers only");
        // The bracket at the end has to fit too.
        let is_full = count == STATES_PER_MESSAGE_MAX || message.len() + 1 + text.len() + 1 > MESSAGE_BYTES_MAX;
        if is_full && count > 0 {
            messages.push(finished(&mut message));
            count = 0;
        }
        message.extend_from_slice(if count == 0 { &[VERSION, b'['] } else { b"," });
        message.extend(text);
        count += 1;
    }
    if count > 0 {
        messages.push(finished(&mut message));
    }
    messages
}

fn finished(message: &mut Vec<u8>) -> Bytes {
    message.push(b']');
    Bytes::from(std::mem::take(message))
}

pub(crate) fn decode(message: &[u8]) -> Result<Vec<(CoolingKey, CoolingState)>, CoolingMessageError> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(CoolingMessageError::TooLong(message.len()));
    }
    let states: Vec<(CoolingKey, CoolingState)> = match message.split_first() {
        None => return Err(CoolingMessageError::Empty),
        Some((&VERSION, states)) => serde_json::from_slice(states)?,
        Some((other, _)) => return Err(CoolingMessageError::OtherVersion(*other)),
    };
    if states.len() > STATES_PER_MESSAGE_MAX {
        return Err(CoolingMessageError::TooMany(states.len()));
    }
    match states.iter().map(|(key, _)| key_bytes(key)).find(|bytes| *bytes > KEY_BYTES_MAX) {
        Some(bytes) => Err(CoolingMessageError::LongKey(bytes)),
        None => Ok(states),
    }
}

#[cfg(test)]
mod tests {
    use assay_node_models::cooling::{CoolingTable, UpstreamFailure};

    use super::*;

    fn states(number: usize, model_bytes: usize) -> Vec<(CoolingKey, CoolingState)> {
        let mut table = CoolingTable::new();
        for at in 0..number {
            let key = CoolingKey { secret_id: at.to_string(), model: "m".repeat(model_bytes) };
            table.fail(&key, 1_795_737_600_000, 1, UpstreamFailure::Unavailable);
        }
        let mut states: Vec<_> = table.states().map(|(key, state)| (key.clone(), state.clone())).collect();
        states.sort_by(|(one, _), (other, _)| one.cmp(other));
        states
    }

    #[test]
    fn what_is_sent_is_what_is_read() {
        for (number, model_bytes) in [(0, 1), (1, 1), (500, 1), (501, 1), (2_000, 10), (100, 4_000)] {
            let sent = states(number, model_bytes);
            let messages = encode(&sent);
            assert!(messages.iter().all(|message| message.len() <= MESSAGE_BYTES_MAX));
            let read: Vec<_> = messages.iter().flat_map(|message| decode(message).expect("is readable")).collect();
            assert_eq!(read, sent, "{number} {model_bytes}");
        }
    }

    #[test]
    fn a_key_that_is_too_long_is_not_sent() {
        let long = states(1, KEY_BYTES_MAX);
        assert_eq!(encode(&long), Vec::<Bytes>::new());
    }

    #[test]
    fn what_is_of_another_form_is_not_read() {
        let message = encode(&states(3, 5)).remove(0);
        for length in 0..message.len() {
            assert!(decode(&message[..length]).is_err(), "{length}");
        }
        let newer = [&[VERSION + 1], &message[1..]].concat();
        let long = vec![VERSION; MESSAGE_BYTES_MAX + 1];
        let many = [&[VERSION, b'['][..], "0,".repeat(10).as_bytes(), b"0]"].concat();
        for (bytes, expected) in
            [(&newer[..], "version 2"), (&long, "65537 bytes"), (&many, "not a list of states"), (b"", "is empty")]
        {
            let why = decode(bytes).expect_err("is refused").to_string();
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn a_message_beyond_the_bounds_is_not_read() {
        let text = |states: &[(CoolingKey, CoolingState)]| {
            [&[VERSION], serde_json::to_vec(states).expect("JSON").as_slice()].concat()
        };
        let many = states(STATES_PER_MESSAGE_MAX + 1, 1);
        assert!(matches!(decode(&text(&many)), Err(CoolingMessageError::TooMany(_) | CoolingMessageError::TooLong(_))));
        assert!(matches!(decode(&text(&states(1, KEY_BYTES_MAX))), Err(CoolingMessageError::LongKey(_))));
    }
}
