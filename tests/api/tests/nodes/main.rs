//! Real nodes, one and three, as clients and operators meet them. One program of tests: most of what they do is to wait,
//! and two of them wait at once.

mod admin;
mod admission;
mod at_once;
mod cases;
mod certificates;
mod compose;
mod deletion;
mod dev;
mod export;
mod files;
mod hardening;
mod knocks;
mod limits;
mod lost;
mod machines;
mod malformed;
mod matrix;
mod oidc;
mod program;
mod quotas;
mod retention;
mod scrub;
mod secrets;
mod ways_in;
