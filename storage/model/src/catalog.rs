//! Commands, records and outcomes of the catalog: records of every kind, their unique keys, and the map of groups,
//! replicas and nodes.
//!
//! The bytes of commands are frozen: `version, tag, body`, like the commands of a shard. Times and ids come in the
//! command, so that applying it uses no clock or randomness. A repeated command needs no request id: it names the
//! expected revision and finds that it has changed.
//!
//! | version | date | change |
//! |---|---|---|
//! | 1 | 2026-11-21 | first |

use std::fmt;

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::command::DecodeError;
use crate::ids::{GroupId, NodeId, OrgId, ReplicaId};

pub const CATALOG_COMMAND_VERSION: u8 = 1;
pub const RECORD_VERSION: u8 = 1;
pub const SHARD_MAP_VERSION: u8 = 1;

/// One record's body.
pub const RECORD_BODY_BYTES_MAX: usize = 1 << 20;
/// Unique keys of one record.
pub const UNIQUE_KEYS_MAX: usize = 16;
/// One unique key: its scope and its name together.
pub const UNIQUE_KEY_BYTES_MAX: usize = 2048;
/// One catalog command, frame included: a body, its keys and a kilobyte of the rest.
pub const CATALOG_COMMAND_BYTES_MAX: usize = RECORD_BODY_BYTES_MAX + UNIQUE_KEYS_MAX * UNIQUE_KEY_BYTES_MAX + (1 << 10);
/// Shards of a cluster, fixed at init.
pub const SHARDS_MIN: usize = 4;
pub const SHARDS_MAX: usize = 256;
/// Replicas of one group. Every node has one of the catalog, most of them without a vote.
pub const REPLICAS_PER_GROUP_MAX: usize = 255;
/// Ids given by one command.
pub const IDS_GIVEN_MAX: u32 = 10_000;

/// Limit on what a decoder may allocate. It includes the in-memory size of vectors, so it is above any one encoding.
const DECODE_BYTES_MAX: usize = 16 << 20;

const TAG_PUT: u8 = 1;
const TAG_DELETE: u8 = 2;
const TAG_SET_SHARD_MAP: u8 = 3;
const TAG_CHANGE_REPLICAS: u8 = 4;
const TAG_GIVE_IDS: u8 = 5;

/// Kind of a record. The numbers are on disk: never reuse one. A number and not an enum, so that a replica applies
/// kinds of a newer version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordKind(pub u16);

macro_rules! record_kinds {
    ($($constant:ident = $number:literal $name:literal),+ $(,)?) => {
        impl RecordKind {
            $(pub const $constant: RecordKind = RecordKind($number);)+

            /// All kinds known to this version, by number.
            pub const ALL: &'static [RecordKind] = &[$(RecordKind($number)),+];

            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($name),)+
                    _ => None,
                }
            }
        }
    };
}

