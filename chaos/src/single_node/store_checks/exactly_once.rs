//! Exactly-once checker: all responses to one write name one id, and it is applied once, even if it was sent many times
//! under a key.

use crate::single_node::dump::Dump;
use crate::single_node::worker_history::{AnswerKind, WorkerHistory};

pub fn check(history: &WorkerHistory, dump: &Dump) -> Vec<String> {
    let mut findings = history.broken.clone();
    for (name, places) in super::xacts_of_writes(dump) {
        if places.len() > 1 {
            findings.push(format!("{name} was applied {} times: {places:?}", places.len()));
        }
    }
    for (name, write) in &history.writes {
        let mut xacts: Vec<u64> = write.xacts().map(|(_, xact)| xact).collect();
        xacts.sort_unstable();
        xacts.dedup();
        if xacts.len() > 1 {
            findings.push(format!("{name} was answered with different ids: {xacts:?}"));
        }
        let written = |again: bool| move |kind: &AnswerKind| matches!(kind, AnswerKind::Written { again: was, .. } if *was == again);
        let fresh = write.answers.iter().filter(|answer| written(false)(&answer.kind)).count();
        if fresh > 1 {
            findings.push(format!("{name} was answered {fresh} times as if it were new"));
        }
        if !write.keyed && write.answers.iter().any(|answer| written(true)(&answer.kind)) {
            findings.push(format!("{name} has no key and was taken for one sent before"));
        }
    }
    for reused in &history.reused {
        let first = history.writes.get(&reused.write).and_then(|write| write.xacts().next());
        if let Some((_, xact)) = first
            && xact != reused.xact
        {
            findings.push(format!(
                "the key of {} was refused with {}; it was written as {xact}",
                reused.write, reused.xact
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::hand_made::{good, good_dump, history, ok};
    use super::*;

    #[test]
    fn a_write_that_was_applied_twice_is_named() {
        let mut dump = good_dump();
        let traces = dump.traces.get_mut(&0).expect("object 0");
        let mut again = traces[0].clone();
        again.xact = 110;
        traces.push(again);
        assert!(check(&history(&good()), &dump)[0].contains("applied 2 times"));
    }

    #[test]
    fn a_second_answer_with_another_id_is_named() {
        let mut said = good();
        said[5] = ok("3", 103, true);
        assert!(check(&history(&said), &good_dump())[0].contains("different ids: [101, 103]"));
        said[5] = ok("3", 101, false);
        assert!(check(&history(&said), &good_dump())[0].contains("as if it were new"));
    }

    #[test]
    fn a_write_without_a_key_cannot_be_a_duplicate() {
        let mut said = good();
        said[3] = ok("2", 102, true);
        assert!(check(&history(&said), &good_dump())[0].contains("no key"));
    }
}
