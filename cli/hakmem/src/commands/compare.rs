//! `hakmem compare`: one program with several allocators.

use crate::numbers::{NO_PORT, RUNS_RANGE};
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::say;
use crate::start::{preloadable, unread_input};
use clap::Args;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::allocator::{Allocator, BASELINE, Catalogue};
use hakmem_lab::campaign::{self, Campaign, Outcome};
use hakmem_lab::clients;
use hakmem_lab::document::{Document, FORMAT, Settings};
use hakmem_lab::error::Result;
use hakmem_lab::executable::Executable;

use hakmem_lab::meter::LinuxMeter;
use hakmem_lab::places::Places;
use hakmem_lab::workload::{Judge, Ready, Server, Workload};
use hakmem_lab::{failed, interrupt, machine, probe, usage};
use indexmap::IndexMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
hakmem compare [OPTIONS] [--] PROGRAM [ARGUMENT]...
       hakmem compare [OPTIONS] --server COMMAND --client COMMAND --ready PORT|SOCKET";

const EXAMPLES: &str = "\
Examples:
  hakmem compare -- python3 app.py
  hakmem compare -n 30 -a hakmem,glibc,jemalloc --html page.html -- ./program --input data
  hakmem compare -a hakmem,hakmem+HAKMEM_DECAY_MS=0,mine=./libmine.so -- ./program
  hakmem compare --filter 'grep -v elapsed' --export result.json -- make -s
  hakmem compare --server 'redis-server --port 7777' --ready 7777 \\
                 --client 'redis-benchmark -p 7777 -q -n 100000'";

const RUNS: u32 = 10;
const RUNS_MAX: u32 = 100;
const TIMEOUT_S: u64 = 600;

/// Run a program under several allocators in turn, and say which is the best for it
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct Arguments {
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        value_name = "PROGRAM",
        required_unless_present = "server"
    )]
    command: Vec<OsString>,
    /// Allocators: names from 'hakmem peers list', or NAME=LIBRARY, each with +SETTING=VALUE
    #[arg(short, long, value_name = "NAME,...", value_delimiter = ',')]
    allocators: Vec<String>,
    /// The allocator that ratios refer to
    #[arg(short, long, value_name = "NAME", default_value = BASELINE)]
    baseline: String,
    /// Runs of each allocator [default: 10, then up to 100 for a minute, until ratios are known to 5 %]
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u32).range(RUNS_RANGE))]
    runs: Option<u32>,
    /// What the program reads from standard input (default: nothing)
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Seconds after which a run is killed, and its allocator refused; a server has as long to be ready [default: 600; 10 to be ready]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// Pipe the program's output through this shell command before it is compared
    #[arg(long, value_name = "COMMAND", conflicts_with = "ignore_output")]
    filter: Option<String>,
    /// Compare only how the program ends, not its output
    #[arg(long)]
    ignore_output: bool,
    /// Write the whole result, with every sample, into a file
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Args)]
#[command(next_help_heading = "Servers (the clients' time and the server's memory are measured)")]
struct ServerArguments {
    /// The command that starts the server, which is ended with SIGTERM
    #[arg(long, value_name = "COMMAND", requires_all = ["client", "ready"], conflicts_with = "command")]
    server: Option<String>,
    /// A shell command that uses the server; may be given several times
    #[arg(long, value_name = "COMMAND", requires = "server")]
    client: Vec<String>,
    /// The port or socket file that the server opens when it is ready
    #[arg(
        long,
        value_name = "PORT|SOCKET",
        requires = "server",
        allow_negative_numbers = true
    )]
    ready: Option<String>,
}

