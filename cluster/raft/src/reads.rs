//! Linearizable reads: fences and the read index.

pub(crate) mod fence;
pub(crate) mod read_index;
