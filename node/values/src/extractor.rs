//! Texts that the groups of a pattern match. As a [`Pattern`](crate::Pattern) does, an extraction stops when its caller
//! says so, however long the text is: a long one is matched byte by byte, with a thread for each state of the pattern.

use std::mem::{replace, swap};

use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::{NFA, State, WhichCaptures};
use regex_automata::util::primitives::StateID;

use crate::pattern::{PatternError, STEP_WORK, UNASKED_WORK, WHOLE_STEPS_MAX, library, states};

/// A compiled pattern whose groups are captured.
#[derive(Debug)]
pub struct Extractor {
    regex: Regex,
    nfa: NFA,
}

/// Start and end of a group, as byte offsets.
type Span = [Option<usize>; 2];

impl Extractor {
    /// Compiles a pattern. It may take as much as one that captures nothing.
    pub fn new(text: &str) -> Result<Extractor, PatternError> {
        Ok(Extractor { nfa: states(text, false, WhichCaptures::All)?, regex: library(text, false)? })
    }

    /// Returns the bytes that a pattern takes compiled with its groups.
    ///
    /// # Errors
    /// If the text is no pattern, or a pattern that is too large.
    pub fn size_of(text: &str) -> Result<usize, PatternError> {
        states(text, false, WhichCaptures::All).map(|nfa| nfa.memory_usage())
    }

    /// Returns what a group matched in the leftmost match; group 0 is the whole match. None if the pattern does not
    /// match, if the group took no part in the match, and if there is no such group. `goes_on` is told of work as in
    /// [`Pattern::fits`](crate::Pattern::fits). Once it answers false the result says nothing.
    pub fn find<'t>(&self, text: &'t str, group: usize, goes_on: &dyn Fn(usize) -> bool) -> Option<&'t str> {
        let groups = self.regex.captures_len();
        if group >= groups {
            return None;
        }
        let steps = self.nfa.states().len().saturating_mul(text.len()).saturating_mul(groups);
        if steps > WHOLE_STEPS_MAX {
            return self.by_states(text, group, goes_on);
        }
        if !goes_on(steps * STEP_WORK) {
            return None;
        }
        let mut found = self.regex.create_captures();
        self.regex.captures(text, &mut found);
        text.get(found.get_group(group)?.range())
    }

    /// Runs the states of the pattern over the text; an earlier thread has precedence over a later one.
    fn by_states<'t>(&self, text: &'t str, group: usize, goes_on: &dyn Fn(usize) -> bool) -> Option<&'t str> {
        if !goes_on(UNASKED_WORK) {
            return None;
        }
        let (mut now, mut next) = (Threads::new(&self.nfa), Threads::new(&self.nfa));
        let (mut matched, mut visits) = (None, 0);
        for at in 0..=text.len() {
            // The leftmost match counts, and none begins within a letter.
            if matched.is_none() && text.is_char_boundary(at) {
                now.follow(self, group, text, at, (self.nfa.start_anchored(), [None; 2]));
            } else if matched.is_some() && now.found.is_empty() {
                break;
            }
            for (id, span) in now.found.drain(..) {
                let to = match self.nfa.state(id) {
                    State::ByteRange { trans } => trans.matches(text.as_bytes(), at).then_some(trans.next),
                    State::Sparse(sparse) => sparse.matches(text.as_bytes(), at),
                    State::Dense(dense) => dense.matches(text.as_bytes(), at),
                    State::Match { .. } => {
                        matched = Some(span);
                        break;
                    }
                    _ => None,
                };
                if let Some(to) = to {
                    next.follow(self, group, text, at + 1, (to, span));
                }
            }
            visits += replace(&mut now.visits, 0) + replace(&mut next.visits, 0) + 1;
            if visits * STEP_WORK >= UNASKED_WORK && !goes_on(replace(&mut visits, 0) * STEP_WORK) {
                return None;
            }
            now.clear();
            swap(&mut now, &mut next);
        }
        let [from, to] = matched?;
        text.get(from?..to?)
    }
}

/// Threads at one place of a text, in the order of their precedence.
struct Threads {
    found: Vec<(StateID, Span)>,
    /// Visited states.
    reached: Vec<StateID>,
    is_reached: Vec<bool>,
    visits: usize,
    ahead: Vec<(StateID, Span)>,
}

impl Threads {
    fn new(nfa: &NFA) -> Threads {
        let is_reached = vec![false; nfa.states().len()];
        Threads { found: Vec::new(), reached: Vec::new(), is_reached, visits: 0, ahead: Vec::new() }
    }

    fn clear(&mut self) {
        self.found.clear();
        for id in self.reached.drain(..) {
            self.is_reached[id.as_usize()] = false;
        }
    }

