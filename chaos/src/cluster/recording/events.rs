//! Events of a run: each event is one line of the history, stamped by the one process that runs the test.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Workload on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// W1: rows with fresh ids.
    Append,
    /// W1 with rows that are too large for the log.
    Large,
    /// W2: the same request to several nodes at once, and again later.
    Retries,
    /// W3: each merge adds a key to a shared row.
    Set,
    /// W4: merges overwrite a field of a shared row.
    Register,
    /// W5: what one row loses others gain.
    Transfer,
}

impl Workload {
    pub fn name(self) -> &'static str {
        match self {
            Workload::Append => "append",
            Workload::Large => "large",
            Workload::Retries => "retries",
            Workload::Set => "set",
            Workload::Register => "register",
            Workload::Transfer => "transfer",
        }
    }
}

/// Effect of a write on one of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    Put,
    Merge,
    Delete,
}

/// One row of a write. Its content is integers in `metadata`, and an `input` of the given length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub id: String,
    pub act: Act,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, i64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pad: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A question to the control plane, or a change of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// A setting of a project is set.
    Set {
        value: u64,
    },
    Get,
    /// An experiment is made under the name, or the one that has it is named.
    Make,
    Drop {
        id: String,
    },
    /// The record is looked at.
    Look {
        id: String,
    },
    /// Writes a row into it that names the writing operation.
    Put {
        id: String,
    },
    /// Its rows are read.
    Rows {
        id: String,
    },
}

/// Response of the control plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum ControlReply {
    /// The setting was set.
    Done,
    /// It has this value; nothing if it was never set.
    Value { value: Option<u64> },
    /// The experiment of the name; `found` if it was there before.
    Made { id: String, found: bool },
    /// It is there: it was seen, written to, or dropped just now.
    Alive,
    /// 404.
    Dead,
    /// It exists, with the rows of these operations; `odd` are rows that no operation wrote.
    Rows { ops: Vec<u64>, odd: Vec<String> },
}

/// Part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Setup,
    Storm,
    /// All faults are healed, clients go on.
    Calm,
    /// Clients are gone, everything is read.
    Look,
}

/// Progress of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// From here on it may have an effect.
    Begun,
    Installed,
    Skipped,
    /// Something went wrong on the way: it may have taken effect or not.
    Indeterminate,
    Healed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum RunEvent {
    Run {
        seed: u64,
        seconds: u64,
        nodes: u8,
        shards: u16,
    },
    Phase {
        phase: Phase,
    },
    /// An object is made; `path` is where its rows are written and read.
    Object {
        object: String,
        workload: Workload,
        path: String,
    },
    /// About to be sent. `write` names the content: what is sent again under a key keeps it. `key` names the write that
    /// the key was made for.
    Write {
        op: u64,
        client: u32,
        node: u8,
        object: String,
        write: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<u64>,
        rows: Vec<Row>,
    },
    /// A whole object is about to be read, the newest or at a version.
    Read {
        op: u64,
        client: u32,
        node: u8,
        object: String,
        version: Option<u64>,
    },
    /// Request to the control plane about `key`.
    Ask {
        op: u64,
        client: u32,
        node: u8,
        key: String,
        #[serde(flatten)]
        ask: Ask,
    },
    /// A write was acknowledged.
    Ok {
        op: u64,
    },
    /// A read was answered. `raw` digests the bytes as served, `fold` the rows as the model would have them; `total` adds
    /// up what transfers moved; `seen` are writes whose id this client had not seen before, or saw as another.
    Found {
        op: u64,
        version: u64,
        raw: String,
        fold: String,
        rows: usize,
        total: i64,
        seen: Vec<(u64, u64)>,
    },
    Told {
        op: u64,
        #[serde(flatten)]
        told: ControlReply,
    },
    /// Never applied; without a status it was never sent.
    Fail {
        op: u64,
        status: Option<u16>,
        why: String,
    },
    /// May have been applied, and may yet be.
    Info {
        op: u64,
        status: Option<u16>,
        why: String,
    },
    /// An answer that no request may get, or that contradicts its request.
    Odd {
        op: u64,
        status: u16,
        why: String,
    },
    /// One step of fault `number`. `majority`: the nodes left can do everything. `deaf`: a node that runs and may accept
    /// no connections, so that its own clients wait in vain.
    Fault {
        number: u32,
        kind: String,
        what: String,
        majority: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deaf: Option<u8>,
        outcome: Outcome,
    },
    /// Final read: this is the node's state of the object.
    Looked {
        object: String,
        node: u8,
        op: u64,
    },
    /// The node did not return the object, however often it was requested.
    Blind {
        object: String,
        node: u8,
    },
    /// A process ended by itself, or did not start.
    Exit {
        node: u8,
        explained: Option<String>,
        why: String,
    },
    /// The cluster did not do what is promised of it under this kind of fault.
    Broken {
        fault: String,
        why: String,
    },
    /// Output of `cluster status` on one node.
    Status {
        node: u8,
        status: Value,
    },
    /// Numbers from `/metrics` and of the process.
    Gauges {
        node: u8,
        gauges: BTreeMap<String, f64>,
    },
}

impl RunEvent {
    /// The operation that this is the end of.
    pub fn ended(&self) -> Option<u64> {
        match self {
            RunEvent::Ok { op }
            | RunEvent::Found { op, .. }
            | RunEvent::Told { op, .. }
            | RunEvent::Fail { op, .. }
            | RunEvent::Info { op, .. } => Some(*op),
            _ => None,
        }
    }
}
