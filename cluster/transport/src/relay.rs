//! Relay of calls and streams through another node while the direct path does not respond.
//!
//! ```text
//!   origin ──relay.call──> relay ──relay.deliver──> receiver
//! ```
//! Both bodies are a [`Wrapped`] call. It names the receiver on the way to the relay, and the origin on the way to the
//! receiver.
//!
//! - R1: there is one hop. A relay uses its own connections to the receiver and never another relay. It refuses a
//!   wrapped call to a service of this module.
//! - R2: the relay takes the origin's name from the origin's certificate. The receiver authenticates the relay by its
//!   certificate and trusts the origin that the relay names. Handlers get both (`Received::from`, `Received::via`). The
//!   processes named by a call are those of the origin and the receiver, never the relay's.
//! - R3: `NotReached` keeps its meaning. A relay returns [`NOT_REACHED`] only if no handler of the receiver got the
//!   call. An uncertain outcome is `Unknown`.
//! - R4: the request bodies and calls that a relay carries concurrently are limited. Calls above the limit are refused
//!   as not reached.

use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::sabotage::{self, Sabotage};
use assay_storage_model::{GroupId, NodeId, ReplicaId};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryFutureExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::call::{Address, ByteStream, Call, CallError, Lane, Processes};
use crate::call_headers::Form;
use crate::frame::MESSAGE_BYTES_MAX;
use crate::handlers::Received;
use crate::peer::Peer;
use crate::refusal::{Refusal, RefusalCode};
use crate::transport::Transport;

/// Service with which an origin asks a relay to forward a call. A call and a stream have the same name.
pub const RELAY_CALL: &str = "relay.call";
/// Service with which a relay delivers to the receiver.
pub const RELAY_DELIVER: &str = "relay.deliver";
const PREFIX: &str = "relay.";

/// Detail of the refusal by a relay that did not reach the receiver.
const NOT_REACHED: &[u8] = b"not reached";
/// Version of the layout of [`Wrapped`].
const LAYOUT: u8 = 1;
/// Upper bound of the bytes of a wrapped call besides its body.
const BESIDE_BODY_BYTES: usize = 256;
/// Upper bound of the body of a relayed call.
const RELAYED_BYTES_MAX: usize = MESSAGE_BYTES_MAX - BESIDE_BODY_BYTES;
/// Upper bound of the calls and streams that a node relays concurrently.
const RELAYED_AT_ONCE_MAX: usize = 512;
/// Upper bound of the bodies that a node relays concurrently, in units.
const BODIES_BYTES_MAX: usize = 160 << 20;
const BODY_UNIT_BYTES: usize = 1 << 10;
/// Number of relays that are tried for one call.
const RELAYS_TRIED_MAX: usize = 2;

const _: () = assert!(RELAYED_BYTES_MAX < BODIES_BYTES_MAX);

/// Budget of the calls and bytes that a node relays concurrently.
#[derive(Debug)]
pub(crate) struct RelayBudget {
    calls: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
}

impl Default for RelayBudget {
    fn default() -> RelayBudget {
        let places = |places| Arc::new(Semaphore::new(places));
        RelayBudget { calls: places(RELAYED_AT_ONCE_MAX), bodies: places(BODIES_BYTES_MAX / BODY_UNIT_BYTES) }
    }
}

impl RelayBudget {
    fn take(&self, body_bytes: usize) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let units = u32::try_from(body_bytes / BODY_UNIT_BYTES).ok()?;
        let call = Arc::clone(&self.calls).try_acquire_owned().ok()?;
        Some((call, Arc::clone(&self.bodies).try_acquire_many_owned(units).ok()?))
    }
}

/// Call that is the body of another call.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wrapped {
    /// Receiver on the way to the relay, and origin on the way to the receiver.
    node: NodeId,
    lane: Lane,
    address: Option<Address>,
    /// Processes of the origin and of the receiver.
    processes: Option<Processes>,
    service: String,
    body: Bytes,
}

