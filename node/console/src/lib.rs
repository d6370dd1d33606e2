//! Server side of the web console: its page and assets, browser sessions, and endpoints outside the public API.
//!
//! | module | subject |
//! |---|---|
//! | `assets` | files of the console, packed at build time or read from `console.dir` |
//! | `page` | responses with these files, and their security headers |
//! | `about` | facts about this server, and an overview of projects |
//! | `access` | `/console/access`: permissions on an object, and the grants behind them |
//! | `cluster` | `/console/cluster` and `/console/usage`: state of the cluster, and storage of an organization |
//! | `comparison` | `/console/compare`: experiments side by side |
//! | `query_trees` | query trees that keep the expressions of callers apart from the query |
//! | `sessions` | `/console/session`: sign-in with a key, current session, and sign-out |
//! | `login` | `/console/login`: sign-in with the OpenID provider |
//! | `tail` | live stream of the rows of a project or an experiment |
//! | `reports` | `/console/csp`: browser reports of policy violations |

mod assets;
mod page;
mod query_trees;

pub mod about;
pub mod access;
pub mod cluster;
pub mod comparison;
pub mod login;
pub mod reports;
pub mod sessions;
pub mod tail;

pub use page::{asset, page};
