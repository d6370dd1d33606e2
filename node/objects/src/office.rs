//! What callers and actors share: the write queue, the way to an object's actor, counters.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::{Addr, Context};
use assay_cluster::Cluster;
use assay_node_limits::{Drain, Holder, Refusals};
use assay_storage_model::{NodeId, NotWritten, ObjectKey};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::actor::{Enter, ObjectActor};
use crate::book::Wanted;
use crate::outcomes::WriteAttempt;
use crate::threads::ActorSpawner;
use crate::waiting::{Granted, WriteQueue};
use crate::work::Work;
use crate::{Clock, ObjectCounts, ObjectLimits};

/// A mailbox has this much more room than the queue gives places, so that it is never the mailbox that refuses.
const MAILBOX_SLACK: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub writes: AtomicU64,
    pub rows: AtomicU64,
    pub duplicates: AtomicU64,
    pub busy: AtomicU64,
    pub unknown: AtomicU64,
    pub started: AtomicU64,
    pub put_away: AtomicU64,
    pub pages: AtomicU64,
    pub rows_read: AtomicU64,
    /// Calls that had to wait for their places, and for how long in all.
    pub waits: AtomicU64,
    pub wait_micros: AtomicU64,
}

impl Counters {
    pub fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }
}

pub(crate) struct Office {
    pub cluster: Arc<Cluster>,
    pub clock: Clock,
    pub idle: Duration,
    pub counters: Counters,
    /// Log lines about refusals.
    pub refusals: Refusals,
    began: Instant,
    mailbox: usize,
    threads: ActorSpawner,
    desk: Mutex<Desk>,
    emptied: Notify,
}

/// What one lock guards.
struct Desk {
    queue: WriteQueue<Addr<ObjectActor>>,
    parked: HashMap<u64, Parked>,
    drain: Drain,
}

/// The writes of a call that waits, which are sent to their actors by whoever gives it its places.
struct Parked {
    holder: Holder,
    works: Vec<Work>,
    here: Vec<Wanted>,
    there: Vec<Wanted<NodeId>>,
    until: Instant,
    sent: oneshot::Sender<Sent>,
}

/// A call that has its places: its writes on this node are with their actors.
pub(crate) struct Sent {
    pub attempts: Vec<oneshot::Receiver<WriteAttempt>>,
    /// The places of the writes that go to other nodes. They are given back when this is dropped.
    pub outbound: Vec<OutboundPlace>,
}

/// What a call wants to be sent, and until when it waits for its places.
pub(crate) struct Wants {
    pub holder: Holder,
    pub works: Vec<Work>,
    pub there: Vec<Wanted<NodeId>>,
    pub until: Instant,
}

/// A place of a write on this node; given back when it is dropped.
pub(crate) struct Place {
    office: Arc<Office>,
    holder: Holder,
    wanted: Wanted,
}

/// A place of a write that another node is sent; given back when it is dropped.
pub(crate) struct OutboundPlace {
    office: Arc<Office>,
    holder: Holder,
    wanted: Wanted<NodeId>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.office.given_back(self.wanted.bytes, |queue| queue.release(&self.holder, &self.wanted));
    }
}

impl Drop for OutboundPlace {
    fn drop(&mut self) {
        self.office.given_back(self.wanted.bytes, |queue| queue.release_sent(&self.holder, &self.wanted));
    }
}

/// The turn of a call that waits; given up when it is dropped.
struct Ticket<'a> {
    office: &'a Arc<Office>,
    call: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let _ = self.office.give_up(self.call);
    }
}

/// What nobody waits for any more. Dropping it gives places back, so the desk must be free by then.
type Undelivered = Vec<Box<dyn Any + Send>>;

impl Office {
    pub fn new(cluster: Arc<Cluster>, limits: &ObjectLimits, clock: Clock, threads: ActorSpawner) -> Office {
        let book = limits.book();
        let queue = WriteQueue::new(book, limits.outbound());
        Office {
            cluster,
            clock,
            idle: limits.idle,
            counters: Counters::default(),
            refusals: Refusals::default(),
            began: Instant::now(),
            mailbox: book.object.writes + MAILBOX_SLACK,
            threads,
            desk: Mutex::new(Desk { queue, parked: HashMap::new(), drain: Drain::default() }),
            emptied: Notify::new(),
        }
    }

    /// Returns when the call has all of its places, or none: its deadline has passed, or this node shuts down. The writes
    /// on this node are with their actors then. A caller that goes away gives its turn up and leaves nothing half sent.
    pub async fn send(self: &Arc<Office>, wants: Wants) -> Result<Sent, NotWritten> {
        let Wants { holder, works, there, until } = wants;
        if works.is_empty() && there.is_empty() {
            return Ok(Sent { attempts: Vec::new(), outbound: Vec::new() });
        }
        let began = Instant::now();
        let want = |write: &Work| {
            let object = write.object();
            Wanted { object, lane: self.cluster.locate(&object), bytes: write.bytes() }
        };
        let here: Vec<Wanted> = works.iter().map(want).collect();
        let (sent, mut granted) = oneshot::channel();
        let (call, undelivered) = {
            let mut desk = self.desk.lock();
            let call = desk.queue.enter(holder, here.clone(), there.clone())?;
            desk.parked.insert(call, Parked { holder, works, here, there, until, sent });
            (call, self.advance(&mut desk))
        };
        drop(undelivered);
        if let Ok(sent) = granted.try_recv() {
            return Ok(sent);
        }
        let ticket = Ticket { office: self, call };
        let got = timeout_at(until, &mut granted).await;
        Counters::add(&self.counters.waits, 1);
        Counters::add(&self.counters.wait_micros, usize::try_from(began.elapsed().as_micros()).unwrap_or(0));
        match got {
            Ok(sent) => sent.map_err(|_| NotWritten::Closing),
            Err(_) => match self.give_up(ticket.call) {
                Some(why) => Err(NotWritten::busy(why)),
                // It was its turn at the same moment, or the node shuts down.
                None => granted.try_recv().map_err(|_| NotWritten::Closing),
            },
        }
    }

