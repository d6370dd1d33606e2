//! Rendering of guide pages as HTML documents.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use crate::ROOT;
use crate::pages::{PAGES, Page, SUMMARY};

const FIRST_PAGE: &str = "introduction";
/// Style sheet that is embedded in each page.
const STYLE: &str = include_str!("style.css");

/// Returns a page as an HTML document, or `None` if no page has this path.
///
/// The empty path means the first page.
pub fn page(path: &str) -> Option<&'static str> {
    /// Documents by path, rendered only once because pages never change and anyone may request them.
    static RENDERED: LazyLock<BTreeMap<&str, String>> =
        LazyLock::new(|| PAGES.iter().map(|page| (page.path, rendered(page))).collect());
    let path = if path.is_empty() { FIRST_PAGE } else { path };
    RENDERED.get(path).map(String::as_str)
}

fn rendered(page: &Page) -> String {
    let Page { path, markdown: text } = *page;
    let folder = path.rfind('/').map_or("", |end| &path[..=end]);
    let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(path);
    let mut document = String::with_capacity(text.len() * 2);
    document.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    document.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    document.push_str(&escaped(title));
    document.push_str(" - Assay guide</title>\n<style>");
    document.push_str(STYLE);
    document.push_str("</style>\n</head>\n<body>\n<nav aria-label=\"Guide\">\n");
    document.push_str(&navigation(path));
    document.push_str("</nav>\n<main>\n");
    document.push_str(&body(text, folder));
    document.push_str("</main>\n</body>\n</html>\n");
    document
}

/// Renders the list of pages, in which the current page is marked.
fn navigation(current: &str) -> String {
    let mut rendered =
        format!("<p class=\"home\"><a href=\"{ROOT}\">Assay guide</a> <a href=\"/docs\">API reference</a></p>\n");
    let (mut in_list, mut level) = (false, 0);
    for line in SUMMARY.lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            if in_list {
                rendered.push_str("</ul>\n");
                in_list = false;
            }
            if level > 0 {
                rendered.push_str(&format!("<h2>{}</h2>\n", escaped(heading)));
            }
            level += 1;
        } else if let Some((title, path)) = link_of(line) {
            if !in_list {
                rendered.push_str("<ul>\n");
                in_list = true;
            }
            let mark = if path == current { " aria-current=\"page\"" } else { "" };
            rendered.push_str(&format!("<li><a href=\"{ROOT}/{path}\"{mark}>{}</a></li>\n", escaped(title)));
        }
    }
    if in_list {
        rendered.push_str("</ul>\n");
    }
    rendered
}

/// Returns the title and the path of the page to which a line of `SUMMARY.md` links.
pub(crate) fn link_of(line: &str) -> Option<(&str, &str)> {
    let (title, rest) = line.trim_start_matches([' ', '-']).strip_prefix('[')?.split_once("](")?;
    Some((title, rest.strip_suffix(')')?.strip_suffix(".md")?))
}

/// Renders Markdown without raw HTML.
///
/// Headings get anchors, and links to other pages lose the extension.
fn body(text: &str, folder: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut events: Vec<Event<'_>> = Vec::new();
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Html(_) | Event::InlineHtml(_) => {}
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let dest_url = address(&dest_url, folder);
                events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
            }
            Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                let dest_url = format!("{ROOT}/{dest_url}").into();
                events.push(Event::Start(Tag::Image { link_type, dest_url, title, id }));
            }
            event => events.push(event),
        }
    }
    let mut rendered = String::with_capacity(text.len() * 2);
    html::push_html(&mut rendered, with_anchors(events).into_iter());
    rendered
}

