//! Runs all workloads with all allocators, interleaved, and keeps each result as it comes.
//!
//! For each workload, each allocator has one run that is not recorded. Then come rounds with one run each. Their order changes
//! so that no allocator always follows the same one: what a run leaves behind (free memory, caches) should not always help the
//! same one. If more rounds are allowed than requested, they continue for a while until the intervals are narrow. Whatever
//! stops the campaign, finished runs are in the document, and the campaign can be continued.

use crate::allocator::Allocator;
use crate::document::{AllocatorRecord, Document, Refused, Sample, VariantRecord};
use crate::error::Result;
use crate::meter::{self, Meter, Stop};
use crate::summary;
use crate::workload::{Judge, Workload};
use hakmem_heap::shown::ShownPath;
use indexmap::IndexMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// How long additional rounds may go on, and after how many rounds to check again whether there are enough.
const MORE_TIME: Duration = Duration::from_secs(60);
const MORE_ROUNDS: u32 = 5;

/// How a campaign ended, apart from errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Finished,
    Interrupted,
}

/// Follows the progress of a campaign.
pub trait Observer {
    /// `left_s`: an estimate of the remaining time.
    fn run_begins(&mut self, position: &Position);
    fn refused(&mut self, refused: &Refused);
    fn noted(&mut self, note: &str);
    /// A round is complete, so the document should be saved now.
    fn round_ended(&mut self, document: &Document) -> Result<()>;
}

/// The progress of a campaign.
pub struct Position<'a> {
    pub variant: &'a str,
    pub allocator: &'a str,
    /// 0: the warm-up.
    pub round: u32,
    pub runs_done: usize,
    pub runs_in_all: usize,
    pub left_s: Option<f64>,
}

/// Ignores everything.
pub struct Silent;

impl Observer for Silent {
    fn run_begins(&mut self, _: &Position) {}
    fn refused(&mut self, _: &Refused) {}
    fn noted(&mut self, _: &str) {}
    fn round_ended(&mut self, _: &Document) -> Result<()> {
        Ok(())
    }
}

pub struct Campaign<'a> {
    pub document: Document,
    pub workloads: Vec<Workload>,
    pub allocators: Vec<Allocator>,
    pub meter: &'a mut dyn Meter,
    pub observer: &'a mut dyn Observer,
    runs_done: usize,
    /// How long runs took, by workload and allocator; used for the estimate.
    taken_s: IndexMap<(String, String), f64>,
}

/// Why a workload is stopped.
enum Ended {
    Interrupted,
    Error(crate::error::Error),
}

impl From<crate::error::Error> for Ended {
    fn from(error: crate::error::Error) -> Ended {
        Ended::Error(error)
    }
}

type Step<T> = std::result::Result<T, Ended>;

