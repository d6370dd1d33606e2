//! Tool for the guide of this server, which needs no network.

use assay_node_guide::{ROOT, texts};
use serde_json::{Value, json};

use crate::arguments::{Argument, ArgumentKind, Arguments};
use crate::bounds::{CONTENT_BYTES_MAX, cut_text, json_len};
use crate::data::ToolFailure;
use crate::tools::rows::NAME;
use crate::tools::{Tool, ToolKind, ToolOutput, cursor_schema, notes_schema, object_schema, objects_schema};

/// Upper bound of the sections that a search finds.
const SECTIONS_MAX: u64 = 10;
/// Upper bound of the bytes of one found section.
const SECTION_BYTES_MAX: usize = 6 << 10;
/// Upper bound of the words of a search. Further words are ignored.
const WORDS_MAX: usize = 20;
/// Weights of a word in the title of a page, in a heading, and in the text of a section.
const TITLE_WEIGHT: f64 = 3.0;
const HEADING_WEIGHT: f64 = 5.0;
/// Upper bound of the occurrences in a text that count.
const OCCURRENCES_MAX: usize = 4;

pub(crate) const SEARCH_DOCS: Tool = Tool {
    kind: ToolKind::SearchDocs,
    name: "search_docs",
    title: "Search the guide",
    about: "Searches the guide of this server: the query language and its functions, SDKs, the API, limits, errors. \
            Pass `page` to read a page, such as query-language.",
    arguments: &[
        Argument::optional("query", NAME, "Words to search for."),
        Argument::optional("page", NAME, "Name of a page to read, as the search returns it."),
        Argument::optional(
            "limit",
            ArgumentKind::Number { least: 1, most: SECTIONS_MAX, default: Some(4) },
            "Upper bound of the sections that a search returns.",
        ),
        Argument::optional("cursor", NAME, "Cursor of the previous answer for the same page."),
    ],
    output: || object_schema(json!({"sections": objects_schema(), "cursor": cursor_schema(), "notes": notes_schema()})),
};

/// Section of a page: a heading with the text below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Section {
    page: &'static str,
    title: &'static str,
    heading: &'static str,
    text: &'static str,
}

/// Returns the sections of a page. A line in a code block is no heading.
fn sections_of(page: &'static str, markdown: &'static str) -> Vec<Section> {
    let title = markdown.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(page);
    let mut sections = Vec::new();
    let (mut heading, mut start, mut at, mut is_code) = (title, 0, 0, false);
    for line in markdown.split_inclusive('\n') {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let next = line.trim_end();
        let found = next.strip_prefix("## ").or_else(|| next.strip_prefix("### ")).filter(|_| !is_code);
        if let Some(found) = found {
            sections.push(Section { page, title, heading, text: markdown[start..at].trim() });
            (heading, start) = (found, at);
        }
        at += line.len();
    }
    sections.push(Section { page, title, heading, text: markdown[start..].trim() });
    sections.retain(|section| !section.text.is_empty());
    sections
}

fn all_sections() -> Vec<Section> {
    texts().flat_map(|(page, markdown)| sections_of(page, markdown)).collect()
}

impl Section {
    fn json(&self, bytes_max: usize) -> Value {
        json!({
            "page": self.page, "title": self.title, "heading": self.heading, "path": format!("{ROOT}/{}", self.page),
            "text": cut_text(self.text, bytes_max).0,
        })
    }
}

pub(crate) fn search_docs(arguments: Arguments<'_>) -> Result<ToolOutput, ToolFailure> {
    match (arguments.text("page"), arguments.text("query")) {
        (Some(page), _) => read_page(page, arguments.offset("cursor")?),
        (None, Some(query)) => Ok(found(query, usize::try_from(arguments.number("limit")).unwrap_or(1))),
        (None, None) => Err(ToolFailure::refused("pass `query` with words to search for, or `page` to read a page")),
    }
}

/// Returns a page from one of its sections on.
fn read_page(page: &str, from: usize) -> Result<ToolOutput, ToolFailure> {
    let page = page.trim_start_matches(ROOT).trim_matches('/').trim_end_matches(".md");
    let Some((path, markdown)) = texts().find(|(path, _)| *path == page) else {
        let known: Vec<&str> = texts().map(|(path, _)| path).filter(|path| !path.contains('/')).collect();
        let page: String = page.chars().take(80).collect();
        return Err(ToolFailure::Refused(format!("the guide has no page `{page}`. Its pages: {}", known.join(" "))));
    };
    let sections = sections_of(path, markdown);
    let (mut shown, mut bytes) = (Vec::new(), 0);
    for section in sections.iter().skip(from) {
        let section = section.json(CONTENT_BYTES_MAX / 2);
        bytes += json_len(&section) + 1;
        if bytes > CONTENT_BYTES_MAX - 1024 {
            break;
        }
        shown.push(section);
    }
    let end = from + shown.len();
    let cursor = (end < sections.len()).then(|| end.to_string());
    Ok(output(shown, cursor, &[]))
}