/// Gives each heading an identifier derived from its text, as repository browsers do.
fn with_anchors(events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    let mut anchored = Vec::with_capacity(events.len());
    let mut heading: Option<(usize, String)> = None;
    for event in events {
        match &event {
            Event::Start(Tag::Heading { .. }) => heading = Some((anchored.len(), String::new())),
            Event::Text(text) | Event::Code(text) => {
                if let Some((_, name)) = &mut heading {
                    name.push_str(text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some((at, name)) = heading.take()
                    && let Event::Start(Tag::Heading { level, classes, attrs, .. }) = &anchored[at]
                {
                    let (level, classes, attrs) = (*level, classes.clone(), attrs.clone());
                    let id = Some(CowStr::from(anchor(&name)));
                    anchored[at] = Event::Start(Tag::Heading { level, id, classes, attrs });
                }
            }
            _ => {}
        }
        anchored.push(event);
    }
    anchored
}

/// Returns the identifier of a heading: lower case, with hyphens for spaces, and without other punctuation.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the address of a link on a page in a folder.
///
/// Links to pages become absolute, and all other links remain unchanged.
fn address(link: &str, folder: &str) -> CowStr<'static> {
    let (file, rest) =
        link.split_once('#').map_or((link, String::new()), |(file, anchor)| (file, format!("#{anchor}")));
    let Some(page) = file.strip_suffix(".md").filter(|_| !link.contains("://")) else { return link.to_owned().into() };
    match page.strip_prefix("../") {
        None => format!("{ROOT}/{folder}{page}{rest}").into(),
        // Folders are not nested, so one step up is the root.
        Some(page) if !folder.is_empty() && !page.starts_with("../") => format!("{ROOT}/{page}{rest}").into(),
        Some(_) => link.to_owned().into(), // The link leaves the guide.
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_in_the_summary_and_renders_with_a_title() {
        let listed: Vec<&str> = SUMMARY.lines().filter_map(link_of).map(|(_, path)| path).collect();
        for page in PAGES {
            assert!(listed.contains(&page.path) || page.path.starts_with("errors/"), "{} is not listed", page.path);
            let rendered = super::page(page.path).expect("it renders");
            assert!(rendered.contains("<h1") && !rendered.contains("<script"), "{}", page.path);
        }
        for path in listed {
            assert!(super::page(path).is_some(), "{path} is listed and not there");
        }
        assert!(super::page("no-such-page").is_none());
        assert_eq!(super::page(""), super::page("introduction"));
    }

    #[test]
    fn every_link_between_pages_leads_to_a_page_and_a_heading() {
        for page in PAGES {
            let rendered = super::page(page.path).expect("it renders");
            for link in rendered.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let Some(target) = link.strip_prefix(ROOT).map(|rest| rest.trim_start_matches('/')) else {
                    assert!(!link.ends_with(".md") || link.starts_with("../"), "{}: {link}", page.path);
                    continue;
                };
                let (path, wanted) = target.split_once('#').map_or((target, None), |(path, id)| (path, Some(id)));
                let target = super::page(path).unwrap_or_else(|| panic!("{}: no page {link}", page.path));
                if let Some(id) = wanted {
                    assert!(target.contains(&format!("id=\"{id}\"")), "{}: no heading {link}", page.path);
                }
            }
        }
    }

    #[test]
    fn headings_have_anchors_and_raw_html_is_dropped() {
        let rendered =
            body("# Key rotation, `now`\n\n<script>alert(1)</script>\n\n[a](b.md#c) [d](https://e/f.md)", "");
        assert!(rendered.contains("<h1 id=\"key-rotation-now\">"), "{rendered}");
        assert!(!rendered.contains("script"), "{rendered}");
        assert!(rendered.contains("href=\"/docs/guide/b#c\"") && rendered.contains("https://e/f.md"), "{rendered}");
    }

    #[test]
    fn links_of_error_pages_stay_in_their_folder_or_leave_it() {
        assert_eq!(&*address("GoneError.md", "errors/"), "/docs/guide/errors/GoneError");
        assert_eq!(&*address("../limits.md#quotas", "errors/"), "/docs/guide/limits#quotas");
        assert_eq!(&*address("../../tests/README.md", ""), "../../tests/README.md");
    }
}
