//! Queried data: objects with their live rows, and prices.

use std::collections::BTreeMap;
use std::rc::Rc;

use assay_node_btql::columns::{Kind, Named};
use serde_json::{Map, Value as Json};

pub type Fields = Rc<Map<String, Json>>;

#[derive(Clone, Debug, Default)]
pub struct Dataset {
    pub objects: Vec<Object>,
    /// Prices by model.
    pub prices: BTreeMap<String, Price>,
}

/// A project's logs, an experiment, a dataset, the prompts of a project.
#[derive(Clone, Debug)]
pub struct Object {
    pub kind: Kind,
    /// Its id and its name.
    pub names: Vec<String>,
    pub project: Option<String>,
    pub organization: Option<String>,
    /// Rows with all columns that a system fills in.
    pub rows: Vec<Fields>,
}

/// Price in USD per million tokens. Tokens without a price of their own cost as much as other input tokens.
#[derive(Clone, Copy, Debug)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cached: Option<f64>,
    pub cache_write: Option<f64>,
}

impl Dataset {
    /// The objects that a source means, each once (D-33).
    pub fn named(&self, kind: Kind, named: Named, names: &[String]) -> Result<Vec<&Object>, String> {
        let mut found: Vec<usize> = Vec::new();
        let all = || self.objects.iter().enumerate().filter(|(_, object)| object.kind == kind);
        let mut take = |what: &str, is_meant: &dyn Fn(&Object) -> bool| {
            let meant: Vec<usize> = all().filter(|(_, object)| is_meant(object)).map(|(place, _)| place).collect();
            let none = meant.is_empty();
            found.extend(meant);
            if none { Err(format!("there is no {kind:?} `{what}`")) } else { Ok(()) }
        };
        match (named, names) {
            (Named::InProject, [project, name]) => {
                take(name, &|object: &Object| object.names.contains(name) && object.project.as_ref() == Some(project))?
            }
            (Named::InProject, _) => return Err("a project and a name are needed".into()),
            (Named::Each, names) => {
                for name in names {
                    take(name, &|object: &Object| object.names.contains(name))?;
                }
            }
            (Named::OfProjects, names) => {
                for name in names {
                    take(name, &|object: &Object| object.project.as_ref() == Some(name))?;
                }
            }
            (Named::OfOrganizations, names) => {
                for name in names {
                    take(name, &|object: &Object| object.organization.as_ref() == Some(name))?;
                }
            }
        }
        let mut seen = Vec::new();
        found.retain(|place| {
            !seen.contains(place) && {
                seen.push(*place);
                true
            }
        });
        Ok(found.into_iter().map(|place| &self.objects[place]).collect())
    }
}
