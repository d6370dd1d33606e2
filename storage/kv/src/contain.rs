//! Containment of sled's panics, with which it answers damage. They become errors here; a process-wide panic hook can
//! be set up to ignore them.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::KvError;

thread_local! {
    static CONTAINED: Cell<u32> = const { Cell::new(0) };
}

/// True on a thread whose panic, now, would be caught and reported as damage. A panic hook that ends the process must
/// ask this first: hooks run before anything is caught.
pub fn panic_is_contained() -> bool {
    CONTAINED.get() > 0
}

struct Containing;

impl Drop for Containing {
    fn drop(&mut self) {
        CONTAINED.set(CONTAINED.get() - 1);
    }
}

/// Runs `act`; a panic in it is damage of `dir`. The caller must not use again what `act` may have left half done.
pub(crate) fn contain<T>(dir: &Path, act: impl FnOnce() -> Result<T, KvError>) -> Result<T, KvError> {
    CONTAINED.set(CONTAINED.get() + 1);
    let containing = Containing;
    let outcome = catch_unwind(AssertUnwindSafe(act));
    drop(containing);
    outcome.unwrap_or_else(|panic| Err(KvError::damaged(dir, format!("sled panicked: {}", text_of(&*panic)))))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_damage_and_the_hook_can_know() {
        assert!(!panic_is_contained());
        let outcome: Result<(), _> = contain(Path::new("/kv"), || {
            assert!(panic_is_contained());
            panic!("page {} is gone", 7)
        });
        assert!(!panic_is_contained());
        let text = outcome.unwrap_err().to_string();
        assert!(text.contains("/kv: sled panicked: page 7 is gone"), "{text}");
    }
}
