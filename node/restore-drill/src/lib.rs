//! Restore drills: comparison of a restored state with the living server, and the report about it.
//!
//! ```text
//! restored data directory ─> rows and newest write of each object ─┐
//! living server ─ API, by key ─> the same, up to the restored time ┴─> comparison ─> report
//! ```
//! The restored state is opened without a network. The living server goes on meanwhile, so that it has rows that the
//! backup cannot have. Only rows of the time before the restored one are expected.
//!
//! | module | subject |
//! |---|---|
//! | `comparison` | verdicts about objects; pure |
//! | `restored` | objects of a restored state |
//! | `living` | objects of the living server |
//! | `report` | the report as Markdown and JSON; pure |

mod comparison;
mod living;
mod report;
mod restored;

pub use comparison::{ComparedObject, Comparison, DrillKind, DrillVerdict, LivingObject, RestoredObject, compare};
pub use living::{LivingError, LivingServer};
pub use report::{DrillReport, RestoreFigures};
pub use restored::restored_objects;
