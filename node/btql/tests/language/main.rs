//! What the language is, from outside: read, said again, bound, and held against what others read.

mod binding;
mod forms;
mod generated;
mod limits;
mod oracle;
mod round_trips;