    /// Adds threads for a state and for those behind it that take no byte.
    fn follow(&mut self, of: &Extractor, group: usize, text: &str, at: usize, first: (StateID, Span)) {
        self.ahead.push(first);
        while let Some((id, mut span)) = self.ahead.pop() {
            if replace(&mut self.is_reached[id.as_usize()], true) {
                continue;
            }
            self.reached.push(id);
            self.visits += 1;
            match of.nfa.state(id) {
                State::Look { look, next } => {
                    if of.nfa.look_matcher().matches(*look, text.as_bytes(), at) {
                        self.ahead.push((*next, span));
                    }
                }
                State::Union { alternates } => {
                    self.ahead.extend(alternates.iter().rev().map(|alternate| (*alternate, span)));
                }
                State::BinaryUnion { alt1, alt2 } => self.ahead.extend([(*alt2, span), (*alt1, span)]),
                State::Capture { next, slot, .. } => {
                    let slot = slot.as_usize();
                    if slot / 2 == group {
                        span[slot % 2] = Some(at);
                    }
                    self.ahead.push((*next, span));
                }
                State::Fail => {}
                _ => self.found.push((id, span)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Both ways find the same.
    #[test]
    fn the_ways_of_extracting_agree() {
        let patterns = [
            "",
            "a",
            "(a)|(b)",
            "(a*)(a*)",
            "(a*?)(b*)",
            "(a|ab)(c|bcd)?",
            "(?:(a)|b)*",
            "((a)|(b))+?c",
            r"(\w+)@(\w+)",
            r"\b(\w)(\w*)\b",
            r"(?-u:\B)()",
            "(?s:(.)(.))$",
            "(?m)^(.*)$",
            "([^x]*)x",
            "x*",
            "(é|É)+",
            "(?i)(É)",
            r"(?P<year>\d{4})-(\d\d)",
            "(a?){3}(b)?",
        ];
        let texts = [
            "",
            "a",
            "ab",
            "abcd",
            "aab",
            "bab c",
            "joe@work x",
            "日本語x",
            "éÉé",
            "2026-05",
            "ab\ncd",
            "xx aé x",
            "bbac",
        ];
        for pattern in patterns {
            let extractor = Extractor::new(pattern).expect("a pattern");
            for text in texts {
                for group in 0..extractor.regex.captures_len() {
                    let found = extractor.find(text, group, &|_| true);
                    let by_states = extractor.by_states(text, group, &|_| true);
                    assert_eq!(by_states, found, "group {group} of {pattern} in {text:?}");
                }
            }
        }
    }

    #[test]
    fn groups_are_found_far_behind_and_missing_ones_are_none() {
        let extractor = Extractor::new(r"id=(\d+)(?:;(x))?").expect("a pattern");
        let text = format!("{}id=77 日本語", "é i id= ".repeat(200_000));
        assert_eq!(extractor.find(&text, 1, &|_| true), Some("77"));
        assert_eq!(extractor.find("id=7;x", 0, &|_| true), Some("id=7;x"));
        assert_eq!(extractor.find("id=7;x", 2, &|_| true), Some("x"));
        assert_eq!(extractor.find("id=7", 2, &|_| true), None);
        assert_eq!(extractor.find("id=7", 3, &|_| true), None);
        assert_eq!(extractor.find("none", 0, &|_| true), None);
    }

    #[test]
    fn an_extraction_is_left_between_two_steps() {
        let extractor = Extractor::new("(a{1,50}){1,20}c").expect("it fits");
        let text = "a".repeat(1 << 20);
        let (asked, most) = (Cell::new(0), Cell::new(0));
        let found = extractor.find(&text, 1, &|work| {
            asked.set(asked.get() + 1);
            most.set(most.get().max(work));
            asked.get() < 100
        });
        assert_eq!((found, asked.get()), (None, 100));
        // All states of one place more than what an extraction does unasked.
        let place = 3 * extractor.nfa.states().len() * STEP_WORK;
        assert!(most.get() <= UNASKED_WORK + place, "{} bytes of work at once", most.get());
        let refused = extractor.find("aac", 0, &|_| false);
        assert_eq!(refused, None);
    }

    #[test]
    fn a_pattern_compiles_within_its_limit() {
        assert!(matches!(Extractor::new("a(b"), Err(PatternError::Syntax(_))));
        assert_eq!(Extractor::new("((a){1000}){1000}").err(), Some(PatternError::TooLarge));
        let size = Extractor::size_of("(a)(b)").expect("a pattern");
        assert!(size > 0 && size < 1 << 12, "{size}");
    }
}
