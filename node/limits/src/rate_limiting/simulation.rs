//! Simulation of buckets and leases with random demand, a lossy network and homes that fail and return.
//!
//! It compares the requests admitted by all nodes with the limit.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::bucket::{Ask, Bucket, Grant, Micros, SECOND, Terms, seconds};
use super::lease::{ANSWER_WAIT_MAX, Event, LEASE, Lease, Verdict};

/// Minimum length of a counted time span.
const STRETCH: Micros = 10 * SECOND;
/// Bounds of the admitted part of the limit, not counting one burst. The lower bound applies if demand suffices.
const MOST: f64 = 1.1;
const LEAST: f64 = 0.9;

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    /// Returns the time until the next random event.
    fn pause(&mut self, per_second: f64) -> Micros {
        (-(1.0 - self.part()).ln() / per_second * SECOND as f64).ceil() as Micros
    }
}

#[derive(Clone, Debug)]
struct World {
    nodes: usize,
    terms: Terms,
    /// Demand at each node, as a multiple of the limit. It is constant if `steady`, and otherwise changes at random.
    demand: Vec<f64>,
    steady: bool,
    /// Delay in one direction, in microseconds.
    delay: (u64, u64),
    /// Probability that a message is lost, per direction.
    lost: f64,
    /// Time span in which the home is silent. Afterwards it starts anew or keeps its state, depending on `anew`.
    down: Option<(Micros, Micros)>,
    anew: bool,
    /// Time span in which only the first node cannot reach the home.
    cut: Option<(Micros, Micros)>,
    lasts: Micros,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Request { node: usize },
    Again { node: usize, request: u64 },
    AtHome { node: usize, sent: Micros, want: u32, unused: u32, debt: u32 },
    Answer { node: usize, sent: Micros, granted: u32, wait: Micros },
    Ends { node: usize, sent: Micros },
    Throws { node: usize },
}

struct Node {
    lease: Lease,
    waiting: BTreeSet<u64>,
    in_flight: Option<Micros>,
    /// Requests per second, as a multiple of the limit.
    demand: f64,
}

struct Run {
    world: World,
    dice: Dice,
    queue: BinaryHeap<Reverse<(Micros, u64, Happens)>>,
    order: u64,
    nodes: Vec<Node>,
    bucket: Bucket,
    made_anew: bool,
    admitted: Vec<Micros>,
    by_node: Vec<usize>,
    refused: u64,
    requests: u64,
    asks: Vec<u64>,
    waited_max: Micros,
    began: std::collections::BTreeMap<u64, Micros>,
}

/// Result of a simulation.
#[derive(Debug)]
struct RunResult {
    admitted: Vec<Micros>,
    by_node: Vec<usize>,
    asks: Vec<u64>,
    refused: u64,
    waited_max: Micros,
}

fn run(world: &World, seed: u64) -> RunResult {
    let nodes = world.demand.iter().map(|demand| Node {
        lease: Lease::new(0, world.terms, world.nodes),
        waiting: BTreeSet::new(),
        in_flight: None,
        demand: *demand,
    });
    let mut run = Run {
        nodes: nodes.collect(),
        dice: Dice(seed),
        queue: BinaryHeap::new(),
        order: 0,
        bucket: Bucket::new(0, world.terms),
        made_anew: false,
        admitted: Vec::new(),
        by_node: vec![0; world.nodes],
        refused: 0,
        requests: 0,
        asks: vec![0; world.nodes],
        waited_max: 0,
        began: std::collections::BTreeMap::new(),
        world: world.clone(),
    };
    for node in 0..world.nodes {
        run.at(0, Happens::Throws { node });
        run.at(run.dice.0 % 1000, Happens::Request { node });
    }
    while let Some(Reverse((now, _, happens))) = run.queue.pop().filter(|Reverse((now, ..))| *now < world.lasts) {
        run.happens(now, happens);
    }
    RunResult {
        admitted: run.admitted,
        by_node: run.by_node,
        asks: run.asks,
        refused: run.refused,
        waited_max: run.waited_max,
    }
}

impl Run {
    fn at(&mut self, when: Micros, happens: Happens) {
        self.order += 1;
        self.queue.push(Reverse((when, self.order, happens)));
    }

