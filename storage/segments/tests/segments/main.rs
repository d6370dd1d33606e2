//! Segments against a naive model: written rows are found, read and merged, and survive crashes and flipped bits.

mod columnar;
mod crashes;
mod damage;
mod merging;
mod round_trip;
mod rows;
