//! Randomness of a simulation, all of which comes from its seed.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Debug)]
pub struct Dice(Arc<Mutex<ChaCha8Rng>>);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(Arc::new(Mutex::new(ChaCha8Rng::seed_from_u64(seed))))
    }

    /// Returns a separate random source for one part, independent of the draws of others.
    pub fn apart(&self) -> Dice {
        Dice::new(self.with(|rng| rng.random()))
    }

    pub fn with<T>(&self, throw: impl FnOnce(&mut ChaCha8Rng) -> T) -> T {
        throw(&mut self.0.lock())
    }

    pub fn below(&self, limit: u64) -> u64 {
        self.with(|rng| rng.random_range(0..limit.max(1)))
    }

    pub fn one_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn per_mille(&self, share: u64) -> bool {
        self.below(1000) < share
    }

    pub fn micros(&self, range: &Range<u64>) -> Duration {
        Duration::from_micros(self.with(|rng| rng.random_range(range.clone())))
    }

    pub fn pick<T: Copy>(&self, of: &[T]) -> Option<T> {
        let place = usize::try_from(self.below(of.len() as u64)).ok()?;
        of.get(place).copied()
    }
}