record_kinds! {
    // who
    ORGANIZATION = 1 "organization",
    USER = 2 "user",
    ORG_MEMBER = 3 "org_member",
    GROUP = 4 "group",
    ROLE = 5 "role",
    ACL = 6 "acl",
    API_KEY = 7 "api_key",
    SERVICE_TOKEN = 8 "service_token",
    // of a person, by the word of an OpenID provider
    LOGIN = 9 "login",
    // of the gateway, issued by another credential
    TEMPORARY_CREDENTIAL = 10 "temporary_credential",
    // a browser that another credential signed in
    CONSOLE_SESSION = 11 "console_session",
    // what owns rows, and what stands around it
    PROJECT = 32 "project",
    PROJECT_GROUP = 33 "project_group",
    EXPERIMENT = 34 "experiment",
    DATASET = 35 "dataset",
    PLAYGROUND = 36 "prompt_session",
    VIEW = 37 "view",
    PROJECT_SCORE = 38 "project_score",
    PROJECT_TAG = 39 "project_tag",
    SPAN_IFRAME = 40 "span_iframe",
    AUTOMATION = 41 "automation",
    AI_SECRET = 42 "ai_secret",
    ENV_VAR = 43 "env_var",
    MCP_SERVER = 44 "mcp_server",
    ENVIRONMENT = 45 "environment",
    AGENT = 46 "agent",
    DATASET_SNAPSHOT = 47 "dataset_snapshot",
    ENVIRONMENT_OBJECT = 48 "environment_object",
    // a prompt or a function: its name and where its rows are
    PROMPT = 49 "prompt",
    // a key of an organization's own, under the master key
    DATA_KEY = 50 "data_key",
    ORG_AUTOMATION = 51 "org_automation",
    SIMULATED_USER = 52 "simulated_user",
    // an object whose old rows are being deleted, until they have left its history
    EXPIRY = 53 "expiry",
    CUSTOM_COLUMN = 54 "custom_column",
    GATEWAY_BUDGET = 55 "gateway_budget",
    // of a budget: what its window has spent, and the reservations of calls under way
    BUDGET_LEDGER = 56 "budget_ledger",
    // an evaluation: its request, its progress, and the lease of the node that runs it
    EVAL_JOB = 57 "eval_job",
    // the executor of online scoring for the log of a project: its position, and the usage of caps
    ONLINE_SCORING = 58 "online_scoring",
    // an organization that was deleted, until nothing of it is left
    ORGANIZATION_DELETION = 59 "organization_deletion",
    // the cluster itself
    NODE = 128 "node",
    JOIN_TOKEN = 129 "join_token",
    CLUSTER_SETTING = 130 "cluster_setting",
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "kind {}", self.0),
        }
    }
}

impl fmt::Debug for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Unique key: at most one record of the whole catalog has it. The scope names kind and context, as in
/// `project.name/<organization id>`; the name is the client's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Deserialize)]
pub struct UniqueKey {
    pub scope: String,
    pub name: String,
}

impl UniqueKey {
    pub fn new(scope: impl Into<String>, name: impl Into<String>) -> UniqueKey {
        UniqueKey { scope: scope.into(), name: name.into() }
    }
}

/// One thing the catalog keeps.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Record {
    pub kind: RecordKind,
    #[bincode(with_serde)]
    pub id: Uuid,
    /// Tenant of the record; none for records above tenants (users, nodes, organizations).
    #[bincode(with_serde)]
    pub org: Option<OrgId>,
    /// The catalog's version when the record last changed: never the same twice, also not after a delete.
    pub revision: u64,
    pub keys: Vec<UniqueKey>,
    /// JSON text.
    pub body: Vec<u8>,
    /// Microseconds since the epoch, UTC, from the command that made the record.
    pub created: i64,
    /// The same, of the last command that changed it.
    pub changed: i64,
}

impl Record {
    pub fn encode(&self) -> Vec<u8> {
        encode_versioned(RECORD_VERSION, self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Record, DecodeError> {
        decode_versioned(RECORD_VERSION, bytes)
    }
}

/// Precondition on a record for a command to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Expect {
    Absent,
    Revision(u64),
    Any,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogCommand {
    Put(PutRecord),
    Delete(DeleteRecord),
    /// Once, at init: fixes the number of shards.
    SetShardMap(ShardMap),
    ChangeReplicas(ChangeReplicas),
    GiveIds(GiveIds),
}

/// Makes or changes a record. Where one of its unique keys is taken by another record, the outcome names that
/// record and nothing changes: create-or-get in one round.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PutRecord {
    pub kind: RecordKind,
    #[bincode(with_serde)]
    pub id: Uuid,
    #[bincode(with_serde)]
    pub org: Option<OrgId>,
    pub expect: Expect,
    pub keys: Vec<UniqueKey>,
    pub body: Vec<u8>,
    /// Microseconds since the epoch, UTC.
    pub at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct DeleteRecord {
    pub kind: RecordKind,
    #[bincode(with_serde)]
    pub id: Uuid,
    pub expect: Expect,
}

/// One copy of a group and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode, Serialize, Deserialize)]
pub struct Replica {
    #[bincode(with_serde)]
    pub id: ReplicaId,
    #[bincode(with_serde)]
    pub node: NodeId,
}

/// The replicas of one group; the epoch counts its changes.
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize)]
pub struct Members {
    pub epoch: u64,
    pub replicas: Vec<Replica>,
}

