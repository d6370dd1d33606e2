//! Random choices of the generator.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Source of random choices.
#[derive(Debug)]
pub(crate) struct Dice(StdRng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(StdRng::seed_from_u64(seed))
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.0.random_range(0..choices.len())]
    }

    /// Returns a number in `from..to`.
    pub(crate) fn between(&mut self, from: i64, to: i64) -> i64 {
        self.0.random_range(from..to)
    }

    /// Returns whether something of this probability happens.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.0.random::<f64>() < probability
    }

    /// Returns a duration in microseconds. Most are near the typical one, some are several times longer.
    pub(crate) fn latency(&mut self, typical_ms: f64) -> i64 {
        let spread = self.0.random::<f64>() + self.0.random::<f64>();
        let tail = if self.happens(0.04) { 2.0 + 4.0 * self.0.random::<f64>() } else { 1.0 };
        (typical_ms * 1000.0 * (0.5 + 0.5 * spread) * tail) as i64
    }

    /// Returns a new id.
    pub(crate) fn id(&mut self) -> String {
        let [high, low] = [self.0.random::<u64>(), self.0.random::<u64>()];
        let text = format!("{high:016x}{low:016x}");
        format!("{}-{}-4{}-8{}-{}", &text[..8], &text[8..12], &text[13..16], &text[17..20], &text[20..])
    }
}