impl Wrapped {
    /// Encodes the call.
    ///
    /// The fields are: layout u8, node u64, lane u8, address flag u8, and the three u64 of the address. Then follow:
    /// count of processes u8, a u128 for each process, service length u8, service, and body.
    fn encode(&self) -> Bytes {
        let mut into = BytesMut::with_capacity(self.body.len() + BESIDE_BODY_BYTES);
        into.put_u8(LAYOUT);
        into.put_u64_le(self.node.0);
        into.put_u8(u8::from(self.lane == Lane::Bulk));
        into.put_u8(u8::from(self.address.is_some()));
        if let Some(Address { group, from, to }) = self.address {
            [group.0, from.0, to.0].into_iter().for_each(|number| into.put_u64_le(number));
        }
        let named = self.processes.map_or([None, None], |both| [Some(both.from), both.to]);
        into.put_u8(if named[1].is_some() { 2 } else { u8::from(named[0].is_some()) });
        named.into_iter().flatten().for_each(|number| into.put_u128_le(number));
        into.put_u8(u8::try_from(self.service.len()).expect("names of services are short"));
        into.put_slice(self.service.as_bytes());
        into.put_slice(&self.body);
        into.freeze()
    }

    fn decode(mut from: Bytes) -> Option<Wrapped> {
        if from.try_get_u8().ok()? != LAYOUT {
            return None;
        }
        let node = NodeId(from.try_get_u64_le().ok()?);
        let lane = if from.try_get_u8().ok()? == 1 { Lane::Bulk } else { Lane::Control };
        let address = match from.try_get_u8().ok()? {
            0 => None,
            _ => Some(Address {
                group: GroupId(from.try_get_u64_le().ok()?),
                from: ReplicaId(from.try_get_u64_le().ok()?),
                to: ReplicaId(from.try_get_u64_le().ok()?),
            }),
        };
        let processes = match from.try_get_u8().ok()? {
            0 => None,
            1 => Some(Processes { from: from.try_get_u128_le().ok()?, to: None }),
            2 => Some(Processes { from: from.try_get_u128_le().ok()?, to: Some(from.try_get_u128_le().ok()?) }),
            _ => return None,
        };
        let length = usize::from(from.try_get_u8().ok()?);
        if length > from.remaining() {
            return None;
        }
        let service = String::from_utf8(from.split_to(length).to_vec()).ok()?;
        (!service.starts_with(PREFIX)).then_some(Wrapped { node, lane, address, processes, service, body: from }) // R1
    }

    fn of(received: &Received) -> Result<Wrapped, Refusal> {
        let bad = || Refusal::new(RefusalCode::BadRequest, "the relayed call cannot be decoded");
        Wrapped::decode(received.body.clone()).ok_or_else(bad)
    }

    /// Unwraps the call for its handler, as if it had come directly.
    fn unwrap(self, relay: Option<NodeId>, within: Duration) -> Received {
        let Wrapped { node, address, processes, body, .. } = self;
        Received { from: Some(node), via: relay, address, processes, body, within }
    }
}

fn not_reached(why: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::Unavailable, why).with_detail(Bytes::from_static(NOT_REACHED))
}

/// Returns the response of a relay to a call that the receiver did not answer (R3).
fn at_relay(error: CallError) -> Refusal {
    match error {
        CallError::NotReached(why) => not_reached(why),
        // The receiver's version does not accept relayed calls, or the receiver has no such service.
        CallError::Refused(refusal) if refusal.code == RefusalCode::NoService => not_reached(refusal.why),
        CallError::Refused(refusal) => refusal,
        CallError::Lost(why) => Refusal::new(RefusalCode::Unknown, why),
    }
}

/// Converts the error of a relay to the error that the origin returns.
fn at_origin(error: CallError) -> CallError {
    match error {
        CallError::Refused(refusal) if refusal.detail == NOT_REACHED => CallError::NotReached(refusal.why),
        CallError::Refused(refusal) if refusal.code == RefusalCode::Unknown => CallError::Lost(refusal.why),
        other => other,
    }
}