/// Map of replicas to nodes: for the catalog's own group, and for each shard.
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize, Deserialize)]
pub struct ShardMap {
    pub catalog: Members,
    pub shards: Vec<Members>,
}

impl ShardMap {
    pub fn encode(&self) -> Vec<u8> {
        encode_versioned(SHARD_MAP_VERSION, self)
    }

    pub fn decode(bytes: &[u8]) -> Result<ShardMap, DecodeError> {
        decode_versioned(SHARD_MAP_VERSION, bytes)
    }

    pub fn group(&self, group: GroupId) -> Option<&Members> {
        match group.shard() {
            Some(shard) => self.shards.get(usize::from(shard.0)),
            None => (group == GroupId::CATALOG).then_some(&self.catalog),
        }
    }

    pub fn group_mut(&mut self, group: GroupId) -> Option<&mut Members> {
        match group.shard() {
            Some(shard) => self.shards.get_mut(usize::from(shard.0)),
            None => (group == GroupId::CATALOG).then_some(&mut self.catalog),
        }
    }

    /// The catalog's replicas first, then those of each shard.
    pub fn replicas(&self) -> impl Iterator<Item = &Replica> {
        std::iter::once(&self.catalog).chain(&self.shards).flat_map(|members| &members.replicas)
    }
}

/// Replaces the replicas of one group. A replica that is new here has an id above every one placed before.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ChangeReplicas {
    #[bincode(with_serde)]
    pub group: GroupId,
    pub expect_epoch: u64,
    pub replicas: Vec<Replica>,
}

/// Reserves ids that are never given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct GiveIds {
    pub nodes: u32,
    pub replicas: u32,
}

impl CatalogCommand {
    /// Returns the time in microseconds at which the command was given, if it has one.
    pub fn at(&self) -> Option<i64> {
        match self {
            CatalogCommand::Put(put) => Some(put.at),
            _ => None,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        match self {
            CatalogCommand::Put(body) => encode_command(TAG_PUT, body),
            CatalogCommand::Delete(body) => encode_command(TAG_DELETE, body),
            CatalogCommand::SetShardMap(body) => encode_command(TAG_SET_SHARD_MAP, body),
            CatalogCommand::ChangeReplicas(body) => encode_command(TAG_CHANGE_REPLICAS, body),
            CatalogCommand::GiveIds(body) => encode_command(TAG_GIVE_IDS, body),
        }
    }

    pub fn decode(bytes: &[u8]) -> Result<CatalogCommand, DecodeError> {
        let (version, rest) = bytes.split_first().ok_or_else(|| DecodeError::Body("no bytes".into()))?;
        check_version(*version, CATALOG_COMMAND_VERSION)?;
        let (tag, body) = rest.split_first().ok_or_else(|| DecodeError::Body("no tag".into()))?;
        match *tag {
            TAG_PUT => decode_body(body).map(CatalogCommand::Put),
            TAG_DELETE => decode_body(body).map(CatalogCommand::Delete),
            TAG_SET_SHARD_MAP => decode_body(body).map(CatalogCommand::SetShardMap),
            TAG_CHANGE_REPLICAS => decode_body(body).map(CatalogCommand::ChangeReplicas),
            TAG_GIVE_IDS => decode_body(body).map(CatalogCommand::GiveIds),
            unknown => Err(DecodeError::Tag(unknown)),
        }
    }
}

/// Outcome of one catalog command. Never stored; replicas compute it again. Everything but `Put`, `Deleted`, `MapSet`,
/// `ReplicasChanged` and `IdsGiven` means that nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "catalog", rename_all = "snake_case")]
pub enum CatalogOutcome {
    Put {
        revision: u64,
        /// Made by this command; else it was there and changed.
        made: bool,
    },
    Deleted {
        version: u64,
    },
    /// The precondition on the record does not hold: its revision is this one, or it is absent.
    Stale {
        revision: Option<u64>,
    },
    /// Another record has this unique key.
    Taken {
        key: UniqueKey,
        kind: RecordKind,
        id: Uuid,
    },
    MapSet {
        version: u64,
    },
    /// The shard map was set before and is set only once.
    MapWasSet,
    ReplicasChanged {
        epoch: u64,
    },
    /// The group's replicas changed since; this is their epoch.
    StaleEpoch {
        epoch: u64,
    },
    /// The requested number of ids, from these on.
    IdsGiven {
        first_node: NodeId,
        first_replica: ReplicaId,
    },
    /// The command breaks a rule of the catalog, and would at any time.
    Refused {
        reason: String,
    },
}

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<DECODE_BYTES_MAX>()
}

