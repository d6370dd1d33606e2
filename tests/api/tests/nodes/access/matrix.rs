//! The access matrix: every kind, every action, every way of granting, revoking or not granting it, over HTTP and on
//! two nodes of a cluster in turn. `model` computes the expectations from the grants.

mod acts;
mod beside;
mod callers;
mod kinds;
mod mcp;
mod model;
mod rows;
mod world;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::http::HttpResponse;
use assay_test_api::process::run;
use serde_json::Value;

use acts::{Act, Open};
use beside::Beside;
use callers::{Caller, Way, callers};
use kinds::KINDS;
use model::{CallerIdentity, Expected, Rule, expected};
use rows::Later;
use world::{World, key, text};

/// Time after the last change of grants until it holds on every node.
const EVERYWHERE: Duration = Duration::from_secs(5);
/// Cells that run concurrently.
const ASKERS: usize = 24;
/// Failures that are shown.
const SHOWN_MAX: usize = 40;
/// Id of nothing.
const NO_ID: &str = "5ca1ab1e-0000-4000-8000-0123456789ab";
const NO_NAME: &str = "nobody-has-this";
/// Fewer cells than that are not the matrix any more.
const OPEN_MIN: usize = 1000;
const SHUT_MIN: usize = 5000;

/// Findings so far.
#[derive(Debug, Default)]
struct MatrixCounts {
    cells: BTreeMap<String, usize>,
    ways: BTreeMap<String, [usize; 2]>,
    /// Findings by request and expectation, since most errors with one caller occur with others too.
    wrong: BTreeMap<String, Vec<String>>,
    /// Response for a missing object, by request.
    missing: HashMap<(String, u16, bool), String>,
    /// Lists, and what has to be in them or not be in them when all is done.
    there: BTreeSet<(String, String)>,
    gone: BTreeSet<(String, String)>,
    /// Callers that changed an object, by its kind.
    changed: BTreeSet<(String, String)>,
}

struct Matrix<'w> {
    world: &'w World,
    seen: Mutex<MatrixCounts>,
}

