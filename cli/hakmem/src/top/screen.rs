//! The screen of `hakmem top`, at 80 columns and 24 lines or more.

use super::Watched;
use super::processes::{Found, summary};
use super::room::{first_parts, first_places, places};
use super::table::{Rows, View, processes, rows};
use super::words::Words;
use hakmem_lab::render::number::bytes;
use hakmem_lab::render::text::{in_ascii, wrapped};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Sparkline};
use std::collections::VecDeque;

/// What the user has chosen.
pub struct Choice {
    pub view: View,
    /// The column by which each view, and the list of processes, is sorted.
    pub columns: [usize; 4],
    pub is_rising: bool,
    pub filter: String,
    pub is_typing: bool,
    pub is_paused: bool,
    pub has_help: bool,
    pub first_row: usize,
    /// The selected line in the list of processes.
    pub selected: usize,
    pub has_colour: bool,
}

impl Choice {
    pub fn new(has_colour: bool) -> Choice {
        Choice {
            view: View::Classes,
            columns: [2, 2, 0, 2],
            is_rising: false,
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            has_help: false,
            first_row: 0,
            selected: 0,
            has_colour,
        }
    }

    fn colour(&self, colour: Color) -> Style {
        if self.has_colour {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    /// Without colours, text has no other attributes either: some terminals without colours show attributes as colours.
    fn marked(&self, mark: Modifier) -> Style {
        if self.has_colour {
            Style::new().add_modifier(mark)
        } else {
            Style::new()
        }
    }

    fn list(&self) -> usize {
        View::ALL
            .iter()
            .position(|view| *view == self.view)
            .unwrap_or(0)
    }

    /// Options keep the order of their table, unsorted, until a column other than the first is chosen.
    fn sorted_column(&self) -> usize {
        match (self.view, self.columns[self.list()]) {
            (View::Policies, 0) => usize::MAX,
            (_, column) => column,
        }
    }

    pub fn move_column(&mut self, is_list: bool, step: isize, count: usize) {
        let index = if is_list { 3 } else { self.list() };
        let column = self.columns[index];
        self.columns[index] = column
            .saturating_add_signed(step)
            .min(count.saturating_sub(1));
    }

    pub fn next_view(&mut self, step: usize) {
        self.view = View::ALL[(self.list() + step) % View::ALL.len()];
        self.first_row = 0;
    }
}

/// Replaces characters that some terminals lack.
pub fn make_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let written = in_ascii(cell.symbol());
            cell.set_char(written.chars().next().unwrap_or(' '));
        }
    }
}

/// The rows of the chosen view, filtered and sorted.
pub fn chosen_rows(watched: &Watched, choice: &Choice) -> Rows {
    let mut rows = rows(choice.view, watched);
    rows.filter(&choice.filter);
    rows.sort(choice.sorted_column(), choice.is_rising);
    rows
}

pub fn chosen_processes(found: &[Found], choice: &Choice) -> Rows {
    let mut rows = processes(found);
    rows.filter(&choice.filter);
    rows.sort(choice.columns[3], choice.is_rising);
    rows
}

