//! Runs the test binaries of the workspace side by side.

pub mod binaries;
pub mod durations;
pub mod outcome;
pub mod run;
