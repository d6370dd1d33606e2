//! Segments against a naive model: what was written is found, read, merged, and survives crashes and flipped bits.

mod columnar;
mod crashes;
mod damage;
mod merging;
mod round_trip;
mod rows;
