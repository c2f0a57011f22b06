//! Job documents of the experiments: their text, and what the lab has to know of them.

use anyhow::{Context, Result};
use std::path::Path;

/// A job document that reads.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) name: String,
    pub(crate) text: String,
    /// Tasks without outputs: what they finish is the job's throughput.
    pub(crate) sinks: Vec<String>,
}

impl Document {
    /// Reads a document, which has to be a good one.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let job = edgeloom_common::job::parse(text.as_bytes())
            .map_err(|problems| anyhow::anyhow!("the document is refused: {problems:?}"))?;
        let sinks = job.tasks.iter().filter(|(_, task)| task.outputs.is_empty());
        let sinks = sinks.map(|(name, _)| name.to_string()).collect();
        Ok(Self { name: job.name.to_string(), text: text.to_owned(), sinks })
    }

    /// A file of `examples/jobs`.
    pub(crate) fn example(file: &str) -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs").join(file);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::read(&text).with_context(|| path.display().to_string())
    }

    /// The same job, to be decided by a profile.
    pub(crate) fn under(&self, profile: &str) -> Self {
        Self { text: format!("profile: {profile}\n{}", self.text), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_added_and_the_document_still_reads() {
        let document = Document::example("object-attributes.yaml").unwrap();
        assert_eq!(document.sinks, ["track"]);
        let under = Document::read(&document.under("otfs").text).unwrap();
        assert_eq!(under.sinks, document.sinks);
        assert!(Document::read("kind: Job").is_err());
    }
}
