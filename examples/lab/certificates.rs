//! The lab's own authority, the controller's certificate and one for each node.

use crate::topology::Topology;
use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

fn params(name: &str, addresses: &[&str]) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(addresses.iter().map(|&one| one.to_owned()).collect::<Vec<_>>())?;
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

fn write(path: &Path, text: &str) -> Result<()> {
    let mut file = std::fs::File::options().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}

pub(crate) fn create(dir: &Path, topology: &Topology) -> Result<()> {
    std::fs::create_dir_all(dir)?;
    let mut authority = params("edgeloom lab", &[])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    write(&dir.join("ca.pem"), &authority.self_signed(&key)?.pem())?;
    let issuer = Issuer::new(authority, key);
    let issue = |name: &str, addresses: &[&str], usage: ExtendedKeyUsagePurpose| -> Result<()> {
        let mut params = params(name, addresses)?;
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        write(&dir.join(format!("{name}.pem")), &params.signed_by(&key, &issuer)?.pem())?;
        write(&dir.join(format!("{name}.key")), &key.serialize_pem())
    };
    issue("controller", &["10.60.0.2"], ExtendedKeyUsagePurpose::ServerAuth)?;
    for node in &topology.nodes {
        issue(&node.name, &[], ExtendedKeyUsagePurpose::ClientAuth)?;
    }
    Ok(())
}
