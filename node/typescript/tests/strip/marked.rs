//! Notation for tests: code in which `«` and `»` enclose what becomes white space.

use assay_node_typescript::strip;

/// Code with its types, and the same code without them.
#[derive(Debug)]
pub struct Marked {
    pub source: String,
    pub expected: String,
}

impl Marked {
    /// Reads `«type»`; after `«` may follow `;|`, `(|` or `)|`, the character that takes the place of the type.
    pub fn new(marked: &str) -> Self {
        let (mut source, mut expected) = (String::new(), String::new());
        let mut rest = marked;
        while let Some((before, after)) = rest.split_once('«') {
            let (blank, after) = after.split_once('»').expect("each « has its »");
            source += before;
            expected += before;
            let (mark, blank) = match blank.split_once('|') {
                Some((mark @ (";" | "(" | ")"), blank)) => (mark, blank),
                _ => ("", blank),
            };
            source += blank;
            let mut white: String = blank.chars().map(|c| if c == '\n' || c == '\r' { c } else { ' ' }).collect();
            match mark {
                ")" => white.replace_range(white.len() - 1.., mark),
                "" => {}
                _ => white.replace_range(..1, mark),
            }
            expected += &white;
            rest = after;
        }
        Self { source: source + rest, expected: expected + rest }
    }
}

/// Checks that the marked parts vanish, and nothing else. Returns how many of `cases` there are.
pub fn check(cases: &[&str]) {
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let Marked { source, expected } = Marked::new(case);
            match strip(&source) {
                Ok(stripped) if stripped.text == expected => None,
                Ok(stripped) => Some(format!("{source}\n  gave\n{}\n  not\n{expected}", stripped.text)),
                Err(error) => Some(format!("{source}\n  failed: {error}")),
            }
        })
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n---\n"));
}

#[test]
fn marks_become_white_space_or_the_character_they_name() {
    let marked = Marked::new("a«: b» = «;|c\nd» «)|ef»");
    assert_eq!(marked.source, "a: b = c\nd ef");
    assert_eq!(marked.expected, "a    = ;\n   )");
}
