//! Final reads after the clients stopped: every object from every node, newest and at one common version.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use serde_json::Value;

use super::events::{Phase, RunEvent};
use crate::cluster::environment::status::Status;
use crate::cluster::faults::conductor::Conductor;
use crate::cluster::workload::client::{Client, SeenWrite};
use crate::cluster::workload::shared::{ClientContext, NodeAt, Object};

/// Client number of the final reads, added to the node's number.
const LOOKERS: u32 = 1_000_000;
/// Time limit for a node to return an object; a node that failed once gets one request only.
const OBJECT_MAX: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(500);
/// Replicas that lag have so long to come to the same place.
const CONVERGED_MAX: Duration = Duration::from_secs(10);

/// The highest version that any node gave of each object.
type Newest = Mutex<BTreeMap<String, u64>>;

impl Conductor<'_> {
    pub fn look(&mut self) -> anyhow::Result<()> {
        self.stage.enter(Phase::Look);
        let newest = Newest::default();
        self.at_every_node(|client, look, place| {
            let (stage, nodes) = (Arc::clone(&client.stage), client.stage.nodes().len());
            let live = |object: &Object| stage.slots().iter().any(|slot| slot.live().object.name == object.name);
            for (number, object) in stage.objects().iter().enumerate() {
                // What nobody has used for long is asked of one node: of the others the common version says enough.
                if (live(object) || number % nodes == place)
                    && let Some(seen) = look.read(client, object, None)
                {
                    let mut newest = newest.lock().unwrap_or_else(PoisonError::into_inner);
                    let known = newest.entry(object.name.clone()).or_default();
                    *known = seen.version.max(*known);
                }
            }
        })?;
        let newest = newest.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.at_every_node(|client, look, _| {
            let stage = Arc::clone(&client.stage);
            for object in stage.objects() {
                let (name, node) = (object.name.clone(), look.at.node);
                stage.journal.say(match look.read(client, &object, newest.get(&name).copied()) {
                    Some(SeenWrite { op, .. }) => RunEvent::Looked { object: name, node, op },
                    None => RunEvent::Blind { object: name, node },
                });
            }
        })?;
        self.converge()
    }

    /// Nodes at the same time, each with a client of its own.
    fn at_every_node(&self, work: impl Fn(&mut Client, &mut LookAt<'_>, usize) + Sync) -> anyhow::Result<()> {
        let interrupted = self.interrupted;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..)
                .zip(self.stage.nodes())
                .map(|(place, at)| {
                    let (stage, work): (Arc<ClientContext>, _) = (Arc::clone(&self.stage), &work);
                    scope.spawn(move || {
                        let mut client = Client::new(LOOKERS + u32::from(at.node), stage, place as u64);
                        client.pinned = Some(at);
                        work(&mut client, &mut LookAt { at, interrupted, failed: false }, place);
                    })
                })
                .collect();
            // All are waited for, whatever became of the first.
            let ends: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            ends.into_iter().try_for_each(|end| end.map_err(|_| anyhow!("a looker panicked")))
        })
    }

    /// Records each node's status of the cluster, finally when all have applied the same.
    fn converge(&mut self) -> anyhow::Result<()> {
        if !self.world.clustered() {
            return Ok(());
        }
        let until = Instant::now() + CONVERGED_MAX;
        loop {
            let mut seen: Vec<(u8, Value)> = Vec::new();
            for number in self.world.up() {
                if let Ok(status) = self.world.status_of(number) {
                    seen.push((number, status));
                }
            }
            if Instant::now() >= until || applied_alike(&seen) {
                seen.into_iter().for_each(|(node, status)| self.say(RunEvent::Status { node, status }));
                return Ok(());
            }
            self.hold(PAUSE)?;
        }
    }
}

/// One node that is looked at.
struct LookAt<'a> {
    at: NodeAt,
    interrupted: &'a AtomicBool,
    failed: bool,
}

impl LookAt<'_> {
    /// A read that is answered at last.
    fn read(&mut self, client: &mut Client, object: &Arc<Object>, version: Option<u64>) -> Option<SeenWrite> {
        let until = Instant::now() + OBJECT_MAX;
        while !self.interrupted.load(Ordering::Relaxed) {
            if let Some(seen) = client.read_at(self.at, object, version) {
                return Some(seen);
            }
            if self.failed || Instant::now() >= until {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        self.failed = true;
        None
    }
}

/// Returns whether the replicas of every group are at the same position.
fn applied_alike(seen: &[(u8, Value)]) -> bool {
    let mut places = BTreeMap::new();
    seen.iter().all(|(_, status)| {
        let Some(status) = Status::of(status) else { return false };
        status.groups.iter().all(|group| match group.applied {
            Some(applied) => *places.entry(group.group.to_string()).or_insert(applied) == applied,
            None => true,
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn groups_are_alike_when_each_is_at_one_place() {
        let status = |node, applied: Option<u64>| {
            let group = json!({"group": 3, "leader": 1, "term": 1, "replicas": [], "applied": applied});
            (node, json!({"nodes": [], "groups": [group], "settled": true}))
        };
        assert!(applied_alike(&[status(1, Some(7)), status(2, Some(7)), status(3, None)]));
        assert!(!applied_alike(&[status(1, Some(7)), status(2, Some(8))]));
        assert!(!applied_alike(&[(1, json!("gone"))]));
    }
}
