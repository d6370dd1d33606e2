//! Who may run: so many queries at once, and of those that wait the organizations take turns, so that one that asks a lot
//! waits for itself. What runs on after its request comes behind all that somebody waits for.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use assay_storage_model::OrgId;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::AskError;

#[derive(Debug)]
pub(crate) struct Admission {
    running_max: usize,
    waiting_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    waiting: BTreeMap<OrgId, VecDeque<oneshot::Sender<Permit>>>,
    /// Who has the next turns; each once.
    turns: VecDeque<OrgId>,
    /// Parts of queries that run on after their request: as many as of those run at once.
    behind: VecDeque<oneshot::Sender<Permit>>,
}

/// Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Admission>);

impl Admission {
    pub fn new(running_max: usize, waiting_max: usize) -> Arc<Admission> {
        Arc::new(Admission { running_max: running_max.max(1), waiting_max, state: Mutex::default() })
    }

    /// Queries that run and that wait.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.running, state.waiting.values().map(VecDeque::len).sum())
    }

    pub async fn enter(self: &Arc<Admission>, org: OrgId) -> Result<Permit, AskError> {
        let waits = {
            let mut state = self.state.lock();
            if state.running < self.running_max {
                state.running += 1;
                return Ok(Permit(Arc::clone(self)));
            }
            let all: usize = state.waiting.values().map(VecDeque::len).sum();
            // An organization has at most half of the places, so that there is one for another.
            let own = state.waiting.get(&org).map_or(0, VecDeque::len);
            if all >= self.waiting_max || own >= self.waiting_max.div_ceil(2) {
                return Err(AskError::Busy(format!("{all} queries wait already; ask again in a moment")));
            }
            let (called, waits) = oneshot::channel();
            state.waiting.entry(org).or_default().push_back(called);
            if !state.turns.contains(&org) {
                state.turns.push_back(org);
            }
            waits
        };
        waits.await.map_err(|_| AskError::Unavailable("this node shuts down".into()))
    }

    /// Once nobody else waits.
    pub async fn enter_behind(self: &Arc<Admission>) -> Result<Permit, AskError> {
        let waits = {
            let mut state = self.state.lock();
            if state.running < self.running_max {
                state.running += 1;
                return Ok(Permit(Arc::clone(self)));
            }
            let (called, waits) = oneshot::channel();
            state.behind.push_back(called);
            waits
        };
        waits.await.map_err(|_| AskError::Unavailable("this node shuts down".into()))
    }
}

impl State {
    /// Whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<Permit>> {
        let Some(org) = self.turns.pop_front() else { return self.behind.pop_front() };
        let waiting = self.waiting.get_mut(&org)?;
        let next = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&org);
        } else {
            self.turns.push_back(org);
        }
        next
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.state.lock();
            let next = state.next();
            if next.is_none() {
                state.running -= 1;
            }
            next
        };
        if let Some(next) = next {
            // Where whoever waited is gone, the permit comes back, and goes on to the next when it is dropped.
            drop(next.send(Permit(Arc::clone(&self.0))));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::pin::Pin;
    use std::task::Poll;

    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn what_nobody_waits_for_comes_last() {
        let admission = Admission::new(1, 8);
        let permit = admission.enter(org(1)).await.expect("there is room");
        let behind = Arc::clone(&admission);
        let mut behind: Entering = Box::pin(async move { behind.enter_behind().await });
        assert!(is_in(&mut behind).await.is_none());
        let mut first = enters(&admission, 1);
        assert!(is_in(&mut first).await.is_none());
        drop(permit);
        assert!(is_in(&mut behind).await.is_none());
        let permit = is_in(&mut first).await.expect("its turn").expect("a permit");
        drop(permit);
        let permit = is_in(&mut behind).await.expect("nobody else waits").expect("a permit");
        drop(permit);
        assert_eq!(admission.counts(), (0, 0));
    }

    type Entering = Pin<Box<dyn Future<Output = Result<Permit, AskError>>>>;

    fn org(number: u128) -> OrgId {
        OrgId(Uuid::from_u128(number))
    }

    async fn is_in(entering: &mut Entering) -> Option<Result<Permit, AskError>> {
        poll_fn(|context| match entering.as_mut().poll(context) {
            Poll::Ready(entered) => Poll::Ready(Some(entered)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    fn enters(admission: &Arc<Admission>, number: u128) -> Entering {
        let admission = Arc::clone(admission);
        Box::pin(async move { admission.enter(org(number)).await })
    }

    #[tokio::test]
    async fn organizations_take_turns_and_nobody_waits_for_ever() {
        let admission = Admission::new(1, 8);
        let first = admission.enter(org(1)).await.expect("there is room");
        let mut waiting: Vec<(u128, Entering)> = [1, 1, 1, 2].map(|number| (number, enters(&admission, number))).into();
        for (_, entering) in &mut waiting {
            assert!(is_in(entering).await.is_none());
        }
        assert_eq!(admission.counts(), (1, 4));
        // One that gives up is passed over.
        drop(waiting.remove(1));
        let mut permit = first;
        let mut order = Vec::new();
        while !waiting.is_empty() {
            drop(permit);
            let mut entered = None;
            for (place, (number, entering)) in waiting.iter_mut().enumerate() {
                if let Some(got) = is_in(entering).await {
                    entered = Some((place, *number, got.expect("a permit")));
                    break;
                }
            }
            let (place, number, got) = entered.expect("somebody is let in");
            drop(waiting.remove(place));
            order.push(number);
            permit = got;
        }
        assert_eq!(order, [1, 2, 1]);
        drop(permit);
        assert_eq!(admission.counts(), (0, 0));
    }

    #[tokio::test]
    async fn who_finds_no_place_is_told_at_once() {
        let admission = Admission::new(1, 2);
        let _running = admission.enter(org(1)).await.expect("there is room");
        let mut own = enters(&admission, 1);
        assert!(is_in(&mut own).await.is_none());
        assert!(matches!(admission.enter(org(1)).await, Err(AskError::Busy(_))), "half of the places are its own");
        let mut other = enters(&admission, 2);
        assert!(is_in(&mut other).await.is_none());
        assert!(matches!(admission.enter(org(3)).await, Err(AskError::Busy(_))));
    }
}
