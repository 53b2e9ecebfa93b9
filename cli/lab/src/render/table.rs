//! Rows and columns, for a terminal of a given width or in Markdown.

/// Where the text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text { colour: bool, width: usize },
    Markdown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Good,
    Bad,
    Faint,
    Strong,
}

impl Form {
    pub fn toned(self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Plain => return text.to_string(),
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Faint => "2",
            Tone::Strong => "1",
        };
        match self {
            Form::Text { colour: true, .. } => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_string(),
        }
    }

    pub fn strong(self, text: &str) -> String {
        self.toned(text, Tone::Strong)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
}

impl Cell {
    pub fn new(text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            tone: Tone::Plain,
        }
    }

    pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell {
            text: text.into(),
            tone,
        }
    }
}

/// A column, with how much it would be missed: on a narrow terminal the highest numbers go first.
struct Column {
    title: String,
    is_number: bool,
    dispensable: u8,
}

#[derive(Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// Between columns.
const GAP: usize = 2;

impl Table {
    pub fn text_column(&mut self, title: &str, dispensable: u8) {
        self.columns.push(Column {
            title: title.into(),
            is_number: false,
            dispensable,
        });
    }

    pub fn number_column(&mut self, title: &str, dispensable: u8) {
        self.columns.push(Column {
            title: title.into(),
            is_number: true,
            dispensable,
        });
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    pub fn render(&self, form: Form) -> String {
        match form {
            Form::Markdown => self.markdown(),
            Form::Text { width, .. } => self.text(form, &self.fitting(width)),
        }
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].text.chars().count());
        cells
            .chain([self.columns[column].title.chars().count()])
            .max()
            .unwrap_or(0)
    }

    /// Whether any row has something in a column that could be done without.
    fn says_something(&self, column: usize) -> bool {
        let is_empty = |row: &Vec<Cell>| matches!(row[column].text.as_str(), "" | "-");
        self.columns[column].dispensable == 0 || !self.rows.iter().all(is_empty)
    }

    /// The columns that there is room for.
    fn fitting(&self, width: usize) -> Vec<usize> {
        let mut kept: Vec<usize> = (0..self.columns.len())
            .filter(|column| self.says_something(*column))
            .collect();
        loop {
            let needed: usize = kept.iter().map(|column| self.width_of(*column) + GAP).sum();
            let first_to_go = kept
                .iter()
                .map(|column| self.columns[*column].dispensable)
                .max()
                .unwrap_or(0);
            if needed <= width + GAP || first_to_go == 0 {
                return kept;
            }
            // Those that are missed alike go together: half a row of peers would mislead.
            kept.retain(|column| self.columns[*column].dispensable != first_to_go);
        }
    }

    fn text(&self, form: Form, kept: &[usize]) -> String {
        let widths: Vec<usize> = kept.iter().map(|column| self.width_of(*column)).collect();
        let line = |cells: &dyn Fn(usize) -> Cell| {
            let padded: Vec<String> = kept
                .iter()
                .zip(&widths)
                .map(|(column, width)| {
                    let Cell { text, tone } = cells(*column);
                    // Padded first: colour takes no room.
                    let padding = " ".repeat(width - text.chars().count());
                    let text = form.toned(&text, tone);
                    if self.columns[*column].is_number {
                        format!("{padding}{text}")
                    } else {
                        format!("{text}{padding}")
                    }
                })
                .collect();
            padded.join(&" ".repeat(GAP)).trim_end().to_string()
        };
        let mut lines = vec![
            line(&|column| Cell::new(&self.columns[column].title)),
            line(&|column| Cell::toned("─".repeat(self.width_of(column)), Tone::Faint)),
        ];
        lines.extend(
            self.rows
                .iter()
                .map(|row| line(&|column| row[column].clone())),
        );
        lines.join("\n")
    }

    fn markdown(&self) -> String {
        let line = |cells: Vec<&str>| format!("| {} |", cells.join(" | "));
        let mut lines = vec![
            line(
                self.columns
                    .iter()
                    .map(|column| column.title.as_str())
                    .collect(),
            ),
            line(
                self.columns
                    .iter()
                    .map(|column| if column.is_number { "---:" } else { "---" })
                    .collect(),
            ),
        ];
        lines.extend(
            self.rows
                .iter()
                .map(|row| line(row.iter().map(|cell| cell.text.as_str()).collect())),
        );
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Table {
        let mut table = Table::default();
        table.text_column("name", 0);
        table.number_column("time", 0);
        table.number_column("faults", 1);
        table.row(vec![
            Cell::new("one"),
            Cell::toned("1.25 s", Tone::Good),
            Cell::new("17"),
        ]);
        table.row(vec![
            Cell::new("another"),
            Cell::new("10.5 s"),
            Cell::new("8"),
        ]);
        table
    }

    #[test]
    fn numbers_stand_to_the_right() {
        let text = example().render(Form::Text {
            colour: false,
            width: 80,
        });
        assert_eq!(
            text,
            "name       time  faults\n───────  ──────  ──────\n\
             one      1.25 s      17\nanother  10.5 s       8"
        );
    }

    #[test]
    fn a_narrow_terminal_loses_what_is_missed_least() {
        let text = example().render(Form::Text {
            colour: false,
            width: 20,
        });
        assert!(!text.contains("faults") && text.contains("another  10.5 s"));
    }

    #[test]
    fn colour_takes_no_room() {
        let text = example().render(Form::Text {
            colour: true,
            width: 80,
        });
        assert!(text.contains("one      \x1b[32m1.25 s\x1b[0m      17"));
    }

    #[test]
    fn markdown_has_everything() {
        let text = example().render(Form::Markdown);
        assert!(text.starts_with("| name | time | faults |\n| --- | ---: | ---: |\n| one |"));
    }
}
