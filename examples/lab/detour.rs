//! A node whose registry is behind a neighbour: what it pulls comes over the link that jobs' flows take too.

use crate::command::{feed, run, within};
use crate::lab::{Lab, Node};
use crate::network::{bucket, core};
use crate::topology::LinkSpec;
use anyhow::Result;
use edgeloom_common::units::BitRate;
use std::net::Ipv4Addr;

/// The registry has an address of its own: everything else stays on the node's own line.
const REGISTRY: &str = "10.60.0.1";

/// A node's way to the registry over its link with another one.
#[derive(Debug)]
pub(crate) struct Detour<'a> {
    lab: &'a Lab,
    through: Node<'a>,
    from: Node<'a>,
    /// Of `from` on the link, which the registry then sees.
    address: Ipv4Addr,
}

impl<'a> Detour<'a> {
    /// Leads it so; the line of the node `through` which it comes becomes this wide.
    pub(crate) fn lay(lab: &'a Lab, (through, from): (&str, &str), rate: BitRate) -> Result<Self> {
        let index = lab.topology.link(through, from)?;
        let mut addresses = LinkSpec::addresses(index);
        if lab.topology.links[index].between[0] == from {
            addresses.reverse();
        }
        let [gateway, address] = addresses;
        let (through, from) = (lab.node(through)?, lab.node(from)?);
        let detour = Self { lab, through, from, address };
        let (there, back) = (gateway.to_string(), detour.through.uplink_address());
        run(&["ip", "-n", &detour.from.namespace(), "route", "add", REGISTRY, "via", &there])?;
        run(&["ip", "-n", &core(&lab.id), "route", "add", &address.to_string(), "via", &back])?;
        detour.forward("-I")?;
        detour.limit(rate)?;
        Ok(detour)
    }

    /// Everything as it was.
    pub(crate) fn lift(self) -> Result<()> {
        run(&["ip", "-n", &self.from.namespace(), "route", "del", REGISTRY])?;
        run(&["ip", "-n", &core(&self.lab.id), "route", "del", &self.address.to_string()])?;
        self.forward("-D")?;
        self.through.spec.uplink.map_or(Ok(()), |rate| self.limit(rate))
    }

    /// Docker lets nothing through that it does not know.
    fn forward(&self, verb: &str) -> Result<()> {
        let link = format!("to-{}", self.from.spec.name);
        for (from, to) in [("up0", link.as_str()), (link.as_str(), "up0")] {
            let rule = ["iptables", "-w", verb, "FORWARD", "-i", from, "-o", to, "-j", "ACCEPT"];
            let words = within(&self.through.namespace(), &rule);
            run(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    fn limit(&self, rate: BitRate) -> Result<()> {
        let limit = bucket("change", &self.through.spec.name, rate);
        feed(&["tc", "-n", &core(&self.lab.id), "-batch", "-"], &limit)?;
        Ok(())
    }
}
