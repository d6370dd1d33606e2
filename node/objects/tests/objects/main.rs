//! Objects on a real cluster of one in a directory of its own: writes, reads, refusals.

mod fixture;
mod reading;
mod refusing;
mod writing;
