//! `audit_log`: writes to rows are read write by write, from memory, from segments and from both, on one node and on
//! three, at the requested version, and page by page.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::nodes::{Nodes, SEALS, asked, held};

const OBJECTS: usize = 3;
/// Merges of one request, which are one transaction and stay several writes.
const MERGES: usize = 3;
const PAGES_MAX: usize = 40;
const PAGE_SIZES: [usize; 3] = [1, 2, 5];

/// Compared columns of a write.
const COLUMNS: &str = "id, audit_data, input, output, scores, metadata, root_span_id, comments";

struct Written {
    projects: Vec<String>,
}

impl Written {
    /// Rows `a` and `b` of each project, with a history.
    fn write(nodes: &Nodes) -> Result<Written> {
        let projects: Vec<String> = (0..OBJECTS).map(|n| nodes.project(&format!("kept {n}"))).collect::<Result<_>>()?;
        for (number, project) in projects.iter().enumerate() {
            let row = |id: &str| json!({"id": id, "span_id": id, "root_span_id": "t", "span_parents": ["t"], "input": number});
            nodes.insert(project, &[row("a"), row("b")])?;
            nodes.insert(project, &[json!({"id": "a", "_is_merge": true, "output": "said", "metadata": {"m": 1}})])?;
            let feedback =
                json!({"id": "a", "scores": {"good": 1}, "source": "app", "metadata": {"by": "me"}, "comment": "hm"});
            let target = format!("/v1/project_logs/{project}/feedback");
            nodes.call("POST", &target, &json!({"feedback": [feedback]}))?;
        }
        Ok(Written { projects })
    }

