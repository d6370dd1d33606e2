//! Fair queue: organizations take turns, and within an organization its credentials. So many requests of one caller
//! delay only each other.

use std::collections::{BTreeMap, VecDeque};

use assay_storage_model::OrgId;

/// Owner of queued work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asker {
    /// Organization, or `None` for internal work.
    pub org: Option<OrgId>,
    pub credential: u128,
}

#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    orgs: BTreeMap<Option<OrgId>, Org<T>>,
    /// Waiting organizations, each once, in the order of their turns.
    turns: VecDeque<Option<OrgId>>,
    waiting: usize,
}

#[derive(Debug)]
struct Org<T> {
    credentials: BTreeMap<u128, VecDeque<T>>,
    turns: VecDeque<u128>,
}

impl<T> FairQueue<T> {
    pub fn new() -> FairQueue<T> {
        FairQueue { orgs: BTreeMap::new(), turns: VecDeque::new(), waiting: 0 }
    }

    pub fn len(&self) -> usize {
        self.waiting
    }

    pub fn push(&mut self, asker: Asker, what: T) {
        let org = self.orgs.entry(asker.org).or_insert_with(|| {
            self.turns.push_back(asker.org);
            Org { credentials: BTreeMap::new(), turns: VecDeque::new() }
        });
        let own = org.credentials.entry(asker.credential).or_insert_with(|| {
            org.turns.push_back(asker.credential);
            VecDeque::new()
        });
        own.push_back(what);
        self.waiting += 1;
    }

    /// Removes and returns the next item.
    pub fn pop(&mut self) -> Option<T> {
        let id = self.turns.pop_front()?;
        let org = self.orgs.get_mut(&id)?;
        let next = org.pop();
        if org.turns.is_empty() {
            self.orgs.remove(&id);
        } else {
            self.turns.push_back(id);
        }
        self.waiting -= usize::from(next.is_some());
        next
    }

    /// Removes an item of an asker. Returns `false` if it is not in the queue.
    pub fn remove(&mut self, asker: Asker, is_meant: impl Fn(&T) -> bool) -> bool {
        let Some(org) = self.orgs.get_mut(&asker.org) else { return false };
        let Some(own) = org.credentials.get_mut(&asker.credential) else { return false };
        let Some(place) = own.iter().position(is_meant) else { return false };
        own.remove(place);
        self.waiting -= 1;
        if own.is_empty() {
            org.credentials.remove(&asker.credential);
            org.turns.retain(|credential| *credential != asker.credential);
        }
        if org.turns.is_empty() {
            self.orgs.remove(&asker.org);
            self.turns.retain(|org| *org != asker.org);
        }
        true
    }
}

impl<T> Org<T> {
    fn pop(&mut self) -> Option<T> {
        let credential = self.turns.pop_front()?;
        let own = self.credentials.get_mut(&credential)?;
        let next = own.pop_front();
        if own.is_empty() {
            self.credentials.remove(&credential);
        } else {
            self.turns.push_back(credential);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an internal asker with this credential.
    fn by(credential: u128) -> Asker {
        Asker { org: None, credential }
    }

    fn org(bytes: u8) -> Option<OrgId> {
        serde_json::from_str(&format!("\"{bytes:02x}000000-0000-0000-0000-000000000000\"")).ok()
    }

    #[test]
    fn organizations_take_turns_and_within_them_credentials() {
        let mut fair = FairQueue::new();
        let (one, other) = (org(1), org(2));
        assert!(one.is_some() && one != other);
        for number in 0..4 {
            fair.push(Asker { org: one, credential: 1 }, format!("a1 {number}"));
        }
        fair.push(Asker { org: one, credential: 2 }, "a2 0".to_owned());
        fair.push(Asker { org: other, credential: 3 }, "b3 0".to_owned());
        fair.push(Asker { org: other, credential: 3 }, "b3 1".to_owned());
        let order: Vec<String> = std::iter::from_fn(|| fair.pop()).collect();
        assert_eq!(order, ["a1 0", "b3 0", "a2 0", "b3 1", "a1 1", "a1 2", "a1 3"]);
        assert_eq!((fair.len(), fair.orgs.len()), (0, 0));
    }

    #[test]
    fn whoever_leaves_has_no_turn_and_no_place() {
        let mut fair = FairQueue::new();
        for (credential, what) in [(1, 10), (1, 11), (2, 20), (3, 30)] {
            fair.push(by(credential), what);
        }
        assert!(fair.remove(by(1), |what| *what == 10) && fair.remove(by(2), |what| *what == 20));
        assert!(!fair.remove(by(2), |what| *what == 20) && !fair.remove(by(1), |what| *what == 20));
        assert_eq!(fair.len(), 2);
        assert_eq!((fair.pop(), fair.pop(), fair.pop()), (Some(11), Some(30), None));
        assert!(fair.orgs.is_empty() && fair.turns.is_empty());
    }
}
