//! Checks of the workspace itself: dependencies between crates, outside libraries by crate, versions stated once, sizes
//! of files and functions, data of every format, required files of each area.
//!
//! A check is a function from the parsed input to a list of complaints. `tests/workspace.rs` runs each on this
//! repository and expects none. Each module's own tests run it on bad samples and expect the complaint, so that a check
//! that can no longer fail is noticed. Reads manifests and sources as text; builds nothing.

pub mod areas;
pub mod chart;
pub mod compose;
pub mod crate_sizes;
pub mod features;
pub mod formats;
pub mod functions;
pub mod fuzz_lock;
pub mod imports;
pub mod libraries;
pub mod packaging;
pub mod prose;
pub mod readme;
pub mod settings;
pub mod sizes;
pub mod sources;
pub mod type_names;
pub mod usual_names;
pub mod workspace;
pub mod yaml;
