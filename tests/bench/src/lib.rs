//! The bench: what is measured, and the stream of traces it is measured with (also used by the storm and by tests).

pub mod generate;
