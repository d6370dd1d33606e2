//! What is written down of one job, and how: a first line with the version, the record as one line of JSON, and a line with
//! the checksum of both. Pure.
//!
//! ```text
//! assay query 1
//! {"owner":{...},"made":...,"question":{...},...}
//! sum 89ab12cd                                  CRC32C of the lines above
//! ```

use assay_node_engine::Position;
use assay_storage_model::{NodeId, OrgId, ShardId, Xact};
use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};

use super::pages::Page;
use crate::{Home, Question};

const FIRST_LINE: &str = "assay query 1\n";
/// A request is a small body, homes are a thousand, and pages `PAGES_MAX`; as text and escaped.
pub(crate) const RECORD_BYTES_MAX: u64 = 16 << 20;
/// A job is named by a UUID whose last bytes say which node has it.
const NODE_BYTES: usize = 6;

/// Whose a job is: who may see it is who may read all of its objects in that organization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub org: OrgId,
    /// Who asked.
    pub user: Uuid,
    pub homes: Vec<Home>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub owner: Owner,
    /// Microseconds since the epoch, as all times here.
    pub made: i64,
    pub question: Question,
    /// Where the page before ended, of a query that has a cursor.
    pub after: Option<(u64, u64, Option<u32>, Option<u64>)>,
    pub seconds: Option<u64>,
    /// Rows of a page of results where its reader does not say.
    pub batch: Option<u64>,
    /// At which each shard is read, from the first rows on: a run after another answers the same.
    pub versions: Vec<(ShardId, Xact)>,
    /// Runs that began and came to no end that was written down.
    pub starts: u32,
    pub end: Option<End>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    Succeeded { at: i64, pages: Vec<Page> },
    Failed { at: i64, why: String },
}

impl Record {
    pub fn after(&self) -> Option<Position> {
        self.after.map(|(place, xact, object, write)| Position { place, xact, object, write })
    }

    pub fn encode(&self) -> String {
        let json = serde_json::to_string(self).expect("plain data encodes");
        let body = format!("{FIRST_LINE}{json}\n");
        let sum = crc32c::crc32c(body.as_bytes());
        format!("{body}sum {sum:08x}\n")
    }

    /// An error says what is wrong with the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Record, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is no text".to_owned())?;
        let at = text.rfind("sum ").ok_or("it has no checksum")?;
        let (body, sum) = text.split_at(at);
        if sum != format!("sum {:08x}\n", crc32c::crc32c(body.as_bytes())) {
            return Err("its lines do not match their checksum".into());
        }
        let json = body.strip_prefix(FIRST_LINE).ok_or("it was written by another version of this program")?;
        serde_json::from_str(json).map_err(|why| format!("its record does not read: {why}"))
    }
}

/// The name of a new job on this node.
pub(crate) fn name(node: NodeId, random: Uuid) -> Uuid {
    let mut bytes = random.into_bytes();
    bytes[16 - NODE_BYTES..].copy_from_slice(&node.0.to_be_bytes()[8 - NODE_BYTES..]);
    // Version 8: it means what its maker says.
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// The node that has the job of this name; none where it names no job at all.
pub(crate) fn node_of(name: Uuid) -> Option<NodeId> {
    let mut node = [0; 8];
    node[8 - NODE_BYTES..].copy_from_slice(&name.as_bytes()[16 - NODE_BYTES..]);
    (name.get_version_num() == 8).then(|| NodeId(u64::from_be_bytes(node)))
}

#[cfg(test)]
pub(crate) mod tests {
    use assay_storage_model::{ObjectKey, ObjectKind};
    use serde_json::json;

    use super::*;

    pub fn record(org: u128) -> Record {
        let org = OrgId(Uuid::from_u128(org));
        let object = ObjectKey::new(org, ObjectKind::ProjectLogs, Uuid::from_u128(2));
        let home = Home { object, org, project_id: Uuid::from_u128(2) };
        Record {
            owner: Owner { org, user: Uuid::from_u128(3), homes: vec![home] },
            made: 1_000,
            question: Question { query: json!("select: *\n| from: project_logs('p')"), now: 7, ..Question::default() },
            after: Some((1, 2, Some(3), None)),
            seconds: Some(5),
            batch: None,
            versions: vec![(ShardId(3), Xact(9))],
            starts: 1,
            end: Some(End::Succeeded { at: 5, pages: vec![Page { rows: 2, bytes: 10, sum: 3 }] }),
        }
    }

    #[test]
    fn a_record_reads_back_and_every_changed_byte_is_seen() {
        let text = record(1).encode();
        assert_eq!(Record::decode(text.as_bytes()), Ok(record(1)));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(Record::decode(&bytes).is_err(), "byte {at}");
            assert!(Record::decode(&text.as_bytes()[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_record_of_another_version_says_so() {
        let body = "assay query 2\n{}\n";
        let text = format!("{body}sum {:08x}\n", crc32c::crc32c(body.as_bytes()));
        assert!(Record::decode(text.as_bytes()).expect_err("unknown").contains("another version"));
    }

    #[test]
    fn a_name_says_which_node_has_the_job() {
        for node in [1, 3, 10_004, (1 << 48) - 1] {
            let (first, second) = (name(NodeId(node), Uuid::new_v4()), name(NodeId(node), Uuid::new_v4()));
            assert_eq!((node_of(first), node_of(second)), (Some(NodeId(node)), Some(NodeId(node))));
            assert_ne!(first, second);
        }
        assert_eq!(node_of(Uuid::new_v4()), None);
    }
}
