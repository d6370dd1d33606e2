//! Property tests of orders, cooling and attempts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use assay_node_models::attempts::{
    ATTEMPTS_MAX, AttemptEffect, AttemptEvent, AttemptMachine, AttemptPolicy, GiveUpReason, StatusClass, classify,
};
use assay_node_models::catalog::Catalog;
use assay_node_models::cooling::{CoolingKey, CoolingState, CoolingTable, UpstreamFailure, retry_after_ms};
use assay_node_models::headers::{ForwardPolicy, request_headers, response_headers};
use assay_node_models::provider::{
    HeaderVariables, Provider, ProviderScope, ProviderType, UpstreamCall, UpstreamEndpoint, endpoint_url,
    render_additional_headers,
};
use assay_node_models::resolution::{CandidateOrder, RouteQuery, resolve};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const NOW: u64 = 1_795_737_600_000;

fn provider(id: &str, metadata: &Value) -> Arc<Provider> {
    let metadata = metadata.as_object().expect("an object");
    Arc::new(Provider::parse(id, id, ProviderType::OpenAi, ProviderScope::Organization, metadata).0)
}

fn ids(providers: &[Arc<Provider>], order: CandidateOrder<'_>, cooling: &CoolingTable) -> Vec<String> {
    let query = RouteQuery {
        model: "gpt-4o",
        endpoint_name: None,
        providers,
        catalog: Catalog::built_in(),
        order,
        cooling,
        now_ms: NOW,
    };
    let resolved = resolve(&query).expect("candidates");
    resolved.candidates.into_iter().map(|one| one.provider.id.clone()).collect()
}

#[test]
fn weights_are_respected() {
    const CALLS: u32 = 20_000;
    let weights = [1.0, 2.0, 5.0, 0.5];
    let providers: Vec<_> = weights
        .iter()
        .enumerate()
        .map(|(index, weight)| provider(&index.to_string(), &json!({"weight": weight})))
        .collect();
    let cooling = CoolingTable::new();
    for by_session in [false, true] {
        let mut firsts: HashMap<String, u32> = HashMap::new();
        for call in 0..CALLS {
            let session = call.to_string();
            let order = match by_session {
                true => CandidateOrder::Session { principal: "p", session: &session },
                false => CandidateOrder::Random { seed: u64::from(call) },
            };
            *firsts.entry(ids(&providers, order, &cooling).remove(0)).or_default() += 1;
        }
        for (index, weight) in weights.iter().enumerate() {
            let share = f64::from(firsts[&index.to_string()]) / f64::from(CALLS);
            let expected = weight / weights.iter().sum::<f64>();
            assert!((share - expected).abs() < 0.015, "{index}: {share} instead of {expected}");
        }
    }
}

fn failure() -> impl Strategy<Value = UpstreamFailure> {
    prop_oneof![
        Just(UpstreamFailure::Unavailable),
        Just(UpstreamFailure::RateLimited { retry_after_ms: None }),
        (0..100u64).prop_map(|delay| UpstreamFailure::RateLimited { retry_after_ms: Some(delay * 1_000) }),
    ]
}

#[derive(Clone, Debug)]
enum CoolingChange {
    Fail(UpstreamFailure),
    Succeed,
    Begin,
}

/// Generates a state that results from a history. The times are few, so that they coincide.
fn cooling_state() -> impl Strategy<Value = CoolingState> {
    let change = prop_oneof![
        3 => failure().prop_map(CoolingChange::Fail),
        1 => Just(CoolingChange::Succeed),
        1 => Just(CoolingChange::Begin),
    ];
    vec((0..12u64, 0..3u64, change), 0..12).prop_map(|changes| {
        let (mut table, key) = (CoolingTable::new(), cooling_key());
        for (at, attempt, change) in changes {
            let now = NOW + at * 7_000;
            match change {
                CoolingChange::Fail(failure) => {
                    table.fail(&key, now, attempt, failure);
                }
                CoolingChange::Succeed => table.succeed(&key, now),
                CoolingChange::Begin => {
                    let _ = table.begin(&key, now, attempt);
                }
            }
        }
        table.states().next().map(|(_, state)| state.clone()).unwrap_or_default()
    })
}

