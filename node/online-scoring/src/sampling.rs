//! Sampling of traces and groups: stable for a rule, uniform, and monotone in the rate.

use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

/// Bits of a hash that a float represents exactly.
const EXACT_BITS: u32 = 53;

/// Part of the traces that a rule scores, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingRate(f64);

impl SamplingRate {
    pub fn new(rate: f64) -> Option<SamplingRate> {
        (0.0..=1.0).contains(&rate).then_some(SamplingRate(rate))
    }

    pub fn get(self) -> f64 {
        self.0
    }

    /// Returns whether the rule scores the trace or group. A higher rate keeps all that a lower one selects.
    pub fn selects(self, rule: Uuid, value: &str) -> bool {
        sampling_point(rule, value) < self.0
    }
}

/// Returns the place of a trace or group in 0..1 for a rule: `root_span_id`, or the value of the group.
pub fn sampling_point(rule: Uuid, value: &str) -> f64 {
    let mut bytes = rule.as_bytes().to_vec();
    bytes.extend_from_slice(value.as_bytes());
    // only as many bits as are exact, so that the largest hash stays below 1
    (xxh3_64(&bytes) >> (u64::BITS - EXACT_BITS)) as f64 / (1_u64 << EXACT_BITS) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: Uuid = Uuid::from_u128(0x7b6c_0000_0000_0000_0000_0000_0000_0001);

    #[test]
    fn points_do_not_change_between_versions_of_the_program() {
        assert_eq!(xxh3_64(b""), 0x2D06_8005_38D3_94C2);
        let points = ["", "a", "0123456789abcdef", "5a0f4f1e-6d0c-4a0e-9d57-0f0f0f0f0f0f"]
            .map(|value| (sampling_point(RULE, value) * 1e9) as u64);
        assert_eq!(points, [665_600_257, 141_107_519, 156_761_233, 674_740_157]);
    }

    #[test]
    fn a_rate_selects_its_part_of_many_traces() {
        for rate in [0.0, 0.01, 0.1, 0.5, 0.9, 1.0] {
            let sampling = SamplingRate::new(rate).expect("a rate");
            let selected = (0..20_000).filter(|trace| sampling.selects(RULE, &format!("trace {trace}"))).count();
            assert!((selected as f64 / 20_000.0 - rate).abs() < 0.015, "{selected} at {rate}");
        }
    }

    #[test]
    fn rules_sample_independently() {
        let half = SamplingRate::new(0.5).expect("a rate");
        let both = (0..20_000)
            .map(|trace| format!("trace {trace}"))
            .filter(|trace| half.selects(RULE, trace) && half.selects(Uuid::from_u128(9), trace))
            .count();
        assert!((both as f64 / 20_000.0 - 0.25).abs() < 0.015, "{both}");
    }

    #[test]
    fn rates_out_of_range_are_none() {
        assert_eq!([-0.1, 1.1, f64::NAN].map(SamplingRate::new), [None; 3]);
    }

    proptest! {
        #[test]
        fn a_higher_rate_keeps_what_a_lower_one_selects(
            rule in any::<u128>(), value in ".{0,20}", low in 0.0..=1.0_f64, high in 0.0..=1.0_f64,
        ) {
            let rule = Uuid::from_u128(rule);
            let (low, high) = (low.min(high), low.max(high));
            let selects = |rate| SamplingRate::new(rate).expect("a rate").selects(rule, &value);
            prop_assert!(!selects(low) || selects(high));
            prop_assert!(selects(1.0) && !selects(0.0));
        }
    }
}
