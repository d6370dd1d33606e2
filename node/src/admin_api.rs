//! The administrators' API of a running node. It is one API with three entrances:
//!
//! | entrance | client | serves |
//! |---|---|---|
//! | [`socket`]: a Unix socket in the data directory | `assay admin`, `assay cluster` | all [`requests`] |
//! | [`http_listener`]: `POST /cluster/<operation>` with a [`token`] | `assay cluster --admin URL`, `curl` | cluster operations |
//! | none: the command opens the directory of a stopped node | `assay admin` | administration of records |
//!
//! All of them call the same [`handlers`].

mod drain_warning;
pub mod handlers;
pub mod http_listener;
pub mod requests;
pub mod socket;
pub mod token;
