//! What the lab needs of the machine, as the tests' preparation installs and tries it.

use anyhow::{Context, Result};
use edgeloom_prepare::Need;

pub(crate) fn prepare() -> Result<()> {
    edgeloom_prepare::prepare(Need::Lab).context("this machine cannot run the lab")
}