impl<'a> Campaign<'a> {
    pub fn new(
        document: Document,
        workloads: Vec<Workload>,
        allocators: Vec<Allocator>,
        meter: &'a mut dyn Meter,
        observer: &'a mut dyn Observer,
    ) -> Campaign<'a> {
        Campaign {
            document,
            workloads,
            allocators,
            meter,
            observer,
            runs_done: 0,
            taken_s: IndexMap::new(),
        }
    }

    /// Makes all runs that are missing in the document.
    pub fn run(&mut self) -> Result<Outcome> {
        for index in 0..self.workloads.len() {
            self.check_libraries()?;
            match self.run_workload(index) {
                Ok(()) => {}
                Err(Ended::Interrupted) => return Ok(Outcome::Interrupted),
                Err(Ended::Error(error)) => return Err(error),
            }
        }
        self.check_libraries()?;
        self.document.finished = Some(crate::machine::timestamp());
        self.observer.round_ended(&self.document)?;
        Ok(Outcome::Finished)
    }

    /// If a library was rebuilt in the meantime, one column would mix two allocators.
    fn check_libraries(&self) -> Result<()> {
        self.allocators
            .iter()
            .try_for_each(Allocator::check_unchanged)
    }

    fn is_done(&self, workload: &Workload, allocator: &Allocator, round: u32) -> bool {
        self.document.is_refused(&workload.name, &allocator.name)
            || self
                .document
                .samples_of(&workload.name, &allocator.name)
                .any(|sample| sample.round == round)
    }

    fn run_workload(&mut self, index: usize) -> Step<()> {
        let mut workload = self.workloads[index].clone();
        let rounds = 1..=self.document.settings.runs;
        let is_complete = self.allocators.iter().all(|one| {
            rounds
                .clone()
                .all(|round| self.is_done(&workload, one, round))
        });
        if is_complete {
            self.runs_done += self.allocators.len() * (rounds.count() + 1);
            return Ok(());
        }
        let Some(expected) = self.reference(&mut workload)? else {
            return Ok(());
        };
        self.workloads[index] = workload.clone();
        // The warm-up loads files into the page cache, and finds failures early.
        for allocator in self.allocators.clone() {
            self.attempt(&workload, &allocator, 0, expected.as_deref())?;
        }
        let mut round = 0;
        let mut until = None;
        while self.has_another_round(&workload.name, round, &mut until) {
            round += 1;
            for index in places(self.allocators.len(), round as usize - 1) {
                let allocator = self.allocators[index].clone();
                if self.is_done(&workload, &allocator, round) {
                    self.runs_done += 1;
                    continue;
                }
                let sample = self.attempt(&workload, &allocator, round, expected.as_deref())?;
                self.document.samples.extend(sample);
            }
            self.observer.round_ended(&self.document)?;
        }
        self.document.settings.runs = round;
        Ok(())
    }

    /// `until`: when the additional rounds must end.
    fn has_another_round(&self, variant: &str, round: u32, until: &mut Option<Instant>) -> bool {
        let settings = &self.document.settings;
        if round < settings.runs {
            return true;
        }
        let now = Instant::now();
        round < settings.runs_max
            && now < *until.get_or_insert(now + MORE_TIME)
            && (round % MORE_ROUNDS != 0 || !summary::is_certain(&self.document, variant))
    }

    /// The output of a run without preload; Some(None) if the workload declares its answer. None: the workload does not work at
    /// all, and is refused for every allocator.
    fn reference(&mut self, workload: &mut Workload) -> Step<Option<Option<String>>> {
        if matches!(workload.judge, Judge::Answer(_)) {
            return Ok(Some(None));
        }
        let plain = Allocator::of_system();
        loop {
            let stop = match self.meter.measure(workload, &plain) {
                Ok(first) => match self.meter.measure(workload, &plain) {
                    Ok(second) if first.answer == second.answer => {
                        if let Some((_, end)) = first.answer.split_once(", ") {
                            self.note(format!(
                                "{} ends with {end} without preload, too: if that is a failure, \
                                 the failure is measured",
                                workload.name
                            ));
                        }
                        return Ok(Some(Some(first.answer)));
                    }
                    Ok(_) if workload.judge == Judge::Reference => {
                        // Declared workloads repeat their output; a user's program may not.
                        workload.judge = Judge::EndOnly;
                        self.note(format!(
                            "{} prints something else each time: only how it ends is compared \
                             (--filter can remove what differs)",
                            workload.name
                        ));
                        continue;
                    }
                    Ok(_) => Stop::Refused("it ends in another way each time".into()),
                    Err(stop) => stop,
                },
                Err(stop) => stop,
            };
            match stop {
                Stop::Interrupted => return Err(Ended::Interrupted),
                Stop::Error(error) => return Err(Ended::Error(error)),
                Stop::HiddenChildren(_) if !workload.trace_threads => workload.trace_threads = true,
                Stop::Refused(reason) | Stop::HiddenChildren(reason) => {
                    for allocator in self.allocators.clone() {
                        self.refuse(
                            workload,
                            &allocator,
                            0,
                            format!("without preload: {reason}"),
                        );
                    }
                    return Ok(None);
                }
            }
        }
    }

    /// Makes one run. None if it cannot be trusted; then the allocator is refused from now on.
    fn attempt(
        &mut self,
        workload: &Workload,
        allocator: &Allocator,
        round: u32,
        expected: Option<&str>,
    ) -> Step<Option<Sample>> {
        self.runs_done += 1;
        if self.document.is_refused(&workload.name, &allocator.name) {
            return Ok(None);
        }
        self.observer.run_begins(&Position {
            variant: &workload.name,
            allocator: &allocator.name,
            round,
            runs_done: self.runs_done - 1,
            runs_in_all: self.runs_in_all(round),
            left_s: self.left_s(workload, round),
        });
        let started = Instant::now();
        match self.meter.measure(workload, allocator) {
            Ok(sample) => {
                let key = (workload.name.clone(), allocator.name.clone());
                self.taken_s.insert(key, started.elapsed().as_secs_f64());
                if let Some(expected) = expected.filter(|expected| *expected != sample.answer) {
                    let reason = difference(expected, &sample.answer);
                    self.refuse(workload, allocator, round, reason);
                    return Ok(None);
                }
                let timeline = if round == 1 {
                    sample.timeline
                } else {
                    Vec::new()
                };
                Ok(Some(Sample {
                    variant: workload.name.clone(),
                    allocator: allocator.name.clone(),
                    round,
                    timeline,
                    ..sample
                }))
            }
            Err(Stop::Refused(reason) | Stop::HiddenChildren(reason)) => {
                self.refuse(workload, allocator, round, reason);
                Ok(None)
            }
            Err(Stop::Interrupted) => Err(Ended::Interrupted),
            Err(Stop::Error(error)) => Err(Ended::Error(error)),
        }
    }

    fn refuse(&mut self, workload: &Workload, allocator: &Allocator, round: u32, reason: String) {
        let refused = Refused {
            variant: workload.name.clone(),
            allocator: allocator.name.clone(),
            round,
            reason,
        };
        self.observer.refused(&refused);
        self.document.refuse(refused);
    }

    fn note(&mut self, note: String) {
        self.observer.noted(&note);
        self.document.notes.push(note);
    }

    /// The expected number of rounds, as far as it is known in this round.
    fn rounds(&self, round: u32) -> u32 {
        let next_look = round.next_multiple_of(MORE_ROUNDS);
        self.document.settings.runs.max(next_look)
    }

    fn runs_in_all(&self, round: u32) -> usize {
        let rounds = self.rounds(round) as usize + 1;
        self.workloads.len() * self.allocators.len() * rounds
    }

    /// An estimate: known runs take as long as before, unknown ones as long as the average.
    fn left_s(&self, workload: &Workload, round: u32) -> Option<f64> {
        if self.taken_s.is_empty() {
            return None;
        }
        let average = self.taken_s.values().sum::<f64>() / self.taken_s.len() as f64;
        let round_s: f64 = self
            .allocators
            .iter()
            .filter(|one| !self.document.is_refused(&workload.name, &one.name))
            .map(|one| {
                self.taken_s
                    .get(&(workload.name.clone(), one.name.clone()))
                    .copied()
                    .unwrap_or(average)
            })
            .sum();
        let rounds_left = f64::from(self.rounds(round) - round);
        let rest = self
            .workloads
            .iter()
            .skip_while(|one| one.name != workload.name)
            .count()
            - 1;
        let whole =
            average * self.allocators.len() as f64 * f64::from(self.document.settings.runs + 1);
        Some(round_s * (rounds_left + 0.5) + rest as f64 * whole)
    }
}

