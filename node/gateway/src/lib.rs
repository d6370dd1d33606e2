//! The AI gateway: requests of clients in the wire format of one model API, served by servers that may speak another.
//!
//! | module | subject |
//! |---|---|
//! | [`settings`] | the table `gateway` of the configuration |
//! | [`translation`] | requests, responses and streams between any two wire formats |

pub mod settings;
pub mod translation;
