//! Server side of the web console: the page and its assets inside the program, and sessions of browsers.
//!
//! | module | subject |
//! |---|---|
//! | `assets` | files of the console, packed at build time or read from `console.dir` |
//! | `page` | responses with these files, and the headers that keep them safe |
//! | `sessions` | `/console/session`: sign in with a key, ask, sign out |
//! | `reports` | `/console/csp`: reports of browsers about violations of the policy |

mod assets;
mod page;

pub mod reports;
pub mod sessions;

pub use page::{asset, page};
