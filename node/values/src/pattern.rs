//! Patterns of `~` and its kin (D-57). A pattern compiles within [`PATTERN_BYTES_MAX`] or not at all, and a match stops
//! when its caller says so, however long the text is.
//!
//! Matching takes pattern times text at worst. A match that is certain to be short is left to the library as a whole. A
//! longer one goes byte by byte, first through a lazily built automaton, and where that does not pay, through sets of
//! states. Both ask the caller between two steps whether to go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};

use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::meta::{self, Regex};
use regex_automata::nfa::thompson::{self, NFA, State, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_automata::util::syntax;
use thiserror::Error;

/// Upper bound of what one compiled pattern of `~` or LIKE may take.
pub const PATTERN_BYTES_MAX: usize = 256 << 10;

/// Upper bound of what the automaton that is built while matching may take, as in the library's own default.
const AUTOMATON_BYTES_MAX: usize = 2 << 20;
/// Upper bound of resets of the automaton, unless each of its states served many bytes.
const AUTOMATON_FULL_MAX: usize = 3;
const AUTOMATON_BYTES_PER_STATE_MIN: usize = 10;
/// Upper bound of states times bytes of a text that is matched as a whole: some 20 ms at worst.
pub(crate) const WHOLE_STEPS_MAX: usize = 1 << 20;
/// Work between two questions of a match, in bytes that might be looked at meanwhile.
pub(crate) const UNASKED_WORK: usize = 1 << 17;
/// Work of one step: a visited state of the pattern, or a byte whose next state the automaton knows.
pub(crate) const STEP_WORK: usize = 8;

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PatternError {
    #[error(
        "this pattern is too large: compiled, it needs more than {PATTERN_BYTES_MAX} bytes ({} KiB). Use fewer or \
         smaller repetitions, or ASCII classes such as [0-9a-z] in place of \\w and \\d",
        PATTERN_BYTES_MAX >> 10
    )]
    TooLarge,
    #[error("this is not a valid pattern: {0}")]
    Syntax(String),
}

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern {
    regex: Regex,
    stepwise: Stepwise,
}

/// The pattern as automata that take one byte at a time.
#[derive(Debug)]
struct Stepwise {
    nfa: NFA,
    /// Made for the first long text; none where it cannot be made.
    dfa: OnceLock<Option<(DFA, Mutex<Cache>)>>,
    /// Whether the automaton filled up too often: it would again.
    gave_up: AtomicBool,
}

impl Pattern {
    /// Compiles a pattern.
    pub fn new(text: &str, any_case: bool) -> Result<Pattern, PatternError> {
        let nfa = states(text, any_case, WhichCaptures::None)?;
        let regex = library(text, any_case)?;
        let stepwise = Stepwise { nfa, dfa: OnceLock::new(), gave_up: AtomicBool::new(false) };
        Ok(Pattern { regex, stepwise })
    }

    /// Bytes that a pattern takes compiled. An error where it is none, or takes more than [`PATTERN_BYTES_MAX`]. Takes a
    /// part of the time that compiling it does.
    pub fn size_of(text: &str, any_case: bool) -> Result<usize, PatternError> {
        states(text, any_case, WhichCaptures::None).map(|nfa| nfa.memory_usage())
    }

    /// Whether the pattern matches somewhere in the text. `goes_on` is told of work before it begins or soon after, in
    /// bytes that might be looked at meanwhile. Once it answers false the result says nothing.
    pub fn fits(&self, text: &str, goes_on: &dyn Fn(usize) -> bool) -> bool {
        let steps = self.stepwise.steps(text);
        if steps <= WHOLE_STEPS_MAX {
            return goes_on(steps * STEP_WORK) && self.regex.is_match(text);
        }
        // Asked first: a query that was stopped has many rows left.
        if !goes_on(UNASKED_WORK) {
            return false;
        }
        let found = self.stepwise.by_automaton(text, goes_on);
        found.unwrap_or_else(|| self.stepwise.by_states(text, goes_on))
    }
}

fn language(any_case: bool) -> syntax::Config {
    syntax::Config::new().case_insensitive(any_case)
}