    /// Takes a call out of the queue; what it lacked, if it still waited.
    fn give_up(self: &Arc<Office>, call: u64) -> Option<&'static str> {
        let (parked, why, undelivered) = {
            let mut desk = self.desk.lock();
            let parked = desk.parked.remove(&call)?;
            let why = desk.queue.leave(call);
            (parked, why, self.advance(&mut desk))
        };
        drop((parked, undelivered));
        why
    }

    fn given_back(self: &Arc<Office>, bytes: usize, release: impl FnOnce(&mut WriteQueue<Addr<ObjectActor>>)) {
        let (idle, undelivered) = {
            let mut desk = self.desk.lock();
            release(&mut desk.queue);
            desk.drain.note_given_back(self.began.elapsed(), bytes as u64);
            (desk.queue.is_idle(), self.advance(&mut desk))
        };
        drop(undelivered);
        if idle {
            self.emptied.notify_waiters();
        }
    }

    /// Sends the writes of every call whose turn it is, in that order, which is why it happens under the lock.
    #[must_use]
    fn advance(self: &Arc<Office>, desk: &mut Desk) -> Undelivered {
        let mut undelivered: Undelivered = Vec::new();
        let granted = desk.queue.advance(|want| self.start(want));
        desk.drain.note_waiting(self.began.elapsed(), desk.queue.calls_waiting() > 0);
        for Granted { call, handles } in granted {
            let Some(Parked { holder, works, here, there, until, sent }) = desk.parked.remove(&call) else {
                tracing::error!(call, "a call got its places and was not there");
                continue;
            };
            let mut attempts = Vec::with_capacity(works.len());
            for ((write, actor), wanted) in works.into_iter().zip(handles).zip(here) {
                let place = Place { office: Arc::clone(self), holder, wanted };
                let (answer, attempt) = oneshot::channel();
                // It has its place, so it is refused only by an actor that ended; then the answer is lost and is unknown.
                if let Err(why) = actor.try_send(Enter { write, place, until, answer }) {
                    tracing::error!(object = %wanted.object, %why, "a write did not reach its actor");
                    undelivered.push(Box::new(why));
                }
                attempts.push(attempt);
            }
            let outbound = |wanted| OutboundPlace { office: Arc::clone(self), holder, wanted };
            let outbound = there.into_iter().map(outbound).collect();
            if let Err(gone) = sent.send(Sent { attempts, outbound }) {
                undelivered.push(Box::new(gone));
            }
        }
        undelivered
    }

    fn start(self: &Arc<Office>, want: &Wanted) -> Addr<ObjectActor> {
        let (sender, mailbox) = actix::dev::channel::channel(self.mailbox);
        let actor = ObjectActor::new(Arc::clone(self), want.object, want.lane);
        self.threads.spawn_fn(&want.object, move || {
            let _ = Context::with_receiver(mailbox).run(actor); // its address is in the book
        });
        Counters::add(&self.counters.started, 1);
        Addr::new(sender)
    }

    /// Whether the actor of this object may end.
    pub fn put_away(self: &Arc<Office>, object: &ObjectKey) -> bool {
        let (gone, undelivered) = {
            let mut desk = self.desk.lock();
            (desk.queue.put_away(object), self.advance(&mut desk))
        };
        drop(undelivered);
        if gone {
            Counters::add(&self.counters.put_away, 1);
        }
        gone
    }

    /// When it is worth asking again: what waits, at the rate at which places were given back lately.
    pub fn retry_after(&self) -> Duration {
        let desk = self.desk.lock();
        desk.drain.retry_after(self.began.elapsed(), desk.queue.waiting().bytes as u64)
    }

    /// No call gets a place from here on; those that wait are refused.
    pub fn close(&self) {
        let given_up: Vec<Parked> = {
            let mut desk = self.desk.lock();
            let waiting = desk.queue.close();
            waiting.into_iter().filter_map(|call| desk.parked.remove(&call)).collect()
        };
        drop(given_up);
    }

    /// Returns when nobody has a place.
    pub async fn emptied(&self) {
        loop {
            let notified = self.emptied.notified();
            tokio::pin!(notified);
            notified.as_mut().enable(); // before the look, so that what ends in between is not missed
            if self.desk.lock().queue.is_idle() {
                return;
            }
            notified.await;
        }
    }

    pub fn counts(&self) -> ObjectCounts {
        let (held, waiting, calls, active) = {
            let queue = &self.desk.lock().queue;
            (queue.held(), queue.waiting(), queue.calls_waiting(), queue.objects() as u64)
        };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        ObjectCounts {
            active,
            waiting_writes: held.writes as u64,
            waiting_bytes: held.bytes as u64,
            queued_calls: calls as u64,
            queued_bytes: waiting.bytes as u64,
            waits: read(&counters.waits),
            wait_seconds: Duration::from_micros(read(&counters.wait_micros)).as_secs_f64(),
            writes: read(&counters.writes),
            rows: read(&counters.rows),
            duplicates: read(&counters.duplicates),
            busy: read(&counters.busy),
            unknown: read(&counters.unknown),
            started: read(&counters.started),
            put_away: read(&counters.put_away),
            pages: read(&counters.pages),
            rows_read: read(&counters.rows_read),
        }
    }
}
