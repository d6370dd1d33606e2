//! Two experiments over the same inputs, to be compared with each other. A case is three spans: the root (eval), which
//! has the scores, the model's call and the scorer.

use assay_bench::generate::START_MICROS;
use assay_bench::generate::dice::{Dice, derive};
use assay_bench::generate::words::Vocabulary;
use assay_storage_model::event::format_micros;

use super::event_feed::Feed;
use super::spans::{Seconds, one_of, put, root_id, span_id};

pub const CASES: u64 = 3000;
const SPANS_PER_CASE: u64 = 3;
const CASE_MICROS: i64 = 1_000_000;
const SPAN_MICROS: i64 = 9001;
const QUESTION_BYTES: usize = 240;
const ANSWER_BYTES: usize = 600;
const CATEGORIES: [&str; 5] = ["billing", "shipping", "returns", "account", "other"];
const SPANS: [(&str, &str); SPANS_PER_CASE as usize] = [("eval", "eval"), ("answer", "llm"), ("exactness", "score")];

/// The rows of one of the experiments.
#[derive(Debug)]
pub struct Trials {
    seed: u64,
    /// 0 or 1: inputs do not depend on it.
    experiment: u64,
    row: u64,
}

impl Trials {
    pub fn new(seed: u64, experiment: u64) -> Trials {
        Trials { seed: derive(seed, u64::MAX - 1), experiment, row: 0 }
    }
}

impl Feed for Trials {
    fn next(&mut self, out: &mut Vec<u8>) -> Option<String> {
        let (case, place) = (self.row / SPANS_PER_CASE, self.row % SPANS_PER_CASE);
        if case == CASES {
            return None;
        }
        let own = derive(self.seed, 1 + self.experiment);
        let (root, id) = (span_id(own, case * SPANS_PER_CASE), span_id(own, self.row));
        let created = START_MICROS + case as i64 * CASE_MICROS + place as i64 * SPAN_MICROS;
        let (name, kind) = SPANS[place as usize];
        put(
            out,
            format_args!(
                "{{\"id\":\"{id}\",\"span_id\":\"{id}\",\"root_span_id\":\"{}\",\"created\":\"{}\"",
                root_id(derive(own, case)),
                format_micros(created)
            ),
        );
        if place > 0 {
            put(out, format_args!(",\"span_parents\":[\"{root}\"]"));
        }
        put(out, format_args!(",\"span_attributes\":{{\"name\":\"{name}\",\"type\":\"{kind}\"}}"));
        let mut inputs = Dice::new(derive(self.seed, case));
        let mut dice = Dice::new(derive(own ^ 1, self.row));
        let start = created / 1000;
        put(
            out,
            format_args!(
                ",\"metrics\":{{\"start\":{},\"end\":{}}},\"metadata\":{{\"category\":\"{}\"}}",
                Seconds(start),
                Seconds(start + 100 + dice.below(3000) as i64),
                one_of(&CATEGORIES, &mut inputs)
            ),
        );
        put(out, format_args!(",\"input\":{{\"case\":{case},\"question\":\""));
        Vocabulary::shared().write(QUESTION_BYTES, &mut inputs, out);
        out.extend_from_slice(b"\"},\"output\":\"");
        Vocabulary::shared().write(ANSWER_BYTES, &mut dice, out);
        out.push(b'"');
        if place == 0 {
            let similarity = dice.below(1_000_000);
            put(out, format_args!(",\"scores\":{{\"exact\":{},\"similarity\":0.{similarity:06}}}", dice.below(2)));
        }
        out.push(b'}');
        self.row += 1;
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::event_feed::tests::all;
    use super::*;

    #[test]
    fn both_experiments_have_the_same_inputs_and_other_answers() {
        let [one, other] = [0, 1].map(|experiment| all(Trials::new(5, experiment)));
        assert_eq!(one.len() as u64, CASES * SPANS_PER_CASE);
        for (one, other) in one.iter().zip(&other) {
            assert_eq!(one["input"], other["input"]);
            assert!(one["id"] != other["id"] && one["output"] != other["output"]);
        }
        let roots = one.iter().filter(|event| event.get("span_parents").is_none());
        assert_eq!(roots.filter(|event| event["scores"]["similarity"].is_f64()).count() as u64, CASES);
    }
}
