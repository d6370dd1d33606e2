//! Parser of a test binary's output.

use std::ops::AddAssign;

/// Counts from the last line of a test binary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
    pub ignored: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

impl Counts {
    /// Sums all lines such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
    pub fn parse(output: &str) -> Counts {
        let mut counts = Counts::default();
        for line in output.lines().filter_map(|line| line.strip_prefix("test result: ")) {
            let words: Vec<&str> = line.split([' ', ';']).filter(|word| !word.is_empty()).collect();
            for pair in words.windows(2) {
                let Ok(number) = pair[0].parse::<u64>() else { continue };
                match pair[1] {
                    "passed" => counts.passed += number,
                    "failed" => counts.failed += number,
                    "ignored" => counts.ignored += number,
                    _ => {}
                }
            }
        }
        counts
    }
}

/// Names of the tests that failed, as libtest prints them.
pub fn failed_tests(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
}

/// Returns the lines that explain failures: each panic and the lines after it, up to `lines_max` lines in all.
pub fn panics(output: &str, lines_max: usize) -> Vec<&str> {
    const SHOWN_OF_EACH: usize = 4;
    let mut left = 0;
    let shown = output.lines().filter(|line| {
        if line.contains("' panicked at ") || line.contains(") panicked at ") {
            left = SHOWN_OF_EACH;
        }
        let is_shown = left > 0 && !line.is_empty();
        left = left.saturating_sub(1);
        is_shown
    });
    shown.take(lines_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 3 tests
test first ... ok
test second ... FAILED
test third ... ignored, takes long

failures:

---- second stdout ----
thread 'second' (7) panicked at src/x.rs:3:4:
one is not two
stack backtrace:
   0: begin
   1: end

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.25s
";

    #[test]
    fn counts_and_failures_are_read_from_the_output() {
        let mut counts = Counts::parse(OUTPUT);
        assert_eq!(counts, Counts { passed: 1, failed: 1, ignored: 1 });
        counts += counts;
        assert_eq!(counts, Counts { passed: 2, failed: 2, ignored: 2 });
        assert_eq!(Counts::parse("Killed"), Counts::default());
        assert_eq!(failed_tests(OUTPUT).collect::<Vec<_>>(), ["second"]);
        let shown =
            ["thread 'second' (7) panicked at src/x.rs:3:4:", "one is not two", "stack backtrace:", "   0: begin"];
        assert_eq!(panics(OUTPUT, 10), shown);
        assert_eq!(panics(OUTPUT, 2), shown[..2]);
    }
}
