//! Prose: the beginnings of doc comments, and the length of sentences for users.

use crate::workspace::Source;

/// Words of a sentence in a text for users.
pub const WORDS_MAX: usize = 25;

/// Doc comments that begin with "Of", without a noun or a verb about their item.
pub fn doc_comments(sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources {
        let mut is_first = true;
        for (number, line) in source.text.lines().enumerate() {
            let line = line.trim_start();
            let Some(text) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
                is_first = true;
                continue;
            };
            if is_first && text.trim_start().starts_with("Of ") {
                complaints.push(format!("{}:{}: begin with a noun or a verb, not with `Of`", source.path, number + 1));
            }
            is_first = text.trim().is_empty();
        }
    }
    complaints
}

/// Sentences of Markdown that are too long. Code, tables, headings and comments are not read.
pub fn markdown(path: &str, text: &str) -> Vec<String> {
    let (mut paragraph, mut begun, mut in_code) = (String::new(), 1, false);
    let mut complaints = Vec::new();
    for (number, line) in text.lines().chain([""]).enumerate() {
        let line = line.trim();
        if line.starts_with("```") {
            in_code = !in_code;
        }
        let ends = in_code || line.is_empty() || line.starts_with(['#', '|', '<', '`']) || is_list_item(line);
        if ends {
            complaints.extend(long_sentences(&paragraph).map(|why| format!("{path}:{begun}: {why}")));
            paragraph.clear();
        }
        let is_prose = !in_code && !line.starts_with(['#', '|', '<']) && !line.starts_with("```");
        if is_prose {
            if paragraph.is_empty() {
                begun = number + 1;
            }
            paragraph.push_str(line);
            paragraph.push(' ');
        }
    }
    complaints
}

fn is_list_item(line: &str) -> bool {
    let number = line.split('.').next().unwrap_or_default();
    line.starts_with("- ")
        || line.starts_with("* ")
        || (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Sentences of error texts that are too long: those of `#[error("...")]`.
pub fn error_texts(sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources {
        for (at, _) in source.text.match_indices("#[error(\"") {
            let text = literal(&source.text[at + "#[error(\"".len()..]);
            let line = source.text[..at].lines().count() + 1;
            complaints.extend(long_sentences(&text).map(|why| format!("{}:{line}: {why}", source.path)));
        }
    }
    complaints
}

/// The text of a literal up to its closing quote.
fn literal(rest: &str) -> String {
    let mut text = String::new();
    let mut characters = rest.chars();
    while let Some(next) = characters.next() {
        match next {
            '"' => break,
            '\\' => match characters.next() {
                Some('\n') => text.push(' '),
                Some(escaped) => text.push(escaped),
                None => break,
            },
            other => text.push(other),
        }
    }
    text
}

fn long_sentences(text: &str) -> impl Iterator<Item = String> {
    let mut sentences = vec![Vec::new()];
    for word in text.split_whitespace() {
        if let Some(sentence) = sentences.last_mut() {
            sentence.push(word);
        }
        if word.trim_end_matches(['`', '"', ')', '*', '_']).ends_with(['.', '?', '!', ':', ';']) {
            sentences.push(Vec::new());
        }
    }
    let long = sentences.into_iter().filter(|words: &Vec<&str>| words.len() > WORDS_MAX);
    let said: Vec<String> =
        long.map(|words| format!("{} words, at most {WORDS_MAX}: {} ...", words.len(), words[..6].join(" "))).collect();
    said.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: usize) -> String {
        vec!["word"; count].join(" ")
    }

    #[test]
    fn a_doc_comment_that_begins_with_of_is_found() {
        let text = "/// Of a group.\nstruct A;\n/// Upper bound\n/// Of them.\nstruct B;\n//! Of a file.\n";
        let source = Source { path: "a.rs".into(), text: text.into() };
        let found = doc_comments(&[source]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("a.rs:1:") && found[1].starts_with("a.rs:6:"));
    }

    #[test]
    fn a_long_sentence_is_found_and_code_is_not_read() {
        let long = words(26);
        let fits = format!("{}. {}.", words(20), words(25));
        let text = format!("# {long}\n\n{fits}\n\n```\n{long}\n```\n\n- {long}\n\n| {long} |\n");
        let found = markdown("a.md", &text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a.md:9: 27 words"), "{found:?}");
    }

    #[test]
    fn a_long_error_text_is_found() {
        let text = format!("#[error(\"{}\")]\nA,\n#[error(\"{} \\\n {}\")]\nB,\n", words(25), words(13), words(13));
        let found = error_texts(&[Source { path: "a.rs".into(), text }]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a.rs:3: 26 words"), "{found:?}");
    }
}