/// Function that sends a call or a stream to one peer over its own connections.
type SendVia<'s, Answer> = &'s (dyn Fn(NodeId, Arc<Peer>, Call) -> BoxFuture<'s, Result<Answer, CallError>> + Sync);

impl Transport {
    /// Sends a call through peers in turn until one reaches `to`. Returns `NotReached` if none does.
    async fn through<Answer>(
        &self,
        (to, path): (NodeId, &Arc<Peer>),
        (call, form): (&Call, Form),
        ends: Instant,
        send: SendVia<'_, Answer>,
    ) -> Result<Answer, CallError> {
        let now = Instant::now();
        let mut why = "no other node can relay it".to_owned();
        let may_be_relayed = path.path.may_be_relayed(now) && !sabotage::is(Sabotage::NoRelay);
        if !may_be_relayed || call.body.len() > RELAYED_BYTES_MAX || now >= ends {
            return Err(CallError::NotReached(why));
        }
        let relays = self.relays(to, path.path.via());
        if relays.is_empty() {
            return Err(CallError::NotReached(why));
        }
        let Call { address, processes, lane, ref body, .. } = *call;
        let (service, body) = (call.service.to_owned(), body.clone());
        let wrapped = Wrapped { node: to, lane, address, processes, service, body };
        let body = wrapped.encode();
        for (via, peer) in relays {
            let within = if form == Form::Stream { call.within() } else { ends.duration_since(Instant::now()) };
            let outer =
                Call { service: RELAY_CALL, address: None, processes: None, body: body.clone(), within, ..*call };
            match send(via, Arc::clone(&peer), outer).await.map_err(at_origin) {
                Err(CallError::NotReached(reason)) => why = format!("node {via}: {reason}"),
                Err(CallError::Refused(refusal)) if refusal.code == RefusalCode::NoService => {
                    peer.path.does_not_relay(Instant::now());
                    why = format!("node {via} relays no calls");
                }
                done => {
                    path.path.reached_via(via);
                    path.traffic.relayed();
                    return done;
                }
            }
        }
        path.path.relayed_in_vain(Instant::now());
        Err(CallError::NotReached(why))
    }

    /// Returns the responding peers that may relay, beginning with the last successful one.
    fn relays(&self, to: NodeId, last: Option<NodeId>) -> Vec<(NodeId, Arc<Peer>)> {
        let now = Instant::now();
        let mut relays = self.peers_where(|node, peer| node != to && peer.path.relays(now));
        relays.sort_by_key(|(node, _)| (Some(*node) != last, *node));
        relays.truncate(RELAYS_TRIED_MAX);
        relays
    }

    pub(crate) async fn call_through(
        &self,
        to: NodeId,
        peer: &Arc<Peer>,
        call: &Call,
        ends: Instant,
    ) -> Result<Bytes, CallError> {
        let send = |via: NodeId, relay: Arc<Peer>, outer: Call| {
            async move { self.call_directly(via, &relay, &outer, ends).await }.boxed()
        };
        self.through((to, peer), (call, Form::Call), ends, &send).await
    }

    pub(crate) async fn stream_through(
        &self,
        to: NodeId,
        peer: &Arc<Peer>,
        call: &Call,
        ends: Instant,
    ) -> Result<ByteStream, CallError> {
        let send = |via: NodeId, relay: Arc<Peer>, outer: Call| {
            async move {
                let chunks = self.stream_directly(via, &relay, &outer, ends).await?;
                Ok(chunks.map(|chunk| chunk.map_err(at_origin)).boxed())
            }
            .boxed()
        };
        self.through((to, peer), (call, Form::Stream), ends, &send).await
    }

    /// Returns the call that a relay makes, with its reservation in the budget.
    ///
    /// Returns a refusal if the receiver does not respond to this node either (R1).
    fn onward(&self, received: &Received) -> Result<Onward, Refusal> {
        let stranger =
            || Refusal::new(RefusalCode::NotAuthenticated, "only nodes of the cluster may call this service");
        let origin = received.from.ok_or_else(stranger)?;
        let wrapped = Wrapped::of(received)?;
        let to = wrapped.node;
        let peer = self.peer(to).map_err(at_relay)?;
        if peer.path.is_down() {
            return Err(not_reached(format!("node {to} does not respond here either")));
        }
        let reserved = self
            .relay_budget()
            .take(wrapped.body.len())
            .ok_or_else(|| not_reached("too many calls are being relayed"))?;
        let lane = wrapped.lane;
        let body = Wrapped { node: origin, ..wrapped }.encode();
        let call = Call { lane, ..Call::new(RELAY_DELIVER, body, received.within) };
        Ok(Onward { to, peer, call, _reserved: reserved })
    }

    /// Handles [`RELAY_CALL`]. The registering layer must check that the origin is still part of the cluster.
    pub fn pass_on(&self, received: Received) -> BoxFuture<'static, Result<Bytes, Refusal>> {
        let transport = self.clone();
        async move {
            let onward = transport.onward(&received)?;
            let ends = Instant::now() + onward.call.within();
            transport.call_directly(onward.to, &onward.peer, &onward.call, ends).await.map_err(at_relay)
        }
        .boxed()
    }

    /// Handles [`RELAY_CALL`] for streams.
    pub fn pass_stream_on(&self, received: Received) -> BoxStream<'static, Result<Bytes, Refusal>> {
        let transport = self.clone();
        let opened = async move {
            let onward = transport.onward(&received)?;
            let ends = Instant::now() + onward.call.within();
            let chunks =
                transport.stream_directly(onward.to, &onward.peer, &onward.call, ends).await.map_err(at_relay)?;
            // The reservation is held until the stream ends.
            Ok(chunks.map(move |chunk| {
                let _held = &onward;
                chunk.map_err(at_relay)
            }))
        };
        opened.try_flatten_stream().boxed()
    }

    /// Handles [`RELAY_DELIVER`]: passes the wrapped call to its handler as a call of its origin.
    pub fn deliver(&self, received: Received) -> BoxFuture<'static, Result<Bytes, Refusal>> {
        let found = Wrapped::of(&received).and_then(|wrapped| {
            let handler = self.call_handler(&wrapped.service).ok_or_else(|| no_service(&wrapped.service))?;
            Ok(handler.call(wrapped.unwrap(received.from, received.within)))
        });
        async move { found?.await }.boxed()
    }

    /// Handles [`RELAY_DELIVER`] for streams.
    pub fn deliver_stream(&self, received: Received) -> BoxStream<'static, Result<Bytes, Refusal>> {
        let found = Wrapped::of(&received).and_then(|wrapped| {
            let handler = self.stream_handler(&wrapped.service).ok_or_else(|| no_service(&wrapped.service))?;
            Ok(handler.stream(wrapped.unwrap(received.from, received.within)))
        });
        match found {
            Ok(chunks) => chunks,
            Err(refusal) => futures::stream::iter([Err(refusal)]).boxed(),
        }
    }
}

