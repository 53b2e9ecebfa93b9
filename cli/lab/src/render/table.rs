//! Tables for a terminal of a given width, or in Markdown.

use super::text::{LINE_IN_A_PIPE, UNLIMITED, cut, in_locale, in_markdown, width_of, wrapped};

/// Where the text is shown.
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

    /// The longest line allowed; None in Markdown.
    pub fn width(self) -> Option<usize> {
        match self {
            Form::Text { width, .. } if width >= UNLIMITED => Some(LINE_IN_A_PIPE),
            Form::Text { width, .. } => Some(width),
            Form::Markdown => None,
        }
    }

    /// A whole text as it can be shown: in the locale's characters, with long lines wrapped.
    pub fn shown(self, text: &str) -> String {
        match self {
            Form::Text { width, .. } if width < UNLIMITED => wrapped(&in_locale(text), width),
            Form::Text { .. } => in_locale(text),
            Form::Markdown => text.to_string(),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
    /// The cell is what the row is about. It has other forms, ever shorter.
    is_fitting: bool,
    shorter: Vec<String>,
}

impl Cell {
    pub fn new(text: impl Into<String>) -> Cell {
        Cell::toned(text, Tone::Plain)
    }

    pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell {
            text: text.into(),
            tone,
            is_fitting: false,
            shorter: Vec::new(),
        }
    }

    /// A cell with several forms, the longest first.
    pub fn fitting(forms: Vec<String>) -> Cell {
        let mut forms = forms.into_iter();
        Cell {
            text: forms.next().unwrap_or_default(),
            tone: Tone::Plain,
            is_fitting: true,
            shorter: forms.collect(),
        }
    }

    /// The longest form that fits; if none fits, the shortest one, cut.
    fn in_width(&self, width: usize) -> String {
        let mut forms = std::iter::once(&self.text).chain(&self.shorter);
        let fits = forms.find(|form| width_of(form) <= width);
        fits.cloned()
            .unwrap_or_else(|| cut(self.shorter.last().unwrap_or(&self.text), width))
    }

    fn in_locale(&self) -> Cell {
        Cell {
            text: in_locale(&self.text),
            tone: self.tone,
            is_fitting: self.is_fitting,
            shorter: self.shorter.iter().map(|form| in_locale(form)).collect(),
        }
    }
}

/// A column. On a narrow terminal, the most dispensable columns are left out first.
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

/// Spaces between columns.
const GAP: usize = 2;
/// A cell with shorter forms gets at least this much before dispensable columns are kept.
const FITTING_LEAST: usize = 24;
/// The least width of any other text.
const TEXT_LEAST: usize = 8;

/// A column that is shown, and its width.
#[derive(Clone, Copy)]
struct Shown {
    column: usize,
    width: usize,
}

impl Table {
    pub fn titles(&self) -> Vec<&str> {
        let columns = self.columns.iter();
        columns.map(|column| column.title.as_str()).collect()
    }

