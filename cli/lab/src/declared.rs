//! The project's own workloads: `bench/workloads/*.toml`, `bench/real/*.toml`, `bench/after_peak/*.toml` and
//! `bench/day/*.toml`. Their READMEs explain the declarations.

use crate::clients;
use crate::document::{AFTER_PEAK, DAY, LATENCY};
use crate::error::Result;
use crate::meter;
use crate::usage;
use crate::workload::{Judge, Moment, Ready, Server, Workload};
use indexmap::IndexMap;
use serde::Deserialize;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const GROUPS: [&str; 5] = ["single-thread", "multi-thread", "large", LATENCY, DAY];

/// A folder of declarations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Set {
    /// The project's own programs.
    #[default]
    Own,
    Real,
    /// Services that free most of what they hold.
    AfterPeak,
    /// A service's day, compressed into minutes.
    Day,
}

impl Set {
    fn folder(self, root: &Path) -> PathBuf {
        root.join("bench").join(match self {
            Set::Own => "workloads",
            Set::Real => "real",
            Set::AfterPeak => "after_peak",
            Set::Day => "day",
        })
    }
}

/// Which declarations to load, and in which size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub set: Set,
    /// Use small inputs.
    pub quick: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    program: String,
    #[serde(rename = "about")]
    _about: Option<String>,
    variant: Vec<Variant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variant {
    name: String,
    about: String,
    threads: u32,
    args: Option<Vec<String>>,
    quick_args: Option<Vec<String>>,
    // Only for our own workloads.
    group: Option<String>,
    answer: Option<String>,
    quick_answer: Option<String>,
    // Only for real programs.
    #[serde(default)]
    needs: Vec<PathBuf>,
    #[serde(default)]
    environment: IndexMap<String, String>,
    stdin: Option<String>,
    quick_stdin: Option<String>,
    prepare: Option<Vec<Vec<String>>>,
    quick_prepare: Option<Vec<Vec<String>>>,
    drive: Option<Vec<Vec<String>>>,
    quick_drive: Option<Vec<Vec<String>>>,
    #[serde(default)]
    ask: Vec<Vec<String>>,
    #[serde(default)]
    stop: Vec<Vec<String>>,
    #[serde(default)]
    verify: Vec<Vec<String>>,
    #[serde(default)]
    outputs: Vec<String>,
    socket: Option<String>,
    // Only for services after their peak.
    #[serde(default)]
    moment: Vec<DeclaredMoment>,
    #[serde(default)]
    trace_threads: bool,
    #[serde(default)]
    bundles_malloc: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredMoment {
    name: String,
    commands: Vec<Vec<String>>,
    quick_commands: Option<Vec<Vec<String>>>,
    wait_s: u64,
}

/// The folders that a declaration may name.
struct Folders {
    root: PathBuf,
    /// The declaration's folder.
    here: PathBuf,
    inputs: PathBuf,
    scratch: PathBuf,
}

impl Folders {
    fn of(root: &Path, set: Set) -> Folders {
        Folders {
            root: root.to_path_buf(),
            here: set.folder(root),
            inputs: root.join("build/real"),
            scratch: root.join("build/real/scratch"),
        }
    }

    fn fill(&self, text: &str) -> String {
        text.replace("{here}", &self.here.to_string_lossy())
            .replace("{inputs}", &self.inputs.to_string_lossy())
            .replace("{scratch}", &self.scratch.to_string_lossy())
    }

    fn fill_all(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.fill(text)).collect()
    }

    fn fill_commands(&self, commands: &[Vec<String>]) -> Vec<Vec<String>> {
        commands
            .iter()
            .map(|command| self.fill_all(command))
            .collect()
    }

    /// A fixed environment: the user's must not change a result.
    fn environment(&self) -> IndexMap<OsString, OsString> {
        let fixed = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("LC_ALL", "C"),
            ("TZ", "UTC"),
        ];
        let fixed = fixed.map(|(name, value)| (name.into(), value.into()));
        let home = ("HOME".into(), self.scratch.clone().into_os_string());
        fixed.into_iter().chain([home]).collect()
    }
}

