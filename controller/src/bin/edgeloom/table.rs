//! Aligned columns of text.

/// Space between columns.
const GAP: &str = "  ";

/// A table: one header, then rows of as many cells.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<'a>(header: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![header.into_iter().map(str::to_owned).collect()] }
    }

    /// Adds a row. Control characters, as a container's error text may hold, do not reach the terminal.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| cell.replace(char::is_control, " ")).collect());
    }

    /// The lines.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let mut widths = vec![0; columns];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let line = |row: &Vec<String>| {
            let padded = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
            padded.collect::<Vec<_>>().join(GAP).trim_end().to_owned() + "\n"
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_controls_removed() {
        let mut table = Table::new(["NODE", "STATE"]);
        table.row(["n1".to_owned(), "online".to_owned()]);
        table.row(["camera-1".to_owned(), "off\u{1b}[31m\nline".to_owned()]);
        assert_eq!(table.text(), "NODE      STATE\nn1        online\ncamera-1  off [31m line\n");
    }
}
