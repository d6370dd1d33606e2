//! Checks of the house itself: who may import whom, one outside library to a room, versions said once, the sizes of
//! files and functions, data of every format, what each wing must have.
//!
//! A check is a function from what was read to a list of complaints. `tests/house.rs` runs each on this repository and
//! wants none; each module's own tests run it on bad samples and want the complaint, so that a check that can no
//! longer fail is seen. Reads manifests and sources as text; builds nothing.

pub mod compose;
pub mod features;
pub mod formats;
pub mod functions;
pub mod house;
pub mod imports;
pub mod packaging;
pub mod prose;
pub mod readme;
pub mod rooms;
pub mod settings;
pub mod sizes;
pub mod sources;
pub mod type_names;
pub mod usual_names;
pub mod wings;
pub mod yaml;
