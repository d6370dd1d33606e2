//! User guide, whose Markdown pages are built into the program and rendered as HTML without scripts.
//!
//! `SUMMARY.md` lists the pages in order, in the format of mdBook. Links between pages name Markdown files, so they
//! also work in a repository browser. Rendered pages link to addresses without the extension.

mod pages;
mod render;

pub use pages::{Image, image, texts};
pub use render::page;

/// Root path of the guide.
pub const ROOT: &str = "/docs/guide";