fn encode_after(mut bytes: Vec<u8>, body: &impl Encode) -> Vec<u8> {
    bytes.extend(bincode::encode_to_vec(body, config()).expect("plain data in memory always encodes"));
    bytes
}

fn encode_command(tag: u8, body: &impl Encode) -> Vec<u8> {
    encode_after(vec![CATALOG_COMMAND_VERSION, tag], body)
}

fn encode_versioned(version: u8, body: &impl Encode) -> Vec<u8> {
    encode_after(vec![version], body)
}

fn decode_versioned<T: Decode<()>>(known: u8, bytes: &[u8]) -> Result<T, DecodeError> {
    let (version, body) = bytes.split_first().ok_or_else(|| DecodeError::Body("no bytes".into()))?;
    check_version(*version, known)?;
    decode_body(body)
}

fn check_version(found: u8, known: u8) -> Result<(), DecodeError> {
    match found {
        0 => Err(DecodeError::Body("version 0 does not exist".into())),
        newer if newer > known => Err(DecodeError::Newer(newer)),
        _ => Ok(()),
    }
}

fn decode_body<T: Decode<()>>(body: &[u8]) -> Result<T, DecodeError> {
    let (value, used) =
        bincode::decode_from_slice(body, config()).map_err(|error| DecodeError::Body(error.to_string()))?;
    if used != body.len() {
        return Err(DecodeError::Body(format!("{} bytes after its end", body.len() - used)));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ShardId;

    const ID: Uuid = Uuid::from_u128(0x0102_0304_0506_4708_890a_0b0c_0d0e_0f10);

    fn put() -> CatalogCommand {
        CatalogCommand::Put(PutRecord {
            kind: RecordKind::PROJECT,
            id: ID,
            org: Some(OrgId(Uuid::from_u128(7))),
            expect: Expect::Revision(300),
            keys: vec![UniqueKey::new("s", "näme")],
            body: b"{}".to_vec(),
            at: -2,
        })
    }

    fn map() -> ShardMap {
        let members =
            |id, node| Members { epoch: 1, replicas: vec![Replica { id: ReplicaId(id), node: NodeId(node) }] };
        ShardMap { catalog: members(1, 1), shards: vec![members(2, 1), members(3, 70_000)] }
    }

    fn every_command() -> Vec<CatalogCommand> {
        vec![
            put(),
            CatalogCommand::Delete(DeleteRecord { kind: RecordKind::NODE, id: ID, expect: Expect::Absent }),
            CatalogCommand::SetShardMap(map()),
            CatalogCommand::ChangeReplicas(ChangeReplicas {
                group: GroupId::of_shard(ShardId(3)),
                expect_epoch: 9,
                replicas: vec![Replica { id: ReplicaId(4), node: NodeId(5) }],
            }),
            CatalogCommand::GiveIds(GiveIds { nodes: 1, replicas: 300 }),
        ]
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_bytes_of_every_command_are_those_of_version_one() {
        let golden = [
            "010120100102030405064708890a0b0c0d0e0f1001100000000000000000000000000000000701fb2c01010173056ec3a46d65027b7d03",
            "010280100102030405064708890a0b0c0d0e0f1000",
            "0103010101010201010201010103fc70110100",
            "01041309010405",
            "010501fb2c01",
        ];
        let found: Vec<_> = every_command().iter().map(|command| hex(&command.encode())).collect();
        assert_eq!(found, golden);
    }

    #[test]
    fn every_command_reads_back_and_every_cut_and_every_extra_byte_is_refused() {
        for command in every_command() {
            let bytes = command.encode();
            assert_eq!(CatalogCommand::decode(&bytes), Ok(command));
            for end in 0..bytes.len() {
                assert!(CatalogCommand::decode(&bytes[..end]).is_err(), "cut at {end}");
            }
            let longer = [&bytes[..], &[0]].concat();
            assert!(CatalogCommand::decode(&longer).is_err(), "an extra byte");
        }
    }

    #[test]
    fn a_newer_version_and_an_unknown_tag_are_named() {
        assert_eq!(CatalogCommand::decode(&[2, 1]), Err(DecodeError::Newer(2)));
        assert_eq!(CatalogCommand::decode(&[1, 9]), Err(DecodeError::Tag(9)));
        assert!(CatalogCommand::decode(&[0, 1]).is_err());
    }

    #[test]
    fn a_length_that_lies_is_refused_before_it_is_believed() {
        let mut bytes = vec![CATALOG_COMMAND_VERSION, TAG_SET_SHARD_MAP, 1];
        bytes.extend([253, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]);
        assert!(CatalogCommand::decode(&bytes).is_err());
    }

    #[test]
    fn a_command_of_the_largest_record_stays_within_its_limit() {
        let CatalogCommand::Put(small) = put() else { panic!("a put") };
        let key = |n: usize| UniqueKey::new(format!("{n:02}"), "x".repeat(UNIQUE_KEY_BYTES_MAX - 2));
        let largest = PutRecord {
            keys: (0..UNIQUE_KEYS_MAX).map(key).collect(),
            body: vec![b' '; RECORD_BODY_BYTES_MAX],
            ..small
        };
        let bytes = CatalogCommand::Put(largest.clone()).encode();
        assert!(bytes.len() <= CATALOG_COMMAND_BYTES_MAX, "{} bytes", bytes.len());
        assert_eq!(CatalogCommand::decode(&bytes), Ok(CatalogCommand::Put(largest)));
    }

    #[test]
    fn the_bytes_of_a_record_and_of_a_map_are_those_of_version_one() {
        let record = Record {
            kind: RecordKind::USER,
            id: ID,
            org: None,
            revision: 70_000,
            keys: vec![UniqueKey::new("user.email", "a@b")],
            body: b"{\"a\":1}".to_vec(),
            created: 1_000_000,
            changed: 1_000_001,
        };
        assert_eq!(Record::decode(&record.encode()), Ok(record.clone()));
        assert_eq!(
            hex(&record.encode()),
            "0102100102030405064708890a0b0c0d0e0f1000fc70110100010a757365722e656d61696c03614062077b2261223a317dfc80841e00fc82841e00"
        );
        assert_eq!(ShardMap::decode(&map().encode()), Ok(map()));
        assert_eq!(hex(&map().encode()), "01010101010201010201010103fc70110100");
    }

    #[test]
    fn kinds_have_names_and_unknown_ones_stay_numbers() {
        assert_eq!(RecordKind::PROJECT.to_string(), "project");
        assert_eq!(RecordKind(999).to_string(), "kind 999");
        let mut seen = std::collections::BTreeSet::new();
        assert!(RecordKind::ALL.iter().all(|kind| seen.insert(*kind)), "no number twice");
    }

    #[test]
    fn an_outcome_survives_the_wire() {
        let outcome = CatalogOutcome::Taken { key: UniqueKey::new("s", "n"), kind: RecordKind::PROJECT, id: ID };
        let outcome = crate::command::Outcome::Catalog(outcome);
        let text = serde_json::to_string(&outcome).expect("encodes");
        assert_eq!(serde_json::from_str::<crate::command::Outcome>(&text).expect("decodes"), outcome, "{text}");
    }
}
