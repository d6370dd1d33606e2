//! Unmodified clients against the built program: each is installed from its public package index at pinned versions,
//! gets only an address and a key, and its data is read back.

pub mod javascript;
pub mod kept;
pub mod models;
pub mod pages;
pub mod proxy;
pub mod python;
pub mod suite;
