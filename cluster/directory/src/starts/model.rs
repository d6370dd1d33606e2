//! Random model of nodes whose directories are copied and restored.

use std::collections::{BTreeMap, BTreeSet};

use assay_cluster_raft::{LogPlace, VoteFor};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

const NODES: u64 = 3;
const STEPS: usize = 400;
const SEEDS: u64 = 300;
const GROUP: GroupId = GroupId(16);

/// A directory, with what is really on it.
#[derive(Clone, Debug)]
struct Dir {
    kept: KeptStarts,
    /// Starts whose effects are on this disk, whatever the history contains.
    really: BTreeSet<StartId>,
    replica: ReplicaId,
}

#[derive(Debug)]
struct Running {
    node: NodeId,
    registry: Registry,
    dir: Dir,
    /// Whether calls to its node reach it.
    at_address: bool,
}

#[derive(Debug)]
struct Model {
    dice: StdRng,
    dirs: BTreeMap<NodeId, Dir>,
    copies: Vec<(NodeId, Dir)>,
    running: Vec<Running>,
    next_start: u128,
    next_replica: u64,
    /// Starts that each node accepted of each other, and the replica that they ran.
    accepted: BTreeMap<(NodeId, NodeId), Vec<(StartId, ReplicaId)>>,
    /// Directories that were put back, or run twice.
    restored: BTreeSet<NodeId>,
    taken: usize,
    closed: usize,
}

impl Model {
    fn new(seed: u64) -> Model {
        let dir = |node| Dir { kept: KeptStarts::default(), really: BTreeSet::new(), replica: ReplicaId(node) };
        Model {
            dice: StdRng::seed_from_u64(seed),
            dirs: (1..=NODES).map(|node| (NodeId(node), dir(node))).collect(),
            copies: Vec::new(),
            running: Vec::new(),
            next_start: 1,
            next_replica: NODES + 1,
            accepted: BTreeMap::new(),
            restored: BTreeSet::new(),
            taken: 0,
            closed: 0,
        }
    }

    fn start(&mut self, node: NodeId, mut dir: Dir, at_address: bool) {
        let start = StartId(self.next_start);
        self.next_start += 1;
        dir.kept = dir.kept.begun(start);
        dir.really.insert(start);
        let mut registry = Registry::new(dir.kept.clone(), []);
        registry.waited();
        self.running.push(Running { node, registry, dir, at_address });
    }

    fn end(&mut self, at: usize) {
        let ended = self.running.remove(at);
        if ended.at_address {
            self.dirs.insert(ended.node, ended.dir);
        }
    }

    fn runs(&self, node: NodeId) -> bool {
        self.running.iter().any(|one| one.node == node && one.at_address)
    }

    fn step(&mut self) {
        let node = NodeId(self.dice.random_range(1..=NODES));
        let any = if self.running.is_empty() { 0 } else { self.dice.random_range(0..self.running.len()) };
        match self.dice.random_range(0..40) {
            0..8 if !self.runs(node) => {
                let dir = self.dirs[&node].clone();
                self.start(node, dir, true);
            }
            8..12 if !self.running.is_empty() => self.end(any),
            // While it runs, or stopped.
            12 => {
                let running = self.running.iter().find(|one| one.node == node && one.at_address);
                let dir = running.map_or_else(|| self.dirs[&node].clone(), |running| running.dir.clone());
                self.copies.push((node, dir));
            }
            13 if !self.copies.is_empty() => {
                let (node, dir) = self.copies[self.dice.random_range(0..self.copies.len())].clone();
                self.restored.insert(node);
                if self.runs(node) {
                    self.start(node, dir, false);
                } else {
                    self.dirs.insert(node, dir);
                }
            }
            _ => self.talk(),
        }
    }

    /// One process introduces itself to another where they must, and sends a message.
    fn talk(&mut self) {
        if self.running.len() < 2 {
            return;
        }
        let from = self.dice.random_range(0..self.running.len());
        let to = self.dice.random_range(0..self.running.len());
        if self.running[from].node == self.running[to].node || !self.running[to].at_address {
            return;
        }
        self.exchange(from, to);
        // Whoever had to stop is gone.
        if from < self.running.len() && to < self.running.len() && self.running[from].node != self.running[to].node {
            self.send(from, to);
        }
    }

