//! Server side of the web console: the page and its assets inside the program, sessions of browsers, and what the pages
//! ask for beside the API.
//!
//! | module | subject |
//! |---|---|
//! | `assets` | files of the console, packed at build time or read from `console.dir` |
//! | `page` | responses with these files, and the headers that keep them safe |
//! | `about` | facts about this server, and an overview of projects |
//! | `access` | `/console/access`: who may do what, and why |
//! | `comparison` | `/console/compare`: experiments side by side |
//! | `sessions` | `/console/session`: sign in with a key, ask, sign out |
//! | `login` | `/console/login`: sign in with the provider |
//! | `tail` | rows of a project or an experiment as they arrive |
//! | `reports` | `/console/csp`: reports of browsers about violations of the policy |

mod assets;
mod page;
mod query_trees;

pub mod about;
pub mod access;
pub mod comparison;
pub mod login;
pub mod reports;
pub mod sessions;
pub mod tail;

pub use page::{asset, page};
