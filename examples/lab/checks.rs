//! Questions with their answers, printed for people as they are settled, written for machines at the end.

use crate::results::Results;
use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

/// One question with its answer and the bound it is held against.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) ok: bool,
    pub(crate) value: Value,
    pub(crate) bound: Value,
}

/// All checks of a run, and the verdict once it is over.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Checks {
    ok: bool,
    checks: Vec<Check>,
}

/// A report of a run: whatever else it says, it holds checks.
pub(crate) trait Report: Serialize {
    fn checks(&mut self) -> &mut Checks;
}

impl Checks {
    /// Records a check and prints it at once, so that a long run shows how it stands.
    pub(crate) fn check(&mut self, name: &str, ok: bool, value: impl Into<Value>, bound: impl Into<Value>) {
        let check = Check { name: name.to_owned(), ok, value: value.into(), bound: bound.into() };
        let mark = if ok { "ok  " } else { "MISS" };
        println!("  {mark} {name}: {} (bound: {})", plain(&check.value), plain(&check.bound));
        self.checks.push(check);
    }
}

/// The verdict of a run that ended so: every check holds, and there is at least one. Written where that is
/// wanted.
pub(crate) fn conclude<R: Report>(report: &mut R, played: Result<()>, results: &Results) -> Result<bool> {
    let checks = report.checks();
    if let Err(error) = played {
        checks.check("the run reaches its end", false, format!("{error:#}"), "no error");
    }
    checks.ok = !checks.checks.is_empty() && checks.checks.iter().all(|check| check.ok);
    let ok = checks.ok;
    results.write(report)?;
    println!("\n{}", if ok { "every check holds" } else { "some checks do not hold" });
    Ok(ok)
}

/// A JSON value as people read it: text without quotes, numbers to four digits.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            format!("{:.4}", number.as_f64().unwrap_or(f64::NAN))
        }
        other => other.to_string(),
    }
}

/// Prints rows under a header, columns as wide as their widest cell.
pub(crate) fn print_table(header: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(header.get(column).map(|cell| cell.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        println!("  {}", padded.collect::<Vec<_>>().join("  ").trim_end());
    };
    line(&header.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>());
    rows.iter().for_each(|row| line(row));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Serialize)]
    struct Plain {
        #[serde(flatten)]
        checks: Checks,
    }

    impl Report for Plain {
        fn checks(&mut self) -> &mut Checks {
            &mut self.checks
        }
    }

    #[test]
    fn a_run_without_checks_or_with_an_error_does_not_hold() {
        let nowhere = Results::default();
        assert!(!conclude(&mut Plain::default(), Ok(()), &nowhere).unwrap());
        let mut report = Plain::default();
        report.checks.check("one", true, 1, 1);
        assert!(conclude(&mut report, Ok(()), &nowhere).unwrap());
        assert_eq!(serde_json::to_value(&report).unwrap()["ok"], true);
        assert!(!conclude(&mut report, Err(anyhow::anyhow!("broken")), &nowhere).unwrap());
    }
}