/// Returns the sections that fit the words best.
fn found(query: &str, limit: usize) -> ToolOutput {
    let sections = all_sections();
    let best = ranked(&sections, query);
    let shown: Vec<Value> = best.iter().take(limit).map(|section| section.json(SECTION_BYTES_MAX)).collect();
    let notes: &[&str] = match shown.is_empty() {
        true => &["no section has these words: try others, or read the page `query-language`, `sdks` or `limits`"],
        false => &[],
    };
    output(shown, None, notes)
}

fn output(sections: Vec<Value>, cursor: Option<String>, notes: &[&str]) -> ToolOutput {
    let structured = json!({"sections": sections, "cursor": cursor, "notes": notes});
    let mut text = String::new();
    for section in structured["sections"].as_array().into_iter().flatten() {
        let part = |name: &str| section[name].as_str().unwrap_or_default();
        text.push_str(&format!("[{}] {}: {}\n{}\n\n", part("page"), part("title"), part("heading"), part("text")));
    }
    for note in notes {
        text.push_str(note);
    }
    ToolOutput { structured, text: Some(text), is_recorded: false }
}

/// Returns the sections with a word of the search, the best first.
///
/// A rare word weighs more than a frequent one, and a word in a heading more than one in the text.
fn ranked<'s>(sections: &'s [Section], query: &str) -> Vec<&'s Section> {
    let lower = |text: &str| text.to_lowercase();
    let words: Vec<String> = lower(query)
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .filter(|word| word.chars().count() > 1)
        .take(WORDS_MAX)
        .map(str::to_owned)
        .collect();
    let texts: Vec<[String; 3]> =
        sections.iter().map(|section| [lower(section.title), lower(section.heading), lower(section.text)]).collect();
    let mut scores = vec![0.0; sections.len()];
    for word in &words {
        let with = texts.iter().filter(|parts| parts[2].contains(word.as_str())).count();
        let rarity = (1.0 + sections.len() as f64 / (1.0 + with as f64)).ln();
        for (score, [title, heading, text]) in scores.iter_mut().zip(&texts) {
            let count = text.matches(word.as_str()).take(OCCURRENCES_MAX).count() as f64;
            let in_title = f64::from(u8::from(title.contains(word.as_str()))) * TITLE_WEIGHT;
            let in_heading = f64::from(u8::from(heading.contains(word.as_str()))) * HEADING_WEIGHT;
            *score += rarity * (count + in_title + in_heading);
        }
    }
    let mut order: Vec<usize> = (0..sections.len()).filter(|index| scores[*index] > 0.0).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    order.into_iter().map(|index| &sections[index]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn searched(arguments: Value) -> Result<Value, ToolFailure> {
        let members: Map<String, Value> = arguments.as_object().expect("an object").clone();
        let declared = SEARCH_DOCS.arguments;
        search_docs(Arguments::check(declared, &members)?).map(|output| output.structured)
    }

    #[test]
    fn a_search_finds_the_section_that_explains_a_word() {
        let found = searched(json!({"query": "full text MATCH operator", "limit": 3})).expect("it finds");
        let pages: Vec<&str> = found["sections"]
            .as_array()
            .expect("sections")
            .iter()
            .map(|one| one["page"].as_str().expect("a page"))
            .collect();
        assert!(pages.contains(&"query-language"), "{pages:?}");
        assert!(found["sections"].as_array().expect("sections").len() <= 3);
        let nothing = searched(json!({"query": "zzqqxx"})).expect("it answers");
        assert_eq!(nothing["sections"], json!([]));
        assert_ne!(nothing["notes"], json!([]));
    }

    #[test]
    fn every_page_is_read_to_its_end() {
        for (page, markdown) in texts() {
            let (mut cursor, mut text) = (Value::Null, String::new());
            loop {
                let answer = searched(json!({"page": page, "cursor": cursor})).expect("it reads");
                assert!(json_len(&answer) <= CONTENT_BYTES_MAX, "{page}");
                for section in answer["sections"].as_array().expect("sections") {
                    text.push_str(section["text"].as_str().expect("a text"));
                }
                cursor = answer["cursor"].clone();
                if cursor.is_null() {
                    break;
                }
            }
            let letters = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).count();
            assert_eq!(letters(&text), letters(markdown), "{page}");
        }
    }

    #[test]
    fn a_wrong_page_names_the_right_ones() {
        let why = searched(json!({"page": "nothing"})).expect_err("it is wrong");
        assert!(matches!(&why, ToolFailure::Refused(why) if why.contains("query-language")), "{why:?}");
        assert!(searched(json!({})).is_err() && searched(json!({"page": "/docs/guide/limits"})).is_ok());
    }

    #[test]
    fn headings_in_code_are_text() {
        let sections = sections_of("p", "# Title\n\nintro\n\n## One\n\n```sh\n## no heading\n```\n\n### Two\nend\n");
        let headings: Vec<&str> = sections.iter().map(|section| section.heading).collect();
        assert_eq!(headings, ["Title", "One", "Two"]);
        assert!(sections[1].text.contains("## no heading"));
    }
}