/// The order of `count` allocators in a round. Over as many rounds as there are allocators (twice as many if their number is
/// odd), each follows each other one equally often (Williams, 1949: Experimental designs balanced for residual effects of
/// treatments).
fn places(count: usize, round: usize) -> Vec<usize> {
    let (shift, is_mirrored) = if count % 2 == 1 {
        (round / 2, round % 2 == 1)
    } else {
        (round, false)
    };
    let zigzag = |step: usize| match step % 2 {
        0 => count - step / 2,
        _ => step / 2 + 1,
    };
    let mut places: Vec<usize> = (0..count)
        .map(|step| (zigzag(step) + shift) % count)
        .collect();
    if is_mirrored {
        places.reverse();
    }
    places
}

fn difference(expected: &str, answer: &str) -> String {
    let (_, expected_end) = expected
        .split_once(", ")
        .unwrap_or((expected, "exit code 0"));
    let (_, end) = answer.split_once(", ").unwrap_or((answer, "exit code 0"));
    if expected_end == end {
        format!("its output differs from that without preload: {answer} instead of {expected}")
    } else {
        format!("ends with {end} instead of {expected_end}")
    }
}

/// Writes the allocators and workloads into a document, before any sample.
pub fn describe(
    document: &mut Document,
    workloads: &[Workload],
    allocators: &[Allocator],
    relative: &dyn Fn(&str) -> String,
) -> Result<()> {
    for one in allocators {
        let shown = one
            .shown_library
            .as_ref()
            .map(|path| relative(&path.shown()));
        document.allocators.insert(
            one.name.clone(),
            AllocatorRecord {
                library: shown,
                version: one.version.clone(),
                compiler: one.compiler.clone(),
                sha256: one.sha256.clone(),
                build_id: one.build_id.clone(),
                environment: one.environment.clone(),
            },
        );
    }
    let texts = |words: &[OsString]| words.iter().map(ShownPath::shown).collect::<Vec<_>>();
    for one in workloads {
        let mut commands = IndexMap::new();
        for allocator in allocators {
            let line = meter::shown_command(one, allocator)?;
            commands.insert(allocator.name.clone(), relative(&line));
        }
        let relative_all = |words: &[String]| words.iter().map(|word| relative(word)).collect();
        document.variants.insert(
            one.name.clone(),
            VariantRecord {
                about: one.about.clone(),
                group: one.group.clone(),
                threads: one.threads,
                program: relative(&one.program.shown()),
                args: relative_all(&texts(&one.arguments)),
                answer: match &one.judge {
                    Judge::Answer(answer) => Some(answer.clone()),
                    Judge::Reference | Judge::EndOnly => None,
                },
                environment: one
                    .own_environment
                    .iter()
                    .map(|(name, value)| (name.clone(), relative(value)))
                    .collect(),
                commands,
                drive: one
                    .server
                    .iter()
                    .flat_map(|server| &server.drive)
                    .map(|command| relative_all(command))
                    .collect(),
            },
        );
    }
    Ok(())
}
