//! Headers and path of every call.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use assay_storage_model::{ClusterId, GroupId, NodeId, ReplicaId};
use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, TE};

use crate::call::{Address, Processes};
use crate::refusal::{Refusal, RefusalCode};

const CLUSTER: HeaderName = HeaderName::from_static("assay-cluster");
const FROM: HeaderName = HeaderName::from_static("assay-from");
const TO: HeaderName = HeaderName::from_static("assay-to");
const ADDRESS: HeaderName = HeaderName::from_static("assay-address");
/// Processes of sender and receiver. Absent in calls of programs before 0.5.
const PROCESSES: HeaderName = HeaderName::from_static("assay-processes");
const WITHIN: HeaderName = HeaderName::from_static("assay-within-us");
const BYTES: HeaderName = HeaderName::from_static("assay-bytes");

/// Maximum time limit of a call. Longer ones are reduced to it.
pub(crate) const WITHIN_MAX: Duration = Duration::from_secs(3600);

/// First part of every path. A change that older peers cannot read gets another number, and both versions are served.
const PREFIX: &str = "/assay.peer.v1/";

/// Form of a call to a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Call,
    Stream,
    /// First call on each new connection, with which the caller verifies the connection before it sends anything else.
    Greeting,
}

impl Form {
    pub(crate) fn path(self, service: &str) -> String {
        let form = match self {
            Form::Call => "call",
            Form::Stream => "stream",
            Form::Greeting => "greeting",
        };
        format!("{PREFIX}{form}/{service}")
    }

    /// Parses the form and service of a path.
    pub(crate) fn read(path: &str) -> Option<(Form, &str)> {
        let (form, service) = path.strip_prefix(PREFIX)?.split_once('/')?;
        match form {
            "call" => Some((Form::Call, service)),
            "stream" => Some((Form::Stream, service)),
            "greeting" => Some((Form::Greeting, service)),
            _ => None,
        }
    }
}

/// Headers that are equal for all calls of a connection. A joining node knows no node numbers yet.
pub(crate) fn lasting(cluster: ClusterId, from: Option<NodeId>, to: Option<NodeId>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    headers.insert(CLUSTER, value_of(cluster));
    if let Some(from) = from {
        headers.insert(FROM, HeaderValue::from(from.0));
    }
    if let Some(to) = to {
        headers.insert(TO, HeaderValue::from(to.0));
    }
    headers
}

/// Headers that differ between calls.
pub(crate) fn add(
    headers: &mut HeaderMap,
    address: Option<Address>,
    processes: Option<Processes>,
    within: Duration,
    bytes: usize,
) {
    if let Some(processes) = processes {
        headers.insert(PROCESSES, value_of(ProcessesText(processes)));
    }
    if let Some(Address { group, from, to }) = address {
        headers.insert(ADDRESS, value_of(format_args!("{group}.{from}.{to}")));
    }
    let mut within = HeaderValue::from(u64::try_from(within.as_micros()).unwrap_or(u64::MAX));
    let mut bytes = HeaderValue::from(bytes);
    // These values never repeat, so they should not occupy the header table of both sides.
    within.set_sensitive(true);
    bytes.set_sensitive(true);
    headers.insert(WITHIN, within);
    headers.insert(BYTES, bytes);
}

fn value_of(value: impl Display) -> HeaderValue {
    HeaderValue::from_maybe_shared(bytes::Bytes::from(value.to_string())).expect("digits, letters, dots and dashes")
}

/// Headers of a received call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heading {
    pub(crate) cluster: ClusterId,
    pub(crate) from: Option<NodeId>,
    pub(crate) to: Option<NodeId>,
    pub(crate) address: Option<Address>,
    pub(crate) processes: Option<Processes>,
    pub(crate) within: Duration,
    pub(crate) bytes: usize,
}

impl Heading {
    pub(crate) fn read(headers: &HeaderMap) -> Result<Heading, Refusal> {
        let node = |name| Ok(number(headers, name)?.map(NodeId));
        let within = needed(number(headers, &WITHIN)?, &WITHIN)?;
        Ok(Heading {
            cluster: needed(parsed(headers, &CLUSTER)?, &CLUSTER)?,
            from: node(&FROM)?,
            to: node(&TO)?,
            address: parsed::<AddressText>(headers, &ADDRESS)?.map(|text| text.0),
            processes: parsed::<ProcessesText>(headers, &PROCESSES)?.map(|text| text.0),
            within: Duration::from_micros(within).min(WITHIN_MAX),
            bytes: needed(parsed(headers, &BYTES)?, &BYTES)?,
        })
    }
}

struct AddressText(Address);

impl FromStr for AddressText {
    type Err = ();

