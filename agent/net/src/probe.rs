//! What the node's kernel can do, in the words of the node's inventory.

use crate::kernel::{Kernel, KernelError, Offered};
use crate::sysctl::IP_FORWARD;

/// Found by trying.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetCapabilities {
    pub htb: bool,
    pub fq_codel: bool,
    pub nft_maps: bool,
    /// Packets are forwarded, or can be made to be.
    pub ip_forward: bool,
    /// What is missing, with the remedy.
    pub problems: Vec<String>,
}

/// Asks a kernel; what cannot be asked is reported as missing.
pub(crate) fn probe(kernel: &mut impl Kernel) -> NetCapabilities {
    let mut problems = Vec::new();
    let offered = kernel.offered().unwrap_or_else(|error| {
        problems
            .push(format!("capabilities of the network cannot be tried: {error}; run with CAP_NET_ADMIN"));
        Offered::default()
    });
    let ip_forward = match forwards(kernel) {
        Ok(()) => true,
        Err(error) => {
            problems.push(format!(
                "packets are not forwarded: {error}; set net.ipv4.ip_forward=1 in /etc/sysctl.d"
            ));
            false
        }
    };
    if problems.is_empty() {
        if !offered.htb {
            problems.push("no HTB: rates of flows are not enforced; load the module sch_htb".to_owned());
        }
        if !offered.nft_maps {
            problems.push(
                "no nftables maps: flows take the main route; load the modules nf_tables and nft_chain_nat"
                    .to_owned(),
            );
        }
    }
    let Offered { htb, fq_codel, nft_maps } = offered;
    NetCapabilities { htb, fq_codel, nft_maps, ip_forward, problems }
}

/// Writing back the value that is there changes nothing and shows whether it could be changed.
fn forwards(kernel: &mut impl Kernel) -> Result<(), KernelError> {
    let value = kernel.sysctl(IP_FORWARD)?.unwrap_or_default();
    if value == "1" { Ok(()) } else { kernel.set_sysctl(IP_FORWARD, &value) }
}