    fn happens(&mut self, now: Micros, happens: Happens) {
        match happens {
            Happens::Throws { node } => {
                if !self.world.steady {
                    let most = self.world.demand[node];
                    self.nodes[node].demand = if self.dice.part() < 0.3 { 0.0 } else { most * 2.0 * self.dice.part() };
                    let pause = self.dice.between(10_000, 2 * SECOND);
                    self.at(now + pause, Happens::Throws { node });
                }
            }
            Happens::Request { node } => {
                let per_second = self.nodes[node].demand * self.world.terms.per_second;
                if per_second > 0.0 {
                    self.requests += 1;
                    let request = self.requests;
                    self.began.insert(request, now);
                    self.take(now, node, request, true);
                }
                let pause = if per_second > 0.0 { self.dice.pause(per_second) } else { 5_000 };
                self.at(now + pause.max(1), Happens::Request { node });
            }
            Happens::Again { node, request } => {
                if self.nodes[node].waiting.contains(&request) {
                    self.take(now, node, request, false);
                }
            }
            Happens::AtHome { node, sent, want, unused, debt } => {
                self.at_home(now, node, sent, Ask { want, unused, debt })
            }
            Happens::Answer { node, sent, granted, wait } => {
                if self.nodes[node].in_flight == Some(sent) {
                    self.hear(now, node, Event::Answered { sent, grant: Grant { granted, wait } });
                }
            }
            Happens::Ends { node, sent } => {
                if self.nodes[node].in_flight == Some(sent) {
                    self.hear(now, node, Event::Failed { sent });
                }
            }
        }
    }

    /// Handles a request at the home, which may have started anew.
    fn at_home(&mut self, now: Micros, node: usize, sent: Micros, ask: Ask) {
        if let Some((from, until)) = self.world.down {
            if (from..until).contains(&now) {
                return;
            }
            if now >= until && self.world.anew && !self.made_anew {
                self.made_anew = true;
                self.bucket = Bucket::new(now, self.world.terms);
            }
        }
        if node == 0 && self.world.cut.is_some_and(|(from, until)| (from..until).contains(&now)) {
            return;
        }
        let Grant { granted, wait } = self.bucket.step(now, self.world.terms, ask);
        self.send(now, Happens::Answer { node, sent, granted, wait });
    }

    fn send(&mut self, now: Micros, what: Happens) {
        if self.dice.part() >= self.world.lost {
            let delay = self.dice.between(self.world.delay.0, self.world.delay.1);
            self.at(now + delay, what);
        }
    }

    /// Handles an event like the code around a lease: all waiting requests decide again.
    fn hear(&mut self, now: Micros, node: usize, event: Event) {
        self.nodes[node].in_flight = None;
        self.nodes[node].lease.step(now, event);
        for request in self.nodes[node].waiting.clone() {
            self.take(now, node, request, false);
        }
    }

    fn take(&mut self, now: Micros, node: usize, request: u64, first: bool) {
        let (terms, nodes) = (self.world.terms, self.world.nodes);
        let step = self.nodes[node].lease.take(now, terms, nodes, first);
        match step.verdict {
            Verdict::Wait { until } => {
                self.nodes[node].waiting.insert(request);
                self.at(until, Happens::Again { node, request });
            }
            verdict => {
                if self.nodes[node].waiting.remove(&request) {
                    self.nodes[node].lease.step(now, Event::Leave);
                }
                let began = self.began.remove(&request).expect("it began");
                self.waited_max = self.waited_max.max(now - began);
                match verdict {
                    Verdict::Admit => {
                        self.admitted.push(now);
                        self.by_node[node] += 1;
                    }
                    _ => self.refused += 1,
                }
            }
        }
        if let Some(Ask { want, unused, debt }) = step.ask {
            self.asks[node] += 1;
            self.nodes[node].in_flight = Some(now);
            self.send(now, Happens::AtHome { node, sent: now, want, unused, debt });
            self.at(now + LEASE, Happens::Ends { node, sent: now });
        }
    }
}

/// Returns the maximum excess over `parts` of the limit in any time span.
fn above(admitted: &[Micros], per_second: f64, parts: f64) -> f64 {
    let (mut most, mut lowest, mut first) = (f64::MIN, f64::MAX, 0);
    let level = |place: usize| place as f64 - parts * per_second * seconds(admitted[place]);
    for last in 0..admitted.len() {
        while admitted[last] >= admitted[first] + STRETCH {
            lowest = lowest.min(level(first));
            first += 1;
        }
        if lowest < f64::MAX {
            most = most.max(level(last) + 1.0 - lowest);
        }
        // Shorter spans count as if they had the minimum length.
        most = most.max((last - first + 1) as f64 - parts * per_second * seconds(STRETCH));
    }
    most
}

