//! Tests of lists as clients page through them.

use std::sync::Arc;

use assay_storage_catalog::{Catalog, Cursor, ListQuery};
use assay_storage_model::catalog::{CatalogCommand, Expect, PutRecord};

use crate::{KIND, apply, delete, empty, id, org, put};

fn list(catalog: &Catalog, cursor: Option<Cursor>, limit: usize) -> Vec<u128> {
    let query = ListQuery { kind: KIND, org: org(1), cursor, limit };
    let page = catalog.read().list(&query, |_| true).expect("a known cursor");
    page.iter().map(|record| record.id.as_u128()).collect()
}

fn after(number: u128) -> Option<Cursor> {
    Some(Cursor::After(id(number)))
}

fn before(number: u128) -> Option<Cursor> {
    Some(Cursor::Before(id(number)))
}

fn with_five() -> Arc<Catalog> {
    let (_, catalog) = empty();
    for number in [3, 1, 5, 2, 4] {
        apply(&catalog, put(number, Expect::Absent, &[], "{}"));
    }
    catalog
}

#[test]
fn a_list_is_newest_first_and_pages_meet_without_gap_or_overlap() {
    let catalog = with_five();
    assert_eq!(list(&catalog, None, 100), [5, 4, 3, 2, 1]);
    assert_eq!(list(&catalog, None, 2), [5, 4]);
    assert_eq!(list(&catalog, after(4), 2), [3, 2]);
    assert_eq!(list(&catalog, after(1), 2), []);
    assert_eq!(list(&catalog, before(2), 2), [4, 3]);
    assert_eq!(list(&catalog, before(5), 2), []);
    assert_eq!(list(&catalog, None, 0), []);
}

#[test]
fn a_cursor_still_works_when_its_record_is_gone() {
    let catalog = with_five();
    apply(&catalog, delete(3, Expect::Any));
    assert_eq!(list(&catalog, after(3), 100), [2, 1]);
    assert_eq!(list(&catalog, before(3), 100), [5, 4]);
    catalog.seal().expect("seals");
    let query = ListQuery { kind: KIND, org: org(1), cursor: after(99), limit: 1 };
    let unknown = catalog.read().list(&query, |_| true).expect_err("never heard of");
    assert!(unknown.to_string().contains("project"), "{unknown}");
}

#[test]
fn records_of_one_moment_are_listed_by_id_in_a_stable_order() {
    let (_, catalog) = empty();
    for number in [2, 3, 1] {
        let CatalogCommand::Put(record) = put(number, Expect::Absent, &[], "{}") else { panic!("a put") };
        apply(&catalog, CatalogCommand::Put(PutRecord { at: 7, ..record }));
    }
    assert_eq!(list(&catalog, None, 100), [1, 2, 3]);
    assert_eq!(list(&catalog, after(1), 1), [2]);
}

#[test]
fn a_list_stays_within_its_organization_and_its_filter() {
    let catalog = with_five();
    let CatalogCommand::Put(record) = put(6, Expect::Absent, &[], "{}") else { panic!("a put") };
    apply(&catalog, CatalogCommand::Put(PutRecord { org: None, ..record }));
    assert_eq!(list(&catalog, None, 100), [5, 4, 3, 2, 1]);
    let above = ListQuery { kind: KIND, org: None, cursor: None, limit: 9 };
    assert_eq!(catalog.read().list(&above, |_| true).expect("lists").len(), 1);
    let query = ListQuery { kind: KIND, org: org(1), cursor: None, limit: 2 };
    let odd = catalog.read().list(&query, |record| record.id.as_u128() % 2 == 1).expect("lists");
    assert_eq!(
        odd.iter().map(|record| record.id.as_u128()).collect::<Vec<_>>(),
        [5, 3],
        "the limit counts what is kept"
    );
    assert_eq!(catalog.read().all(KIND).count(), 6);
}
