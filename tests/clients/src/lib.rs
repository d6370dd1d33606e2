//! Unmodified clients against the built program: each is installed from its public package index at pinned versions,
//! told an address and a key and nothing else, and what it sent is read back.

pub mod javascript;
pub mod kept;
pub mod proxy;
pub mod python;
pub mod suite;
