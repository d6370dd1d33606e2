//! Support for tests of unmodified clients against the built program.
//!
//! Each client is installed from its public package index at a pinned version. It gets only an address and a key, and
//! the tests read its data back.

pub mod faulty_proxy;
pub mod javascript;
pub mod kept;
pub mod models;
pub mod pages;
pub mod proxy;
pub mod pushing;
pub mod python;
pub mod s3_server;
pub mod suite;