/// Returns the minimum admitted in any ten seconds after the first second, as a part of the limit.
fn least(admitted: &[Micros], per_second: f64, lasts: Micros) -> f64 {
    let mut least = f64::MAX;
    let mut from = SECOND;
    while from + STRETCH <= lasts {
        let within = admitted.iter().filter(|at| (from..from + STRETCH).contains(*at)).count();
        least = least.min(within as f64 / per_second / seconds(STRETCH));
        from += SECOND;
    }
    least
}

/// Runs a world and checks the upper bounds. A silent home costs at most one extra request per node.
#[track_caller]
fn never_above(world: &World, bursts: f64, seed: u64) -> RunResult {
    let outcome = run(world, seed);
    let above = above(&outcome.admitted, world.terms.per_second, MOST);
    let answers = world.lost == 0.0 && world.delay.1 < ANSWER_WAIT_MAX / 2 && world.down.is_none();
    let most = bursts * world.terms.burst + if answers { 0.0 } else { world.nodes as f64 };
    assert!(above <= most, "seed {seed}: {above} above the limit and not {most} in {world:?}");
    // The number of requests to the home is bounded, too.
    for asks in &outcome.asks {
        assert!(*asks as f64 <= 20.0 * seconds(world.lasts) + 3.0, "seed {seed}: {asks} asks in {world:?}");
    }
    assert!(outcome.waited_max <= 101_000, "seed {seed}: waited {} in {world:?}", outcome.waited_max);
    outcome
}

fn world(dice: &mut Dice) -> World {
    let nodes = usize::try_from(dice.between(1, 9)).expect("few");
    let per_second = [0.5, 3.0, 20.0, 50.0, 200.0, 1000.0][usize::try_from(dice.between(0, 5)).expect("few")];
    let burst = per_second * [0.0, 0.5, 1.0, 1.0, 5.0][usize::try_from(dice.between(0, 4)).expect("few")];
    World {
        nodes,
        terms: Terms::new(per_second, burst),
        demand: (0..nodes).map(|_| 3.0 * dice.part()).collect(),
        steady: dice.part() < 0.3,
        delay: [(50, 300), (500, 3_000), (1_000, 40_000), (40_000, 90_000)]
            [usize::try_from(dice.between(0, 3)).expect("few")],
        lost: [0.0, 0.0, 0.01, 0.1, 0.3][usize::try_from(dice.between(0, 4)).expect("few")],
        down: None,
        anew: false,
        cut: None,
        lasts: 40 * SECOND,
    }
}

/// Returns the seeds of a test. Each simulation takes at most a second.
fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("ASSAY_TEST_SEEDS").ok().and_then(|count| count.parse().ok());
    0..count.map_or(20, |count: u64| count.min(2_000))
}

#[test]
fn whatever_comes_to_whichever_nodes_the_sum_stays_within_the_limit() {
    for seed in seeds() {
        let world = world(&mut Dice(seed));
        never_above(&world, 1.0, seed);
    }
}

/// Creates a world with three times the limit in total, unevenly distributed.
fn busy(dice: &mut Dice, lost: f64) -> World {
    let nodes = usize::try_from(dice.between(1, 9)).expect("few");
    let per_second = [20.0, 100.0, 1000.0][usize::try_from(dice.between(0, 2)).expect("few")];
    let parts: Vec<f64> = (0..nodes).map(|_| if dice.part() < 0.3 { 0.02 } else { dice.part() }).collect();
    let sum: f64 = parts.iter().sum();
    World {
        nodes,
        terms: Terms::new(per_second, per_second),
        demand: parts.iter().map(|part| 3.0 * part / sum).collect(),
        steady: true,
        delay: [(50, 300), (500, 5_000), (2_000, 20_000)][usize::try_from(dice.between(0, 2)).expect("few")],
        lost,
        down: None,
        anew: false,
        cut: None,
        lasts: 40 * SECOND,
    }
}

