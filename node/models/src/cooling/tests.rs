//! Tests of cooling: delays, probes, and limits of the table.

use super::*;

const NOW: u64 = 1_795_737_600_000;
const LIMITED: UpstreamFailure = UpstreamFailure::RateLimited { retry_after_ms: None };

fn key(model: &str) -> CoolingKey {
    CoolingKey { secret_id: "s".to_owned(), model: model.to_owned() }
}

fn until(table: &CoolingTable, now_ms: u64) -> Option<u64> {
    match table.phase(&key("m"), now_ms) {
        CoolingPhase::Cooling { until_ms } => Some(until_ms - now_ms),
        CoolingPhase::Free | CoolingPhase::ProbeDue => None,
    }
}

#[test]
fn an_upstream_without_failures_is_free() {
    let mut table = CoolingTable::new();
    assert_eq!(table.phase(&key("m"), NOW), CoolingPhase::Free);
    assert_eq!(table.begin(&key("m"), NOW, 1), Ok(()));
    table.succeed(&key("m"), NOW);
    assert_eq!(table.states().count(), 0);
}

#[test]
fn a_429_cools_until_the_time_that_it_names() {
    let mut table = CoolingTable::new();
    let named = |delay| UpstreamFailure::RateLimited { retry_after_ms: Some(delay) };
    table.fail(&key("m"), NOW, 1, named(12_000));
    assert_eq!(until(&table, NOW), Some(12_000));
    table.fail(&key("m"), NOW + 1_000, 2, named(1_000));
    assert_eq!(until(&table, NOW + 1_000), Some(11_000), "a shorter delay ends no longer one");
    table.fail(&key("m"), NOW + 2_000, 3, named(u64::MAX));
    assert_eq!(until(&table, NOW + 2_000), Some(RETRY_AFTER_MS_MAX));
}

#[test]
fn without_a_time_the_cooling_doubles_up_to_a_minute() {
    let mut table = CoolingTable::new();
    let mut now = NOW;
    for expected in [5_000, 10_000, 20_000, 40_000, 60_000, 60_000] {
        table.fail(&key("m"), now, now, LIMITED);
        assert_eq!(until(&table, now), Some(expected));
        now += expected;
    }
    table.succeed(&key("m"), now);
    table.fail(&key("m"), now + 1, 1, LIMITED);
    assert_eq!(until(&table, now + 1), Some(5_000), "a success begins anew");
}

#[test]
fn many_429s_at_once_are_one() {
    let mut table = CoolingTable::new();
    for attempt in 0..20 {
        table.fail(&key("m"), NOW + attempt, attempt, LIMITED);
    }
    assert_eq!(until(&table, NOW + 20), Some(4_980));
    table.fail(&key("m"), NOW + 5_000, 99, LIMITED);
    assert_eq!(until(&table, NOW + 5_000), Some(10_000));
}

#[test]
fn three_failures_in_half_a_minute_cool_for_half_a_minute() {
    let mut table = CoolingTable::new();
    let mut fail = |at: u64| table.fail(&key("m"), NOW + at, at, UpstreamFailure::Unavailable);
    assert_eq!((fail(1), fail(2)), (CoolingPhase::Free, CoolingPhase::Free));
    assert_eq!(fail(FAILURE_WINDOW_MS + 1), CoolingPhase::Free, "the first one is too old");
    assert_eq!(fail(FAILURE_WINDOW_MS + 1), CoolingPhase::Free, "the same attempt is counted once");
    let at = FAILURE_WINDOW_MS + 1_000;
    assert_eq!(fail(at), CoolingPhase::Free, "the second one is too old as well");
    assert_eq!(fail(at + 1), CoolingPhase::Cooling { until_ms: NOW + at + 1 + FAILURE_COOLING_MS });
}

