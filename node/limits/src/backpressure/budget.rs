//! Budget that tasks wait for. It adds a clock, wakers and counters to [`Queue`].

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::drain::Drain;
use super::holder::Holder;
use super::queue::{Division, Id, Queue, RequestState};
use super::reading::{Reading, Waits};
use super::refusals::Refusals;

/// Bounded amount, of which requests reserve parts. Clones share the amount.
#[derive(Clone)]
pub struct Budget {
    shared: Arc<Shared>,
}

struct Shared {
    name: &'static str,
    began: Instant,
    refusals: Refusals,
    state: Mutex<State>,
}

struct State {
    queue: Queue,
    wakers: HashMap<Id, oneshot::Sender<()>>,
    drain: Drain,
    waits: Waits,
    refused: u64,
}

/// Reserved part of a budget. Dropping the reservation returns the part.
#[must_use = "a reservation that is dropped gives its part back"]
pub struct Reservation {
    budget: Budget,
    id: Id,
    holder: Holder,
}

/// Reason why a request was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The amount exceeds the share of a single holder, so waiting would not help.
    NeverFits { largest: u64 },
    /// The budget stayed full until the deadline.
    Full { waited: Duration, retry_after: Duration },
}

impl Budget {
    /// Creates a budget of `total` without a reserve.
    ///
    /// `name` is the name of the budget's setting. Metrics and log lines use it.
    pub fn new(name: &'static str, total: u64, refusals: &Refusals) -> Budget {
        Budget::divided(name, Division::plain(total), refusals)
    }

    /// Creates a budget with the given division.
    pub fn divided(name: &'static str, division: Division, refusals: &Refusals) -> Budget {
        let state = State {
            queue: Queue::new(division),
            wakers: HashMap::new(),
            drain: Drain::default(),
            waits: Waits::default(),
            refused: 0,
        };
        let (began, refusals) = (Instant::now(), refusals.clone());
        Budget { shared: Arc::new(Shared { name, began, refusals, state: Mutex::new(state) }) }
    }

    pub fn name(&self) -> &'static str {
        self.shared.name
    }

    /// Returns the largest amount that one holder can reserve.
    pub fn largest(&self) -> u64 {
        self.shared.state.lock().queue.division().largest()
    }

    /// Waits for an amount until a deadline. Dropping the future gives up the place in the queue.
    pub async fn acquire(&self, holder: Holder, amount: u64, until: Instant) -> Result<Reservation, Refused> {
        let largest = self.largest();
        if amount > largest {
            return Err(self.refuse_now(holder, largest));
        }
        let (id, waker) = {
            let mut state = self.shared.state.lock();
            let (id, asked, admitted) = state.queue.ask(holder, amount);
            state.wake(&admitted);
            self.note_waiting(&mut state);
            (id, state.waker_if(asked, id))
        };
        // From here on, dropping the reservation returns everything, even while it waits.
        let reservation = Reservation { budget: self.clone(), id, holder };
        self.wait(&reservation, waker, amount, until).await?;
        Ok(reservation)
    }

    /// Reserves an amount if it is free and no other request goes first.
    pub fn try_acquire(&self, holder: Holder, amount: u64) -> Option<Reservation> {
        if amount > self.largest() {
            return None;
        }
        let (id, asked) = {
            let mut state = self.shared.state.lock();
            let (id, asked, admitted) = state.queue.ask(holder, amount);
            state.wake(&admitted);
            (id, asked)
        };
        let reservation = Reservation { budget: self.clone(), id, holder };
        (asked == RequestState::Admitted).then_some(reservation)
    }

    /// Returns the reserved and waiting amounts, and the counts since the start.
    pub fn reading(&self) -> Reading {
        let state = self.shared.state.lock();
        Reading {
            total: state.queue.division().total,
            held: state.queue.held(),
            waiting: state.queue.waiting() as u64,
            waiting_amount: state.queue.waiting_amount(),
            refused: state.refused,
            waits: state.waits.clone(),
        }
    }

    async fn wait(
        &self,
        reservation: &Reservation,
        waker: Option<oneshot::Receiver<()>>,
        amount: u64,
        until: Instant,
    ) -> Result<(), Refused> {
        let Some(waker) = waker else {
            self.shared.state.lock().waits.note(Duration::ZERO);
            return Ok(());
        };
        let began = Instant::now();
        let _ = timeout_at(until, waker).await;
        let mut state = self.shared.state.lock();
        let waited = began.elapsed();
        state.waits.note(waited);
        if !state.queue.is_waiting(reservation.id) {
            return Ok(());
        }
        let ahead = state.queue.waiting_amount().max(amount);
        let retry_after = state.drain.retry_after(self.shared.began.elapsed(), ahead);
        state.refused += 1;
        // The request is withdrawn under the lock that decided, so nothing is granted after the refusal.
        self.withdraw(&mut state, reservation.id);
        drop(state);
        self.shared.refusals.note(self.shared.name, reservation.holder.organization);
        Err(Refused::Full { waited, retry_after })
    }

    /// Withdraws a request or the growth of a reservation that still waits.
    fn withdraw(&self, state: &mut State, id: Id) {
        state.wakers.remove(&id);
        let admitted = state.queue.cancel_growth(id);
        state.wake(&admitted);
        self.note_waiting(state);
    }

    fn refuse_now(&self, holder: Holder, largest: u64) -> Refused {
        self.shared.state.lock().refused += 1;
        self.shared.refusals.note(self.shared.name, holder.organization);
        Refused::NeverFits { largest }
    }

    /// Changes the queue and wakes the admitted requests. `given_back` counts for the drain rate.
    fn change(&self, given_back: u64, change: impl FnOnce(&mut Queue) -> Vec<Id>) {
        let mut state = self.shared.state.lock();
        let now = self.shared.began.elapsed();
        state.drain.note_given_back(now, given_back);
        let admitted = change(&mut state.queue);
        state.wake(&admitted);
        self.note_waiting(&mut state);
    }

    fn note_waiting(&self, state: &mut State) {
        let is_any = state.queue.waiting() > 0;
        state.drain.note_waiting(self.shared.began.elapsed(), is_any);
    }
}

