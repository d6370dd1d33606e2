//! Tests of objects on a real cluster of one node in its own directory: writes, reads, refusals.

mod fixture;
mod reading;
mod refusing;
mod writing;
