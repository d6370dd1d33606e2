//! Parts of the guide that are made from the program: a test compares them, and writes them anew when it is asked to.

pub mod functions;
pub mod generated;
pub mod settings;