impl Matrix<'_> {
    fn cell(&self, caller: &Caller, act: &Act) {
        let expected = expected(&caller.identity, &act.rule);
        let judged = self.judge(caller, act, expected);
        let mut seen = self.seen.lock().expect("nobody panics");
        *seen.cells.entry(format!("{expected:?}")).or_default() += 1;
        seen.ways.entry(format!("{:?}", caller.way)).or_default()[usize::from(expected == Expected::Open)] += 1;
        if let Err(why) = judged {
            let what = format!("{}, should be {expected:?}", act.label);
            seen.wrong.entry(what).or_default().push(format!("{}: {why:#}", caller.name));
            return;
        }
        let is_open = expected == Expected::Open;
        for (what, stays) in [(&act.leaves, is_open), (&act.takes, !is_open)] {
            let to = if stays { &mut seen.there } else { &mut seen.gone };
            to.extend(what.clone());
        }
        if is_open && let Some(kind) = act.label.split_once(": ").map(|(kind, _)| kind.to_owned()) {
            seen.changed.insert((kind, caller.name.clone()));
        }
    }

    fn judge(&self, caller: &Caller, act: &Act, expected: Expected) -> Result<()> {
        let answer = self.world.ask(&caller.headers, &act.ask)?;
        let told = answer.text();
        let status = |wanted: u16| -> Result<()> {
            ensure!(answer.status == wanted, "{} {}: {}: {told}", act.ask.method, act.ask.said(), answer.status);
            Ok(())
        };
        match expected {
            Expected::Open => {
                status(200)?;
                return is_right(&act.open, &told);
            }
            Expected::Absent => status(200)?,
            Expected::Unauthorized => status(401)?,
            Expected::Forbidden => status(403)?,
            Expected::Taken => status(if matches!(act.rule, Rule::Taken { alone: true, .. }) { 400 } else { 409 })?,
            Expected::Missing => status(404)?,
            Expected::Unknown => status(400)?,
        }
        let said = act.ask.said();
        for hidden in act.hidden.iter().filter(|hidden| !said.contains(*hidden)) {
            ensure!(!told.contains(hidden), "it says `{hidden}`: {told}");
        }
        // Of an organization that they are in members are told what it is that they may not.
        let is_hidden = match &caller.identity {
            CallerIdentity::Member(grants) => grants.is_empty() && act.about != self.world.org,
            CallerIdentity::Stranger => true,
            _ => false,
        };
        let is_query = matches!(act.rule, Rule::Query { .. }) && is_hidden && expected == Expected::Forbidden;
        let is_tool = matches!(act.rule, Rule::Tool { .. }) && is_hidden && expected == Expected::Absent;
        let is_nothing = matches!(expected, Expected::Missing | Expected::Unknown);
        if is_nothing || is_query || is_tool {
            self.is_as_nothing(caller, act, &answer)?;
        }
        Ok(())
    }

    /// Checks that an invisible object gets the response of a missing one.
    fn is_as_nothing(&self, caller: &Caller, act: &Act, answer: &HttpResponse) -> Result<()> {
        // Of what is in another organization other things are missing.
        let key = (act.label.clone(), answer.status, matches!(caller.identity, CallerIdentity::Stranger));
        let known = self.seen.lock().expect("nobody panics").missing.get(&key).cloned();
        let wanted = match known {
            Some(wanted) => wanted,
            None => {
                let other = if is_id(&act.about) { NO_ID } else { NO_NAME };
                let nothing = self.world.ask(&caller.headers, &act.ask.about(&act.about, other))?;
                ensure!(nothing.status == answer.status, "of nothing: {}: {}", nothing.status, nothing.text());
                let wanted = bare(&nothing, other)?;
                self.seen.lock().expect("nobody panics").missing.insert(key, wanted.clone());
                wanted
            }
        };
        let told = bare(answer, &act.about)?;
        ensure!(told == wanted, "it is not answered as what is not there:\n  {told}\n  {wanted}");
        Ok(())
    }

    /// Checks that the effects of the cells are as reported.
    fn read_back(&self) -> Result<()> {
        let seen = self.seen.lock().expect("nobody panics");
        let lists: BTreeSet<&String> = seen.there.iter().chain(&seen.gone).map(|(list, _)| list).collect();
        for list in lists {
            let told = self.world.call("GET", list, Value::Null)?.to_string();
            let of = |what: &BTreeSet<(String, String)>, is: bool| {
                let named = what.iter().filter(|(of, _)| of == list).map(|(_, named)| named);
                named.filter(|named| told.contains(&format!("\"{named}\"")) == is).cloned().collect::<Vec<_>>()
            };
            // What was made may have been taken away again; what nobody may take away may not.
            let lost: Vec<String> = of(&seen.there, false)
                .into_iter()
                .filter(|named| !seen.gone.contains(&(list.clone(), named.clone())))
                .collect();
            let come: Vec<String> = of(&seen.gone, true)
                .into_iter()
                .filter(|named| !seen.there.contains(&(list.clone(), named.clone())))
                .collect();
            ensure!(lost.is_empty() && come.is_empty(), "{list}: lost {lost:?}, come {come:?}");
        }
        for kind in &KINDS {
            let fixture = &self.world.things[kind.name];
            let object = if kind.name == "view" { "?object_type=project&object_id=" } else { "" };
            let of = if kind.name == "view" { self.world.parts.as_str() } else { "" };
            let there = self.world.call("GET", &format!("{}/{}{object}{of}", kind.path, fixture.id), Value::Null)?;
            let field = (kind.change)("").0;
            let value = &there[field];
            let by = |(of, name): &&(String, String)| of == kind.name && *value == (kind.change)(name).1;
            let pushed = kind.name == "function" && value.is_string();
            ensure!(
                value.is_null() || pushed || seen.changed.iter().any(|by_whom| by(&by_whom)),
                "{}: {there}",
                kind.name
            );
        }
        Ok(())
    }
}

fn is_id(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn is_right(open: &Open, told: &str) -> Result<()> {
    match open {
        Open::Says(texts, others) => {
            let lacking: Vec<&String> = texts.iter().filter(|text| !told.contains(*text)).collect();
            let surplus: Vec<&String> = others.iter().filter(|text| told.contains(*text)).collect();
            ensure!(lacking.is_empty() && surplus.is_empty(), "it lacks {lacking:?} and has {surplus:?}: {told}");
        }
        Open::Has(place, value) => {
            let answer: Value = serde_json::from_str(told).context("no JSON")?;
            // An array of those that were pushed, or the one that was made.
            ensure!(answer.pointer(place) == Some(value), "{place} is not {value}: {told}");
        }
    }
    Ok(())
}

/// A refusal without what differs from request to request, and without what it is about.
fn bare(answer: &HttpResponse, about: &str) -> Result<String> {
    let mut body: Value = serde_json::from_slice(&answer.body).context("no JSON")?;
    if let Some(fields) = body.as_object_mut() {
        fields.remove("InternalTraceId");
    }
    Ok(body.to_string().replace(about, "IT"))
}

/// Returns the credentials of an owner's service account, and its id.
fn account(data: &Path) -> Result<(String, Vec<(String, String)>)> {
    let node = data.join("node-1");
    let node = node.to_str().context("a path that is text")?;
    let words = ["admin", "create-service-account", "robot", "--organization", world::ORGANIZATION, "--data-dir", node];
    let made = run(&words, &[], "")?.json()?;
    Ok((text(&made["id"])?, key(&text(&made["service_token"])?)))
}

fn all_acts(world: &World, beside: &Beside, later: &Later, caller: &Caller) -> Result<Vec<Act>> {
    let mut acts = acts::of_kinds(world, caller)?;
    acts.extend(beside.acts(world, caller)?);
    acts.extend(rows::acts(world, later, caller));
    acts.extend(mcp::acts(world, caller));
    acts.retain(|act| act.is_for(caller));
    Ok(acts)
}

/// Does it with each, some at a time.
fn at_once<T: Sync>(items: &[T], one: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            one(item)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let askers: Vec<_> = (0..ASKERS).map(|_| scope.spawn(work)).collect();
        askers.into_iter().try_for_each(|asker| asker.join().expect("nobody panics"))
    })
}

