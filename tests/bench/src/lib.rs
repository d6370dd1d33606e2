//! Benchmarks, and the stream of traces that they use (also used by the chaos tests and other tests).

pub mod generate;