#[test]
fn one_probe_ends_or_renews_the_cooling() {
    let mut table = CoolingTable::new();
    table.fail(&key("m"), NOW, 1, LIMITED);
    assert_eq!(table.begin(&key("m"), NOW, 2), Err(NOW + 5_000));
    let due = NOW + 5_000;
    assert_eq!(table.phase(&key("m"), due), CoolingPhase::ProbeDue);
    assert!(!table.is_cooling(&key("m"), due));
    assert_eq!(table.begin(&key("m"), due, 3), Ok(()));
    assert_eq!(table.begin(&key("m"), due + 1, 4), Err(due + PROBE_MS_MAX), "only one probes");
    assert!(table.is_cooling(&key("m"), due + 1));
    let mut renewed = table.clone();
    renewed.fail(&key("m"), due + 100, 3, UpstreamFailure::Unavailable);
    assert_eq!(until(&renewed, due + 100), Some(FAILURE_COOLING_MS), "one failure is enough");
    assert_eq!(table.begin(&key("m"), due + PROBE_MS_MAX, 5), Ok(()), "a lost probe is replaced");
    table.succeed(&key("m"), due);
    assert_eq!(table.phase(&key("m"), due + 100), CoolingPhase::Free);
}

#[test]
fn a_success_of_a_call_that_began_before_the_failure_ends_nothing() {
    let mut table = CoolingTable::new();
    table.fail(&key("m"), NOW, 1, LIMITED);
    table.succeed(&key("m"), NOW - 1);
    assert_eq!(until(&table, NOW), Some(5_000));
    table.succeed(&key("m"), NOW);
    assert_eq!(until(&table, NOW), None);
}

#[test]
fn states_travel_as_json_and_are_joined() {
    let (mut one, mut other) = (CoolingTable::new(), CoolingTable::new());
    one.fail(&key("m"), NOW, 1, LIMITED);
    for (key, state) in one.states() {
        let text = serde_json::to_string(&(key, state)).expect("JSON");
        let (key, state): (CoolingKey, CoolingState) = serde_json::from_str(&text).expect("a state");
        assert!(other.join(&key, &state, NOW));
        assert!(!other.join(&key, &state, NOW), "the second time changes nothing");
    }
    assert_eq!(one, other);
    other.succeed(&key("m"), NOW + 6_000);
    let freed = other.states().next().expect("a state").1.clone();
    one.join(&key("m"), &freed, NOW + 6_000);
    assert_eq!(one.phase(&key("m"), NOW + 6_001), CoolingPhase::Free);
}

#[test]
fn a_state_of_a_time_to_come_is_left_out() {
    let (mut one, mut other) = (CoolingTable::new(), CoolingTable::new());
    one.fail(&key("m"), u64::MAX, 1, LIMITED);
    let state = one.states().next().expect("a state").1;
    assert!(!other.join(&key("m"), state, NOW) && other.states().count() == 0);
}

#[test]
fn failures_of_several_nodes_add_up() {
    let mut tables = [CoolingTable::new(), CoolingTable::new(), CoolingTable::new()];
    for (attempt, table) in tables.iter_mut().enumerate() {
        table.fail(&key("m"), NOW, attempt as u64, UpstreamFailure::Unavailable);
    }
    let [mut first, second, third] = tables;
    for (key, state) in second.states().chain(third.states()) {
        first.join(key, state, NOW);
    }
    let phase = first.fail(&key("m"), NOW + 1, 9, UpstreamFailure::Unavailable);
    assert_eq!(phase, CoolingPhase::Cooling { until_ms: NOW + 1 + FAILURE_COOLING_MS });
}

#[test]
fn old_states_are_forgotten_and_there_are_so_many_at_most() {
    let mut table = CoolingTable::new();
    table.fail(&key("m"), NOW, 1, LIMITED);
    table.forget(NOW + 5_000 + FORGET_MS - 1);
    assert_eq!(table.states().count(), 1);
    table.forget(NOW + 5_000 + FORGET_MS);
    assert_eq!(table.states().count(), 0);
    for number in 0..COOLING_STATES_MAX + 3 {
        table.fail(&key(&number.to_string()), NOW + number as u64, 1, LIMITED);
    }
    assert_eq!(table.states().count(), COOLING_STATES_MAX);
    assert_eq!(table.phase(&key("2"), NOW), CoolingPhase::Free, "the stalest went");
    assert!(table.is_cooling(&key("3"), NOW));
}
