//! Record of a job on disk: a line with the version, a line of JSON, and a line with their checksum. Pure.
//!
//! ```text
//! assay query 1
//! {"owner":{...},"made":...,"question":{...},...}
//! sum 89ab12cd                                  CRC32C of the lines above
//! ```

use std::collections::BTreeMap;

use assay_node_engine::Position;
use assay_storage_model::{NodeId, OrgId, ShardId, Xact};
use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};

use super::pages::Page;
use crate::{Home, Masks, Question};

const FIRST_LINE: &str = "assay query 1\n";
/// Upper bound of the bytes of a record: a small request body, a thousand homes and `PAGES_MAX` pages as escaped text.
pub(crate) const RECORD_BYTES_MAX: u64 = 16 << 20;
/// Number of bytes at the end of a job's name that hold the number of its node.
const NODE_BYTES: usize = 6;

/// Owner of a job. A reader must be in this organization and be allowed to read all of its objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobOwner {
    pub org: OrgId,
    /// User who made the request.
    pub user: Uuid,
    pub homes: Vec<Home>,
    /// Review masks of the user. They apply to other readers as well.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub masks: Masks,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobRecord {
    pub owner: JobOwner,
    /// Time of the request, in microseconds since the epoch like all times here.
    pub made: i64,
    pub question: Question,
    /// Position where the previous page ended, if the query has a cursor.
    pub after: Option<(u64, u64, Option<u32>, Option<u64>)>,
    pub seconds: Option<u64>,
    /// Default number of rows in a page of results.
    pub batch: Option<u64>,
    /// Version at which each shard is read, so that every run returns the same rows.
    pub versions: Vec<(ShardId, Xact)>,
    /// Number of started runs without a recorded end.
    pub starts: u32,
    pub end: Option<JobEnd>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobEnd {
    Succeeded { at: i64, pages: Vec<Page> },
    Failed { at: i64, why: String },
}

impl JobRecord {
    pub fn after(&self) -> Option<Position> {
        self.after.map(|(place, xact, object, write)| Position { place, xact, object, write })
    }

    pub fn encode(&self) -> String {
        let json = serde_json::to_string(self).expect("plain data encodes");
        let body = format!("{FIRST_LINE}{json}\n");
        let sum = crc32c::crc32c(body.as_bytes());
        format!("{body}sum {sum:08x}\n")
    }

    /// Decodes a record. An error describes the damage.
    pub fn decode(bytes: &[u8]) -> Result<JobRecord, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
        let at = text.rfind("sum ").ok_or("it has no checksum")?;
        let (body, sum) = text.split_at(at);
        if sum != format!("sum {:08x}\n", crc32c::crc32c(body.as_bytes())) {
            return Err("its lines do not match their checksum".into());
        }
        let json = body.strip_prefix(FIRST_LINE).ok_or("it was written by another version of this program")?;
        serde_json::from_str(json).map_err(|why| format!("its record cannot be decoded: {why}"))
    }
}

/// Returns the name of a new job on this node.
pub(crate) fn name(node: NodeId, random: Uuid) -> Uuid {
    let mut bytes = random.into_bytes();
    bytes[16 - NODE_BYTES..].copy_from_slice(&node.0.to_be_bytes()[8 - NODE_BYTES..]);
    // Version 8 is for UUIDs with custom content.
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// Returns the node that has the job, or `None` if the UUID is not the name of a job.
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

    pub fn record(org: u128) -> JobRecord {
        let org = OrgId(Uuid::from_u128(org));
        let object = ObjectKey::new(org, ObjectKind::ProjectLogs, Uuid::from_u128(2));
        let home = Home { object, org, project_id: Uuid::from_u128(2) };
        JobRecord {
            owner: JobOwner { org, user: Uuid::from_u128(3), homes: vec![home], masks: Masks::new() },
            made: 1_000,
            question: Question { query: json!("select: *\n| from: project_logs('p')"), now: 7, ..Question::default() },
            after: Some((1, 2, Some(3), None)),
            seconds: Some(5),
            batch: None,
            versions: vec![(ShardId(3), Xact(9))],
            starts: 1,
            end: Some(JobEnd::Succeeded { at: 5, pages: vec![Page { rows: 2, bytes: 10, sum: 3 }] }),
        }
    }

    #[test]
    fn a_record_reads_back_and_every_changed_byte_is_seen() {
        let text = record(1).encode();
        assert_eq!(JobRecord::decode(text.as_bytes()), Ok(record(1)));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(JobRecord::decode(&bytes).is_err(), "byte {at}");
            assert!(JobRecord::decode(&text.as_bytes()[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_record_of_another_version_says_so() {
        let body = "assay query 2\n{}\n";
        let text = format!("{body}sum {:08x}\n", crc32c::crc32c(body.as_bytes()));
        assert!(JobRecord::decode(text.as_bytes()).expect_err("unknown").contains("another version"));
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