pub fn execute(arguments: Arguments) -> Result<ExitCode> {
    let files = [arguments.export.as_ref(), arguments.output.html.as_ref()];
    output::keep_apart(&files, arguments.input.as_slice())?;
    let places = Places::find()?;
    let catalogue = Catalogue::load(&places)?;
    let mut allocators = catalogue.choose(&arguments.allocators)?;
    let baseline = catalogue.choose_baseline(&arguments.baseline, &mut allocators)?;
    // Each run gets our environment, and what the library says of it is not seen.
    allocators.iter().try_for_each(Allocator::check_settings)?;
    let mut notes = catalogue.left_out;
    if let Some(unread) = unread_input().filter(|_| arguments.input.is_none()) {
        notes.push(format!("{unread}: with --input FILE, every run reads it"));
    }
    let workload = workload(&arguments, &mut notes)?;
    let mut document = new_document(&arguments, &baseline, &allocators, &workload, &places)?;
    document.notes = notes;

    let page = arguments.output.page(&places)?;
    let file = output::planned_export(arguments.export.as_ref())?;
    interrupt::install();
    let mut progress = Progress::new(None, 1);
    let relative = places.clone();
    let mut meter = LinuxMeter::new(move |text| relative.relative(text));
    let mut campaign = Campaign::new(
        document,
        vec![workload],
        allocators,
        &mut meter,
        &mut progress,
    );
    let outcome = campaign.run();
    let document = campaign.document;
    progress.finish();
    if !document.samples.is_empty() || !document.refused.is_empty() {
        say::keep();
        let exported = output::export(&document, file);
        let name = document.variants.keys().next().map_or("", String::as_str);
        let paged = arguments.output.write_page(page, name, &document);
        arguments.output.print(&document)?;
        output::all_written([exported, paged])?;
    }
    match outcome? {
        Outcome::Interrupted if document.samples.is_empty() => {
            Err(failed!("stopped before the first run"))
        }
        Outcome::Interrupted => Err(failed!("stopped; the results so far are above")),
        Outcome::Finished if document.refused.is_empty() => Ok(ExitCode::SUCCESS),
        Outcome::Finished => Ok(ExitCode::FAILURE),
    }
}

fn workload(arguments: &Arguments, notes: &mut Vec<String>) -> Result<Workload> {
    let words = match &arguments.server.server {
        Some(line) => shlex::split(line)
            .filter(|words| !words.is_empty())
            .ok_or_else(|| usage!("--server '{line}' is not a command"))?
            .into_iter()
            .map(OsString::from)
            .collect(),
        None => arguments.command.clone(),
    };
    let executable = preloadable(&words[0])?;
    let folder = env::current_dir().map_err(|error| failed!("the current folder: {error}"))?;
    let environment = own_environment(notes);
    let program = absolute(&executable.path, &folder);
    let name = program.file_name().unwrap_or_default().shown();
    let bundles_malloc = linked_allocator(&executable, &words[1..], &environment)?
        .inspect(|library| {
            notes.push(format!(
                "{name} is linked with {}: for {BASELINE} the C library is preloaded",
                library.shown()
            ));
        })
        .is_some();
    Ok(Workload {
        name,
        about: "compared from the command line".into(),
        group: "compare".into(),
        threads: 0,
        program,
        called: words[0].clone(),
        needs: Vec::new(),
        arguments: words[1..].to_vec(),
        environment,
        own_environment: IndexMap::new(),
        stdin: input(arguments, &folder)?,
        folder,
        judge: if arguments.ignore_output {
            Judge::EndOnly
        } else {
            Judge::Reference
        },
        filter: arguments.filter.clone(),
        scratch: None,
        prepare: Vec::new(),
        verify: Vec::new(),
        outputs: Vec::new(),
        server: server(&arguments.server, arguments.timeout)?,
        trace_threads: false,
        bundles_malloc,
        timeout: Some(Duration::from_secs(arguments.timeout.unwrap_or(TIMEOUT_S))),
    })
}

/// The file of --input. What only one run can read is refused: the others would be measured with nothing to do.
fn input(arguments: &Arguments, folder: &Path) -> Result<Option<PathBuf>> {
    let Some(path) = &arguments.input else {
        return Ok(None);
    };
    let path = absolute(path, folder);
    let data = fs::metadata(&path).map_err(|error| usage!("{}: {error}", path.shown()))?;
    if data.is_file() || data.file_type().is_char_device() {
        return Ok(Some(path));
    }
    Err(usage!(
        "--input {}: each run reads it from its beginning, so it has to be a file",
        path.shown()
    ))
}