/// All of them, with what there has to be for those that are open.
fn cells<'c>(world: &World, beside: &Beside, later: &Later, callers: &'c [Caller]) -> Result<Vec<(&'c Caller, Act)>> {
    let cells = Mutex::default();
    at_once(callers, |caller| {
        let acts = all_acts(world, beside, later, caller).with_context(|| caller.name.clone())?;
        let mut cells: std::sync::MutexGuard<'_, Vec<_>> = cells.lock().expect("nobody panics");
        cells.push((caller.name.clone(), acts));
        Ok(())
    })?;
    let mut made: HashMap<String, Vec<Act>> = cells.into_inner().expect("nobody panics").into_iter().collect();
    let of = |caller: &'c Caller| {
        let acts = made.remove(&caller.name).unwrap_or_default();
        acts.into_iter().map(move |act| (caller, act))
    };
    Ok(callers.iter().flat_map(of).collect())
}

fn holds(world: &World, data: &Path) -> Result<()> {
    let (account, tokens) = account(data)?;
    let beside = Beside::new(world, &account, tokens)?;
    let later = Later::new(world)?;
    let begun = Instant::now();
    let callers = callers(world, data)?;
    let granted = Instant::now();
    println!("{} callers, granted within {:?}", callers.len(), begun.elapsed());
    std::thread::sleep(EVERYWHERE.saturating_sub(granted.elapsed()));

    let begun = Instant::now();
    let cells = cells(world, &beside, &later, &callers)?;
    println!("{} cells prepared within {:?}", cells.len(), begun.elapsed());
    let begun = Instant::now();
    let matrix = Matrix { world, seen: Mutex::default() };
    at_once(&cells, |(caller, act)| {
        matrix.cell(caller, act);
        Ok(())
    })?;
    let by_name = |way: Way| callers.iter().filter(move |caller| caller.way == way);
    let reader = by_name(Way::Direct).find(|caller| caller.permission == "read").context("a reader")?;
    let others: Vec<&Caller> =
        [Way::NoGrant, Way::OtherOrganization, Way::Revoked, Way::ImpersonatedNothing, Way::NoKey]
            .into_iter()
            .filter_map(|way| by_name(way).next())
            .collect();
    let cursors = rows::cursors(world, reader, &others)?;
    matrix.read_back()?;
    told(&matrix.seen.into_inner().expect("nobody panics"), cursors, begun.elapsed())
}

fn told(seen: &MatrixCounts, cursors: usize, took: Duration) -> Result<()> {
    let all: usize = seen.cells.values().sum::<usize>() + cursors;
    let open = seen.cells.get("Open").copied().unwrap_or_default();
    println!("{all} cells within {took:?}, {open} open; {:?}; {cursors} of cursors", seen.cells);
    println!("shut and open by way: {:?}", seen.ways);
    let wrong: usize = seen.wrong.values().map(Vec::len).sum();
    let shown: Vec<_> = seen.wrong.iter().map(|(what, whose)| (what, whose.len(), &whose[0])).take(SHOWN_MAX).collect();
    ensure!(wrong == 0, "{wrong} cells are wrong, of which {shown:#?}");
    ensure!(open >= OPEN_MIN && all - open >= SHUT_MIN, "{open} open, {} shut: these are too few", all - open);
    Ok(())
}

#[test]
fn no_cell_is_open_that_should_be_shut() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let world = World::start(&data).unwrap_or_else(|error| panic!("{error:#}"));
    holds(&world, &data).unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", String::new()));
}
