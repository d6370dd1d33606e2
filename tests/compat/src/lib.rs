//! Data directories written by released programs, and tests that the current program reads them.
//!
//! ```text
//! releases/0.1.0/      one for each format that was released, named after the program that wrote it; it never changes
//!   data.tar.gz        the data directory, as a kill left it: segments of two tiers, a log with entries that no segment
//!                      has, a blob, records and rows that were changed and deleted
//!   reads.json         a case of `assay-test-api`: what is asked of it, now and at older versions, and the answers
//!   formats.txt        the versions of everything in it, as the code named them
//! writing/*.json       the cases that write one, in this order
//! ```
//! `assay-tests-tidy` holds the newest `formats.txt` against the code: a format that changes needs a release of its own.

pub mod doctor;
pub mod hold;
pub mod record;
pub mod release;
pub mod write;
