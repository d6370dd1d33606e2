//! Functions of texts: LIKE, MATCH, and those of btql.md, section 11.2.

use crate::value::Value;

/// D-55: `%` is any run, `_` one character, a backslash takes the next as it is.
pub fn like(text: &str, pattern: &str, any_case: bool) -> bool {
    let text: Vec<char> = text.chars().collect();
    let pattern: Vec<char> = pattern.chars().collect();
    let pattern = parts(&pattern);
    // Of the pattern so far: after how many characters of the text it can have ended.
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    for part in pattern {
        let mut next = vec![false; text.len() + 1];
        match part {
            Part::Run => {
                let first = ends.iter().position(|end| *end).unwrap_or(ends.len());
                next[first..].fill(true);
            }
            Part::Any | Part::One(_) => {
                for at in 0..text.len() {
                    next[at + 1] = ends[at] && fits(part, text[at], any_case);
                }
            }
        }
        ends = next;
    }
    ends[text.len()]
}

#[derive(Clone, Copy)]
enum Part {
    Run,
    Any,
    One(char),
}

fn parts(pattern: &[char]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < pattern.len() {
        parts.push(match pattern[at] {
            '%' => Part::Run,
            '_' => Part::Any,
            '\\' if at + 1 < pattern.len() => {
                at += 1;
                Part::One(pattern[at])
            }
            other => Part::One(other),
        });
        at += 1;
    }
    parts
}

fn fits(part: Part, found: char, any_case: bool) -> bool {
    match part {
        Part::One(wanted) if any_case => wanted.to_lowercase().eq(found.to_lowercase()),
        Part::One(wanted) => wanted == found,
        Part::Run | Part::Any => true,
    }
}

/// D-61: whether every word of what is searched is found; null if either is.
pub fn matches(found_in: &Value, searched: &Value) -> Option<bool> {
    if found_in.is_null() || searched.is_null() {
        return None;
    }
    let mut found = Vec::new();
    all_words(found_in, &mut found);
    let is_found = |searched: &str| {
        let searched = words(searched);
        !searched.is_empty() && searched.iter().all(|word| found.contains(word))
    };
    Some(match searched {
        Value::Array(of) => of.iter().any(|one| matches!(one, Value::Text(text) if is_found(text))),
        one => one.to_text().is_some_and(|text| is_found(&text)),
    })
}

fn words(text: &str) -> Vec<String> {
    let runs = text.split(|c: char| !c.is_alphanumeric());
    runs.filter(|run| !run.is_empty()).map(str::to_lowercase).collect()
}

/// Collects the words of all keys and all leaves.
fn all_words(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(of) => of.iter().for_each(|element| all_words(element, found)),
        Value::Object(of) => {
            for (key, member) in of {
                found.extend(words(key));
                all_words(member, found);
            }
        }
        leaf => found.extend(leaf.to_text().map(|text| words(&text)).unwrap_or_default()),
    }
}

/// Characters from a place that is counted from one, so many or all.
pub fn substring(text: &str, start: i128, many: Option<i128>) -> Option<String> {
    if many.is_some_and(|many| many < 0) {
        return None;
    }
    let is_within = |place: i128| place >= start && many.is_none_or(|many| place < start + many);
    Some(text.chars().zip(1..).filter(|(_, place)| is_within(*place)).map(|(c, _)| c).collect())
}

/// The first so many; all but the last so many, where it is negative.
pub fn left(text: &str, many: i128) -> String {
    let length = text.chars().count() as i128;
    let many = if many < 0 { length + many } else { many };
    text.chars().zip(0..).filter(|(_, place)| *place < many).map(|(c, _)| c).collect()
}

/// The last so many; all but the first so many, where it is negative.
pub fn right(text: &str, many: i128) -> String {
    let length = text.chars().count() as i128;
    let before = if many < 0 { -many } else { length - many };
    text.chars().zip(0..).filter(|(_, place)| *place >= before).map(|(c, _)| c).collect()
}

/// Returns a part between separators, counted from one, or from the end if negative.
pub fn split_part(text: &str, separator: &str, number: i128) -> Option<String> {
    let parts: Vec<&str> = if separator.is_empty() { vec![text] } else { text.split(separator).collect() };
    let place = match number {
        0 => return None,
        1.. => number - 1,
        _ => parts.len() as i128 + number,
    };
    let part = usize::try_from(place).ok().and_then(|place| parts.get(place));
    Some(part.map_or_else(String::new, |part| (*part).to_owned()))
}

pub fn replace(text: &str, from: &str, to: &str) -> String {
    if from.is_empty() { text.to_owned() } else { text.replace(from, to) }
}

/// Characters to insert, to remove or to replace.
pub fn levenshtein(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (number, from) in left.chars().enumerate() {
        let mut next = vec![number + 1];
        for (place, to) in right.iter().enumerate() {
            let replaced = row[place] + usize::from(from != *to);
            next.push(replaced.min(row[place + 1] + 1).min(next[place] + 1));
        }
        row = next;
    }
    row[right.len()]
}

/// 1 for the same text, 0 for nothing in common.
pub fn similarity(left: &str, right: &str) -> f64 {
    let longest = left.chars().count().max(right.chars().count());
    if longest == 0 { 1.0 } else { 1.0 - levenshtein(left, right) as f64 / longest as f64 }
}
