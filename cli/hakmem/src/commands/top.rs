//! `hakmem top`: shows the heap of a running process as it changes.

use crate::output::{is_screen, show, terminal, wants_colour};
use crate::say;
use crate::signals;
use crate::target::{end_with, ended, process_number};
use crate::top::processes::{Found, Search, why_none};
use crate::top::screen::{self, Choice};
use crate::top::table::View;
use crate::top::{Watched, plain};
use clap::Args;
use console::Term;
use hakmem_heap::live::check_proc;
use hakmem_lab::error::Result;
use hakmem_lab::render::number::bytes;
use hakmem_lab::render::text::is_ascii;
use hakmem_lab::{failed, usage};
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use std::io::stdout;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  hakmem top                     choose among all processes that may be read
  hakmem top 4711                whichever allocator it has
  hakmem top 4711 -n 60 > log    a line each second, for a minute

The process is neither stopped nor written to. For other allocators (glibc, jemalloc, mimalloc),
top shows sizes, arenas and what resident memory consists of; it reads a large heap as a whole, and
less often, so that reading takes a fifth of the time at most. When the process ends or becomes
another program, the command says so in a line, and ends with exit code 0. Plain lines are printed
in a pipe, with -n, and where TERM is not set or dumb.

In plain lines of a heap of hakmem, blocks/s are those that magazines took from slabs and gave back,
sent/s those sent to other threads, slow/s calls of slow paths, and calls/s hakmem's system calls
for memory. Of another heap, blocks/s is the change of the number of blocks.";

/// How soon a signal that stops us is noticed.
const STEP: Duration = Duration::from_millis(200);

/// Watch the heap of a running process: sizes, caches or arenas, rates, policies
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The process ID
    #[arg(value_parser = process_number)]
    pid: Option<i32>,
    /// Seconds between two updates
    #[arg(
        short,
        long,
        value_name = "SECONDS",
        default_value = "1",
        allow_negative_numbers = true
    )]
    delay: f64,
    /// Print this many lines, and end
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    lines: Option<u64>,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    if !(0.05..=3600.0).contains(&arguments.delay) {
        return Err(usage!("--delay is a number of seconds from 0.05 to 3600"));
    }
    // Of what is in another namespace's there would only be nothing to show.
    check_proc().map_err(|error| failed!("{error}"))?;
    let delay = Duration::from_secs_f64(arguments.delay);
    let is_screen = is_screen(&Term::stdout()) && arguments.lines.is_none();
    match arguments.pid {
        Some(pid) if is_screen => {
            let watched = Watched::begin(pid)?;
            on_screen(Some(watched), delay)
        }
        Some(pid) => print_lines(pid, delay, arguments.lines),
        None if is_screen => on_screen(None, delay),
        None => print_processes(),
    }
}

/// Prints lines until the process ends, which is no error.
fn print_lines(pid: i32, delay: Duration, count: Option<u64>) -> Result<ExitCode> {
    let mut watched = Watched::begin(pid)?;
    let room = terminal().width().unwrap_or(usize::MAX);
    println!("{}", plain::head(&watched, room));
    let mut left = count.unwrap_or(u64::MAX);
    while left > 0 {
        std::thread::sleep(watched.pause(delay));
        let lost = watched.advance().err().and_then(|_| watched.lost());
        if let Some(why) = lost {
            end_with(&why)?;
            break;
        }
        println!("{}", plain::line(&watched, room));
        left = if say::is_broken() { 0 } else { left - 1 };
    }
    Ok(ExitCode::SUCCESS)
}