/// The workloads whose name, program or group matches a pattern; all of them if there are no patterns.
pub fn load(
    root: &Path,
    selection: Selection,
    patterns: &[String],
    timeout: Duration,
) -> Result<Vec<Workload>> {
    let folders = Folders::of(root, selection.set);
    let mut found: Vec<Workload> = Vec::new();
    for path in declaration_files(&folders.here)? {
        let shown = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .display()
            .to_string();
        let text = fs::read_to_string(&path).map_err(|error| usage!("{shown}: {error}"))?;
        let declaration: Declaration =
            toml::from_str(&text).map_err(|error| usage!("{shown}: {}", one_line(&error)))?;
        for variant in declaration.variant {
            let name = variant.name.clone();
            let workload = variant
                .into_workload(&declaration.program, selection, &folders, timeout)
                .map_err(|reason| usage!("{shown}: {name}: {reason}"))?;
            if found.iter().any(|other| other.name == name) {
                return Err(usage!("{shown}: there is another workload called {name}"));
            }
            found.push(workload);
        }
    }
    found.retain(|workload| {
        patterns.is_empty() || patterns.iter().any(|one| matches(one, workload))
    });
    if found.is_empty() {
        return Err(usage!("no workload matches {}", patterns.join(" ")));
    }
    Ok(found)
}

fn declaration_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| usage!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    paths.sort();
    Ok(paths)
}

fn one_line(error: &toml::de::Error) -> String {
    error.message().lines().collect::<Vec<_>>().join(" ")
}

/// A real program's field; in a quick run its small form, if there is one.
fn sized<T: Default>(quick: bool, full: Option<T>, small: Option<T>) -> T {
    if quick { small.or(full) } else { full }.unwrap_or_default()
}

impl Variant {
    fn into_workload(
        self,
        program: &str,
        selection: Selection,
        folders: &Folders,
        timeout: Duration,
    ) -> std::result::Result<Workload, &'static str> {
        let workload = Workload {
            name: self.name.clone(),
            about: self.about.clone(),
            group: "real".into(),
            threads: self.threads,
            program: PathBuf::from(program),
            called: program.into(),
            needs: self.needs.clone(),
            arguments: Vec::new(),
            environment: folders.environment(),
            own_environment: IndexMap::new(),
            folder: folders.root.clone(),
            stdin: None,
            judge: Judge::Reference,
            filter: None,
            scratch: None,
            prepare: Vec::new(),
            verify: Vec::new(),
            outputs: Vec::new(),
            server: None,
            trace_threads: self.trace_threads,
            bundles_malloc: self.bundles_malloc,
            timeout: Some(timeout),
        };
        match selection.set {
            Set::Own | Set::Day => self.into_own(workload, selection.quick, folders),
            Set::Real => Ok(self.into_real(workload, selection.quick, folders)),
            Set::AfterPeak if self.moment.is_empty() || self.socket.is_none() => {
                Err("a service needs a socket and moments")
            }
            Set::AfterPeak => Ok(Workload {
                group: AFTER_PEAK.into(),
                ..self.into_real(workload, selection.quick, folders)
            }),
        }
    }

    /// One of our own workloads; its answer is declared.
    fn into_own(
        self,
        workload: Workload,
        quick: bool,
        folders: &Folders,
    ) -> std::result::Result<Workload, &'static str> {
        let (arguments, answer) = if quick {
            (self.quick_args, self.quick_answer)
        } else {
            (self.args, self.answer)
        };
        let group = self.group.ok_or("it has no group")?;
        if !GROUPS.contains(&group.as_str()) {
            return Err("its group is none of single-thread, multi-thread, large, latency and day");
        }
        Ok(Workload {
            program: folders.root.join("build/bench").join(&workload.program),
            arguments: arguments
                .ok_or("it has no arguments of this size")?
                .into_iter()
                .map(OsString::from)
                .collect(),
            judge: Judge::Answer(answer.ok_or("it has no answer of this size")?),
            group,
            ..workload
        })
    }

    /// A real program; its output is compared with that of a run without preload.
    fn into_real(self, workload: Workload, quick: bool, folders: &Folders) -> Workload {
        let own_environment: IndexMap<String, String> = self
            .environment
            .iter()
            .map(|(name, value)| (name.clone(), folders.fill(value)))
            .collect();
        let mut environment = workload.environment;
        environment.extend(meter::as_bytes(&own_environment));
        let stdin = folders.fill(&sized(quick, self.stdin, self.quick_stdin));
        let drive = folders.fill_commands(&sized(quick, self.drive, self.quick_drive));
        let moments = self.moment.into_iter().map(|moment| Moment {
            commands: folders.fill_commands(&sized(
                quick,
                Some(moment.commands),
                moment.quick_commands,
            )),
            wait: Duration::from_secs(if quick { 0 } else { moment.wait_s }),
            name: moment.name,
        });
        Workload {
            arguments: folders
                .fill_all(&sized(quick, self.args, self.quick_args))
                .into_iter()
                .map(OsString::from)
                .collect(),
            environment,
            own_environment,
            folder: folders.scratch.clone(),
            stdin: Some(stdin)
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
            scratch: Some(folders.scratch.clone()),
            prepare: folders.fill_commands(&sized(quick, self.prepare, self.quick_prepare)),
            verify: folders.fill_commands(&self.verify),
            outputs: folders
                .fill_all(&self.outputs)
                .into_iter()
                .map(PathBuf::from)
                .collect(),
            server: self.socket.map(|socket| Server {
                ready: Ready::Socket(folders.fill(&socket).into()),
                start: clients::SERVER_START,
                start_advice: "",
                drive,
                moments: moments.collect(),
                ask: folders.fill_commands(&self.ask),
                stop: folders.fill_commands(&self.stop),
            }),
            ..workload
        }
    }
}

