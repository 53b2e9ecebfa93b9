//! Distinguishable rows of tables. One per call stack, with the differences if two would look the same; or one per function,
//! line, file, module or thread.

use super::{CALLED_BY, Frame, Length, Role, place_of, roles};
use clap::{Args, ValueEnum};
use std::collections::HashMap;

const DIFFERENCES: usize = 2;

/// What a row of a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// A call stack
    Stack,
    /// The innermost function of the program itself
    Function,
    /// That function, with its line
    Line,
    /// That function's source file, or its module if no line is known
    File,
    /// The library or program that has the function
    Module,
    /// The thread that allocated the block
    Thread,
}

#[derive(Args, Clone, Debug, Default)]
pub struct Folded {
    /// Skip these functions and files in tables as well, such as 'xmalloc*,pool.c': a block counts for the first caller
    /// that is none of them
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub fold: Vec<String>,
}

impl Folded {
    /// The place of each stack, in the forms of `frames::place`. If two would look the same, the part behind the dots shows
    /// where the stacks differ.
    pub fn places(&self, stacks: &[&[String]]) -> Vec<Vec<String>> {
        let mut places: Vec<Vec<String>> = stacks
            .iter()
            .map(|stack| place_of(stack, &self.fold))
            .collect();
        let mut same: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, forms) in places.iter().enumerate() {
            same.entry(forms[0].clone()).or_default().push(index);
        }
        for alike in same.into_values().filter(|alike| alike.len() > 1) {
            let own: Vec<Vec<String>> = alike
                .iter()
                .map(|index| self.callers(stacks[*index]))
                .collect();
            for (number, index) in alike.iter().enumerate() {
                for frame in differences(&own, number) {
                    let frame = Frame::of(frame);
                    for (form, text) in places[*index].iter_mut().enumerate() {
                        let length = if form == 0 {
                            Length::Whole
                        } else {
                            Length::Short
                        };
                        *text += &format!("{CALLED_BY}… {}", frame.text(length));
                    }
                }
            }
        }
        places
    }

    /// First the program's functions, as they tell the most; then all others.
    fn callers(&self, stack: &[String]) -> Vec<String> {
        let frames: Vec<Frame> = stack.iter().map(|text| Frame::of(text)).collect();
        let roles = roles(&frames, &self.fold);
        let of =
            |role: fn(Role) -> bool| stack.iter().zip(&roles).filter(move |(_, is)| role(**is));
        let (own, others) = (of(|role| role == Role::Own), of(|role| role != Role::Own));
        own.chain(others).map(|(text, _)| text.clone()).collect()
    }

    /// The name of a stack's row.
    pub fn label(
        &self,
        by: By,
        stack: &[String],
        module: impl Fn(usize) -> Option<String>,
    ) -> String {
        let frames: Vec<Frame> = stack.iter().map(|text| Frame::of(text)).collect();
        let roles = roles(&frames, &self.fold);
        let Some(index) = roles.iter().position(|role| *role == Role::Own) else {
            return "(none of the program's own)".into();
        };
        let frame = frames[index];
        let file = frame
            .place
            .split(':')
            .next()
            .unwrap_or_default()
            .to_string();
        match by {
            By::Stack | By::Line | By::Thread => stack[index].clone(),
            By::Function if frame.name.is_empty() => file,
            By::Function => format!("{} ({file})", frame.name),
            By::File if frame.name.is_empty() => file
                .split_once("+0x")
                .map_or(file.clone(), |(module, _)| module.into()),
            By::File => file,
            By::Module => module(index).unwrap_or(file),
        }
    }
}

/// The functions that distinguish this stack from the others: as few as possible, and at most two. The first is the one that
/// the fewest others have at its position.
fn differences(stacks: &[Vec<String>], number: usize) -> Vec<&str> {
    let mine = &stacks[number];
    let mut alike: Vec<&Vec<String>> = stacks.iter().collect();
    let mut found = Vec::new();
    while alike.len() > 1 && found.len() < DIFFERENCES {
        let same = |at: usize| {
            let others = alike.iter().filter(|other| other.get(at) == mine.get(at));
            others.count()
        };
        let Some(at) = (0..mine.len()).min_by_key(|at| same(*at)) else {
            break;
        };
        if same(at) == alike.len() {
            break;
        }
        found.push(mine[at].as_str());
        alike.retain(|other| other.get(at) == mine.get(at));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(text: &str) -> Vec<String> {
        text.split(" < ").map(String::from).collect()
    }

    fn places(folded: &Folded, stacks: &[Vec<String>]) -> Vec<String> {
        let stacks: Vec<&[String]> = stacks.iter().map(Vec::as_slice).collect();
        let places = folded.places(&stacks);
        places.into_iter().map(|forms| forms[0].clone()).collect()
    }

    #[test]
    fn where_one_function_is_not_enough_two_tell() {
        let stacks = ["a < x", "a < y", "b < x", "b < y"].map(stack);
        assert_eq!(differences(&stacks, 2), ["b", "x"]);
        let alone = ["a < x", "a < y", "a < z"].map(stack);
        assert_eq!(differences(&alone, 1), ["y"]);
        assert!(differences(&[stack("a"), stack("a")], 0).is_empty());
    }

    #[test]
    fn rows_that_look_the_same_say_where_they_differ() {
        let both = [
            stack(
                "malloc (libc.so.6) < f (a.c:1) < g (a.c:2) < h (a.c:3) < i (a.c:4) < one (a.c:5) < main (a.c:9)",
            ),
            stack(
                "malloc (libc.so.6) < f (a.c:1) < g (a.c:2) < h (a.c:3) < i (a.c:4) < two (a.c:6) < main (a.c:9)",
            ),
            stack("malloc (libc.so.6) < other (a.c:1)"),
        ];
        assert_eq!(
            places(&Folded::default(), &both),
            [
                "malloc < f (a.c:1) < g (a.c:2) < h (a.c:3) < … one (a.c:5)",
                "malloc < f (a.c:1) < g (a.c:2) < h (a.c:3) < … two (a.c:6)",
                "malloc < other (a.c:1)"
            ]
        );
    }

    #[test]
    fn python_is_told_by_its_functions() {
        let inner = "PyUnicode_New (unicodeobject.c:1251) < unicode_repeat (unicodeobject.c:12022) < \
                     _PyEval_EvalFrameDefault (bytecodes.c:3382)";
        let stacks = [
            stack(&format!(
                "{inner} < export (views.py) < _PyEval_EvalFrameDefault (ceval.c:1)"
            )),
            stack(&format!("{inner} < render (pages.py)")),
            stack(inner),
        ];
        assert_eq!(
            places(&Folded::default(), &stacks),
            [
                "export (views.py)",
                "render (pages.py)",
                "PyUnicode_New < unicode_repeat (unicodeobject.c:12022)"
            ]
        );
    }

    #[test]
    fn what_users_fold_is_left_out() {
        let folded = Folded {
            fold: vec!["pool_*".into(), "wrap.c".into()],
        };
        let one = stack("pool_take (pool.c:3) < wrapped (wrap.c:9) < work (a.c:1) < main (a.c:5)");
        assert_eq!(
            places(&folded, std::slice::from_ref(&one)),
            ["wrapped < work (a.c:1) < main (a.c:5)"]
        );
        let label = |by| folded.label(by, &one, |_| Some("libwork.so".into()));
        assert_eq!(
            [By::Function, By::Line, By::File, By::Module].map(label),
            ["work (a.c)", "work (a.c:1)", "a.c", "libwork.so"]
        );
    }
}
