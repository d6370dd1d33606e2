//! Property tests of names against a model: random creates, renames and deletes in two projects.

use std::collections::BTreeMap;

use assay_node_records::RecordsError;
use assay_node_records::kinds::DATASET;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use uuid::Uuid;

use super::{body, id_of, world};

const STEPS: usize = 250;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[tokio::test]
async fn names_behave_like_a_map() {
    let world = world().await;
    let projects = [world.project("p").await, world.project("q").await];
    let mut random = ChaCha8Rng::seed_from_u64(41);
    // (project, name) -> id
    let mut model: BTreeMap<(usize, &str), Uuid> = BTreeMap::new();
    for step in 0..STEPS {
        let (project, name) = (random.random_range(0..2), NAMES[random.random_range(0..NAMES.len())]);
        let picked = model.iter().nth(random.random_range(0..model.len().max(1))).map(|(key, id)| (*key, *id));
        match (random.random_range(0..3), picked) {
            (0, Some((old, id))) => {
                let sent = body(json!({ "name": name }));
                let renamed = world.records.patch(&world.owner, &DATASET, id, sent).await;
                let new = (old.0, name);
                match model.get(&new) {
                    Some(owner) if *owner != id => {
                        assert!(matches!(renamed, Err(RecordsError::Taken(_))), "step {step}: {renamed:?}");
                    }
                    _ => {
                        assert_eq!(id_of(&renamed.expect("renames")), id);
                        model.remove(&old);
                        model.insert(new, id);
                    }
                }
            }
            (1, Some((old, id))) => {
                world.records.delete(&world.owner, &DATASET, id).await.expect("deletes");
                model.remove(&old);
            }
            _ => {
                let sent = body(json!({ "name": name, "project_id": projects[project] }));
                let made = world.records.create(&world.owner, &DATASET, sent).await.expect("creates");
                let id = id_of(&made.object);
                assert_eq!(model.get(&(project, name)).copied(), made.found_existing.then_some(id), "step {step}");
                model.insert((project, name), id);
            }
        }
        for (number, project) in projects.iter().enumerate() {
            let listed = world.list(&DATASET, &[("project_id", &project.to_string())]).await.expect("lists");
            let found: BTreeMap<_, _> =
                listed.iter().map(|set| (set["name"].as_str().expect("a name").to_owned(), id_of(set))).collect();
            let expected = model.iter().filter(|((of, _), _)| *of == number);
            assert_eq!(found, expected.map(|((_, name), id)| ((*name).to_owned(), *id)).collect(), "step {step}");
        }
    }
}
