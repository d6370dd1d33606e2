//! The kinds of records that the API shows, a file each, and those that stand above organizations.

pub(crate) mod api_key;
mod dataset;
pub(crate) mod experiment;
pub(crate) mod organization;
mod project;
pub(crate) mod user;

use assay_storage_model::ObjectKind;

use crate::kind::Kind;
use crate::shape::Shape;

pub use api_key::API_KEY;
pub use dataset::DATASET;
pub use experiment::EXPERIMENT;
pub use project::PROJECT;

/// What is within a project and goes with it.
pub(crate) static WITHIN_PROJECT: [&Kind; 2] = [&EXPERIMENT, &DATASET];

/// The kind whose id names an object of rows. Playgrounds have no kind yet, so nobody finds one.
pub(crate) fn of_object(kind: ObjectKind) -> Option<&'static Kind> {
    match kind {
        ObjectKind::ProjectLogs | ObjectKind::ProjectPrompts => Some(&PROJECT),
        ObjectKind::Experiment => Some(&EXPERIMENT),
        ObjectKind::Dataset => Some(&DATASET),
        ObjectKind::PlaygroundLogs => None,
    }
}

/// A description, a message: what people read.
const PROSE: Shape = Shape::Text { bytes_min: 0, bytes_max: 64 << 10 };
/// A label, a version, a path.
const LINE: Shape = Shape::Text { bytes_min: 0, bytes_max: 4 << 10 };
const NAME: Shape = Shape::Text { bytes_min: 1, bytes_max: crate::kind::NAME_BYTES_MAX };
const TAGS: Shape = Shape::Texts { items_max: 1000, bytes_max: 1024 };
/// Metadata of one record; rows are the place for more.
const METADATA: Shape = Shape::Open { bytes_max: 256 << 10 };