#[test]
fn where_three_times_the_limit_comes_the_limit_is_let_in() {
    let (mut lowest, mut highest) = (f64::MAX, 0.0_f64);
    for seed in seeds() {
        for lost in [0.0, 0.01] {
            let world = busy(&mut Dice(seed), lost);
            let outcome = never_above(&world, 1.0, seed);
            let least = least(&outcome.admitted, world.terms.per_second, world.lasts);
            assert!(least >= LEAST, "seed {seed}: {least} in {world:?}");
            let all = outcome.admitted.len() as f64 - world.terms.burst;
            let part = all / (world.terms.per_second * seconds(world.lasts));
            (lowest, highest) = (lowest.min(least), highest.max(part));
        }
    }
    println!("of the limit: at least {lowest:.3} in any ten seconds, at most {highest:.3} in forty beside the burst");
}

#[test]
fn where_as_much_comes_everywhere_no_node_goes_without() {
    let (mut lowest, mut highest) = (f64::MAX, 0.0_f64);
    for seed in seeds() {
        let world = busy(&mut Dice(seed), 0.0);
        let world = World { demand: vec![3.0 / world.nodes as f64; world.nodes], ..world };
        let outcome = never_above(&world, 1.0, seed);
        for let_in in &outcome.by_node {
            let part = *let_in as f64 * world.nodes as f64 / outcome.admitted.len() as f64;
            assert!((0.6..=1.5).contains(&part), "seed {seed}: {part} of its part, in {world:?}");
            (lowest, highest) = (lowest.min(part), highest.max(part));
        }
    }
    println!("each node lets in between {lowest:.3} and {highest:.3} of an equal part");
}

/// Tests a home that is silent for six seconds and then returns or is replaced.
#[test]
fn a_home_that_is_lost_neither_opens_nor_shuts_the_door() {
    let (mut lowest, mut highest) = (f64::MAX, 0.0_f64);
    for seed in seeds() {
        let dice = &mut Dice(seed);
        let nodes = usize::try_from(dice.between(2, 9)).expect("few");
        let anew = dice.part() < 0.5;
        let world = World {
            nodes,
            demand: vec![3.0 / nodes as f64; nodes],
            down: Some((12 * SECOND, 18 * SECOND)),
            anew,
            ..busy(dice, 0.0)
        };
        // A home that starts anew starts with a burst.
        let outcome = never_above(&world, if anew { 2.0 } else { 1.0 }, seed);
        let within = outcome.admitted.iter().filter(|at| (12 * SECOND..18 * SECOND).contains(*at)).count() as f64;
        let part = within / (6.0 * world.terms.per_second);
        assert!(part >= LEAST, "seed {seed}: {part} of the limit while the home was lost, in {world:?}");
        (lowest, highest) = (lowest.min(part), highest.max(part));
    }
    println!("while the home is lost, between {lowest:.3} and {highest:.3} of the limit");
}

/// Tests that an isolated node reports its admitted requests later, and that all nodes then admit fewer.
#[test]
fn a_node_that_is_cut_off_lets_in_its_share_beside_the_others_and_pays_it_back() {
    let (mut highest, mut in_the_end) = (0.0_f64, 0.0_f64);
    for seed in seeds() {
        let world = busy(&mut Dice(seed), 0.0);
        let nodes = world.nodes.max(2);
        let world =
            World { nodes, demand: vec![3.0 / nodes as f64; nodes], cut: Some((12 * SECOND, 18 * SECOND)), ..world };
        let outcome = run(&world, seed);
        let per_second = world.terms.per_second;
        let within = outcome.admitted.iter().filter(|at| (12 * SECOND..18 * SECOND).contains(*at)).count() as f64;
        let part = within / (6.0 * per_second);
        assert!(part <= 1.05 + 1.0 / nodes as f64, "seed {seed}: {part} in {world:?}");
        let all = (outcome.admitted.len() as f64 - world.terms.burst) / (per_second * seconds(world.lasts));
        assert!((0.95..=1.02).contains(&all), "seed {seed}: {all} in {world:?}");
        (highest, in_the_end) = (highest.max(part), in_the_end.max(all));
    }
    println!("while one node is cut off, at most {highest:.3} of the limit, and {in_the_end:.3} in the end");
}

/// Tests that requests far below the limit are never refused.
#[test]
fn below_the_limit_nobody_is_refused() {
    for seed in seeds() {
        let world = busy(&mut Dice(seed), 0.0);
        let demand = world.demand.iter().map(|demand| demand / 6.0).collect();
        let world = World { demand, ..world };
        let outcome = never_above(&world, 1.0, seed);
        assert_eq!(outcome.refused, 0, "seed {seed}: {world:?}");
    }
}
