//! The catalog behind consensus.
