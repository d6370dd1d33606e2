//! Requests to leaders, with the retry rules of every request between nodes that concerns a group.
//!
//! R1: A request is sent again only if it certainly had no effect, or if it is repeatable, according to its result.
//! R2: While leaders move, a request is retried until its deadline for that. A busy leader is retried until its own
//!     deadline.
//! R3: The leaders named by a failed request are recorded before the next one is routed.

use std::collections::BTreeMap;
use std::time::Duration;

use assay_cluster_network::{AskError, ServiceNames};
use assay_storage_model::{GroupId, NodeId};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, sleep};

use super::{Prefer, Route};
use crate::{Cluster, Shared};

/// Time for which a read or a write searches for a leader before it is refused. An election takes about a second, and a
/// handover less. With the longest configurable election times, two elections fit into this time.
pub const ROUTE_WAIT_MAX: Duration = Duration::from_secs(25);
/// Pause before a request is routed again.
pub(super) const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(25);
/// Pause before a busy leader is asked again. A leader of version 0.5 waits before it responds, and an older one
/// responds at once.
const BUSY_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Request about a group, with its place among the requests of a call.
#[derive(Debug)]
pub struct LeaderRequest<R> {
    pub place: usize,
    pub group: GroupId,
    pub request: R,
}

/// Requests of a call that are sent concurrently.
#[derive(Debug)]
pub struct Round<R> {
    pub here: Vec<LeaderRequest<R>>,
    pub there: BTreeMap<NodeId, Vec<LeaderRequest<R>>>,
}

/// Result of one attempt at a request.
#[derive(Debug)]
pub enum Attempt<R, T> {
    /// A response, which may be a refusal.
    Done(T),
    /// Another node may serve the request. Sending it again is safe.
    Elsewhere(R),
    /// The node has no capacity yet. Repeating the request is safe.
    Busy(R),
}

/// Request that was not served before its deadline.
#[derive(Debug, PartialEq, Eq)]
pub enum Unserved<R> {
    /// No leader was found. The request certainly had no effect.
    NoLeader(R),
    /// The leader was busy. The request certainly had no effect.
    Busy(R),
    /// The outcome of an attempt is unknown. It may have had an effect.
    Lost,
}

/// Deadlines for retries.
#[derive(Clone, Copy, Debug)]
pub struct RetryUntil {
    /// Deadline while no leader is known, or while leaders move.
    pub leader: Instant,
    /// Deadline while the leader is busy.
    pub busy: Instant,
}

impl<R> Round<R> {
    /// Returns the node that gets the only request of a call, or `None` for this node.
    pub fn node(&self) -> Option<NodeId> {
        self.there.keys().next().copied()
    }
}

impl RetryUntil {
    /// Creates equal deadlines.
    pub fn both(until: Instant) -> RetryUntil {
        RetryUntil { leader: until, busy: until }
    }
}

/// Message to another node about groups, with its encoding.
pub trait LeaderMessage {
    type Response;
    /// Whether the message changes nothing, so that it may be received twice.
    const REPEATABLE: bool;

    fn service(&self) -> ServiceNames;
    fn encode(&self) -> Bytes;
    /// Decodes the response, or returns `None` if that fails.
    fn decode(&self, response: Bytes) -> Option<Self::Response>;
}

/// Call whose requests go to leaders. It defines their preferred replica and an attempt at them.
pub trait LeaderCall: Send {
    type Request: Send;
    type Response: Send;
    type Error: Send;

    /// Returns the preferred replica for the requests of a round.
    fn prefer(&self, _round: usize) -> Prefer {
        Prefer::Leader
    }

    /// Makes an attempt at each request of the round, and returns the attempts with their places. An error ends the
    /// call.
    fn attempt(&mut self, round: Round<Self::Request>) -> impl Future<Output = Attempts<Self>> + Send;
}

/// Attempts at the requests of a round, with their places.
pub type Attempts<C> =
    Result<Vec<(usize, Attempt<<C as LeaderCall>::Request, <C as LeaderCall>::Response>)>, <C as LeaderCall>::Error>;

/// Responses to the requests of a call, in order.
type Responses<C> =
    Result<Vec<Result<<C as LeaderCall>::Response, Unserved<<C as LeaderCall>::Request>>>, <C as LeaderCall>::Error>;

