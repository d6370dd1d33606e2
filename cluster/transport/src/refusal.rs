//! Refusals by the other side, and whether the call may have taken effect.

use std::fmt;

use bytes::Bytes;

/// Reason code of a refusal. The numbers are sent to other nodes, so they are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RefusalCode {
    /// The call is meant for another cluster.
    WrongCluster = 1,
    /// The call is meant for another node.
    WrongReceiver = 2,
    /// The caller's claimed identity is wrong, or a required one is missing.
    NotAuthenticated = 3,
    /// There is no such service here, or not in this form.
    NoService = 4,
    /// The addressed replica is not on this node.
    NotHere = 5,
    /// This replica does not lead. The detail names the leader if it is known.
    NotLeader = 6,
    /// Too many concurrent requests, so a retry may succeed.
    Busy = 7,
    /// The disk is full.
    NoSpace = 8,
    /// The node is starting or stopping.
    Unavailable = 9,
    /// The request cannot be decoded, or is larger than allowed.
    BadRequest = 10,
    /// The outcome is unknown to the receiver.
    Unknown = 11,
    /// An internal failure, including a panic. Unknown codes of later versions also map to it.
    Failed = 12,
}

impl RefusalCode {
    pub const ALL: [RefusalCode; 12] = [
        RefusalCode::WrongCluster,
        RefusalCode::WrongReceiver,
        RefusalCode::NotAuthenticated,
        RefusalCode::NoService,
        RefusalCode::NotHere,
        RefusalCode::NotLeader,
        RefusalCode::Busy,
        RefusalCode::NoSpace,
        RefusalCode::Unavailable,
        RefusalCode::BadRequest,
        RefusalCode::Unknown,
        RefusalCode::Failed,
    ];

    pub(crate) fn from_byte(byte: u8) -> RefusalCode {
        Self::ALL.into_iter().find(|code| *code as u8 == byte).unwrap_or(RefusalCode::Failed)
    }

    /// Returns whether the call may have taken effect. With all other codes it certainly has not.
    pub fn may_have_been_done(self) -> bool {
        matches!(self, RefusalCode::Unknown | RefusalCode::Failed)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: RefusalCode,
    /// Reason for people, cut to [`Refusal::WHY_BYTES_MAX`] for sending.
    pub why: String,
    /// Detail for the calling program. Its meaning depends on the service and the code.
    pub detail: Bytes,
}

impl Refusal {
    pub const WHY_BYTES_MAX: usize = 1024;

    pub fn new(code: RefusalCode, why: impl Into<String>) -> Refusal {
        Refusal { code, why: why.into(), detail: Bytes::new() }
    }

    pub fn with_detail(self, detail: Bytes) -> Refusal {
        Refusal { detail, ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.code, self.why)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_survives_its_byte_and_a_newer_one_is_a_failure() {
        for code in RefusalCode::ALL {
            assert_eq!(RefusalCode::from_byte(code as u8), code);
        }
        for byte in [0, 13, 255] {
            assert_eq!(RefusalCode::from_byte(byte), RefusalCode::Failed);
        }
    }

    #[test]
    fn only_two_codes_leave_it_open_whether_it_was_done() {
        let open: Vec<_> = RefusalCode::ALL.into_iter().filter(|code| code.may_have_been_done()).collect();
        assert_eq!(open, [RefusalCode::Unknown, RefusalCode::Failed]);
    }
}
