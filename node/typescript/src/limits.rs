//! Bounds of the source text, and a thread whose stack suffices for the recursion of the parser.
//!
//! Each level of recursion of the parser or of a visitor consumes a bracket, an operator or a keyword: a syntax unit.
//! Their number is thus an upper bound of the depth, for which neither strings nor comments have to be recognized.

use std::sync::Mutex;
use std::thread;

use crate::error::TypeScriptError;

/// Upper bound of the bytes of code.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;
/// Upper bound of the syntax units of code.
pub const SYNTAX_UNITS_MAX: usize = 65_536;
/// Stack of one level of recursion, with a margin over the deepest construct measured.
const STACK_PER_UNIT: usize = 4 << 10;
const STACK_BASE: usize = 512 << 10;
/// Stack above which only one thread runs at a time, which bounds the memory of all of them.
const STACK_SHARED: usize = 16 << 20;
/// Words that can repeat without brackets or operators between them, each one level deeper.
const RECURSIVE_WORDS: [&str; 18] = [
    "abstract",
    "as",
    "asserts",
    "await",
    "delete",
    "do",
    "else",
    "extends",
    "in",
    "infer",
    "instanceof",
    "keyof",
    "new",
    "readonly",
    "satisfies",
    "typeof",
    "unique",
    "void",
];

static LARGE_STACK: Mutex<()> = Mutex::new(());

/// Returns the bytes of stack for the recursion over `source`.
pub(crate) fn stack_of(source: &str) -> Result<usize, TypeScriptError> {
    if source.len() > SOURCE_BYTES_MAX {
        return Err(TypeScriptError::TooLong { bytes: source.len() });
    }
    let units = syntax_units(source.as_bytes());
    if units > SYNTAX_UNITS_MAX {
        return Err(TypeScriptError::TooComplex { units });
    }
    Ok(STACK_BASE + units * STACK_PER_UNIT)
}

/// Runs `work` on a thread with `stack` bytes.
pub(crate) fn on_thread<T: Send>(stack: usize, work: impl FnOnce() -> T + Send) -> Result<T, TypeScriptError> {
    let _one_at_a_time =
        (stack > STACK_SHARED).then(|| LARGE_STACK.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("typescript".to_owned())
            .stack_size(stack)
            .spawn_scoped(scope, work)
            .map_err(|error| TypeScriptError::Thread { reason: error.to_string() })?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn syntax_units(source: &[u8]) -> usize {
    let mut units = 0;
    let mut at = 0;
    while at < source.len() {
        if is_word_byte(source[at]) {
            let length = source[at..].iter().take_while(|&&byte| is_word_byte(byte)).count();
            units += usize::from(is_recursive_word(&source[at..at + length]));
            at += length;
        } else {
            units += usize::from(is_unit(source, at));
            at += 1;
        }
    }
    units
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
}

fn is_recursive_word(word: &[u8]) -> bool {
    word == b"yield" || RECURSIVE_WORDS.iter().any(|recursive| recursive.as_bytes() == word)
}

fn is_unit(source: &[u8], at: usize) -> bool {
    match source[at] {
        // the point of a number, which data may have many of
        b'.' => !source.get(at + 1).is_some_and(u8::is_ascii_digit),
        // the colon after a quoted key, which no label is
        b':' => source[..at].iter().rfind(|byte| !byte.is_ascii_whitespace()) != Some(&b'"'),
        byte => b"([{<>=!?~+-*/%&|^@#`\\".contains(&byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_operators_and_keywords_are_units() {
        assert_eq!(syntax_units(b"f(a)[0].b + !c"), 5);
        assert_eq!(syntax_units(b"void typeof newer"), 2);
        assert_eq!(syntax_units(b"outer: inner: x"), 2);
    }

    #[test]
    fn numbers_names_and_quoted_keys_are_no_units() {
        assert_eq!(syntax_units(br#"1.5, x, "key" : 3; "#), 0);
    }

    #[test]
    fn work_runs_with_the_stack_that_was_asked_for() {
        fn depth(left: usize) -> usize {
            let frame = std::hint::black_box([left; 64]);
            if left == 0 { 0 } else { 1 + depth(frame[0] - 1) }
        }
        assert_eq!(on_thread(64 << 20, || depth(50_000)), Ok(50_000));
    }
}