impl Cluster {
    /// Routes each request, makes attempts at each round of them, and routes the retries again.
    ///
    /// The future is boxed, because callers await it deep within their own futures, which would overwhelm the compiler.
    pub fn ask_leaders<'a, C: LeaderCall>(
        &'a self,
        call: &'a mut C,
        requests: Vec<(GroupId, C::Request)>,
        until: RetryUntil,
    ) -> BoxFuture<'a, Responses<C>>
    where
        C::Request: 'a,
    {
        let route = |group, prefer| self.route(group, prefer);
        ask_leaders(call, requests, until, route, || self.is_closing()).boxed()
    }

    /// Sends a message about groups to another node, on behalf of a principal. Records the leaders named by a failure.
    pub async fn send_about<M: LeaderMessage>(
        &self,
        node: NodeId,
        groups: &[GroupId],
        principal: &[u8],
        message: &M,
        within: Duration,
    ) -> Result<M::Response, AskError> {
        self.shared.send_about(node, groups, Some(principal), message, within).await
    }
}

impl Shared {
    pub(super) async fn ask_leaders<C: LeaderCall>(
        &self,
        call: &mut C,
        requests: Vec<(GroupId, C::Request)>,
        until: RetryUntil,
    ) -> Responses<C> {
        ask_leaders(call, requests, until, |group, _| self.route(group), || self.is_closing()).await
    }

    pub(super) async fn send_about<M: LeaderMessage>(
        &self,
        node: NodeId,
        groups: &[GroupId],
        principal: Option<&[u8]>,
        message: &M,
        within: Duration,
    ) -> Result<M::Response, AskError> {
        let (service, body) = match principal {
            Some(principal) => self.addressed(node, message.service(), principal, message.encode()),
            None => (message.service().plain, message.encode()),
        };
        let response = match M::REPEATABLE {
            true => self.net.ask_repeatable(node, service, body, within).await,
            false => self.net.ask(node, service, body, within).await,
        };
        match response {
            Ok(response) => message.decode(response).ok_or_else(|| {
                let why = "its response cannot be decoded; both nodes have to run consecutive versions".into();
                AskError::Unknown { node, why }
            }),
            Err(error) => {
                groups.iter().for_each(|group| self.note_failure(*group, node, &error));
                Err(error)
            }
        }
    }

    /// Records the leader that a failure names, so that the next request avoids the failed node. A busy node still
    /// leads.
    pub(super) fn note_failure(&self, group: GroupId, node: NodeId, error: &AskError) {
        match error {
            AskError::NotLeader { leader, .. } => self.note_leader(group, node, *leader),
            AskError::Busy { .. } => {}
            AskError::NotReached { .. } | AskError::Refused { .. } | AskError::Unknown { .. } => {
                self.note_leader(group, node, None);
            }
        }
    }
}

async fn ask_leaders<C: LeaderCall>(
    call: &mut C,
    requests: Vec<(GroupId, C::Request)>,
    until: RetryUntil,
    route: impl Fn(GroupId, Prefer) -> Route,
    is_closing: impl Fn() -> bool,
) -> Responses<C> {
    let groups: Vec<GroupId> = requests.iter().map(|(group, _)| *group).collect();
    let mut responses: Vec<Result<C::Response, _>> = groups.iter().map(|_| Err(Unserved::Lost)).collect();
    let mut pending = Vec::with_capacity(requests.len());
    for (place, (group, request)) in requests.into_iter().enumerate() {
        pending.push(LeaderRequest { place, group, request });
    }
    for number in 0.. {
        let prefer = call.prefer(number);
        let (round, mut unrouted) = split(pending, |group| route(group, prefer));
        let mut busy = Vec::new();
        if !(round.here.is_empty() && round.there.is_empty()) {
            for (place, attempt) in call.attempt(round).await? {
                let again = |request| LeaderRequest { place, group: groups[place], request };
                match attempt {
                    Attempt::Done(response) => responses[place] = Ok(response),
                    Attempt::Elsewhere(request) => unrouted.push(again(request)),
                    Attempt::Busy(request) => busy.push(again(request)),
                }
            }
        }
        let (now, closing) = (Instant::now(), is_closing());
        if closing || now >= until.leader {
            unrouted.drain(..).for_each(|one| responses[one.place] = Err(Unserved::NoLeader(one.request)));
        }
        if closing || now >= until.busy {
            busy.drain(..).for_each(|one| responses[one.place] = Err(Unserved::Busy(one.request)));
        }
        let again_after = if busy.is_empty() { ASKED_AGAIN_AFTER } else { BUSY_AGAIN_AFTER };
        pending = unrouted;
        pending.append(&mut busy);
        if pending.is_empty() {
            break;
        }
        sleep(again_after).await;
    }
    Ok(responses)
}