fn cooling_key() -> CoolingKey {
    CoolingKey { secret_id: "s".to_owned(), model: "m".to_owned() }
}

fn attempt_event() -> impl Strategy<Value = AttemptEvent> {
    let status = prop_oneof![
        Just(200u16),
        Just(400),
        Just(401),
        Just(404),
        Just(408),
        Just(429),
        Just(500),
        Just(503),
        Just(529),
        Just(302)
    ];
    prop_oneof![
        (0..60_000u64).prop_map(|delay| AttemptEvent::Skipped { until_ms: NOW + delay }),
        Just(AttemptEvent::NotSent),
        any::<bool>().prop_map(|is_late| AttemptEvent::Uncertain { is_late }),
        (status.clone(), proptest::option::of(0..50_000u64))
            .prop_map(|(status, retry_after_ms)| AttemptEvent::Head { status, retry_after_ms }),
        Just(AttemptEvent::FirstByte),
        proptest::option::of(status).prop_map(|status| AttemptEvent::Broken { status }),
        Just(AttemptEvent::Finished),
    ]
}

/// Simple record of a call, against which the machine is checked.
#[derive(Default)]
struct CallRecord {
    tries: Vec<(usize, u64)>,
    was_uncertain: bool,
    had_first_byte: bool,
    ended: bool,
}

