//! Tests of the transport over real sockets: arrival, refusal, loss, and the results on each side.

mod calls;
mod identities;
mod injected_faults;
mod lifecycle;
mod proxy;
mod raw;
mod relays;
mod silence;
mod streams;
mod town;