/// Groups requests by node, and also returns those without a route.
fn split<R>(pending: Vec<LeaderRequest<R>>, route: impl Fn(GroupId) -> Route) -> (Round<R>, Vec<LeaderRequest<R>>) {
    let mut round = Round { here: Vec::new(), there: BTreeMap::new() };
    let mut unrouted = Vec::new();
    for one in pending {
        match route(one.group) {
            Route::Here => round.here.push(one),
            Route::There(node) => round.there.entry(node).or_default().push(one),
            Route::Nobody => unrouted.push(one),
        }
    }
    (round, unrouted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: GroupId = GroupId(16);
    const OTHER: GroupId = GroupId(17);
    const WAIT: Duration = Duration::from_secs(5);

    /// Call whose attempts depend on the number of earlier attempts, the node (1 is this one) and the request.
    struct Decided<F> {
        decide: F,
        rounds: usize,
        sent: Vec<(usize, u64, &'static str)>,
    }

    impl<F> LeaderCall for Decided<F>
    where
        F: FnMut(usize, u64, &'static str) -> Result<Attempt<&'static str, u64>, String> + Send,
    {
        type Request = &'static str;
        type Response = u64;
        type Error = String;

        async fn attempt(&mut self, round: Round<&'static str>) -> Attempts<Self> {
            let there = round.there.into_iter().flat_map(|(node, all)| all.into_iter().map(move |one| (node.0, one)));
            let mut attempts = Vec::new();
            for (node, one) in round.here.into_iter().map(|one| (1, one)).chain(there) {
                self.sent.push((self.rounds, node, one.request));
                attempts.push((one.place, (self.decide)(self.rounds, node, one.request)?));
            }
            self.rounds += 1;
            Ok(attempts)
        }
    }

    fn decided<F>(decide: F) -> Decided<F> {
        Decided { decide, rounds: 0, sent: Vec::new() }
    }

    fn until() -> RetryUntil {
        RetryUntil { leader: Instant::now() + WAIT, busy: Instant::now() + 2 * WAIT }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_follows_its_leader() {
        let mut call =
            decided(|_, node, request| Ok(if node == 3 { Attempt::Done(node) } else { Attempt::Elsewhere(request) }));
        let routes = [Route::Nobody, Route::Here, Route::There(NodeId(2)), Route::There(NodeId(3))];
        let routed = std::cell::Cell::new(0);
        let route = |_, _| {
            routed.set(routed.get() + 1);
            routes[routed.get() - 1]
        };
        let done = ask_leaders(&mut call, vec![(GROUP, "a")], until(), route, || false).await;
        assert_eq!(done, Ok(vec![Ok(3)]));
        assert_eq!(call.sent, [(0, 1, "a"), (1, 2, "a"), (2, 3, "a")]);
    }

    #[tokio::test(start_paused = true)]
    async fn each_reason_to_wait_has_its_deadline() {
        let begun = Instant::now();
        let mut call = decided(|_, _, request| Ok(Attempt::Busy(request)));
        let nobody = ask_leaders(&mut call, vec![(GROUP, "a")], until(), |_, _| Route::Nobody, || false).await;
        assert_eq!(nobody, Ok(vec![Err(Unserved::NoLeader("a"))]));
        assert!((WAIT..2 * WAIT).contains(&begun.elapsed()) && call.sent.is_empty(), "{:?}", begun.elapsed());
        let begun = Instant::now();
        let busy = ask_leaders(&mut call, vec![(GROUP, "a")], until(), |_, _| Route::Here, || false).await;
        assert_eq!(busy, Ok(vec![Err(Unserved::Busy("a"))]));
        assert!(begun.elapsed() >= 2 * WAIT && call.sent.len() <= 51, "{:?}, {}", begun.elapsed(), call.sent.len());
        call.sent.clear();
        let closing = ask_leaders(&mut call, vec![(GROUP, "a")], until(), |_, _| Route::Here, || true).await;
        assert_eq!((closing, call.sent.len()), (Ok(vec![Err(Unserved::Busy("a"))]), 1), "a node that stops asks once");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_one_call_are_sent_by_node_and_keep_their_places() {
        let mut call = decided(|round, node, request| match (round, request) {
            (0, "c") => Ok(Attempt::Elsewhere(request)),
            _ => Ok(Attempt::Done(node)),
        });
        let route = |group, _| if group == GROUP { Route::Here } else { Route::There(NodeId(2)) };
        let requests = vec![(OTHER, "a"), (GROUP, "b"), (OTHER, "c")];
        let done = ask_leaders(&mut call, requests, until(), route, || false).await;
        assert_eq!(done, Ok(vec![Ok(2), Ok(1), Ok(2)]));
        assert_eq!(call.sent, [(0, 1, "b"), (0, 2, "a"), (0, 2, "c"), (1, 2, "c")]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_ends_the_call() {
        let mut call = decided(|_, _, _| Err("refused".to_owned()));
        let ended = ask_leaders(&mut call, vec![(GROUP, "a")], until(), |_, _| Route::Here, || false).await;
        assert_eq!(ended, Err("refused".to_owned()));
    }
}