impl State {
    fn waker_if(&mut self, asked: RequestState, id: Id) -> Option<oneshot::Receiver<()>> {
        if asked == RequestState::Admitted {
            return None;
        }
        let (waker, woken) = oneshot::channel();
        self.wakers.insert(id, waker);
        Some(woken)
    }

    fn wake(&mut self, admitted: &[Id]) {
        for id in admitted {
            if let Some(waker) = self.wakers.remove(id) {
                // A task that is gone has returned its reservation itself.
                let _ = waker.send(());
            }
        }
    }
}

impl Reservation {
    /// Returns the reserved amount.
    pub fn amount(&self) -> u64 {
        self.budget.shared.state.lock().queue.amount(self.id)
    }

    pub fn holder(&self) -> Holder {
        self.holder
    }

    /// Waits for a larger amount until a deadline.
    ///
    /// If this fails or the future is dropped, the reservation keeps its current amount.
    pub async fn grow(&mut self, by: u64, until: Instant) -> Result<(), Refused> {
        let largest = self.budget.largest();
        if self.amount().saturating_add(by) > largest {
            return Err(self.budget.refuse_now(self.holder, largest));
        }
        let waker = {
            let mut state = self.budget.shared.state.lock();
            let (asked, admitted) = state.queue.grow(self.id, by);
            state.wake(&admitted);
            self.budget.note_waiting(&mut state);
            state.waker_if(asked, self.id)
        };
        let mut growth = Growth { reservation: self, by };
        let grown = growth.reservation.budget.wait(growth.reservation, waker, by, until).await;
        growth.by = 0;
        grown
    }

    /// Returns a part of the reservation to the budget.
    pub fn shrink(&mut self, by: u64) {
        self.budget.change(by.min(self.amount()), |queue| queue.shrink(self.id, by));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let (id, amount) = (self.id, self.amount());
        self.budget.shared.state.lock().wakers.remove(&id);
        self.budget.change(amount, |queue| queue.leave(id));
    }
}

/// Pending growth of a reservation. Dropping it withdraws the request, or gives back what was granted meanwhile.
struct Growth<'r> {
    reservation: &'r Reservation,
    /// Requested amount, or 0 after the answer.
    by: u64,
}

impl Drop for Growth<'_> {
    fn drop(&mut self) {
        let Reservation { budget, id, .. } = self.reservation;
        if self.by == 0 {
            return;
        }
        let mut state = budget.shared.state.lock();
        if state.queue.is_waiting(*id) {
            budget.withdraw(&mut state, *id);
        } else {
            drop(state);
            budget.change(self.by, |queue| queue.shrink(*id, self.by));
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NeverFits { largest } => write!(f, "one request can reserve at most {largest}"),
            Refused::Full { waited, .. } => write!(f, "no space was free for {:.1} s", waited.as_secs_f64()),
        }
    }
}

