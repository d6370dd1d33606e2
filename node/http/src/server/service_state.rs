//! State that services of the API keep on a node, one value for each type.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

/// Values by their type. The framework knows none of the types.
#[derive(Default)]
pub struct ServiceState(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl fmt::Debug for ServiceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceState").finish_non_exhaustive()
    }
}

impl ServiceState {
    /// Returns the value of a type, which is created at its first use.
    pub fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut all = self.0.lock();
        let value = Arc::clone(all.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default())));
        drop(all);
        let Ok(value) = value.downcast::<T>() else { panic!("the state of {} has another type", type_name::<T>()) };
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_one_value() {
        let state = ServiceState::default();
        state.get::<Mutex<u64>>().lock().clone_from(&7);
        assert_eq!(*state.get::<Mutex<u64>>().lock(), 7);
        assert_eq!(*state.get::<Mutex<String>>().lock(), "");
        assert_eq!(*ServiceState::default().get::<Mutex<u64>>().lock(), 0);
    }
}
