//! The shard against a naive model: random writes, seals, compactions, restarts and snapshots.
//!
//! Every read at every version must match the model. One seed makes one history, and a failure prints it.

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rand::Rng;
use world::World;

const SEEDS: u64 = 16;
const STEPS: usize = 250;

fn history(seed: u64) -> usize {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        match world.rng.random_range(0..100) {
            0..60 => world.write(),
            60..62 => world.poison(),
            62..70 => world.send_again(),
            70..72 => world.advance(),
            72..73 => world.raise_floor(),
            73..74 => world.drop_object(),
            74..84 => world.seal(),
            84..90 => world.compact(),
            90..92 => world.settle(),
            92..94 => world.restart(),
            94..95 => world.erase(),
            95..96 => world.install_own_snapshot(),
            _ => world.check_something(),
        }
    }
    world.check_everything();
    world.restart();
    world.check_everything();
    world.erased
}

#[test]
fn every_read_at_every_version_says_what_the_model_says() {
    let erased: usize = (0..SEEDS).map(history).sum();
    assert!(erased > 0, "no history had anything to erase");
}

#[test]
fn two_replicas_that_seal_at_different_times_are_equal() {
    for seed in 100..108 {
        let mut world = World::new(seed);
        let mut other = World::new(seed);
        for step in 0..80 {
            world.write();
            world.send_again();
            if step % 4 == 0 {
                world.seal();
                world.compact();
            }
            if step % 31 == 30 {
                world.restart();
            }
        }
        other.replay(&world);
        world.check_everything();
        other.check_everything();
        assert_eq!(world.shard().objects(), other.shard().objects(), "records and digests, seed {seed}");
    }
}

#[test]
fn what_was_written_can_be_written_again_elsewhere_version_by_version() {
    for seed in 500..508 {
        let (mut world, mut other) = (World::new(seed), World::new(seed));
        for _ in 0..120 {
            match world.rng.random_range(0..100) {
                0..73 => world.write(),
                73..75 => world.raise_floor(),
                75..77 => world.drop_object(),
                77..87 => world.seal(),
                87..93 => world.compact(),
                93..96 => world.settle(),
                _ => world.restart(),
            }
        }
        world.replay_into(&mut other);
        other.restart();
    }
}

#[test]
fn a_damaged_snapshot_is_refused_and_the_shard_goes_on() {
    let mut world = World::new(300);
    for _ in 0..3 {
        (0..20).for_each(|_| world.write());
        world.seal();
    }
    world.refuse_damaged_snapshots();
    world.write();
    world.check_everything();
    world.install_own_snapshot();
    world.check_everything();
}

/// Ends set while a segment is written, and marks set while segments are merged, must not be lost.
#[test]
fn writes_go_on_beside_seals_and_compactions() {
    for seed in 200..203 {
        let mut world = World::new(seed);
        for _ in 0..4 {
            let shard = Arc::clone(world.shard());
            let stop = Arc::new(AtomicBool::new(false));
            let seals = Arc::new(AtomicU32::new(0));
            let upkeep = std::thread::spawn({
                let (stop, seals) = (Arc::clone(&stop), Arc::clone(&seals));
                move || {
                    while !stop.load(Ordering::Relaxed) {
                        shard.seal().expect("seals");
                        seals.fetch_add(1, Ordering::Relaxed);
                        while shard.compact(&|| {}).expect("compacts") {}
                        shard.settle(&|| {}).expect("settles");
                    }
                }
            });
            while seals.load(Ordering::Relaxed) < 14 {
                world.write();
                world.send_again();
                std::thread::sleep(Duration::from_micros(200));
            }
            stop.store(true, Ordering::Relaxed);
            upkeep.join().expect("no panic");
            world.check_everything();
            world.restart();
            world.check_everything();
        }
    }
}
