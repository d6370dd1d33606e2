//! The transport over real sockets: what arrives, what is refused, what is lost, and what each side is told of it.

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
