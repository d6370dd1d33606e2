//! The AI gateway: requests of clients in the wire format of one model API, served by servers that may speak another.
//!
//! | module | subject |
//! |---|---|
//! | [`translation`] | requests, responses and streams between any two wire formats |

pub mod translation;
