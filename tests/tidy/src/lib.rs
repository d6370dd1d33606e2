//! Checks of the workspace itself: which crate may name which, outside libraries by crate, versions stated once, the sizes of
//! files and functions, data of every format, what each area must have.
//!
//! A check is a function from what was read to a list of complaints. `tests/workspace.rs` runs each on this repository and
//! wants none; each module's own tests run it on bad samples and want the complaint, so that a check that can no
//! longer fail is seen. Reads manifests and sources as text; builds nothing.

pub mod areas;
pub mod compose;
pub mod features;
pub mod formats;
pub mod functions;
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
