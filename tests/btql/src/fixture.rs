//! Objects of the cases (`cases/fixture`): those of btql.md, section 19, and a few for other features.

use std::fs;
use std::path::Path;
use std::rc::Rc;

use assay_node_btql::columns::source;
use serde_json::{Map, Value as Json};

use crate::data::{Dataset, Fields, Object, Price};

/// Reads `objects.json` of a directory and the rows that it names.
pub fn read(directory: &Path) -> Result<Dataset, String> {
    let listed: Json = serde_json::from_str(&text(&directory.join("objects.json"))?).map_err(|e| e.to_string())?;
    let mut data = Dataset::default();
    for object in listed["objects"].as_array().into_iter().flatten() {
        data.objects.push(one(directory, object)?);
    }
    for (model, price) in listed["prices"].as_object().into_iter().flatten() {
        let of = |name: &str| price[name].as_f64();
        let needed = |name: &str| of(name).ok_or_else(|| format!("{model} has no price of {name}"));
        let price = Price {
            input: needed("input")?,
            output: needed("output")?,
            cached: of("cached"),
            cache_write: of("cache_write"),
        };
        data.prices.insert(model.clone(), price);
    }
    Ok(data)
}

fn one(directory: &Path, object: &Json) -> Result<Object, String> {
    let named = |name: &str| object[name].as_str().map(str::to_owned);
    let name = named("source").unwrap_or_default();
    let (kind, _) = source(&name).ok_or_else(|| format!("there is no source `{name}`"))?;
    let names = object["names"].as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned);
    let rows = text(&directory.join(named("rows").unwrap_or_default()))?;
    let row =
        |line: &str| serde_json::from_str::<Map<String, Json>>(line).map(Rc::new).map_err(|e| format!("{line}: {e}"));
    Ok(Object {
        kind,
        names: names.collect(),
        project: named("project"),
        organization: named("organization"),
        rows: rows.lines().map(row).collect::<Result<Vec<Fields>, _>>()?,
    })
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