pub fn draw(frame: &mut Frame, watched: &Watched, choice: &mut Choice) {
    let [title, memory, bar, legend, lines, rates, tabs, table, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(3),
        Constraint::Length(1),
        Constraint::Length(2),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let words = watched.words();
    draw_title(frame, title, watched, &words, choice);
    draw_memory(frame, [memory, bar, legend], &words, choice);
    draw_history(frame, lines, watched, &words, choice);
    draw_rates(frame, rates, &words);
    draw_tabs(frame, tabs, watched.visit.is_none(), choice);
    let rows = chosen_rows(watched, choice);
    draw_table(
        frame,
        table,
        &rows,
        choice.columns[choice.list()],
        choice,
        None,
    );
    draw_foot(
        frame,
        foot,
        choice,
        "q quit  Tab view  ←→ sort by  r reverse  / filter  p pause  ? help",
    );
    if choice.has_help {
        draw_help(frame, &rows, words.help);
    }
}

/// The list of processes to choose from.
pub fn draw_processes(frame: &mut Frame, found: &[Found], choice: &mut Choice) {
    let [title, table, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let text = Line::styled(summary(found), choice.marked(Modifier::BOLD));
    frame.render_widget(Paragraph::new(text), title);
    let rows = chosen_processes(found, choice);
    choice.selected = choice.selected.min(rows.rows.len().saturating_sub(1));
    draw_table(
        frame,
        table,
        &rows,
        choice.columns[3],
        choice,
        Some(choice.selected),
    );
    draw_foot(
        frame,
        foot,
        choice,
        "q quit  ↑↓ Enter look into one  ←→ sort by  r reverse  / filter  ? help",
    );
    if choice.has_help {
        draw_help(frame, &rows, &[]);
    }
}

fn draw_title(frame: &mut Frame, area: Rect, watched: &Watched, words: &Words, choice: &Choice) {
    let state = if choice.is_paused { "  paused" } else { "" };
    let off = words.off.as_ref().map(|off| format!("  {off}"));
    let right = format!("{}{state}  {}", off.unwrap_or_default(), words.allocator);
    let room = usize::from(area.width).saturating_sub(places(&right));
    let title = first_places(&watched.title, room);
    let padding = " ".repeat(room - places(&title));
    let line = Line::from(vec![
        Span::styled(title, choice.marked(Modifier::BOLD)),
        Span::from(padding),
        Span::from(right),
    ]);
    frame.render_widget(Paragraph::new(line), area);
}

/// "12.3M"
fn narrow(count: u64) -> String {
    bytes(count).replace("iB", "").replace(' ', "")
}

fn draw_memory(frame: &mut Frame, areas: [Rect; 3], words: &Words, choice: &Choice) {
    const FILLS: [char; 5] = ['█', '▓', '▒', '░', '·'];
    let room = usize::from(areas[0].width);
    let figures = first_parts(&words.figures, "   ", room);
    frame.render_widget(Paragraph::new(figures), areas[0]);
    let width = u64::from(areas[1].width);
    let all: u64 = words.parts.iter().map(|(_, count, _)| count).sum();
    let all = all.max(1);
    let (mut before, mut spans, mut legend) = (0, Vec::new(), Vec::new());
    for ((name, count, colour), fill) in words.parts.into_iter().zip(FILLS) {
        // Computed from the ends, so that rounding errors do not add up.
        let from = before * width / all;
        before += count;
        let cells = before * width / all - from;
        let style = choice.colour(colour);
        spans.push(Span::styled(
            fill.to_string().repeat(usize::try_from(cells).unwrap_or(0)),
            style,
        ));
        let figure = format!(" {name} {}", narrow(count));
        let used: usize = legend.iter().map(Span::width).sum();
        if used + 1 + places(&figure) <= room {
            legend.push(Span::styled(fill.to_string(), style));
            legend.push(Span::from(figure + "  "));
        }
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), areas[1]);
    frame.render_widget(Paragraph::new(Line::from(legend)), areas[2]);
}

fn draw_history(frame: &mut Frame, area: Rect, watched: &Watched, words: &Words, choice: &Choice) {
    let thirds = Layout::horizontal([Constraint::Fill(1); 3])
        .spacing(2)
        .areas::<3>(area);
    let resident = bytes(watched.last.resident_bytes);
    let (third, now) = (words.third.0, &words.third.1);
    let live = words.live.clone();
    let histories: [(String, String, &VecDeque<u64>, Color); 3] = [
        (live.clone(), live, &watched.live, Color::Green),
        (
            format!("resident {resident}"),
            resident,
            &watched.resident,
            Color::Cyan,
        ),
        (
            format!("{third} {now}"),
            now.clone(),
            &watched.third,
            Color::Magenta,
        ),
    ];
    for (area, (name, now, history, colour)) in thirds.into_iter().zip(histories) {
        let width = usize::from(area.width);
        let shown: Vec<u64> = history
            .iter()
            .skip(history.len().saturating_sub(width))
            .copied()
            .collect();
        let title = [name, now, String::new()];
        let title = title.into_iter().find(|title| places(title) <= width);
        let block = Block::new().title(Line::from(title.unwrap_or_default()));
        let line = Sparkline::default()
            .block(block)
            .data(&shown)
            .style(choice.colour(colour));
        frame.render_widget(line, area);
    }
}

fn draw_rates(frame: &mut Frame, area: Rect, words: &Words) {
    let text = first_parts(&words.rates, ", ", usize::from(area.width));
    frame.render_widget(Paragraph::new(text), area);
}

fn draw_tabs(frame: &mut Frame, area: Rect, is_ours: bool, choice: &Choice) {
    let mut spans = Vec::new();
    for (number, view) in View::ALL.into_iter().enumerate() {
        let is_chosen = view == choice.view;
        let title = view.title(is_ours);
        let (text, style) = match (is_chosen, choice.has_colour) {
            (true, false) => (format!("[{} {title}]", number + 1), Style::new()),
            (true, true) => (
                format!(" {} {title} ", number + 1),
                choice.marked(Modifier::REVERSED),
            ),
            (false, _) => (format!(" {} {title} ", number + 1), Style::new()),
        };
        spans.push(Span::styled(text, style));
        spans.push(Span::from(" "));
    }
    if !choice.filter.is_empty() {
        spans.push(Span::from(format!(" only '{}'", choice.filter)));
    }
    let lines = vec![Line::default(), Line::from(spans)];
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_table(
    frame: &mut Frame,
    area: Rect,
    rows: &Rows,
    sorted: usize,
    choice: &Choice,
    selected: Option<usize>,
) {
    let widths = widths(rows, usize::from(area.width));
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let mut text = String::new();
        for (index, (cell, width)) in cells.zip(&widths).enumerate() {
            if index > 0 {
                text.push(' ');
            }
            let cell = first_places(&cell, *width);
            let padding = " ".repeat(width - places(&cell));
            if rows.is_first_text && index == 0 {
                text = text + &cell + &padding;
            } else {
                text = text + &padding + &cell;
            }
        }
        text
    };
    let arrow = if choice.is_rising { '↑' } else { '↓' };
    let mut titles = rows.columns.iter().enumerate().map(|(index, (title, _))| {
        if index == sorted {
            format!("{arrow}{title}")
        } else {
            (*title).to_string()
        }
    });
    let head = choice.marked(Modifier::UNDERLINED);
    let mut lines = vec![Line::styled(line(&mut titles), head)];
    let room = usize::from(area.height).saturating_sub(1);
    let last_first = rows.rows.len().saturating_sub(room);
    let first = match selected {
        Some(selected) => selected.saturating_sub(room.saturating_sub(1)),
        None => choice.first_row.min(last_first),
    };
    for (index, row) in rows.rows.iter().enumerate().skip(first).take(room) {
        let text = line(&mut row.iter().map(|cell| cell.text.clone()));
        lines.push(match (selected == Some(index), choice.has_colour) {
            (false, _) => Line::from(text),
            (true, true) => Line::styled(text, choice.marked(Modifier::REVERSED)),
            (true, false) => Line::from(format!("> {text}")),
        });
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Columns are as wide as their contents. If there is not enough space, the first text column is narrowed, then the last
/// columns are dropped.
fn widths(rows: &Rows, room: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = (0..rows.columns.len())
        .map(|column| {
            let cells = rows.rows.iter().map(|row| places(&row[column].text));
            let title = places(rows.columns[column].0) + 1; // plus the arrow
            cells.chain([title]).max().unwrap_or(0)
        })
        .collect();
    let needed = widths.iter().sum::<usize>() + widths.len() - 1;
    if rows.is_first_text && needed > room {
        widths[0] = widths[0].saturating_sub(needed - room).max(12);
    }
    while widths.len() > 1 && widths.iter().sum::<usize>() + widths.len() - 1 > room {
        widths.pop();
    }
    widths
}

fn draw_foot(frame: &mut Frame, area: Rect, choice: &Choice, keys: &str) {
    let text = if choice.is_typing {
        format!("only rows with: {}▏  Enter, Esc to show all", choice.filter)
    } else {
        let keys: Vec<String> = keys.split("  ").map(String::from).collect();
        first_parts(&keys, "  ", usize::from(area.width))
    };
    frame.render_widget(
        Paragraph::new(text).style(choice.marked(Modifier::DIM)),
        area,
    );
}

/// The indent of the explanations in the lines of the help.
const HELP_INDENT: usize = 13;

/// Fits lines into a window: breaks them between words, and drops empty lines if there are too many.
fn fitted(lines: &[String], columns: usize, most: usize) -> Vec<String> {
    let margin = " ".repeat(HELP_INDENT);
    let mut fitted = Vec::new();
    for line in lines {
        if line.chars().count() <= columns {
            fitted.push(line.clone());
            continue;
        }
        let head: String = line.chars().take(HELP_INDENT).collect();
        let words: String = line.chars().skip(HELP_INDENT).collect();
        let words = wrapped(&words, columns.saturating_sub(HELP_INDENT));
        let parts = words.lines().enumerate();
        fitted.extend(parts.map(|(index, part)| match index {
            0 => format!("{head}{part}"),
            _ => format!("{margin}{part}"),
        }));
    }
    if fitted.len() > most {
        fitted.retain(|line| !line.is_empty());
    }
    fitted
}

fn draw_help(frame: &mut Frame, rows: &Rows, more: &[&str]) {
    let mut lines: Vec<String> = rows
        .columns
        .iter()
        .filter(|(_, help)| !help.is_empty())
        .map(|(title, help)| format!(" {title:>10}  {help}"))
        .collect();
    lines.push(String::new());
    lines.extend(more.iter().map(|line| (*line).to_string()));
    lines.push(String::new());
    lines.push("      keys:  1 2 3 Tab, ←→ r, / , ↑↓ PgUp PgDn, p, Esc back, q".into());
    let area = frame.area();
    let width = area.width.min(76);
    let lines = fitted(
        &lines,
        usize::from(width).saturating_sub(2),
        usize::from(area.height).saturating_sub(2),
    );
    let height = (u16::try_from(lines.len()).unwrap_or(20) + 2).min(area.height);
    let window = Rect {
        x: (area.width - width) / 2,
        y: (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, window);
    let lines: Vec<Line> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().title(" help ")),
        window,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_broken_between_words_and_keeps_its_keys() {
        let lines = [
            "      whole  free in whole pages or pieces: a trim gives it back",
            "",
            "      keys:  q",
        ];
        let lines = lines.map(String::from);
        assert_eq!(fitted(&lines, 74, 20), lines);
        let narrow = [
            "      whole  free in whole pages or pieces: a trim gives",
            "             it back",
            "      keys:  q",
        ];
        assert_eq!(fitted(&lines, 58, 3), narrow);
    }
}
