//! W2: one request, sent to several nodes at once and again later, also long after its response.
//!
//! Each write makes a row that a later write changes: applied a second time, the first would undo the change and get
//! another id. Sometimes the key comes with other content, of which at most one may ever be applied.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{Work, compose, counted, pick};
use crate::cluster::recording::events::{Row, Workload};
use crate::cluster::workload::client::{Client, Ended, Sending};
use crate::cluster::workload::rows::{merge, own};
use crate::cluster::workload::shared::{ClientContext, Object};

/// Clients that send concurrently with the first.
const MATES: u32 = 2;
const MATE_NUMBERS: u32 = 1000;
/// A request without a clear answer is sent again so often.
const RESENDS_MAX: u32 = 6;
const RESEND_PAUSE: Duration = Duration::from_millis(300);
/// Requests that may be sent again at any time.
const OLD_MAX: usize = 64;

#[derive(Debug)]
pub struct Retries {
    project: Arc<str>,
    mates: Vec<Client>,
    old: Vec<Old>,
}

/// A request that was acknowledged once.
#[derive(Clone, Debug)]
struct Old {
    object: Arc<Object>,
    write: u64,
    rows: Vec<Row>,
}

impl Retries {
    pub fn new(stage: &Arc<ClientContext>, project: &Arc<str>, rng: &mut ChaCha8Rng) -> Retries {
        let mate = |number| Client::new(MATE_NUMBERS + number, Arc::clone(stage), rng.random());
        Retries { project: Arc::clone(project), mates: (0..MATES).map(mate).collect(), old: Vec::new() }
    }

    /// Sends to this client's node and to those of its mates at the same time.
    fn at_once(&mut self, client: &mut Client, sending: &Sending<'_>) -> anyhow::Result<Vec<Ended>> {
        let mates = client.rng.random_range(0..=self.mates.len());
        let mut ends = Vec::new();
        let mut senders: Vec<&mut Client> = self.mates[..mates].iter_mut().collect();
        senders.push(client);
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                senders.into_iter().map(|sender| scope.spawn(move || sender.write(sending))).collect();
            for thread in threads {
                ends.push(thread.join().map_err(|_| anyhow::anyhow!("a sender panicked"))??);
            }
            anyhow::Ok(())
        })?;
        Ok(ends)
    }

    /// Retries until it is known to be written, like a real client.
    fn until_known(&mut self, client: &mut Client, sending: &Sending<'_>) -> anyhow::Result<bool> {
        for attempt in 0..RESENDS_MAX {
            if attempt > 0 {
                std::thread::sleep(RESEND_PAUSE);
            }
            if self.at_once(client, sending)?.contains(&Ended::Ok) {
                return Ok(true);
            }
            if client.stage.stopped() {
                break;
            }
        }
        Ok(false)
    }

    fn remember(&mut self, old: Old, rng: &mut ChaCha8Rng) {
        if self.old.len() < OLD_MAX {
            self.old.push(old);
        } else {
            let place = rng.random_range(0..OLD_MAX);
            self.old[place] = old;
        }
    }

    /// Changes the row, sends the first write again, and maybe something else under its key.
    fn again(&mut self, client: &mut Client, old: &Old) -> anyhow::Result<bool> {
        let Old { object, write: first, rows } = old;
        let change = client.stage.journal.operation();
        let changed = [own(change, 0), merge(&compose::victim_id(*first), "m", i64::try_from(change)?)];
        let mut well = client.write(&Sending { object, write: change, key: None, rows: &changed })? == Ended::Ok;
        let again = Sending { object, write: *first, key: Some(*first), rows };
        well &= client.write(&again)? == Ended::Ok;
        if client.rng.random_bool(0.2) {
            let other = client.stage.journal.operation();
            let rows = compose::rows(Workload::Retries, other, &mut client.rng);
            well &= client.write(&Sending { object, write: other, key: Some(*first), rows: &rows })? == Ended::Conflict;
        }
        Ok(well)
    }
}

impl Work for Retries {
    fn works_on(&self) -> Option<String> {
        Some(format!("{}-", Workload::Retries.name()))
    }

    fn turn(&mut self, client: &mut Client) -> anyhow::Result<()> {
        let stage = Arc::clone(&client.stage);
        let Some(slot) = pick(&stage, Workload::Retries, &mut client.rng) else { return Ok(()) };
        let object = slot.live().object;
        let write = stage.journal.operation();
        let rows = compose::rows(Workload::Retries, write, &mut client.rng);
        let sending = Sending { object: &object, write, key: Some(write), rows: &rows };
        let known = self.until_known(client, &sending)?;
        stage.went(&object.name, known);
        if known {
            if client.rng.random_bool(0.3) {
                let read = client.read(&object, None)?;
                stage.went(&object.name, read.is_some());
            }
            let old = Old { object: Arc::clone(&object), write, rows };
            let well = self.again(client, &old)?;
            stage.went(&object.name, well);
            self.remember(old, &mut client.rng);
        }
        if client.rng.random_bool(0.3) && !self.old.is_empty() {
            let place = client.rng.random_range(0..self.old.len());
            let old = self.old[place].clone();
            self.again(client, &old)?;
        }
        // Three rows or so: the write, its change, what is sent under its key.
        counted(client, slot, &self.project, 3)
    }
}
