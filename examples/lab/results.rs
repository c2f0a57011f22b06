//! Where an experiment's result goes for machines: a file, standard output, both or neither.

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Serialize;
use std::fs::File;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;

/// What standard output is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people, as the experiment goes on.
    #[default]
    Table,
    /// For the result alone; what people read goes to standard error.
    Json,
}

#[derive(Debug, Default)]
pub(crate) struct Results {
    file: Option<PathBuf>,
    stdout: Option<File>,
}

impl Results {
    /// From here on everything printed goes where `output` says.
    pub(crate) fn open(file: Option<PathBuf>, output: Output) -> Result<Self> {
        let stdout = match output {
            Output::Table => None,
            Output::Json => {
                let kept = nix::unistd::dup(stdout()).context("standard output is closed")?;
                nix::unistd::dup2_stdout(stderr())?;
                Some(File::from(kept))
            }
        };
        Ok(Self { file, stdout })
    }

    pub(crate) fn write(&self, result: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_string_pretty(result)?;
        text.push('\n');
        if let Some(path) = &self.file {
            std::fs::write(path, &text).with_context(|| path.display().to_string())?;
            println!("\nwritten: {}", path.display());
        }
        if let Some(mut stdout) = self.stdout.as_ref() {
            stdout.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_the_result() {
        let path = std::env::temp_dir().join(format!("edgeloom-results-{}", std::process::id()));
        let results = Results::open(Some(path.clone()), Output::Table).unwrap();
        results.write(&[1, 2]).unwrap();
        let read: Vec<u8> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(read, [1, 2]);
    }
}
