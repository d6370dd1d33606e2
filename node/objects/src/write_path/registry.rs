//! Registry of object actors: it starts and stops them, admits writes through the reservation queue, and keeps
//! counters.

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

use crate::write_path::actor::{EnqueueWrite, ObjectActor};
use crate::write_path::actor_threads::ActorSpawner;
use crate::write_path::meters::WriteMeters;
use crate::write_path::outcomes::WriteAttempt;
use crate::write_path::reservation_queue::{Granted, ReservationQueue};
use crate::write_path::reservations::ReservationRequest;
use crate::write_path::work::Work;
use crate::{Clock, ObjectCounts, ObjectLimits};

/// Capacity of a mailbox beyond the reservations of its object, so that a mailbox never refuses a write.
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
    /// Number of calls that had to wait for their reservations, and the sum of their waits.
    pub waits: AtomicU64,
    pub wait_micros: AtomicU64,
}

impl Counters {
    pub fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// Actors of the objects of this node.
pub(crate) struct ObjectRegistry {
    pub cluster: Arc<Cluster>,
    pub clock: Clock,
    pub idle: Duration,
    pub counters: Counters,
    pub meters: WriteMeters,
    /// Recorder of refusals, for log lines and metrics.
    pub refusals: Refusals,
    began: Instant,
    mailbox: usize,
    threads: ActorSpawner,
    state: Mutex<RegistryState>,
    emptied: Notify,
}

/// State behind the lock of the registry.
struct RegistryState {
    queue: ReservationQueue<Addr<ObjectActor>>,
    waiting: HashMap<u64, WaitingCall>,
    drain: Drain,
}

/// Writes of a waiting call. The thread that grants the reservations sends them to their actors.
struct WaitingCall {
    holder: Holder,
    works: Vec<Work>,
    here: Vec<ReservationRequest>,
    there: Vec<ReservationRequest<NodeId>>,
    until: Instant,
    sent: oneshot::Sender<AdmittedCall>,
}

/// Call with its reservations. Its local writes were sent to their actors.
pub(crate) struct AdmittedCall {
    pub attempts: Vec<oneshot::Receiver<WriteAttempt>>,
    /// Reservations of the writes to other nodes.
    pub outbound: Vec<OutboundReservation>,
}

/// Writes of a call, and the deadline of the wait for their reservations.
pub(crate) struct WriteCall {
    pub holder: Holder,
    pub works: Vec<Work>,
    pub there: Vec<ReservationRequest<NodeId>>,
    pub until: Instant,
}

/// Reservation of a write on this node, released on drop.
pub(crate) struct Reservation {
    registry: Arc<ObjectRegistry>,
    holder: Holder,
    wanted: ReservationRequest,
}

/// Reservation of a write to another node, released on drop.
pub(crate) struct OutboundReservation {
    registry: Arc<ObjectRegistry>,
    holder: Holder,
    wanted: ReservationRequest<NodeId>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.registry.given_back(self.wanted.bytes, |queue| queue.release(&self.holder, &self.wanted));
    }
}

impl Drop for OutboundReservation {
    fn drop(&mut self) {
        self.registry.given_back(self.wanted.bytes, |queue| queue.release_sent(&self.holder, &self.wanted));
    }
}

/// Guard of a call in the reservation queue. The call leaves the queue on drop.
struct WaitGuard<'a> {
    registry: &'a Arc<ObjectRegistry>,
    call: u64,
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let _ = self.registry.give_up(self.call);
    }
}

/// Values without a receiver. Dropping them releases reservations, which takes the lock, so they are dropped outside of
/// it.
type Undelivered = Vec<Box<dyn Any + Send>>;

impl ObjectRegistry {
    pub fn new(cluster: Arc<Cluster>, limits: &ObjectLimits, clock: Clock, threads: ActorSpawner) -> ObjectRegistry {
        let local = limits.reservation_limits();
        let queue = ReservationQueue::new(local, limits.outbound());
        ObjectRegistry {
            cluster,
            clock,
            idle: limits.idle,
            counters: Counters::default(),
            meters: WriteMeters::default(),
            refusals: Refusals::default(),
            began: Instant::now(),
            mailbox: local.object.writes + MAILBOX_SLACK,
            threads,
            state: Mutex::new(RegistryState { queue, waiting: HashMap::new(), drain: Drain::default() }),
            emptied: Notify::new(),
        }
    }

    /// Waits for the reservations of a call and sends its local writes to their actors. Dropping the future leaves the
    /// queue.
    ///
    /// An error means that nothing was sent, because the deadline has passed or this node shuts down.
    pub async fn send(self: &Arc<ObjectRegistry>, call: WriteCall) -> Result<AdmittedCall, NotWritten> {
        let WriteCall { holder, works, there, until } = call;
        if works.is_empty() && there.is_empty() {
            return Ok(AdmittedCall { attempts: Vec::new(), outbound: Vec::new() });
        }
        let began = Instant::now();
        let want = |write: &Work| {
            let object = write.object();
            ReservationRequest { object, lane: self.cluster.locate(&object), bytes: write.bytes() }
        };
        let here: Vec<ReservationRequest> = works.iter().map(want).collect();
        let (sent, mut granted) = oneshot::channel();
        let (call, undelivered) = {
            let mut state = self.state.lock();
            let call = state.queue.enter(holder, here.clone(), there.clone())?;
            state.waiting.insert(call, WaitingCall { holder, works, here, there, until, sent });
            (call, self.advance(&mut state))
        };
        drop(undelivered);
        if let Ok(sent) = granted.try_recv() {
            return Ok(sent);
        }
        let guard = WaitGuard { registry: self, call };
        let got = timeout_at(until, &mut granted).await;
        Counters::add(&self.counters.waits, 1);
        Counters::add(&self.counters.wait_micros, usize::try_from(began.elapsed().as_micros()).unwrap_or(0));
        match got {
            Ok(sent) => sent.map_err(|_| NotWritten::Closing),
            Err(_) => match self.give_up(guard.call) {
                Some(why) => Err(NotWritten::busy(why)),
                // The call was granted at the same moment, or the node shuts down.
                None => granted.try_recv().map_err(|_| NotWritten::Closing),
            },
        }
    }