fn absolute(path: &Path, folder: &Path) -> PathBuf {
    folder.join(path)
}

/// The caller's environment, without variables that preload anything.
fn own_environment(notes: &mut Vec<String>) -> IndexMap<OsString, OsString> {
    let mut environment: IndexMap<OsString, OsString> = env::vars_os().collect();
    if environment
        .shift_remove(OsStr::new("LD_PRELOAD"))
        .is_some_and(|text| !text.is_empty())
    {
        notes.push("LD_PRELOAD is set here; it is not passed on".into());
    }
    let names = environment.keys().map(ShownPath::shown);
    for name in names.filter(|name| machine::is_tuning(name)) {
        notes.push(format!("{name} is set here, and applies to every run"));
    }
    environment
}

/// The library, other than the C library, from which a program gets its malloc.
fn linked_allocator(
    executable: &Executable,
    arguments: &[OsString],
    environment: &IndexMap<OsString, OsString>,
) -> Result<Option<PathBuf>> {
    let words: Vec<OsString> = if executable.is_script() {
        Vec::new()
    } else {
        arguments.to_vec()
    };
    let variables = environment
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let loaded = probe::load(&executable.binary, &words, variables)?
        .map_err(|blind| failed!("{}: {blind}", executable.path.shown()))?;
    let owner = loaded.proof.definers.get("malloc");
    let plain = Allocator::of_system();
    // An allocator inside the program cannot be replaced: the proof refuses it later.
    Ok(owner
        .filter(|path| !plain.owns(path, None) && **path != loaded.proof.program)
        .cloned())
}

fn server(arguments: &ServerArguments, timeout: Option<u64>) -> Result<Option<Server>> {
    let Some(text) = &arguments.ready else {
        return Ok(None);
    };
    let ready = match text.parse::<u16>() {
        Ok(port) if port > 0 => Ready::Port(port),
        _ if text.parse::<f64>().is_ok() => {
            return Err(usage!(
                "--ready {text}: {NO_PORT}; a socket file of that name is './{text}'"
            ));
        }
        _ => Ready::Socket(absolute(
            Path::new(text),
            &env::current_dir().map_err(|error| failed!("the current folder: {error}"))?,
        )),
    };
    clients::clear(&ready);
    if clients::is_ready(&ready) {
        return Err(usage!(
            "another server already answers at {text}, and would be measured instead"
        ));
    }
    let shell = |line: &String| vec!["/bin/sh".into(), "-c".into(), line.clone()];
    Ok(Some(Server {
        ready,
        start: clients::SERVER_START.max(Duration::from_secs(timeout.unwrap_or(0))),
        start_advice: "; --timeout SECONDS gives it more",
        drive: arguments.client.iter().map(shell).collect(),
        moments: Vec::new(),
        ask: Vec::new(),
        stop: Vec::new(),
    }))
}

fn new_document(
    arguments: &Arguments,
    baseline: &str,
    allocators: &[Allocator],
    workload: &Workload,
    places: &Places,
) -> Result<Document> {
    let caller = workload.environment.iter();
    let mut document = Document {
        format: FORMAT,
        label: "compare".into(),
        commit: places.root().and_then(machine::commit).unwrap_or_default(),
        started: machine::timestamp(),
        settings: Settings {
            runs: arguments.runs.unwrap_or(RUNS),
            runs_max: arguments.runs.map_or(RUNS_MAX, |_| 0),
            timeout_s: arguments.timeout.unwrap_or(TIMEOUT_S),
            allocators: arguments.allocators.clone(),
            baseline: baseline.into(),
            ..Settings::default()
        },
        machine: machine::describe(),
        environment: machine::shown_environment(caller),
        ..Document::default()
    };
    let relative = |text: &str| places.relative(text);
    let workloads = std::slice::from_ref(workload);
    campaign::describe(&mut document, workloads, allocators, &relative)?;
    Ok(document)
}