struct Onward {
    to: NodeId,
    peer: Arc<Peer>,
    call: Call,
    _reserved: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

fn no_service(service: &str) -> Refusal {
    Refusal::new(RefusalCode::NoService, format!("there is no service `{service}` here"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(service: &str, address: Option<Address>) -> Wrapped {
        let body = Bytes::from_static(b"body");
        Wrapped { node: NodeId(7), lane: Lane::Bulk, address, processes: None, service: service.into(), body }
    }

    #[test]
    fn a_wrapped_call_reads_back_and_a_cut_or_nested_one_does_not() {
        let address = Address { group: GroupId(16), from: ReplicaId(1), to: ReplicaId(2) };
        let named = |to| Wrapped {
            processes: Some(Processes { from: u128::MAX - 1, to }),
            ..wrapped("raft.append", Some(address))
        };
        let plain = [wrapped("raft.append", Some(address)), wrapped("cluster.status", None)];
        for one in plain.into_iter().chain([named(None), named(Some(5))]) {
            assert_eq!(Wrapped::decode(one.encode()), Some(one.clone()));
            let head = one.encode().len() - one.body.len();
            (0..head).for_each(|cut| assert_eq!(Wrapped::decode(one.encode().slice(..cut)), None, "{cut}"));
        }
        for nested in [RELAY_CALL, RELAY_DELIVER] {
            assert_eq!(Wrapped::decode(wrapped(nested, None).encode()), None, "one hop only");
        }
        let mut newer = wrapped("cluster.status", None).encode().to_vec();
        newer[0] = LAYOUT + 1;
        assert_eq!(Wrapped::decode(Bytes::from(newer)), None);
    }

    #[test]
    fn what_was_surely_not_done_stays_so_over_a_relay_and_the_rest_does_not_become_it() {
        let over = |error: CallError| at_origin(CallError::Refused(at_relay(error)));
        assert!(matches!(over(CallError::NotReached("x".into())), CallError::NotReached(_)));
        assert!(matches!(over(CallError::Lost("x".into())), CallError::Lost(_)));
        for code in RefusalCode::ALL {
            let refusal = Refusal::new(code, "x").with_detail(Bytes::from_static(b"detail"));
            let heard = over(CallError::Refused(refusal.clone()));
            match code {
                RefusalCode::NoService => assert!(matches!(heard, CallError::NotReached(_)), "{heard:?}"),
                RefusalCode::Unknown => assert!(matches!(heard, CallError::Lost(_)), "{heard:?}"),
                _ => assert_eq!(heard, CallError::Refused(refusal)),
            }
        }
    }

    #[test]
    fn a_relay_carries_no_more_than_it_has_room_for() {
        let budget = RelayBudget::default();
        let first = budget.take(BODIES_BYTES_MAX / 2 + 1).expect("the budget has space");
        assert!(budget.take(BODIES_BYTES_MAX / 2 + BODY_UNIT_BYTES).is_none());
        drop(first);
        let all: Vec<_> = (0..RELAYED_AT_ONCE_MAX).map(|_| budget.take(0).expect("the budget has space")).collect();
        assert!(budget.take(0).is_none());
        drop(all);
        assert!(budget.take(0).is_some());
    }
}
