//! Prose: the beginnings of doc comments, and the length of sentences for users.

use crate::functions::string_literals;
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

/// Sentences of Markdown that are too long. Code, headings and comments are skipped. Each cell of a table is a paragraph.
pub fn markdown(path: &str, text: &str) -> Vec<String> {
    let (mut paragraph, mut begun, mut in_code) = (String::new(), 1, false);
    let mut complaints = Vec::new();
    for (number, line) in text.lines().chain([""]).enumerate() {
        let line = line.trim();
        let is_fence = line.starts_with("```");
        let is_table = !in_code && line.starts_with('|');
        let is_prose = !in_code && !is_fence && !line.is_empty() && !line.starts_with(['#', '|', '<']);
        if !is_prose || is_list_item(line) {
            complaints.extend(long_sentences(&paragraph).into_iter().map(|why| format!("{path}:{begun}: {why}")));
            paragraph.clear();
        }
        if is_prose {
            if paragraph.is_empty() {
                begun = number + 1;
            }
            paragraph.push_str(line);
            paragraph.push(' ');
        }
        if is_table {
            let long = line.replace("\\|", " ").split('|').flat_map(long_sentences).collect::<Vec<_>>();
            complaints.extend(long.into_iter().map(|why| format!("{path}:{}: {why}", number + 1)));
        }
        in_code ^= is_fence;
    }
    complaints
}

fn is_list_item(line: &str) -> bool {
    let number = line.split_once(". ").map_or("", |(number, _)| number);
    line.starts_with("- ")
        || line.starts_with("* ")
        || (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Sentences of texts in product code that are too long: errors, log messages, output and the API's descriptions.
/// Tests, examples and raw strings, which hold data, are skipped.
pub fn texts(sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| is_product(&source.path)) {
        for (line, written) in string_literals(product_code(&source.text)) {
            let long =
                unescaped(&written).replace("</p>", ". ").split("\n\n").flat_map(long_sentences).collect::<Vec<_>>();
            complaints.extend(long.into_iter().map(|why| format!("{}:{line}: {why}", source.path)));
        }
    }
    complaints
}

/// Sentences of the command line's help that are too long: doc comments in files that declare arguments with clap.
/// Indented lines are examples.
pub fn help(sources: &[Source]) -> Vec<String> {
    let declares_arguments = |source: &&Source| source.text.lines().any(|line| line.starts_with("use clap::"));
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| is_product(&source.path)).filter(declares_arguments) {
        let mut paragraph = String::new();
        for (number, line) in product_code(&source.text).lines().chain([""]).enumerate() {
            let text = line.trim_start().strip_prefix("///").unwrap_or_default();
            match text.trim().is_empty() || text.starts_with("    ") {
                false => paragraph.push_str(text),
                true => {
                    complaints.extend(
                        long_sentences(&paragraph).into_iter().map(|why| format!("{}:{number}: {why}", source.path)),
                    );
                    paragraph.clear();
                }
            }
        }
    }
    complaints
}

/// Returns whether a file is part of the product: not a test, an example or a tool.
fn is_product(path: &str) -> bool {
    let is_of_product = ["cluster/", "node/", "storage/"].iter().any(|area| path.starts_with(area));
    is_of_product && !["/tests/", "/tests.rs", "/examples/", "/benches/"].iter().any(|part| path.contains(part))
}

/// The text of a file up to its tests.
fn product_code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or_default()
}

/// The text of a literal, without its escapes.
fn unescaped(written: &str) -> String {
    let mut text = String::new();
    let mut characters = written.chars();
    while let Some(next) = characters.next() {
        match (next, (next == '\\').then(|| characters.next()).flatten()) {
            ('\\', Some('\n')) => text.push(' '),
            ('\\', Some('n')) => text.push('\n'),
            ('\\', Some(escaped)) => text.push(escaped),
            (other, _) => text.push(other),
        }
    }
    text
}

fn long_sentences(text: &str) -> Vec<String> {
    let mut sentences = vec![Vec::new()];
    for word in text.split_whitespace() {
        if let Some(sentence) = sentences.last_mut() {
            sentence.push(word);
        }
        if word.trim_end_matches(['`', '"', ')', '*', '_']).ends_with(['.', '?', '!']) {
            sentences.push(Vec::new());
        }
    }
    let long = sentences.into_iter().filter(|words| words.len() > WORDS_MAX);
    long.map(|words| format!("{} words, at most {WORDS_MAX}: {} ...", words.len(), words[..6].join(" "))).collect()
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
        let text = format!("# {long}\n\n{fits}\n\n```\n{long}\n```\n\n- {long}\n\n<!-- {long} -->\n");
        let found = markdown("a.md", &text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a.md:9: 27 words"), "{found:?}");
    }

    #[test]
    fn cells_of_a_table_are_paragraphs() {
        let text = format!("| {} | {} |\n|---|---|\n| a | {} |\n", words(20), words(20), words(26));
        let found = markdown("a.md", &text);
        assert!(found.len() == 1 && found[0].starts_with("a.md:3: 26 words"), "{found:?}");
    }

    #[test]
    fn a_sentence_ends_neither_at_a_colon_nor_at_a_semicolon() {
        let found = markdown("a.md", &format!("{}: {}; {}.\n", words(10), words(10), words(10)));
        assert!(found.len() == 1 && found[0].starts_with("a.md:1: 30 words"), "{found:?}");
    }

    fn found_in(path: &str, text: &str, check: fn(&[Source]) -> Vec<String>) -> Vec<String> {
        check(&[Source { path: path.into(), text: text.into() }])
    }

    #[test]
    fn a_long_text_of_the_product_is_found() {
        let text = format!("#[error(\"{}\")]\nA,\n#[error(\"{} \\\n {}\")]\nB,\n", words(25), words(13), words(13));
        let found = found_in("node/src/a.rs", &text, texts);
        assert!(found.len() == 1 && found[0].starts_with("node/src/a.rs:3: 26 words"), "{found:?}");
        for path in ["node/tests/a.rs", "node/src/a/tests.rs", "tests/api/src/a.rs"] {
            assert_eq!(found_in(path, &text, texts), Vec::<String>::new());
        }
        let tests = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{ const A: &str = \"{}\"; }}\n", words(26));
        assert_eq!(found_in("node/src/a.rs", &tests, texts), Vec::<String>::new());
    }

    #[test]
    fn a_paragraph_of_html_ends_a_sentence() {
        let text = format!("f(\"<p>{}</p><p>{}</p>\");\n", words(20), words(20));
        assert_eq!(found_in("node/src/a.rs", &text, texts), Vec::<String>::new());
    }

    #[test]
    fn a_long_sentence_of_help_is_found_and_an_example_is_not() {
        let long = words(26);
        let text =
            format!("use clap::Args;\n/// {long}\nA,\n///     {long}\n///\n/// {}\n/// {}\nB,\n", words(13), words(13));
        let found = found_in("node/src/cli.rs", &text, help);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found_in("node/src/cli.rs", &text.replace("use clap::", "use log::"), help), Vec::<String>::new());
    }
}