fn print_processes() -> Result<ExitCode> {
    let found = Search::default().run();
    if found.is_empty() {
        return Err(failed!("{}", why_none()));
    }
    for one in found {
        let held = one.totals.map(|totals| {
            let (live, blocks) = (bytes(totals.live_bytes), totals.live_blocks);
            format!(", {live} live in {blocks} blocks")
        });
        show(&format!(
            "{} {} resident{}, {}: {}\n",
            one.pid,
            bytes(one.resident_bytes),
            held.unwrap_or_default(),
            one.allocator.as_deref().unwrap_or("-"),
            one.command_line
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// What the screen shows: one process, or the list of all.
struct Shown {
    watched: Option<Watched>,
    /// The process was given on the command line, so there is no list to go back to.
    is_only: bool,
    search: Search,
    found: Vec<Found>,
    choice: Choice,
}

fn take_screen() -> Result<DefaultTerminal> {
    ratatui::try_init().map_err(|error| failed!("this terminal cannot be used: {error}"))
}

fn give_screen_back() {
    ratatui::restore();
    let _ = execute!(stdout(), Show); // dropping a `DefaultTerminal` would also do this
}

/// Stops us; the shell has the terminal until it continues us.
fn stop(terminal: &mut DefaultTerminal) -> Result<()> {
    give_screen_back();
    signals::stop_ourselves();
    *terminal = take_screen()?;
    Ok(())
}

fn is_ctrl(event: &Event, letter: char) -> bool {
    matches!(event, Event::Key(key) if key.kind != KeyEventKind::Release
        && key.code == KeyCode::Char(letter)
        && key.modifiers.contains(KeyModifiers::CONTROL))
}

fn on_screen(watched: Option<Watched>, delay: Duration) -> Result<ExitCode> {
    signals::before_the_end(give_screen_back);
    signals::note_stops();
    let mut terminal = take_screen()?;
    let mut shown = Shown {
        is_only: watched.is_some(),
        watched,
        search: Search::default(),
        found: Vec::new(),
        choice: Choice::new(wants_colour()),
    };
    let ended = shown.run(&mut terminal, delay);
    ratatui::restore();
    if let Some(line) = ended? {
        show(&(line + "\n"));
    }
    Ok(ExitCode::SUCCESS)
}

impl Shown {
    /// Runs until the user or the process ends it; returns a last message.
    fn run(&mut self, terminal: &mut DefaultTerminal, delay: Duration) -> Result<Option<String>> {
        let mut next = Instant::now();
        loop {
            if Instant::now() >= next {
                if let Some(line) = self.look() {
                    return Ok(Some(line));
                }
                let watched = self.watched.as_ref();
                next = Instant::now() + watched.map_or(delay, |watched| watched.pause(delay));
            }
            let drawn = terminal.draw(|frame| {
                match &self.watched {
                    Some(watched) => screen::draw(frame, watched, &mut self.choice),
                    None => screen::draw_processes(frame, &self.found, &mut self.choice),
                }
                if is_ascii() {
                    screen::make_ascii(frame.buffer_mut());
                }
            });
            drawn.map_err(|error| failed!("{error}"))?;
            if signals::is_stop_asked() {
                stop(terminal)?;
                continue; // the screen is empty
            }
            let wait = next.saturating_duration_since(Instant::now()).min(STEP);
            if event::poll(wait).map_err(|error| failed!("{error}"))? {
                let event = event::read().map_err(|error| failed!("{error}"))?;
                if is_ctrl(&event, 'z') {
                    stop(terminal)?;
                } else if self.handle(&event) {
                    return Ok(None);
                }
            }
        }
    }

    /// Some: the process has ended, and so must the command.
    fn look(&mut self) -> Option<String> {
        if self.choice.is_paused {
            return None;
        }
        match &mut self.watched {
            None => self.found = self.search.run_for_screen(),
            Some(watched) => {
                if let Err(error) = watched.advance() {
                    let why = watched.lost().map(|why| ended(&why));
                    let why = why.unwrap_or(error.to_string());
                    let line = format!("{}: {why}", watched.title);
                    self.watched = None;
                    if self.is_only {
                        return Some(line);
                    }
                    self.found = self.search.run_for_screen();
                }
            }
        }
        None
    }

    /// True: the user wants to leave.
    fn handle(&mut self, event: &Event) -> bool {
        let Event::Key(key) = event else {
            return false;
        };
        if key.kind == KeyEventKind::Release {
            return false;
        }
        if is_ctrl(event, 'c') {
            return true;
        }
        if self.choice.is_typing {
            self.type_filter(key.code);
            return false;
        }
        if self.choice.has_help {
            self.choice.has_help = false;
            return key.code == KeyCode::Char('q');
        }
        self.handle_key(key.code)
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.choice.is_typing = false,
            KeyCode::Esc => {
                self.choice.is_typing = false;
                self.choice.filter.clear();
            }
            KeyCode::Backspace => {
                self.choice.filter.pop();
            }
            KeyCode::Char(character) => self.choice.filter.push(character),
            _ => {}
        }
    }

    fn handle_key(&mut self, key: KeyCode) -> bool {
        let is_list = self.watched.is_none();
        let columns = match &self.watched {
            Some(watched) => screen::chosen_rows(watched, &self.choice).columns.len(),
            None => 6,
        };
        let choice = &mut self.choice;
        match key {
            KeyCode::Char('q') => return true,
            KeyCode::Char('?' | 'h') => choice.has_help = true,
            KeyCode::Char('/') => choice.is_typing = true,
            KeyCode::Char('r') => choice.is_rising = !choice.is_rising,
            KeyCode::Char('p' | ' ') => choice.is_paused = !choice.is_paused,
            KeyCode::Left => choice.move_column(is_list, -1, columns),
            KeyCode::Right => choice.move_column(is_list, 1, columns),
            KeyCode::Tab => choice.next_view(1),
            KeyCode::BackTab => choice.next_view(View::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='3') => {
                choice.view = View::ALL[usize::from(digit as u8 - b'1')];
                choice.first_row = 0;
            }
            KeyCode::Up => self.scroll(-1),
            KeyCode::Down => self.scroll(1),
            KeyCode::PageUp => self.scroll(-10),
            KeyCode::PageDown => self.scroll(10),
            KeyCode::Enter if is_list => self.open_selected(),
            KeyCode::Esc if !self.is_only && !is_list => {
                self.watched = None;
                self.found = self.search.run_for_screen();
            }
            KeyCode::Esc => return is_list || self.is_only,
            _ => {}
        }
        false
    }

    fn scroll(&mut self, step: isize) {
        let choice = &mut self.choice;
        match &self.watched {
            None => choice.selected = choice.selected.saturating_add_signed(step),
            Some(watched) => {
                let rows = screen::chosen_rows(watched, choice).rows.len();
                let first = choice.first_row.saturating_add_signed(step);
                choice.first_row = first.min(rows.saturating_sub(1));
            }
        }
    }

    fn open_selected(&mut self) {
        let rows = screen::chosen_processes(&self.found, &self.choice);
        let row = rows.rows.get(self.choice.selected);
        let pid = row.and_then(|row| row[1].text.parse().ok());
        // A process that has ended meanwhile disappears from the list by itself.
        self.watched = pid.and_then(|pid| Watched::begin(pid).ok());
        self.choice.filter.clear();
    }
}
