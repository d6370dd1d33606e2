//! Rules for the human review of rows by several people.
//!
//! The rules decide visibility, mean scores, and the completion of a review. This crate performs no I/O.
//!
//! Each reviewer has one review per row: a child span of type `review` that only this reviewer changes. The reviewed
//! row holds the mean scores. The row and each of its reviews list the people who submitted a review ([`SUBMITTERS`]).
//! A single row is therefore enough to decide its visibility.
//!
//! | module | subject |
//! |---|---|
//! | `scores` | definitions of human scores: their audience, and whether a review fills them |
//! | `review` | reviews of a row by one person, and changes to them |
//! | `settling` | state derived from all reviews of a row: mean scores, submitters, and completion |
//! | `blindness` | masking of rows until a reviewer submits a review |

mod blindness;
mod review;
mod scores;
mod settling;
#[cfg(test)]
mod tests;

pub use blindness::Blindness;
pub use review::{Change, Review, ReviewError, Reviewer, review_id};
pub use scores::{Condition, HumanScore};
pub use settling::{ReviewedRow, contributed, is_complete_status, settle};

/// Member of `metadata` that lists the ids of people who submitted a review of the row.
pub const SUBMITTERS: &str = "~__review_submitters";
/// Member of `metadata` that lists the ids of people assigned to review the row.
pub const ASSIGNMENTS: &str = "~__bt_assignments";
/// Member of `metadata` that holds the status of the row in each review list.
pub const REVIEW_LISTS: &str = "~__bt_review_lists";
/// Name of the review list that every project has.
pub const DEFAULT_LIST: &str = "__bt_default_review_list";
/// Span type of reviews.
pub const REVIEW_TYPE: &str = "review";