/// The pattern as the library has it, for short matches. What is measured is the automaton of [`states`], and what the
/// library makes beside it is a small multiple of that.
pub(crate) fn library(text: &str, any_case: bool) -> Result<Regex, PatternError> {
    let config = meta::Config::new()
        .nfa_size_limit(None)
        .onepass_size_limit(Some(PATTERN_BYTES_MAX))
        .hybrid_cache_capacity(AUTOMATON_BYTES_MAX);
    let regex = Regex::builder().syntax(language(any_case)).configure(config).build(text);
    regex.map_err(|error| PatternError::Syntax(error.to_string()))
}

/// The states of a pattern.
pub(crate) fn states(text: &str, any_case: bool, captures: WhichCaptures) -> Result<NFA, PatternError> {
    let hir = syntax::parse_with(text, &language(any_case)).map_err(|drawn| {
        // The library draws the pattern and a caret; the last line says what is wrong.
        let drawn = drawn.to_string();
        let why = drawn.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        PatternError::Syntax(why)
    })?;
    let config = NFA::config().nfa_size_limit(Some(PATTERN_BYTES_MAX)).which_captures(captures);
    let nfa = thompson::Compiler::new().configure(config).build_from_hir(&hir);
    nfa.map_err(|error| match error.size_limit() {
        Some(_) => PatternError::TooLarge,
        None => PatternError::Syntax(error.to_string()),
    })
}

impl Stepwise {
    fn automaton(&self) -> Option<&(DFA, Mutex<Cache>)> {
        let make = || {
            let config = DFA::config()
                .cache_capacity(AUTOMATON_BYTES_MAX)
                .unicode_word_boundary(true)
                .minimum_cache_clear_count(Some(AUTOMATON_FULL_MAX))
                .minimum_bytes_per_state(Some(AUTOMATON_BYTES_PER_STATE_MIN));
            let dfa = DFA::builder().configure(config).build_from_nfa(self.nfa.clone()).ok()?;
            let cache = Mutex::new(dfa.create_cache());
            Some((dfa, cache))
        };
        self.dfa.get_or_init(make).as_ref()
    }

    fn steps(&self, text: &str) -> usize {
        self.nfa.states().len().saturating_mul(text.len())
    }

    /// None where the automaton does not pay, does not know the letters of the text, or serves another thread.
    fn by_automaton(&self, text: &str, goes_on: &dyn Fn(usize) -> bool) -> Option<bool> {
        let (dfa, cache) = self.automaton().filter(|_| !self.gave_up.load(Ordering::Relaxed))?;
        // Never waited for: whoever has it may wait for its turn, which this thread may have.
        let mut cache = match cache.try_lock() {
            Ok(cache) => cache,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let gives_up = || self.gave_up.store(true, Ordering::Relaxed);
        let states = self.nfa.states().len();
        let mut state = dfa.start_state_forward(&mut cache, &Input::new(text)).map_err(|_| gives_up()).ok()?;
        cache.search_start(0);
        let (mut at, mut steps) = (0, 0);
        for byte in text.as_bytes() {
            if steps * STEP_WORK >= UNASKED_WORK {
                cache.search_update(at);
                if !goes_on(steps * STEP_WORK) {
                    cache.search_finish(at);
                    return Some(false);
                }
                steps = 0;
            }
            let known = Some(state).filter(|state| !state.is_tagged());
            let known = known.map(|state| dfa.next_state_untagged(&cache, state, *byte));
            state = match known.filter(|next| !next.is_unknown()) {
                Some(next) => {
                    steps += 1;
                    next
                }
                // Worked out from up to all states of the pattern.
                None => {
                    steps += states;
                    dfa.next_state(&mut cache, state, *byte).map_err(|_| gives_up()).ok()?
                }
            };
            if state.is_tagged() {
                // A match shows one byte late; an empty one within a letter is none.
                if state.is_match() {
                    return text.is_char_boundary(at).then_some(true);
                }
                if state.is_dead() {
                    return Some(false);
                }
                if state.is_quit() {
                    return None;
                }
            }
            at += 1;
        }
        cache.search_finish(at);
        Some(dfa.next_eoi_state(&mut cache, state).map_err(|_| gives_up()).ok()?.is_match())
    }

    /// Pattern times text at worst, whatever both are.
    fn by_states(&self, text: &str, goes_on: &dyn Fn(usize) -> bool) -> bool {
        let bytes = text.as_bytes();
        let (mut now, mut next) = (States::new(&self.nfa), States::new(&self.nfa));
        let (mut ahead, mut visits) = (Vec::new(), 0);
        if now.reach(&self.nfa, self.nfa.start_unanchored(), text, 0, &mut ahead) {
            return true;
        }
        for at in 0..bytes.len() {
            for id in &now.found {
                let to = match self.nfa.state(*id) {
                    State::ByteRange { trans } => trans.matches(bytes, at).then_some(trans.next),
                    State::Sparse(sparse) => sparse.matches(bytes, at),
                    State::Dense(dense) => dense.matches(bytes, at),
                    _ => None,
                };
                if let Some(to) = to
                    && next.reach(&self.nfa, to, text, at + 1, &mut ahead)
                {
                    return true;
                }
            }
            visits += now.found.len() + 1;
            if visits * STEP_WORK >= UNASKED_WORK {
                if !goes_on(visits * STEP_WORK) {
                    return false;
                }
                visits = 0;
            }
            std::mem::swap(&mut now, &mut next);
            next.clear();
            if now.found.is_empty() {
                return false;
            }
        }
        false
    }
}

/// States that are reached at one place of a text.
struct States {
    found: Vec<StateID>,
    is_found: Vec<bool>,
}

impl States {
    fn new(nfa: &NFA) -> States {
        States { found: Vec::new(), is_found: vec![false; nfa.states().len()] }
    }

