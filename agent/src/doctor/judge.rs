//! Readings in, verdicts out; looks at nothing else.

mod network;
mod system;

use super::Readings;
use edgeloom_common::doctor::Check;

/// Every check, in the order in which one repairs.
pub(super) fn checks(readings: &Readings) -> Vec<Check> {
    let mut checks = vec![
        system::config(readings.config.as_ref()),
        system::rights(readings.rights.as_ref()),
        system::clock(&readings.clock),
        system::state_dir(&readings.state_dir),
        system::docker(readings.docker.as_ref()),
        system::store(readings.docker.as_ref()),
        system::memory(readings.cgroup.as_ref(), readings.docker.as_ref()),
    ];
    checks.extend(network::kernel(readings.kernel.as_ref()));
    checks.push(network::policy_routing(readings.network.as_ref()));
    checks.push(network::vxlan(readings.vxlan.as_ref()));
    checks.push(network::port(readings.port.as_ref()));
    checks.push(network::links(readings.network.as_ref()));
    checks.push(network::mtu(readings.network.as_ref()));
    checks.push(network::pool(readings.network.as_ref()));
    checks.push(network::firewall(readings));
    checks
}
