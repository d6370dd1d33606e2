//! Tests of each command's effect on records, and of commands without effect.

use assay_storage_catalog::{CatalogError, check};
use assay_storage_model::catalog::{
    CatalogCommand, CatalogOutcome, Expect, PutRecord, RECORD_BODY_BYTES_MAX, UNIQUE_KEYS_MAX, UniqueKey,
};
use assay_storage_model::entry::blob_entry;

use crate::{KIND, apply, at, delete, empty, entry, id, put};

fn key(name: &str) -> UniqueKey {
    UniqueKey::new("project.name/1", name)
}

#[test]
fn a_name_that_is_taken_names_who_has_it_and_nothing_changes() {
    let (_, catalog) = empty();
    assert_eq!(
        apply(&catalog, put(1, Expect::Absent, &["a"], "first")),
        CatalogOutcome::Put { revision: 1, made: true }
    );
    let before = catalog.read().digest();
    let taken = CatalogOutcome::Taken { key: key("a"), kind: KIND, id: id(1) };
    assert_eq!(apply(&catalog, put(2, Expect::Absent, &["b", "a"], "second")), taken);
    assert_eq!(catalog.read().digest(), before);
    assert!(catalog.read().find(&key("b")).is_none());
    assert_eq!(catalog.read().find(&key("a")).expect("found").body, b"first");
}

#[test]
fn a_repeated_command_finds_that_the_revision_has_moved() {
    let (_, catalog) = empty();
    for _ in 0..2 {
        apply(&catalog, put(1, Expect::Absent, &["a"], "first"));
    }
    assert_eq!(apply(&catalog, put(1, Expect::Absent, &["a"], "first")), CatalogOutcome::Stale { revision: Some(1) });
    assert_eq!(
        apply(&catalog, put(1, Expect::Revision(1), &["a"], "second")),
        CatalogOutcome::Put { revision: 2, made: false }
    );
    assert_eq!(
        apply(&catalog, put(1, Expect::Revision(1), &["a"], "second")),
        CatalogOutcome::Stale { revision: Some(2) }
    );
    assert_eq!(apply(&catalog, delete(1, Expect::Revision(2))), CatalogOutcome::Deleted { version: 3 });
    assert_eq!(apply(&catalog, delete(1, Expect::Revision(2))), CatalogOutcome::Stale { revision: None });
    assert_eq!(apply(&catalog, delete(1, Expect::Any)), CatalogOutcome::Stale { revision: None });
}

#[test]
fn a_record_made_again_never_has_a_revision_it_had_before() {
    let (_, catalog) = empty();
    apply(&catalog, put(1, Expect::Absent, &[], "first"));
    apply(&catalog, delete(1, Expect::Any));
    assert_eq!(apply(&catalog, put(1, Expect::Absent, &[], "again")), CatalogOutcome::Put { revision: 3, made: true });
}

#[test]
fn a_change_keeps_when_the_record_was_made_and_frees_the_names_it_gives_up() {
    let (_, catalog) = empty();
    apply(&catalog, put(7, Expect::Absent, &["a", "b"], "{}"));
    let CatalogCommand::Put(change) = put(7, Expect::Any, &["b", "c"], "{}") else { panic!("a put") };
    apply(&catalog, CatalogCommand::Put(PutRecord { at: 99, ..change }));
    let record = catalog.read().get(KIND, id(7)).cloned().expect("there");
    assert_eq!((record.created, record.changed), (7, 99));
    assert!(matches!(apply(&catalog, put(8, Expect::Absent, &["a"], "{}")), CatalogOutcome::Put { .. }));
    assert!(matches!(apply(&catalog, put(9, Expect::Absent, &["c"], "{}")), CatalogOutcome::Taken { .. }));
    apply(&catalog, delete(7, Expect::Any));
    assert!(matches!(apply(&catalog, put(9, Expect::Absent, &["c"], "{}")), CatalogOutcome::Put { .. }));
}

#[test]
fn what_breaks_a_rule_is_refused_with_the_reason() {
    let (_, catalog) = empty();
    let large = "x".repeat(RECORD_BODY_BYTES_MAX + 1);
    let names: Vec<String> = (0..=UNIQUE_KEYS_MAX).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let long = "x".repeat(3000);
    for (command, word) in [
        (put(1, Expect::Any, &[], &large), "bytes"),
        (put(1, Expect::Any, &names, "{}"), "unique keys"),
        (put(1, Expect::Any, &["a", "a"], "{}"), "twice"),
        (put(1, Expect::Any, &[&long], "{}"), "longer"),
    ] {
        let reason = check(&command).expect_err("refused early");
        assert!(reason.contains(word), "{reason}");
        assert_eq!(apply(&catalog, command), CatalogOutcome::Refused { reason });
    }
    assert_eq!(catalog.read().version(), 0);
}

#[test]
fn commands_of_one_entry_see_each_other_and_answer_in_order() {
    let (_, catalog) = empty();
    let both = entry(&[put(1, Expect::Absent, &["a"], "{}"), put(2, Expect::Absent, &["a"], "{}")]);
    let outcomes = catalog.apply(at(0), &both).expect("applies");
    let text = format!("{outcomes:?}");
    assert!(outcomes.len() == 2 && text.contains("made: true") && text.contains("Taken"), "{text}");
}

#[test]
fn an_entry_that_is_not_the_next_one_or_does_not_decode_stops_the_replica() {
    let (_, catalog) = empty();
    apply(&catalog, put(1, Expect::Absent, &[], "{}"));
    let before = catalog.read().digest();
    let next = entry(&[put(2, Expect::Absent, &[], "{}")]);
    for index in [0, 2] {
        assert!(matches!(catalog.apply(at(index), &next), Err(CatalogError::OutOfOrder { .. })), "{index}");
        assert!(catalog.apply_blank(at(index)).is_err() && catalog.apply_membership(at(index), b"m").is_err());
    }
    assert!(matches!(catalog.apply(at(1), &next.slice(..9)), Err(CatalogError::Entry { .. })));
    assert!(matches!(catalog.apply(at(1), &blob_entry([0; 32], 1)), Err(CatalogError::BlobEntry(_))));
    let mut damaged = next.to_vec();
    damaged[9] = 200;
    assert!(matches!(catalog.apply(at(1), &damaged.into()), Err(CatalogError::Command { .. })));
    assert_eq!(catalog.read().digest(), before);
    assert!(catalog.apply(at(1), &next).is_ok());
}
