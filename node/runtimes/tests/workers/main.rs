//! Workers of both languages, driven by frames over their channel. They run without a jail.

mod bundles;
mod calls;
mod consoles;
mod evaluations;
mod failures;
mod harness;
mod inline;
mod network;
mod results;
mod servers;
mod speed;
mod traces;