    /// The texts of its cells, row by row.
    pub fn texts(&self) -> Vec<Vec<&str>> {
        let rows = self.rows.iter();
        rows.map(|row| row.iter().map(|cell| cell.text.as_str()).collect())
            .collect()
    }

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
            Form::Text { width, .. } => {
                let table = self.in_locale();
                table.text(form, &table.layout(width))
            }
        }
    }

    fn in_locale(&self) -> Table {
        let columns = self.columns.iter().map(|column| Column {
            title: in_locale(&column.title),
            ..*column
        });
        let rows = self.rows.iter();
        Table {
            columns: columns.collect(),
            rows: rows
                .map(|row| row.iter().map(Cell::in_locale).collect())
                .collect(),
        }
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| width_of(&row[column].text));
        cells
            .chain([width_of(&self.columns[column].title)])
            .max()
            .unwrap_or(0)
    }

    /// Is the column indispensable, or does any row have something in it?
    fn says_something(&self, column: usize) -> bool {
        let is_empty = |row: &Vec<Cell>| matches!(row[column].text.as_str(), "" | "-");
        self.columns[column].dispensable == 0 || !self.rows.iter().all(is_empty)
    }

    /// Do its cells have shorter forms?
    fn is_fitting(&self, column: usize) -> bool {
        self.rows.iter().any(|row| row[column].is_fitting)
    }

    /// The columns that fit, and the width of each. A line never exceeds `width`.
    fn layout(&self, width: usize) -> Vec<Shown> {
        let columns = (0..self.columns.len()).filter(|column| self.says_something(*column));
        let mut shown: Vec<Shown> = columns
            .map(|column| Shown {
                column,
                width: self.width_of(column),
            })
            .collect();
        if width >= UNLIMITED {
            self.narrow(&mut shown, LINE_IN_A_PIPE, FITTING_LEAST, |column| {
                self.is_fitting(column)
            });
            return shown;
        }
        self.drop_what_is_missed_least(&mut shown, width);
        self.drop_what_has_no_room(&mut shown, width);
        self.narrow(&mut shown, width, TEXT_LEAST, |column| {
            self.is_fitting(column)
        });
        self.narrow(&mut shown, width, TEXT_LEAST, |column| {
            !self.columns[column].is_number
        });
        self.narrow(&mut shown, width, 0, |_| true);
        self.hand_on(&mut shown, width);
        shown
    }

    /// If a column's shorter forms leave space, gives it to other shortened columns, from the left.
    fn hand_on(&self, shown: &mut [Shown], width: usize) {
        let used = |column: usize, room: usize| {
            let cells = self.rows.iter().map(|row| row[column].in_width(room));
            let widest = cells.map(|text| width_of(&text)).max().unwrap_or(0);
            widest.max(width_of(&self.columns[column].title)).min(room)
        };
        for one in shown.iter_mut().filter(|one| self.is_fitting(one.column)) {
            one.width = used(one.column, one.width);
        }
        for index in 0..shown.len() {
            let one = shown[index];
            if self.is_fitting(one.column) {
                let spare = width.saturating_sub(line_width(shown));
                shown[index].width = used(one.column, one.width + spare);
            }
        }
    }

    fn drop_what_is_missed_least(&self, shown: &mut Vec<Shown>, width: usize) {
        loop {
            let needed = |one: &Shown| match self.is_fitting(one.column) {
                true => one.width.min(FITTING_LEAST),
                false => one.width,
            };
            let needed: usize = shown.iter().map(|one| needed(one) + GAP).sum();
            let first_to_go = shown
                .iter()
                .map(|one| self.columns[one.column].dispensable)
                .max()
                .unwrap_or(0);
            if needed <= width + GAP || first_to_go == 0 {
                return;
            }
            // Equally dispensable columns go together: half a row of peers would mislead.
            shown.retain(|one| self.columns[one.column].dispensable != first_to_go);
        }
    }

    /// If even short texts do not fit, drops columns from the right. Never drops the first one; drops columns with shorter
    /// forms last, as they are what the row is about.
    fn drop_what_has_no_room(&self, shown: &mut Vec<Shown>, width: usize) {
        let least = |one: &Shown| match self.columns[one.column].is_number {
            true => one.width,
            false => one.width.min(TEXT_LEAST),
        };
        let needed = |shown: &[Shown]| shown.iter().map(|one| least(one) + GAP).sum::<usize>();
        while shown.len() > 1 && needed(shown) > width + GAP {
            let plain = shown.iter().rposition(|one| !self.is_fitting(one.column));
            shown.remove(plain.filter(|index| *index > 0).unwrap_or(shown.len() - 1));
        }
    }

    /// Takes the excess width from the widest of these columns, down to `least`.
    fn narrow(&self, shown: &mut [Shown], width: usize, least: usize, may: impl Fn(usize) -> bool) {
        let mut too_much = line_width(shown).saturating_sub(width);
        while too_much > 0 {
            let candidates = shown
                .iter_mut()
                .filter(|one| one.width > least && may(one.column));
            let Some(widest) = candidates.max_by_key(|one| one.width) else {
                return;
            };
            widest.width -= 1;
            too_much -= 1;
        }
    }

    fn text(&self, form: Form, shown: &[Shown]) -> String {
        let line = |cells: &dyn Fn(Shown) -> Cell| {
            let padded: Vec<String> = shown
                .iter()
                .map(|one| {
                    let cell = cells(*one);
                    let text = cell.in_width(one.width);
                    // Padded before it is coloured: colours take no space.
                    let padding = " ".repeat(one.width.saturating_sub(width_of(&text)));
                    let text = form.toned(&text, cell.tone);
                    if self.columns[one.column].is_number {
                        format!("{padding}{text}")
                    } else {
                        format!("{text}{padding}")
                    }
                })
                .collect();
            padded.join(&" ".repeat(GAP)).trim_end().to_string()
        };
        let rule = in_locale("─");
        let mut lines = vec![
            line(&|one| Cell::new(&self.columns[one.column].title)),
            line(&|one| Cell::toned(rule.repeat(one.width), Tone::Faint)),
        ];
        lines.extend(
            self.rows
                .iter()
                .map(|row| line(&|one| row[one.column].clone())),
        );
        lines.join("\n")
    }

    fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let rule = |column: &Column| if column.is_number { "---:" } else { "---" };
        let mut lines = vec![
            line(
                self.columns
                    .iter()
                    .map(|column| in_markdown(&column.title))
                    .collect(),
            ),
            line(
                self.columns
                    .iter()
                    .map(|column| rule(column).into())
                    .collect(),
            ),
        ];
        lines.extend(
            self.rows
                .iter()
                .map(|row| line(row.iter().map(|cell| in_markdown(&cell.text)).collect())),
        );
        lines.join("\n")
    }
}

