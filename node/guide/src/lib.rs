//! The user guide: Markdown pages that are built into the program and rendered as HTML without scripts.
//!
//! `SUMMARY.md` lists the pages in order, as mdBook expects it. Links between pages name Markdown files, so that they work
//! in a repository's browser as well; a rendered page links to addresses without the extension.

mod pages;
mod render;

use pages::IMAGES;
pub use render::page;

/// Path below which the guide is served.
pub const ROOT: &str = "/docs/guide";

/// Returns an image of the guide, by its path. All images are SVG.
pub fn image(path: &str) -> Option<&'static str> {
    IMAGES.iter().find(|(name, _)| *name == path).map(|(_, text)| *text)
}