    fn clear(&mut self) {
        for id in self.found.drain(..) {
            self.is_found[id.as_usize()] = false;
        }
    }

    /// Adds a state and those behind it that take no byte; whether the pattern ends at one of them.
    fn reach(&mut self, nfa: &NFA, first: StateID, text: &str, at: usize, ahead: &mut Vec<StateID>) -> bool {
        ahead.push(first);
        while let Some(id) = ahead.pop() {
            if std::mem::replace(&mut self.is_found[id.as_usize()], true) {
                continue;
            }
            self.found.push(id);
            match nfa.state(id) {
                State::Look { look, next } if nfa.look_matcher().matches(*look, text.as_bytes(), at) => {
                    ahead.push(*next);
                }
                State::Union { alternates } => ahead.extend(alternates.iter().copied()),
                State::BinaryUnion { alt1, alt2 } => {
                    ahead.push(*alt1);
                    ahead.push(*alt2);
                }
                State::Capture { next, .. } => ahead.push(*next),
                State::Match { .. } if text.is_char_boundary(at) => {
                    ahead.clear();
                    return true;
                }
                _ => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        let fault = |pattern, any_case| Pattern::new(pattern, any_case).err().map(|error| error.to_string());
        assert_eq!(fault("^a.*[0-9]+$", false), None);
        assert_eq!(fault("a(b", true).as_deref(), Some("this is not a valid pattern: unclosed group"));
        let look_around = fault("(?=a)", false).expect("RE2 has none");
        assert!(look_around.contains("look-around"), "{look_around}");
    }

    #[test]
    fn a_pattern_compiles_within_its_limit() {
        for large in ["(a{1000}){1000}", "(a{1,1000}){1,100}c", "(?:[a-z]{1,100}){1,200}", r"\w{1,60}"] {
            assert_eq!(Pattern::new(large, false).err(), Some(PatternError::TooLarge), "{large}");
        }
        // What people do write fits.
        for usual in [
            r"\w+@\w+\.\w+",
            r"(?i)\berror\b.*\d{3}",
            r"^\d{4}-\d{2}-\d{2}T",
            "[A-Za-z0-9_]{1,200}",
            r"https?://[^\s]+/\w+",
            "(a{1,50}){1,50}c",
        ] {
            assert_eq!(Pattern::new(usual, false).err(), None, "{usual}");
        }
        let why = PatternError::TooLarge.to_string();
        assert!(why.contains("262144 bytes (256 KiB)"), "{why}");
    }

    /// All three ways find the same.
    #[test]
    fn the_ways_of_matching_agree() {
        let patterns = [
            "",
            "a",
            "^a",
            "a$",
            "^$",
            "b+c",
            "a|bc",
            "(a{1,5}){1,5}c",
            r"\bab\b",
            r"\Bb",
            r"(?-u:\b)b",
            "[^a]",
            "é",
            "É+",
            r"\w+é",
            "(?s:.)z",
            "(?m)^b",
            "(?mR)a$",
            ".{3}",
            r"\pL{2}\d",
            "x*",
        ];
        let texts =
            ["", "a", "b", "abc", "aab ab", "é", "éa", "aé", "ab\nb", "a\r\nb", "zz", "日本語9", "xaéb c", "\u{212a}"];
        for pattern in patterns {
            for any_case in [false, true] {
                let compiled = Pattern::new(pattern, any_case).expect("a pattern");
                let stepwise = &compiled.stepwise;
                for text in texts {
                    let wanted = compiled.regex.is_match(text);
                    let goes_on = |_| true;
                    assert_eq!(stepwise.by_states(text, &goes_on), wanted, "{pattern} in {text:?} by states");
                    let found = stepwise.by_automaton(text, &goes_on);
                    assert!(found.is_none_or(|found| found == wanted), "{pattern} in {text:?} by automaton");
                    assert!(found.is_some() || !text.is_ascii(), "{pattern} in {text:?} is no work for states");
                }
            }
        }
    }

    #[test]
    fn a_long_text_under_a_heavy_pattern_is_left_between_two_steps() {
        let pattern = Pattern::new("(a{1,50}){1,50}c", false).expect("it fits");
        let text = "a".repeat(1 << 20);
        let (asked, most) = (Cell::new(0), Cell::new(0));
        let found = pattern.fits(&text, &|work| {
            asked.set(asked.get() + 1);
            most.set(most.get().max(work));
            asked.get() < 200
        });
        assert!(!found && asked.get() >= 200, "{} questions", asked.get());
        // One state of the automaton more than what a match does unasked.
        let state = pattern.stepwise.nfa.states().len() * STEP_WORK;
        assert!(most.get() <= UNASKED_WORK + state, "{} bytes of work at once", most.get());
    }

    /// The second and the last byte lead to the state that the one before them led to, and are worked out all the same.
    #[test]
    fn each_byte_that_the_automaton_did_not_know_is_counted() {
        let pattern = Pattern::new("[xy]q|(a{1,50}){1,50}c", false).expect("it fits");
        let states = pattern.stepwise.nfa.states().len();
        let asked = |text: &str| {
            let asked = Cell::new(Vec::new());
            let found = pattern.stepwise.by_automaton(text, &|work| {
                asked.set([asked.take(), vec![work]].concat());
                true
            });
            assert_eq!(found, Some(false));
            asked.take()
        };
        assert_eq!((asked("xxddd"), asked("xxddd")), (vec![4 * states * STEP_WORK], Vec::new()));
    }

    /// The thread that has the automaton may wait for its turn while this one has it.
    #[test]
    fn an_automaton_that_serves_another_thread_is_not_waited_for() {
        let pattern = Pattern::new("(a{1,50}){1,50}c", false).expect("it fits");
        let text = format!("{}c", "a".repeat(1 << 10));
        let (_, cache) = pattern.stepwise.automaton().expect("it is made");
        let _held = cache.lock().expect("nobody panicked");
        assert!(pattern.fits(&text, &|_| true));
    }

    /// A query that was stopped has many rows left, none of which may take long.
    #[test]
    fn a_match_that_may_not_go_on_does_not_begin() {
        let pattern = Pattern::new("(a{1,50}){1,50}c", false).expect("it fits");
        for bytes in [10, 200, 1 << 10, 1 << 20] {
            let asked = Cell::new(0);
            let goes_on = |_| {
                asked.set(asked.get() + 1);
                false
            };
            assert!(!pattern.fits(&"a".repeat(bytes), &goes_on));
            assert_eq!(asked.get(), 1, "{bytes} bytes");
            pattern.stepwise.gave_up.store(true, Ordering::Relaxed);
            assert!(!pattern.fits(&"a".repeat(bytes), &goes_on) && asked.get() == 2);
            pattern.stepwise.gave_up.store(false, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_stands_far_behind_is_found() {
        let text = format!("{}needle 日本語 77", "hay é ".repeat(300_000));
        for (pattern, wanted) in [
            (r"needle \w+ 77$", true),
            (r"needle \w+ 78", false),
            (r"\bneedle\b", true),
            (r"\bneedl\b", false),
            ("(?i)NEEDLE", true),
        ] {
            let pattern = Pattern::new(pattern, false).expect("a pattern");
            assert_eq!(pattern.fits(&text, &|_| true), wanted, "{pattern:?}");
        }
    }
}