/// Includes the gaps between columns.
fn line_width(shown: &[Shown]) -> usize {
    let columns: usize = shown.iter().map(|one| one.width + GAP).sum();
    columns.saturating_sub(GAP)
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
    fn what_has_a_meaning_in_markdown_is_shown_as_it_is() {
        let mut table = Table::default();
        table.text_column("a|b", 0);
        table.row(vec![Cell::new("<= 3 of f<int>|")]);
        let text = table.render(Form::Markdown);
        assert_eq!(text, "| a\\|b |\n| --- |\n| <= 3 of f\\<int>\\| |");
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

    fn of_width(width: usize) -> Form {
        Form::Text {
            colour: false,
            width,
        }
    }

    #[test]
    fn no_line_is_longer_than_the_screen() {
        let mut table = example();
        table.text_column("allocated by", 0);
        let forms = ["x".repeat(500), "y".repeat(60), "a short form".into()];
        table.rows[0].push(Cell::fitting(forms.to_vec()));
        table.rows[1].push(Cell::new("漢".repeat(300)));
        for width in 1..120 {
            let text = table.render(of_width(width));
            let widest = text.lines().map(width_of).max().unwrap();
            assert!(widest <= width, "{widest} of {width}:\n{text}");
        }
        assert!(table.render(of_width(120)).contains(&"y".repeat(60)));
        assert!(table.render(of_width(60)).contains("a short form"));
        // A column that needs less space leaves it to the others.
        let mut two = Table::default();
        two.text_column("why", 0);
        two.text_column("where", 0);
        let forms = |long: usize, short: usize| vec!["w".repeat(long), "w".repeat(short)];
        two.row(vec![
            Cell::fitting(forms(50, 34)),
            Cell::fitting(forms(50, 8)),
        ]);
        assert!(two.render(of_width(50)).contains(&"w".repeat(34)));
        assert!(
            table
                .render(of_width(45))
                .starts_with("name       time  allocated by\n")
        );
        // The column with shorter forms goes last, even if it is short already.
        table.rows[0][3] = Cell::fitting(vec!["a short form".into()]);
        assert!(table.render(of_width(18)).contains("  a short"));
    }

    #[test]
    fn in_a_pipe_no_column_is_left_out() {
        let mut table = Table::default();
        table.number_column("blocks", 3);
        table.text_column("allocated by", 0);
        let forms = ["x".repeat(5000), "y".repeat(150), "z".into()];
        table.row(vec![Cell::new("1"), Cell::fitting(forms.to_vec())]);
        let text = table.render(of_width(UNLIMITED));
        assert!(text.contains("blocks") && text.contains(&"y".repeat(150)));
        assert!(text.lines().all(|line| width_of(line) <= LINE_IN_A_PIPE));
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