impl CallRecord {
    /// Checks the effects of one step.
    fn check(&mut self, policy: &AttemptPolicy, candidates: usize, now: u64, effects: &[AttemptEffect]) {
        for (index, effect) in effects.iter().enumerate() {
            assert!(!self.ended, "nothing happens after the end");
            match *effect {
                AttemptEffect::Try { candidate } => {
                    assert!(candidate < candidates && index == effects.len() - 1);
                    assert!(!self.had_first_byte, "no attempt after the first byte");
                    assert!(policy.retry_uncertain || !self.was_uncertain, "no attempt after an uncertain failure");
                    let is_again = self.tries.iter().any(|(other, _)| *other == candidate);
                    let limit = if is_again { policy.budget_ms.min(policy.total_ms) } else { policy.total_ms };
                    assert!(now <= NOW + limit, "too late: {} ms", now - NOW);
                    self.tries.push((candidate, now));
                }
                AttemptEffect::WaitUntil { at_ms } => {
                    assert!(index == effects.len() - 1 && at_ms > now && at_ms <= NOW + policy.budget_ms);
                }
                AttemptEffect::Pass { candidate, status } => {
                    assert_eq!(
                        self.tries.last().map(|one| one.0),
                        Some(candidate),
                        "only the latest response is there"
                    );
                    assert!(!matches!(classify(status), StatusClass::ProviderAuth | StatusClass::BadResponse));
                    self.ended = true;
                }
                AttemptEffect::Succeeded { .. } => self.ended = true,
                AttemptEffect::GiveUp(reason) => {
                    assert_eq!(reason == GiveUpReason::Interrupted, self.had_first_byte);
                    self.ended = true;
                }
                _ => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_session_keeps_its_order_when_others_come_and_go(
        weights in vec(1..10u32, 2..12), gone in any::<prop::sample::Index>(), session in "[a-z]{1,8}", cooled in any::<bool>(),
    ) {
        let providers: Vec<_> = weights
            .iter()
            .enumerate()
            .map(|(index, weight)| provider(&format!("s{index}"), &json!({"weight": weight})))
            .collect();
        let mut cooling = CoolingTable::new();
        let order = CandidateOrder::Session { principal: "p", session: &session };
        let all = ids(&providers, order, &cooling);
        let mut reversed = providers.clone();
        reversed.reverse();
        prop_assert_eq!(&ids(&reversed, order, &cooling), &all, "the order of the input does not matter");
        let gone = gone.index(providers.len());
        let expected: Vec<_> = all.into_iter().filter(|id| *id != format!("s{gone}")).collect();
        let mut rest = providers;
        if cooled {
            let key = CoolingKey { secret_id: format!("s{gone}"), model: "gpt-4o".to_owned() };
            cooling.fail(&key, NOW, 1, UpstreamFailure::RateLimited { retry_after_ms: None });
        } else {
            rest.remove(gone);
        }
        prop_assert_eq!(ids(&rest, order, &cooling), expected);
    }

    #[test]
    fn each_candidate_is_there_once(weights in vec(0..4u32, 1..12), priorities in vec(-2..3i32, 12), seed in any::<u64>()) {
        let providers: Vec<_> = weights
            .iter()
            .enumerate()
            .map(|(index, weight)| {
                provider(&index.to_string(), &json!({"weight": weight, "priority": priorities[index]}))
            })
            .collect();
        let found = ids(&providers, CandidateOrder::Random { seed }, &CoolingTable::new());
        prop_assert_eq!(found.iter().collect::<HashSet<_>>().len(), providers.len());
        let ordered: Vec<_> = found.iter().map(|id| priorities[id.parse::<usize>().expect("an index")]).collect();
        prop_assert!(ordered.is_sorted());
    }

    #[test]
    fn the_join_of_cooling_states_is_commutative_associative_and_idempotent(
        a in cooling_state(), b in cooling_state(), c in cooling_state(),
    ) {
        prop_assert_eq!(a.join(&b), b.join(&a));
        prop_assert_eq!(a.join(&b).join(&c), a.join(&b.join(&c)));
        prop_assert_eq!(a.join(&a), a.clone());
        prop_assert_eq!(a.join(&b).join(&b), a.join(&b));
        prop_assert_eq!(a.join(&CoolingState::default()), a);
    }

    #[test]
    fn a_change_only_adds_to_a_state(a in cooling_state(), at in 0..14u64, failure in failure(), kind in 0..3u8) {
        let (mut table, key) = (CoolingTable::new(), cooling_key());
        table.join(&key, &a, NOW);
        let now = NOW + at * 7_000;
        match kind {
            0 => { table.fail(&key, now, 9, failure); }
            1 => table.succeed(&key, now),
            _ => { let _ = table.begin(&key, now, 9); }
        }
        let changed = table.states().next().map(|(_, state)| state.clone()).unwrap_or_default();
        prop_assert_eq!(a.join(&changed), changed, "an older state that comes late changes nothing");
    }

    #[test]
    fn attempts_end_within_their_limits(
        candidates in 0..6usize, retry_uncertain in any::<bool>(), budget_ms in 0..60_000u64, total_ms in 0..200_000u64,
        seed in any::<u64>(), events in vec((attempt_event(), 0..20_000u64), 1..80),
    ) {
        let policy = AttemptPolicy { budget_ms, total_ms, retry_uncertain, jitter_seed: seed };
        let mut machine = AttemptMachine::new(policy, candidates, NOW);
        let (mut record, mut now) = (CallRecord::default(), NOW);
        let mut effects = machine.step(now, AttemptEvent::Started).expect("it starts");
        record.check(&policy, candidates, now, &effects);
        let mut steps = 0;
        for (event, passed) in events.iter().cycle() {
            if machine.is_ended() {
                break;
            }
            steps += 1;
            // Invalid events are skipped, and the call must still end.
            prop_assert!(steps < 20 * ATTEMPTS_MAX as usize * events.len(), "it does not end");
            let (event, at) = match effects.last() {
                Some(AttemptEffect::WaitUntil { at_ms }) => (AttemptEvent::Woken, *at_ms),
                _ => (*event, now + passed % 3_000),
            };
            let Ok(next) = machine.step(at, event) else {
                // It is possible that no event of the list fits any more.
                if steps > events.len() {
                    effects = machine.step(now, AttemptEvent::ClientGone).expect("a client may always go");
                    prop_assert!(matches!(effects.last(), Some(AttemptEffect::GiveUp(_))));
                    break;
                }
                continue;
            };
            now = at;
            record.was_uncertain |= matches!(event, AttemptEvent::Uncertain { .. })
                || matches!(event, AttemptEvent::Broken { status: None | Some(200) });
            record.had_first_byte |= event == AttemptEvent::FirstByte;
            effects = next;
            record.check(&policy, candidates, now, &effects);
        }
        prop_assert!(machine.is_ended());
        prop_assert!(machine.attempts() <= ATTEMPTS_MAX && record.tries.len() <= 2 * ATTEMPTS_MAX as usize);
        prop_assert!(machine.step(now, AttemptEvent::Woken).is_err());
    }

    #[test]
    fn no_metadata_switches_a_provider_off(members in btree_map(metadata_name(), json_value(), 0..8)) {
        let members: Map<String, Value> = members.into_iter().collect();
        let (provider, _) = Provider::parse("1", "n", ProviderType::OpenAi, ProviderScope::Project, &members);
        prop_assert_eq!(&provider.metadata.members, &members, "all is kept");
        prop_assert!(provider.metadata.weight >= 0.0 && provider.metadata.weight.is_finite());
        let rendered = render_additional_headers(&provider, HeaderVariables { email: "e\n", model: "m", api_key: "k" });
        prop_assert!(rendered.headers.iter().all(|(_, value)| !value.contains(['\r', '\n', '\0'])));
    }

    #[test]
    fn a_url_leads_to_the_host_of_its_base(model in any::<String>(), verb in any::<String>(), deployment in any::<String>()) {
        for (provider_type, endpoint) in [
            ("azure", UpstreamEndpoint::Chat),
            ("google", UpstreamEndpoint::Gemini(&verb)),
            ("databricks", UpstreamEndpoint::Chat),
            ("bedrock", UpstreamEndpoint::Converse),
        ] {
            let metadata = json!({"api_base": "https://host/base", "deployment": deployment, "endpoint_path": verb});
            let provider_type = ProviderType::parse(provider_type).expect("a type");
            let metadata = metadata.as_object().expect("an object");
            let (provider, _) = Provider::parse("1", "n", provider_type, ProviderScope::Project, metadata);
            let url = endpoint_url(&provider, &UpstreamCall { endpoint, model: &model, stream: false }).expect("a URL");
            prop_assert!(url.starts_with("https://host/base/") && url.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert!(!url.split(['/', '?']).any(|part| part == ".." || part == "."), "{}", url);
        }
    }

    #[test]
    fn any_headers_are_filtered_and_read(names in vec("[ -~]{0,24}", 0..12), values in vec(".{0,24}", 12)) {
        let headers = || names.iter().zip(&values).map(|(name, value)| (name.as_str(), value.as_str()));
        let policy = ForwardPolicy { trace: true, names: vec!["*".to_owned()] };
        let passed = request_headers(headers(), &policy, &[], &[]);
        prop_assert!(passed.iter().all(|(name, _)| !matches!(name.as_str(), "cookie" | "authorization" | "host")));
        prop_assert!(response_headers(headers()).len() <= names.len());
        for name in ["retry-after", "x-ratelimit-reset", "retry-after-ms"] {
            for value in &values {
                let _ = retry_after_ms([(name, value.as_str())], NOW);
            }
        }
    }
}

fn metadata_name() -> impl Strategy<Value = String> {
    const KNOWN: &[&str] = &[
        "api_base",
        "models",
        "customModels",
        "additionalHeaders",
        "weight",
        "priority",
        "timeout_ms",
        "auth_type",
        "endpoint_path",
        "supportsStreaming",
        "excludeDefaultModels",
        "overrideModel",
        "auth_format",
    ];
    prop_oneof![3 => prop::sample::select(KNOWN).prop_map(str::to_owned), 1 => "[a-z]{1,6}".prop_map(|name| name)]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-zA-Z_-]{1,12}", inner, 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