    fn introduction(&self, at: usize) -> Introduction {
        let Running { registry, dir, .. } = &self.running[at];
        let place = LogPlace { term: 1, replica: 1, index: 1 };
        let hard_state = HardState { vote: Some(VoteFor { term: 1, replica: 1 }), last: Some(place) };
        let history = registry.kept().history.clone();
        Introduction { start: registry.own(), history, replicas: vec![(GROUP, dir.replica, hard_state)] }
    }

    fn exchange(&mut self, from: usize, to: usize) {
        let node = self.running[from].node;
        let said = self.introduction(from);
        // The look for the process before may fail although it is there.
        let looks = self.running[to].registry.must_look_for(node, &said) && self.dice.random_range(0..4) > 0;
        let at_address = self.running.iter().find(|one| one.node == node && one.at_address);
        let answering = at_address.filter(|_| looks).map(|one| one.registry.own());
        let on_from = self.judge(to, from, &said, answering);
        if self.dice.random_range(0..8) == 0 {
            return; // the answer is lost
        }
        let back = self.introduction(to);
        let on_to = self.judge(from, to, &back, Some(back.start));
        let (from_node, to_node) = (self.running[from].node, self.running[to].node);
        let mut stopped = Vec::new();
        for (at, by, verdict) in [(from, to_node, on_from), (to, from_node, on_to)] {
            for consequence in self.running[at].registry.heard(by, &verdict) {
                match consequence {
                    Consequence::CloseAll { missing, .. } => self.close_all(at, missing),
                    Consequence::Stop { .. } => stopped.push(at),
                    Consequence::Close { .. } => panic!("nobody lacks anything: {consequence:?}"),
                }
            }
        }
        stopped.sort_unstable();
        for at in stopped.into_iter().rev() {
            let node = self.running[at].node;
            assert!(self.restored.contains(&node), "node {node} was stopped, and no copy of it ever ran");
            self.end(at);
        }
    }

    fn judge(&mut self, judge: usize, judged: usize, said: &Introduction, answering: Option<StartId>) -> Verdict {
        let (node, replica) = (self.running[judged].node, self.running[judged].dir.replica);
        let Running { node: by, registry, dir, .. } = &mut self.running[judge];
        let verdict = registry.judge(node, said, answering, |_, _| None);
        if let Some(kept) = registry.to_keep(node, &verdict) {
            dir.kept = kept; // the write
        }
        registry.judged(node, verdict.clone());
        assert_eq!(registry.kept(), &dir.kept);
        if verdict.found == StartVerdict::Accepted && !registry.is_closed((GROUP, replica)) {
            self.accepted.entry((*by, node)).or_default().push((said.start, replica));
        }
        verdict
    }

    /// Reaction of the node and the planner.
    fn close_all(&mut self, at: usize, missing: StartId) {
        let fresh = StartId(self.next_start);
        self.next_start += 1;
        let Running { node, registry, dir, .. } = &mut self.running[at];
        dir.really.insert(fresh);
        assert!(self.restored.contains(node), "node {node} was closed, and no copy of it was ever put back");
        let kept = registry.kept().as_old_copy(missing, fresh, [(GROUP, dir.replica)]);
        let kept = kept.with_floor(ReplicaId(self.next_replica));
        dir.replica = ReplicaId(self.next_replica);
        self.next_replica += 1;
        assert!(kept.may_take(dir.replica));
        dir.kept = kept.clone();
        registry.keep(kept);
        self.closed += 1;
    }