    /// Removes a call from the queue. Returns the exhausted limit if the call still waited.
    fn give_up(self: &Arc<ObjectRegistry>, call: u64) -> Option<&'static str> {
        let (waiting, why, undelivered) = {
            let mut state = self.state.lock();
            let waiting = state.waiting.remove(&call)?;
            let why = state.queue.leave(call);
            (waiting, why, self.advance(&mut state))
        };
        drop((waiting, undelivered));
        why
    }

    fn given_back(
        self: &Arc<ObjectRegistry>,
        bytes: usize,
        release: impl FnOnce(&mut ReservationQueue<Addr<ObjectActor>>),
    ) {
        let (idle, undelivered) = {
            let mut state = self.state.lock();
            release(&mut state.queue);
            state.drain.note_given_back(self.began.elapsed(), bytes as u64);
            (state.queue.is_idle(), self.advance(&mut state))
        };
        drop(undelivered);
        if idle {
            self.emptied.notify_waiters();
        }
    }

    /// Sends the writes of granted calls in the order of the grants, which requires the lock.
    #[must_use]
    fn advance(self: &Arc<ObjectRegistry>, state: &mut RegistryState) -> Undelivered {
        let mut undelivered: Undelivered = Vec::new();
        let granted = state.queue.advance(|want| self.start(want));
        state.drain.note_waiting(self.began.elapsed(), state.queue.calls_waiting() > 0);
        for Granted { call, handles } in granted {
            let Some(WaitingCall { holder, works, here, there, until, sent }) = state.waiting.remove(&call) else {
                tracing::error!(call, "a call that does not wait was granted reservations");
                continue;
            };
            let mut attempts = Vec::with_capacity(works.len());
            for ((write, actor), wanted) in works.into_iter().zip(handles).zip(here) {
                let reservation = Reservation { registry: Arc::clone(self), holder, wanted };
                let (answer, attempt) = oneshot::channel();
                // The mailbox has room for every reservation, so only an ended actor refuses. The outcome is then
                // unknown.
                if let Err(why) = actor.try_send(EnqueueWrite { write, reservation, until, answer }) {
                    tracing::error!(object = %wanted.object, %why, "a write did not reach its actor");
                    undelivered.push(Box::new(why));
                }
                attempts.push(attempt);
            }
            let outbound = |wanted| OutboundReservation { registry: Arc::clone(self), holder, wanted };
            let outbound = there.into_iter().map(outbound).collect();
            if let Err(gone) = sent.send(AdmittedCall { attempts, outbound }) {
                undelivered.push(Box::new(gone));
            }
        }
        undelivered
    }

    fn start(self: &Arc<ObjectRegistry>, want: &ReservationRequest) -> Addr<ObjectActor> {
        let (sender, mailbox) = actix::dev::channel::channel(self.mailbox);
        let actor = ObjectActor::new(Arc::clone(self), want.object, want.lane);
        self.threads.spawn_fn(&want.object, move || {
            let _ = Context::with_receiver(mailbox).run(actor); // the reservation of the object keeps its address
        });
        Counters::add(&self.counters.started, 1);
        Addr::new(sender)
    }

    /// Removes an object without reservations. Returns whether its actor may stop.
    pub fn put_away(self: &Arc<ObjectRegistry>, object: &ObjectKey) -> bool {
        let (gone, undelivered) = {
            let mut state = self.state.lock();
            (state.queue.put_away(object), self.advance(&mut state))
        };
        drop(undelivered);
        if gone {
            Counters::add(&self.counters.put_away, 1);
        }
        gone
    }

    /// Returns the time after which a retry is worthwhile: the waiting bytes at the recent rate of releases.
    pub fn retry_after(&self) -> Duration {
        let state = self.state.lock();
        state.drain.retry_after(self.began.elapsed(), state.queue.waiting().bytes as u64)
    }

    /// Refuses waiting and later calls.
    pub fn close(&self) {
        let given_up: Vec<WaitingCall> = {
            let mut state = self.state.lock();
            let waiting = state.queue.close();
            waiting.into_iter().filter_map(|call| state.waiting.remove(&call)).collect()
        };
        drop(given_up);
    }

    /// Waits until there are no reservations.
    pub async fn emptied(&self) {
        loop {
            let notified = self.emptied.notified();
            tokio::pin!(notified);
            notified.as_mut().enable(); // before the check, so that no notification is missed
            if self.state.lock().queue.is_idle() {
                return;
            }
            notified.await;
        }
    }

    pub fn counts(&self) -> ObjectCounts {
        let (held, waiting, calls, active) = {
            let queue = &self.state.lock().queue;
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
