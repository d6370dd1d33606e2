//! Private network: one namespace per node, joined by a bridge, with rules that drop packets between nodes.
//!
//! Names contain this process's id, and everything is removed on drop, in reverse order. Clients reach every node from
//! outside through the bridge's own address: no rule ever drops their packets.

use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::Context;

use crate::child_process::tool;

/// Networks tried until one is free.
const SUBNET_TRIES: u32 = 64;
const NODE_MAX: u8 = 200;
/// The harness's own place in the network.
pub const HARNESS: u8 = 254;
/// The link's name inside of every namespace.
const LINK: &str = "eth0";

#[derive(Debug)]
pub struct Network {
    pid: u32,
    subnet: [u8; 3],
    bridge: String,
    nodes: Vec<u8>,
}

impl Network {
    pub fn create() -> anyhow::Result<Network> {
        let pid = std::process::id();
        let taken = tool("ip", &["-o", "-4", "addr"])?;
        let subnet = free_subnet(pid, &taken).context("no network of 10.0.0.0/8 is free")?;
        let bridge = format!("ac{pid}b");
        tool("ip", &["link", "add", &bridge, "type", "bridge"])?;
        // From here on it is taken away whatever happens.
        let network = Network { pid, subnet, bridge, nodes: Vec::new() };
        let harness = format!("{}/24", network.address(HARNESS));
        tool("ip", &["addr", "add", &harness, "dev", &network.bridge])?;
        tool("ip", &["link", "set", &network.bridge, "up"])?;
        Ok(network)
    }

    pub fn address(&self, node: u8) -> Ipv4Addr {
        let [a, b, c] = self.subnet;
        Ipv4Addr::new(a, b, c, node)
    }

    fn namespace(&self, node: u8) -> String {
        format!("assay-chaos-{}-{node}", self.pid)
    }

    /// The outer end of the node's link.
    fn link(&self, node: u8) -> String {
        format!("ac{}v{node}", self.pid)
    }

    pub fn add(&mut self, node: u8) -> anyhow::Result<()> {
        anyhow::ensure!((1..=NODE_MAX).contains(&node), "there is no place for node {node}");
        let (namespace, link) = (self.namespace(node), self.link(node));
        tool("ip", &["netns", "add", &namespace])?;
        self.nodes.push(node);
        tool("ip", &["link", "add", &link, "type", "veth", "peer", "name", LINK, "netns", &namespace])?;
        tool("ip", &["link", "set", &link, "master", &self.bridge, "up"])?;
        let address = format!("{}/24", self.address(node));
        tool("ip", &["-n", &namespace, "addr", "add", &address, "dev", LINK])?;
        tool("ip", &["-n", &namespace, "link", "set", LINK, "up"])?;
        tool("ip", &["-n", &namespace, "link", "set", "lo", "up"])?;
        Ok(())
    }

    /// Returns the command prefix that starts a program in the node's namespace. Not `ip netns exec`: that would also
    /// copy all mounts, and each copy would hold every disk.
    pub fn enter(&self, node: u8) -> Vec<String> {
        vec!["nsenter".into(), format!("--net=/run/netns/{}", self.namespace(node)), "--".into()]
    }

    fn inside(&self, node: u8, arguments: &[&str]) -> anyhow::Result<String> {
        let namespace = format!("--net=/run/netns/{}", self.namespace(node));
        let mut all = vec![namespace.as_str(), "--"];
        all.extend(arguments);
        tool("nsenter", &all)
    }

    /// Drops all packets from `from` to `to` silently.
    pub fn cut(&self, from: u8, to: u8) -> anyhow::Result<()> {
        let source = self.address(from).to_string();
        self.inside(to, &["iptables", "-w", "-A", "INPUT", "-s", &source, "-j", "DROP"]).map(drop)
    }

    pub fn cut_both(&self, one: u8, other: u8) -> anyhow::Result<()> {
        self.cut(one, other)?;
        self.cut(other, one)
    }

    /// So many of a hundred packets from `from` to `to` are lost.
    pub fn lose(&self, from: u8, to: u8, percent: u32) -> anyhow::Result<()> {
        let source = self.address(from).to_string();
        let share = format!("{:.2}", f64::from(percent) / 100.0);
        let rule = ["-m", "statistic", "--mode", "random", "--probability", &share, "-j", "DROP"];
        let mut arguments = vec!["iptables", "-w", "-A", "INPUT", "-s", &source];
        arguments.extend(rule);
        self.inside(to, &arguments).map(drop)
    }

    /// The node sends at most so much.
    pub fn slow(&self, node: u8, kbit: u32) -> anyhow::Result<()> {
        let rate = format!("{kbit}kbit");
        let arguments =
            ["tc", "qdisc", "add", "dev", LINK, "root", "tbf", "rate", &rate, "burst", "16kb", "latency", "400ms"];
        self.inside(node, &arguments).map(drop)
    }

    /// Nothing is in the way any more.
    pub fn heal(&self, rules: bool) -> anyhow::Result<()> {
        for node in &self.nodes {
            if rules {
                self.inside(*node, &["iptables", "-w", "-F", "INPUT"])?;
            }
            let shaped = self.inside(*node, &["tc", "qdisc", "show", "dev", LINK])?;
            if shaped.contains("tbf") {
                self.inside(*node, &["tc", "qdisc", "del", "dev", LINK, "root"])?;
            }
        }
        Ok(())
    }

    /// Checks that rules can be added and deleted here.
    pub fn rules_work(&self) -> anyhow::Result<()> {
        let Some(node) = self.nodes.first() else { anyhow::bail!("no namespace to try it in") };
        self.lose(*node, *node, 1)?;
        self.inside(*node, &["iptables", "-w", "-F", "INPUT"]).map(drop)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for node in &self.nodes {
            // A link goes with its namespace, but later; one that was not made yet is no matter.
            let _ = tool("ip", &["link", "del", &self.link(*node)]);
            if let Err(why) = tool("ip", &["netns", "del", &self.namespace(*node)]) {
                eprintln!("{} stays: {why:#}", self.namespace(*node));
            }
        }
        if Path::new("/sys/class/net").join(&self.bridge).exists()
            && let Err(why) = tool("ip", &["link", "del", &self.bridge])
        {
            eprintln!("{} stays: {why:#}", self.bridge);
        }
    }
}

/// A network that no address of this machine is in; which one is tried first depends on the process.
fn free_subnet(pid: u32, addresses: &str) -> Option<[u8; 3]> {
    (0..SUBNET_TRIES).find_map(|attempt| {
        let number = pid.wrapping_add(attempt);
        let (b, c) = (64 + (number / 256 % 128) as u8, (number % 256) as u8);
        (!addresses.contains(&format!(" 10.{b}.{c}."))).then_some([10, b, c])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_in_use_is_left_alone() {
        assert_eq!(free_subnet(5, ""), Some([10, 64, 5]));
        assert_eq!(free_subnet(5, "2: eth0    inet 10.64.5.1/24 scope"), Some([10, 64, 6]));
        assert_eq!(free_subnet(300, ""), Some([10, 65, 44]));
    }
}
