//! Every case of `tests/btql` is answered over HTTP as its file requires, wherever its rows are: in memory, in
//! segments, or in both.

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::fixture::{FIRST, Fixture, SECOND, next_second, write_prices};
use crate::judge::{QueryCase, read};
use crate::nodes::{Nodes, SEALS, held};

/// A floor, so that a rule that skips too much is seen.
const CASES_MIN: usize = 400;
/// Known errors of the product, by case. Each must fail until it is fixed, and is then removed.
const KNOWN: [&str; 0] = [];

/// Prices of the fixture, as a setting.
struct Prices {
    _dir: TempDir,
    file: String,
}

impl Prices {
    fn new() -> Result<Prices> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("prices.json");
        write_prices(&file)?;
        Ok(Prices { file: file.to_str().context("a path that is text")?.to_owned(), _dir: dir })
    }

    fn setting(&self) -> (&str, &str) {
        ("ASSAY_QUERIES_PRICES", &self.file)
    }
}

fn every_case(nodes: &Nodes, fixture: &mut Fixture, kept: &str) -> Result<()> {
    fixture.look(nodes)?;
    let mut cases: Vec<QueryCase> = read("examples.jsonl", fixture)?;
    cases.extend(read("decisions.jsonl", fixture)?);
    let (mut asked, mut skipped, mut wrong) = (0, 0, Vec::new());
    for case in &cases {
        if case.skipped().is_some() {
            skipped += 1;
            continue;
        }
        asked += 1;
        let mut found = Vec::new();
        // Of each node: which of them have the rows is a matter of luck.
        for _ in &nodes.dev.urls {
            found.extend(case.complaints(nodes, fixture).with_context(|| format!("{}: {}", case.name, case.query))?);
        }
        if KNOWN.iter().any(|known| case.said == *known) {
            found = if found.is_empty() { vec!["it is wrong no longer".to_owned()] } else { Vec::new() };
        }
        wrong.extend(found.into_iter().map(|found| format!("{} {}: {}\n    {found}", case.name, kept, case.query)));
    }
    println!("rows {kept}, {} nodes: {asked} cases asked, {skipped} skipped", nodes.dev.urls.len());
    ensure!(wrong.is_empty(), "{} of {asked} are answered otherwise:\n{}", wrong.len(), wrong.join("\n"));
    ensure!(asked >= CASES_MIN, "only {asked} of {} cases can be asked", cases.len());
    Ok(())
}

fn in_memory(count: usize) {
    let made = || -> Result<(Prices, Nodes)> {
        let prices = Prices::new()?;
        let nodes = Nodes::start(count, &[prices.setting()])?;
        Ok((prices, nodes))
    };
    let (_prices, nodes) = made().unwrap_or_else(|error| panic!("{error:#}"));
    let all = || -> Result<()> {
        let mut fixture = Fixture::make(&nodes)?;
        fixture.insert(&nodes, &FIRST)?;
        next_second();
        fixture.insert(&nodes, &SECOND)?;
        fixture.rewrite(&nodes, "P3")?;
        every_case(&nodes, &mut fixture, "in memory")
    };
    held(&nodes, all());
}

/// First some objects in segments and others in memory, as are later versions of rows in segments; then all in segments.
fn in_segments(count: usize) -> Result<()> {
    let prices = Prices::new()?;
    let nodes = Nodes::start(count, &[SEALS, prices.setting()])?;
    let mut fixture = Fixture::make(&nodes)?;
    fixture.insert(&nodes, &FIRST)?;
    nodes.sealed()?;
    let nodes = nodes.again(&[prices.setting()])?;
    next_second();
    fixture.insert(&nodes, &SECOND)?;
    fixture.rewrite(&nodes, "P3")?;
    held(&nodes, every_case(&nodes, &mut fixture, "in segments and in memory"));
    let nodes = nodes.again(&[SEALS, prices.setting()])?;
    nodes.sealed()?;
    held(&nodes, every_case(&nodes, &mut fixture, "in segments"));
    Ok(())
}

#[test]
fn one_node_answers_every_case_from_memory() {
    in_memory(1);
}

#[test]
fn three_nodes_answer_every_case_from_memory() {
    in_memory(3);
}

#[test]
fn one_node_answers_every_case_from_segments() {
    in_segments(1).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn three_nodes_answer_every_case_from_segments() {
    in_segments(3).unwrap_or_else(|error| panic!("{error:#}"));
}