    fn send(&mut self, from: usize, to: usize) {
        let [sender, receiver] = [from, to].map(|at| &self.running[at]);
        let [own, theirs] = [sender, receiver].map(|one| (GROUP, one.dir.replica));
        let passes = sender.registry.outgoing(receiver.node, own, theirs).and_then(|meant| {
            receiver.registry.incoming(sender.node, Some((sender.registry.own(), meant)), theirs, own)
        });
        if passes.is_err() {
            let honest = [sender, receiver].iter().all(|one| !self.restored.contains(&one.node));
            let met =
                receiver.registry.verdict_on(sender.node).is_some_and(|verdict| verdict.about == sender.registry.own());
            assert!(!honest || !met || passes == Err(Stop::Introduce), "{passes:?}");
            return;
        }
        self.taken += 1;
        // The message, and its answer.
        for (speaks, hears) in [(sender, receiver), (receiver, sender)] {
            if self.restored.contains(&hears.node) {
                continue; // what it saw may be gone with its own disk
            }
            let accepted = self.accepted.get(&(hears.node, speaks.node)).into_iter().flatten();
            for (start, replica) in accepted.filter(|(_, replica)| *replica == speaks.dir.replica) {
                assert!(
                    speaks.dir.really.contains(start) || speaks.dir.kept.closed.contains(&(GROUP, *replica)),
                    "node {} hears replica {replica} of node {}, whose disk lacks {start}",
                    hears.node,
                    speaks.node
                );
            }
        }
    }
}

#[test]
fn nobody_hears_a_replica_whose_disk_lacks_a_start_that_was_accepted() {
    let (mut taken, mut closed) = (0, 0);
    for seed in 0..SEEDS {
        let mut model = Model::new(seed);
        for _ in 0..STEPS {
            model.step();
        }
        taken += model.taken;
        closed += model.closed;
    }
    assert!(taken > 10_000 && closed > 100, "{taken} messages, {closed} nodes closed: nothing was tried");
}

fn registry(history: &[u128], others: &[u64]) -> Registry {
    let kept = KeptStarts { history: history.iter().copied().map(StartId).collect(), ..KeptStarts::default() };
    Registry::new(kept, others.iter().copied().map(NodeId))
}

fn said(history: &[u128]) -> Introduction {
    let history: Vec<StartId> = history.iter().copied().map(StartId).collect();
    Introduction { start: history[history.len() - 1], history, replicas: Vec::new() }
}

fn accept(registry: &mut Registry, from: u64, said: &Introduction) {
    let verdict = registry.judge(NodeId(from), said, None, |_, _| None);
    assert_eq!(verdict.found, StartVerdict::Accepted);
    registry.judged(NodeId(from), verdict);
}

const OWN: Name = (GROUP, ReplicaId(1));
const THEIRS: Name = (GROUP, ReplicaId(2));

#[test]
fn programs_of_before_are_heard_as_before() {
    let mut new = registry(&[7], &[2]);
    assert_eq!(new.incoming(NodeId(2), None, OWN, THEIRS), Err(Stop::Comparing), "others may know better");
    new.is_silent(NodeId(2));
    assert_eq!(new.outgoing(NodeId(2), OWN, THEIRS), Ok(None));
    assert_eq!(new.incoming(NodeId(2), None, OWN, THEIRS), Ok(()));
    // It was upgraded, and does not know this process yet.
    let asks = new.incoming(NodeId(2), Some((StartId(9), None)), OWN, THEIRS);
    assert_eq!(asks, Err(Stop::Introduce));
    accept(&mut new, 2, &said(&[9]));
    assert_eq!(new.outgoing(NodeId(2), OWN, THEIRS), Ok(Some(StartId(9))));
    assert_eq!(new.incoming(NodeId(2), Some((StartId(9), Some(StartId(7)))), OWN, THEIRS), Ok(()));
    assert_eq!(new.incoming(NodeId(2), Some((StartId(9), Some(StartId(6)))), OWN, THEIRS), Err(Stop::Introduce));
}

#[test]
fn nothing_is_said_before_those_who_answer_have_compared() {
    let mut new = registry(&[7], &[2, 3]);
    accept(&mut new, 2, &said(&[9]));
    let accepted = Verdict { about: StartId(7), found: StartVerdict::Accepted, refused: Vec::new() };
    assert!(new.heard(NodeId(2), &accepted).is_empty());
    assert_eq!(new.outgoing(NodeId(2), OWN, THEIRS), Err(Stop::Comparing), "node 3 may have seen a later start");
    let lacks = Verdict { found: StartVerdict::Lacks(StartId(8)), ..accepted.clone() };
    let closes = Consequence::CloseAll { by: NodeId(3), missing: StartId(8) };
    assert_eq!(new.heard(NodeId(3), &lacks), [closes]);
    assert_eq!(new.outgoing(NodeId(2), OWN, THEIRS), Err(Stop::Comparing), "until that is durable");
    new.keep(new.kept().as_old_copy(StartId(8), StartId(70), [OWN]));
    assert_eq!(new.outgoing(NodeId(2), OWN, THEIRS), Err(Stop::Refused));
    assert_eq!(new.outgoing(NodeId(2), (GROUP, ReplicaId(9)), THEIRS), Ok(Some(StartId(9))), "a new replica");
    assert!(new.heard(NodeId(3), &lacks).is_empty(), "it was heard");

    let mut new = registry(&[7], &[2, 3]);
    new.not_reached(NodeId(2));
    new.waited();
    accept(&mut new, 3, &said(&[5]));
    assert_eq!(new.outgoing(NodeId(3), OWN, THEIRS), Ok(Some(StartId(5))), "one that is gone for good holds nobody up");
}

