//! What callers and actors share: the book of places, the way to an object's actor, counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::{Addr, Context};
use assay_cluster::Cluster;
use assay_storage_model::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::actor::{Enter, ObjectActor};
use crate::answer::Answer;
use crate::book::{Book, Refusal, Wanted};
use crate::threads::ActorThreads;
use crate::work::Work;
use crate::{Clock, ObjectCounts, ObjectLimits};

/// A mailbox has this much more room than the book gives places, so that it is the book that refuses.
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
    mailbox: usize,
    book: Mutex<Book<Addr<ObjectActor>>>,
    emptied: Notify,
}

/// A place in a mailbox; given back when it is dropped.
pub(crate) struct Place {
    office: Arc<Office>,
    wanted: Wanted,
}

impl Drop for Place {
    fn drop(&mut self) {
        let idle = {
            let mut book = self.office.book.lock();
            book.release(&self.wanted);
            book.is_idle()
        };
        if idle {
            self.office.emptied.notify_waiters();
        }
    }
}

impl Office {
    pub fn new(cluster: Arc<Cluster>, limits: &ObjectLimits, clock: Clock) -> Office {
        let book = limits.book();
        Office {
            cluster,
            clock,
            idle: limits.idle,
            counters: Counters::default(),
            mailbox: book.object.writes + MAILBOX_SLACK,
            book: Mutex::new(Book::new(book)),
            emptied: Notify::new(),
        }
    }

    /// All the places, or none; then every write is on its way to its actor. Nothing here waits, so a caller that goes
    /// away leaves nothing half sent.
    pub fn send(
        self: &Arc<Office>,
        threads: &ActorThreads,
        writes: Vec<Work>,
    ) -> Result<Vec<oneshot::Receiver<Answer>>, Refusal> {
        let wanted: Vec<Wanted> = writes
            .iter()
            .map(|write| {
                let object = write.object();
                Wanted { object, shard: self.cluster.locate(&object), bytes: write.bytes() }
            })
            .collect();
        let actors = self.book.lock().reserve(&wanted, |want| self.start(threads, want))?;
        let sent = writes.into_iter().zip(actors).zip(wanted).map(|((write, actor), wanted)| {
            let place = Place { office: Arc::clone(self), wanted };
            let (answer, answered) = oneshot::channel();
            // It has its place, so it is refused only by an actor that ended; then the answer is lost and is unknown.
            if let Err(why) = actor.try_send(Enter { write, place, answer }) {
                tracing::error!(object = %wanted.object, %why, "a write did not reach its actor");
            }
            answered
        });
        Ok(sent.collect())
    }

    fn start(self: &Arc<Office>, threads: &ActorThreads, want: &Wanted) -> Addr<ObjectActor> {
        let (sender, mailbox) = actix::dev::channel::channel(self.mailbox);
        let actor = ObjectActor::new(Arc::clone(self), want.object, want.shard);
        threads.spawn_fn(&want.object, move || {
            let _ = Context::with_receiver(mailbox).run(actor); // its address is in the book
        });
        Counters::add(&self.counters.started, 1);
        Addr::new(sender)
    }

    /// Whether the actor of this object may end.
    pub fn put_away(&self, object: &ObjectKey) -> bool {
        let gone = self.book.lock().put_away(object);
        if gone {
            Counters::add(&self.counters.put_away, 1);
        }
        gone
    }

    /// No call gets a place from here on.
    pub fn close(&self) {
        self.book.lock().close();
    }

    /// Returns when nobody has a place.
    pub async fn emptied(&self) {
        loop {
            let notified = self.emptied.notified();
            tokio::pin!(notified);
            notified.as_mut().enable(); // before the look, so that what ends in between is not missed
            if self.book.lock().is_idle() {
                return;
            }
            notified.await;
        }
    }

    pub fn counts(&self) -> ObjectCounts {
        let (held, active) = {
            let book = self.book.lock();
            (book.held(), book.objects() as u64)
        };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        ObjectCounts {
            active,
            waiting_writes: held.writes as u64,
            waiting_bytes: held.bytes as u64,
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
