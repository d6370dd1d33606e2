//! W6: repeats reads of any client of an object at a version, at any time and on any node.

use rand::Rng;

use super::Work;
use crate::cluster::workload::client::Client;

#[derive(Debug)]
pub struct Versions;

impl Work for Versions {
    fn works_on(&self) -> Option<String> {
        None
    }

    fn turn(&mut self, client: &mut Client) -> anyhow::Result<()> {
        let Client { stage, rng, .. } = client;
        let Some((object, version)) = stage.remembered(|count| rng.random_range(0..count)) else { return Ok(()) };
        client.read(&object, Some(version)).map(drop)
    }
}