#[test]
fn of_two_that_run_from_one_directory_the_one_that_was_replaced_stops() {
    let mut judge = registry(&[1], &[]);
    accept(&mut judge, 2, &said(&[5]));
    let verdict = judge.judge(NodeId(2), &said(&[5, 6]), Some(StartId(5)), |_, _| None);
    assert_eq!(verdict.found, StartVerdict::StillThere(StartId(5)));
    judge.judged(NodeId(2), verdict);
    assert_eq!(judge.outgoing(NodeId(2), OWN, THEIRS), Ok(Some(StartId(5))), "the first one is heard as before");
    let verdict = judge.judge(NodeId(2), &said(&[5, 6]), None, |_, _| None);
    assert_eq!(verdict.found, StartVerdict::Accepted, "the first one does not answer any more");
    judge.judged(NodeId(2), verdict);

    let mut first = registry(&[5], &[]);
    let accepted = Verdict { about: StartId(5), found: StartVerdict::Accepted, refused: Vec::new() };
    assert!(first.heard(NodeId(1), &accepted).is_empty());
    let verdict = judge.judge(NodeId(2), &said(&[5]), Some(StartId(5)), |_, _| None);
    assert_eq!(verdict.found, StartVerdict::Lacks(StartId(6)));
    let stops = Consequence::Stop { by: NodeId(1), instead: StartId(6) };
    assert_eq!(first.heard(NodeId(1), &verdict), [stops]);
}

#[test]
fn a_replica_that_lacks_what_it_acknowledged_is_refused_and_judged_once_a_process() {
    let place = |index| LogPlace { term: 1, replica: 1, index };
    let vote = VoteFor { term: 1, replica: 1 };
    let known = |index| Some(Acknowledged { vote, matched: place(index), committed: None });
    let mut with = said(&[5]);
    with.replicas = vec![(THEIRS.0, THEIRS.1, HardState { vote: Some(vote), last: Some(place(10)) })];
    let mut judge = registry(&[1], &[]);
    let verdict = judge.judge(NodeId(2), &with, None, |_, _| known(10));
    assert!(verdict.refused.is_empty());
    judge.judged(NodeId(2), verdict);
    let again = judge.judge(NodeId(2), &with, None, |_, _| known(11));
    assert!(again.refused.is_empty(), "it has acknowledged more since it said what it has");

    let mut judge = registry(&[1], &[]);
    let verdict = judge.judge(NodeId(2), &with, None, |_, _| known(11));
    assert_eq!(verdict.refused.len(), 1);
    judge.judged(NodeId(2), verdict.clone());
    assert_eq!(judge.outgoing(NodeId(2), OWN, THEIRS), Err(Stop::Refused));
    assert_eq!(judge.outgoing(NodeId(2), OWN, (GROUP, ReplicaId(3))), Ok(Some(StartId(5))), "the others are heard");
    let mut refused = registry(&[5], &[]);
    let heard = refused.heard(NodeId(1), &verdict);
    assert!(matches!(&heard[..], [Consequence::Close { replica: ReplicaId(2), .. }]), "{heard:?}");
}

#[test]
fn a_history_keeps_the_last_starts() {
    let mut kept = KeptStarts::default();
    for start in 0..2 * HISTORY_MAX as u128 {
        kept = kept.begun(StartId(start));
    }
    assert_eq!(kept.history.len(), HISTORY_MAX);
    assert_eq!(kept.history.last(), Some(&StartId(2 * HISTORY_MAX as u128 - 1)));
}