    /// More of it, so that some is old and some is new.
    fn go_on(&self, nodes: &Nodes) -> Result<()> {
        for project in &self.projects {
            nodes.insert(project, &[json!({"id": "a", "_object_delete": true})])?;
            nodes.insert(project, &[json!({"id": "a", "span_id": "a", "root_span_id": "t2", "input": "again"})])?;
            let merge = |number: usize| json!({"id": "a", "_is_merge": true, "metadata": {"n": number}});
            nodes.insert(project, &(0..MERGES).map(merge).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    fn query(&self, columns: &str, objects: usize, rest: &str) -> Value {
        let names: Vec<String> = self.projects[..objects].iter().map(|id| format!("'{id}'")).collect();
        json!({"query": format!("SELECT {columns} FROM project_logs({}) WHERE id IN ('b', 'a'){rest}", names.join(", ")),
            "audit_log": true})
    }

    /// Returns the expected result of each write, newest first. `number` is the project's.
    fn expected(&self, number: usize, is_new: bool) -> Vec<Value> {
        let row = |id: &str, root: &str, audit: Value, said: Value| {
            let mut row = json!({"id": id, "audit_data": audit, "input": null, "output": null, "scores": null,
                "metadata": null, "root_span_id": root, "comments": null});
            said.as_object().into_iter().flatten().for_each(|(name, value)| row[name] = value.clone());
            row
        };
        let did = |action: &str| json!({"action": action});
        let mut rows = Vec::new();
        if is_new {
            rows.extend((0..MERGES).rev().map(|n| row("a", "t2", did("merge"), json!({"metadata": {"n": n}}))));
            rows.push(row("a", "t2", did("upsert"), json!({"input": "again"})));
            rows.push(row("a", "t", did("delete"), json!({})));
        }
        let by = json!({"action": "merge", "source": "app", "metadata": {"by": "me"}});
        rows.push(row("a", "t", by, json!({"scores": {"good": 1}})));
        rows.push(row("a", "t", did("merge"), json!({"output": "said", "metadata": {"m": 1}})));
        rows.extend(["b", "a"].map(|id| row(id, "t", did("upsert"), json!({"input": number}))));
        rows
    }

    /// Checks the results on every node, of one object and of all.
    fn check(&self, nodes: &Nodes, is_new: bool, kept: &str) -> Result<()> {
        for url in &nodes.dev.urls {
            let expected = json!(self.expected(0, is_new));
            let found = asked(url, &self.query(COLUMNS, 1, ""))?["data"].clone();
            ensure!(found == expected, "{kept}, {url}:\n{found}\nand not\n{expected}");
            let counts = self.query("audit_data.action AS did, count(1) AS n", OBJECTS, " GROUP BY 1");
            let of = |did: &str| {
                let all = (0..OBJECTS).flat_map(|number| self.expected(number, is_new));
                all.filter(|row| row["audit_data"]["action"] == did).count()
            };
            let counted = ["delete", "merge", "upsert"].map(|did| json!({"did": did, "n": of(did)}));
            let counted: Vec<&Value> = counted.iter().filter(|row| row["n"] != 0).collect();
            let found = asked(url, &counts)?["data"].clone();
            ensure!(found == json!(counted), "{kept}, {url}: {found}");
        }
        Ok(())
    }

    /// Nothing twice, nothing missed, in the order of one page.
    fn check_pages(&self, nodes: &Nodes, kept: &str) -> Result<()> {
        for order in ["", " ORDER BY _xact_id", " ORDER BY _pagination_key DESC"] {
            for objects in [1, OBJECTS] {
                let columns = format!("project_id, _xact_id, _pagination_key, {COLUMNS}");
                let all = nodes.asked(&self.query(&columns, objects, order))?["data"].clone();
                for size in PAGE_SIZES {
                    let mut body = self.query(&columns, objects, &format!("{order} LIMIT {size}"));
                    let mut paged: Vec<Value> = Vec::new();
                    for page in 0.. {
                        ensure!(page < PAGES_MAX, "{kept}: no end of pages of {size}{order}");
                        let found = nodes.asked(&body)?;
                        paged.extend(found["data"].as_array().context("data")?.iter().cloned());
                        match found.get("cursor") {
                            Some(cursor) => body["cursor"] = cursor.clone(),
                            None => break,
                        }
                    }
                    ensure!(json!(paged) == all, "{kept}: pages of {size}{order}:\n{paged:?}\nand not\n{all}");
                }
            }
        }
        Ok(())
    }

    /// Checks that the version of each write excludes later ones.
    fn check_versions(&self, nodes: &Nodes, kept: &str) -> Result<()> {
        let all = nodes.asked(&self.query("_xact_id, audit_data, output", 1, ""))?["data"].clone();
        let all = all.as_array().context("data")?;
        for write in all {
            let version = write["_xact_id"].as_str().context("a transaction")?;
            let mut body = self.query("_xact_id, audit_data, output", 1, "");
            body["version"] = version.into();
            let until = all.iter().filter(|row| row["_xact_id"].as_str().is_some_and(|xact| xact <= version));
            let expected = json!(until.collect::<Vec<_>>());
            for url in &nodes.dev.urls {
                let found = asked(url, &body)?["data"].clone();
                ensure!(found == expected, "{kept}, {url} at {version}:\n{found}\nand not\n{expected}");
            }
        }
        Ok(())
    }
}

fn refusals(nodes: &Nodes, written: &Written) -> Result<()> {
    let project = &written.projects[0];
    for (query, words) in [
        (format!("SELECT id FROM project_logs('{project}')"), "filter by id"),
        (format!("SELECT id FROM project_logs('{project}') WHERE id = 'a' OR is_root"), "filter by id"),
        (format!("select: id | from: project_logs('{project}') summary | filter: id = 'a'"), "of shape spans"),
    ] {
        let answer = nodes.ask(&json!({"query": query, "audit_log": true}))?;
        ensure!(answer.status == 400 && answer.text().contains(words), "{query}: {} {}", answer.status, answer.text());
    }
    Ok(())
}

fn all(count: usize) -> Result<()> {
    let nodes = Nodes::start(count, &[])?;
    let written = Written::write(&nodes)?;
    let first = || -> Result<()> {
        refusals(&nodes, &written)?;
        written.check(&nodes, false, "in memory")?;
        written.check_pages(&nodes, "in memory")
    };
    held(&nodes, first());
    let nodes = nodes.again(&[SEALS])?;
    let sealed = nodes.sealed().and_then(|()| written.check(&nodes, false, "in segments"));
    held(&nodes, sealed);
    let nodes = nodes.again(&[])?;
    let both = || -> Result<()> {
        written.go_on(&nodes)?;
        written.check(&nodes, true, "in both")?;
        written.check_pages(&nodes, "in both")?;
        written.check_versions(&nodes, "in both")
    };
    held(&nodes, both());
    let nodes = nodes.again(&[SEALS])?;
    let sealed = || -> Result<()> {
        nodes.sealed()?;
        written.check(&nodes, true, "in segments at last")?;
        written.check_pages(&nodes, "in segments at last")?;
        written.check_versions(&nodes, "in segments at last")
    };
    held(&nodes, sealed());
    Ok(())
}

#[test]
fn one_node_says_what_was_written_to_a_row() {
    all(1).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn three_nodes_say_what_was_written_to_a_row() {
    all(3).unwrap_or_else(|error| panic!("{error:#}"));
}