    fn from_str(text: &str) -> Result<AddressText, ()> {
        let mut numbers = text.split('.').map(|part| part.parse::<u64>().map_err(|_| ()));
        let mut next = || numbers.next().ok_or(())?;
        let address = Address { group: GroupId(next()?), from: ReplicaId(next()?), to: ReplicaId(next()?) };
        if numbers.next().is_some() { Err(()) } else { Ok(AddressText(address)) }
    }
}

/// Parses `<from>.<to>` in hexadecimal digits. The second number is empty if the receiver is unknown.
struct ProcessesText(Processes);

impl Display for ProcessesText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}.", self.0.from)?;
        self.0.to.map_or(Ok(()), |to| write!(f, "{to:x}"))
    }
}

impl FromStr for ProcessesText {
    type Err = ();

    fn from_str(text: &str) -> Result<ProcessesText, ()> {
        let (from, to) = text.split_once('.').ok_or(())?;
        let number = |digits: &str| u128::from_str_radix(digits, 16).map_err(drop);
        let to = (!to.is_empty()).then(|| number(to)).transpose()?;
        Ok(ProcessesText(Processes { from: number(from)?, to }))
    }
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Result<Option<u64>, Refusal> {
    parsed(headers, name)
}

fn parsed<T: FromStr>(headers: &HeaderMap, name: &HeaderName) -> Result<Option<T>, Refusal> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let read = value.to_str().ok().and_then(|text| text.parse().ok());
    read.map(Some).ok_or_else(|| bad(format!("the header {name} cannot be read")))
}

fn needed<T>(value: Option<T>, name: &HeaderName) -> Result<T, Refusal> {
    value.ok_or_else(|| bad(format!("the header {name} is missing")))
}

fn bad(why: String) -> Refusal {
    Refusal::new(RefusalCode::BadRequest, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> ClusterId {
        "0f8fad5b-d9cb-469f-a165-70867728950e".parse().expect("an id")
    }

    #[test]
    fn a_heading_survives_its_headers() {
        let address = Address { group: GroupId(18), from: ReplicaId(5), to: ReplicaId(u64::MAX) };
        let known = Processes { from: u128::MAX, to: Some(7) };
        let new = Processes { from: 1, to: None };
        for (from, to, address, processes) in [
            (Some(NodeId(1)), Some(NodeId(2)), Some(address), Some(known)),
            (Some(NodeId(1)), Some(NodeId(2)), Some(address), Some(new)),
            (None, None, None, None),
        ] {
            let mut headers = lasting(cluster(), from, to);
            add(&mut headers, address, processes, Duration::from_micros(1_500_001), 77);
            let within = Duration::from_micros(1_500_001);
            let heading = Heading { cluster: cluster(), from, to, address, processes, within, bytes: 77 };
            assert_eq!(Heading::read(&headers), Ok(heading));
        }
    }

    #[test]
    fn what_is_missing_or_cannot_be_read_is_named() {
        let why = |change: &dyn Fn(&mut HeaderMap)| {
            let mut headers = lasting(cluster(), Some(NodeId(1)), Some(NodeId(2)));
            add(&mut headers, None, None, Duration::from_secs(1), 0);
            change(&mut headers);
            Heading::read(&headers).map_err(|refusal| (refusal.code, refusal.why))
        };
        let refused = |why: &str| Err((RefusalCode::BadRequest, why.to_owned()));
        for name in [CLUSTER, WITHIN, BYTES] {
            let missing = why(&|headers| drop(headers.remove(&name)));
            assert_eq!(missing, refused(&format!("the header {name} is missing")));
        }
        for (name, value) in [
            (CLUSTER, "x"),
            (FROM, "-1"),
            (TO, ""),
            (ADDRESS, "1.2"),
            (ADDRESS, "1.2.3.4"),
            (PROCESSES, "7"),
            (PROCESSES, "x."),
            (BYTES, "9 "),
        ] {
            let wrong = why(&|headers| drop(headers.insert(&name, HeaderValue::from_static(value))));
            assert_eq!(wrong, refused(&format!("the header {name} cannot be read")));
        }
        let long = why(&|headers| drop(headers.insert(WITHIN, HeaderValue::from(u64::MAX))));
        assert_eq!(long.map(|heading| heading.within), Ok(WITHIN_MAX));
    }

    #[test]
    fn a_path_says_form_and_service() {
        for form in [Form::Call, Form::Stream, Form::Greeting] {
            assert_eq!(Form::read(&form.path("raft.append")), Some((form, "raft.append")));
        }
        for path in ["/", "/assay.peer.v2/call/x", "/assay.peer.v1/call", "/assay.peer.v1/talk/x"] {
            assert_eq!(Form::read(path), None, "{path}");
        }
    }
}
