//! Whole lines with the task's name in front, so that the logs of several tasks can share a stream.

/// A line longer than this is cut, in bytes.
const LINE_MAX: usize = 64 * 1024;

/// Collects chunks into prefixed lines.
#[derive(Debug)]
pub struct Prefixed {
    prefix: String,
    partial: String,
}

impl Prefixed {
    /// Lines of `task`.
    #[must_use]
    pub fn new(task: &str) -> Self {
        Self { prefix: format!("{task} | "), partial: String::new() }
    }

    /// The lines that `chunk` completes.
    pub fn push(&mut self, chunk: &str) -> String {
        let mut out = String::new();
        for part in chunk.split_inclusive('\n') {
            self.partial.push_str(part);
            if part.ends_with('\n') {
                out.push_str(&self.prefix);
                out.push_str(&self.partial);
                self.partial.clear();
            } else if self.partial.len() > LINE_MAX {
                out.push_str(&self.rest());
            }
        }
        out
    }

    /// What is left without a line's end.
    pub fn rest(&mut self) -> String {
        if self.partial.is_empty() {
            return String::new();
        }
        format!("{}{}\n", self.prefix, std::mem::take(&mut self.partial))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_become_prefixed_lines() {
        let mut lines = Prefixed::new("detect");
        assert_eq!(lines.push("one\ntw"), "detect | one\n");
        assert_eq!(lines.push("o\n"), "detect | two\n");
        assert_eq!(lines.push("three"), "");
        assert_eq!(lines.rest(), "detect | three\n");
        assert_eq!(lines.rest(), "");
    }

    #[test]
    fn an_endless_line_is_cut() {
        let mut lines = Prefixed::new("t");
        assert_eq!(lines.push(&"x".repeat(LINE_MAX + 1)).len(), "t | ".len() + LINE_MAX + 2);
    }
}