impl std::error::Error for Refused {}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("name", &self.shared.name).field("reading", &self.reading()).finish()
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("budget", &self.budget.shared.name)
            .field("amount", &self.amount())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn holder(organization: u128) -> Holder {
        Holder::new(uuid::Uuid::from_u128(organization), uuid::Uuid::from_u128(organization))
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    fn budget(total: u64) -> Budget {
        Budget::new("test", total, &Refusals::default())
    }

    async fn is_pending(future: std::pin::Pin<&mut impl Future>) -> bool {
        tokio::time::timeout(Duration::from_millis(1), future).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_and_is_admitted() {
        let budget = budget(80);
        let first = budget.acquire(holder(1), 70, soon()).await.expect("free");
        let mut second = pin!(budget.acquire(holder(2), 20, soon()));
        assert!(is_pending(second.as_mut()).await);
        assert_eq!((budget.reading().waiting, budget.reading().waiting_amount), (1, 20));
        drop(first);
        let second = second.await.expect("admitted");
        assert_eq!((second.amount(), budget.reading().held, budget.reading().waiting), (20, 20, 0));
        assert_eq!(budget.reading().waits.count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_comes_with_the_deadline_and_knows_the_drain() {
        let budget = budget(80);
        let mut held = budget.acquire(holder(1), 70, soon()).await.expect("free");
        let waiting = tokio::spawn({
            let budget = budget.clone();
            async move { budget.acquire(holder(2), 60, soon()).await.map(drop) }
        });
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            held.shrink(1);
        }
        let refused = waiting.await.expect("no panic").expect_err("20 were given back, and 50 were missing");
        let Refused::Full { waited, retry_after } = refused else { panic!("{refused:?}") };
        assert_eq!(waited, Duration::from_secs(30));
        assert_eq!(retry_after, Duration::from_secs(60), "20 in 30 s, and 60 are asked for");
        assert_eq!((budget.reading().waiting, budget.reading().refused), (0, 1));
        let refused = budget.acquire(holder(2), 71, soon()).await.map(drop);
        assert_eq!(refused, Err(Refused::NeverFits { largest: 70 }));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_leaves_gives_up_its_place_and_what_it_was_given_meanwhile() {
        let budget = budget(80);
        let first = budget.acquire(holder(1), 70, soon()).await.expect("free");
        let mut left = Box::pin(budget.acquire(holder(2), 70, soon()));
        assert!(is_pending(left.as_mut()).await);
        let mut third = pin!(budget.acquire(holder(3), 70, soon()));
        assert!(is_pending(third.as_mut()).await);
        drop(first);
        assert_eq!(budget.reading().held, 70, "it was given to a task that does not look");
        drop(left);
        drop(third.await.expect("admitted"));
        assert_eq!(budget.reading().held, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn growth_that_is_given_up_leaves_the_reservation_as_it_was() {
        let budget = budget(80);
        let mut first = budget.acquire(holder(1), 40, soon()).await.expect("free");
        let second = budget.acquire(holder(2), 30, soon()).await.expect("free");
        let refused = first.grow(20, Instant::now() + Duration::from_secs(1)).await;
        assert!(matches!(refused, Err(Refused::Full { .. })));
        assert_eq!((first.amount(), budget.reading().waiting), (40, 0));
        drop(second);
        first.grow(20, soon()).await.expect("free");
        first.shrink(5);
        assert_eq!((first.amount(), budget.reading().held), (55, 55));
        assert!(budget.try_acquire(holder(2), 40).is_none() && budget.reading().waiting == 0);
    }

    /// Tests a grant that the task no longer looks at.
    #[tokio::test(start_paused = true)]
    async fn growth_that_is_dropped_after_its_grant_is_given_back() {
        let budget = budget(80);
        let mut first = budget.acquire(holder(1), 40, soon()).await.expect("free");
        let second = budget.acquire(holder(2), 30, soon()).await.expect("free");
        {
            let mut growth = pin!(first.grow(20, soon()));
            assert!(is_pending(growth.as_mut()).await);
            drop(second);
            assert_eq!(budget.reading().held, 60, "it was granted");
        }
        assert_eq!((first.amount(), budget.reading().held, budget.reading().waiting), (40, 40, 0));
        first.grow(20, soon()).await.expect("free");
        assert_eq!(first.amount(), 60);
    }

    /// Tests a deadline and a grant at the same moment.
    #[tokio::test(start_paused = true)]
    async fn a_grant_at_the_deadline_is_not_lost() {
        let budget = budget(80);
        let first = budget.acquire(holder(1), 70, soon()).await.expect("free");
        let until = Instant::now() + Duration::from_secs(1);
        let mut second = pin!(budget.acquire(holder(2), 70, until));
        assert!(is_pending(second.as_mut()).await);
        tokio::time::advance(Duration::from_secs(2)).await;
        drop(first);
        assert_eq!(second.await.expect("admitted").amount(), 70);
    }
}