fn matches(pattern: &str, workload: &Workload) -> bool {
    let program = workload
        .program
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    [workload.name.as_str(), &program, &workload.group]
        .iter()
        .any(|text| matches_text(pattern.as_bytes(), text.as_bytes()))
}

/// Matches a shell pattern with `*` and `?`.
fn matches_text(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.first(), text.first()) {
        (None, None) => true,
        (Some(b'*'), _) => {
            matches_text(&pattern[1..], text)
                || (!text.is_empty() && matches_text(pattern, &text[1..]))
        }
        (Some(b'?'), Some(_)) => matches_text(&pattern[1..], &text[1..]),
        (Some(wanted), Some(found)) if wanted == found => matches_text(&pattern[1..], &text[1..]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .canonicalize()
            .unwrap()
    }

    fn load_all(selection: Selection) -> Vec<Workload> {
        load(&root(), selection, &[], Duration::from_secs(1)).unwrap()
    }

    #[test]
    fn every_declaration_of_the_project_can_be_read() {
        for (set, least) in [
            (Set::Own, 9),
            (Set::Real, 30),
            (Set::AfterPeak, 3),
            (Set::Day, 1),
        ] {
            for quick in [false, true] {
                let found = load_all(Selection { set, quick });
                assert!(found.len() >= least);
                let is_ours = matches!(set, Set::Own | Set::Day);
                assert!(
                    found
                        .iter()
                        .all(|one| is_ours != (one.judge == Judge::Reference))
                );
            }
        }
    }

    #[test]
    fn a_pattern_chooses_by_name_program_and_group() {
        let count = |pattern: &str| {
            let patterns = [pattern.to_string()];
            load(
                &root(),
                Selection::default(),
                &patterns,
                Duration::from_secs(1),
            )
            .map(|found| found.len())
        };
        assert_eq!(count("larson").unwrap(), 3);
        assert_eq!(count("larson-?").unwrap(), 3);
        assert_eq!(count("bench_tiny").unwrap(), 1);
        assert!(count("latency").unwrap() >= 2);
        assert_eq!(
            count("no*such").unwrap_err().to_string(),
            "no workload matches no*such"
        );
    }

    #[test]
    fn a_quick_run_of_a_real_program_has_small_inputs() {
        let git = |quick| {
            let found = load_all(Selection {
                set: Set::Real,
                quick,
            });
            found
                .into_iter()
                .find(|one| one.name == "git-log")
                .unwrap()
                .arguments[1]
                .clone()
                .into_string()
                .unwrap()
        };
        assert!(git(false).ends_with("build/real/repo.git"));
        assert!(git(true).ends_with("build/real/small.git"));
    }

    #[test]
    fn what_is_not_installed_is_named() {
        let mut workload = load_all(Selection::default()).remove(0);
        workload.program = "/proc/self/exe".into();
        assert_eq!(workload.missing(), None);
        workload.needs = vec!["/proc/self/status".into(), "/no/such/library".into()];
        assert_eq!(workload.missing(), Some(Path::new("/no/such/library")));
    }

    #[test]
    fn a_field_that_nobody_knows_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let workloads = folder.path().join("bench/workloads");
        fs::create_dir_all(&workloads).unwrap();
        fs::write(
            workloads.join("x.toml"),
            "program = \"x\"\nprogramm = 1\nvariant = []\n",
        )
        .unwrap();
        let error = load(
            folder.path(),
            Selection::default(),
            &[],
            Duration::from_secs(1),
        )
        .err()
        .unwrap();
        assert!(
            error
                .to_string()
                .starts_with("bench/workloads/x.toml: unknown field `programm`")
        );
    }
}
