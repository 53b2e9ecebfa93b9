//! Budgets: how much a program may use, as its project has written it down, and whether it kept to that.

use crate::error::Result;
use crate::render::number::{bytes_and_tenths, grouped};
use crate::usage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The measures, by their names in budgets.
pub const MEASURES: [&str; 5] = [
    "peak_resident",
    "peak_live",
    "allocations",
    "allocated",
    "live_at_end",
];
/// The measures of a call site.
pub const OF_SITES: [&str; 3] = ["allocations", "allocated", "live_at_end"];

/// The content of a budget file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    total: BTreeMap<String, String>,
    #[serde(default)]
    site: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Counts only allocations through functions with this name; None: all allocations.
    pub site: Option<String>,
    pub measure: String,
    /// "<= 384MiB", as in the file.
    pub text: String,
    is_below: bool,
    bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    Absolute(f64),
    /// Growth over the baseline in percent; may be negative.
    Percent(f64),
    /// Growth over the baseline in bytes or calls.
    More(f64),
}

impl Limit {
    /// The name in measurements: "allocations", or "allocations of parse_*".
    pub fn name(&self) -> String {
        match &self.site {
            Some(site) => format!("{} of {site}", self.measure),
            None => self.measure.clone(),
        }
    }

    pub fn needs_baseline(&self) -> bool {
        !matches!(self.bound, Bound::Absolute(_))
    }

    fn is_kept(&self, value: f64, baseline: Option<f64>) -> bool {
        let most = match (self.bound, baseline) {
            (Bound::Absolute(most), _) => most,
            // If growth is allowed, the old value is always allowed, also a value of zero.
            (Bound::Percent(part), Some(was)) if part > 0.0 && value <= was => return true,
            (Bound::Percent(part), Some(was)) => was * (1.0 + part / 100.0),
            (Bound::More(more), Some(was)) => was + more,
            (_, None) => return false,
        };
        if self.is_below {
            value < most
        } else {
            value <= most
        }
    }

    fn parse(site: Option<&str>, measure: &str, text: &str) -> Result<Limit> {
        let known = if site.is_some() {
            &OF_SITES[..]
        } else {
            &MEASURES[..]
        };
        if !known.contains(&measure) {
            return Err(usage!(
                "there is no measure '{measure}', only {}",
                known.join(", ")
            ));
        }
        let wrong = || {
            usage!(
                "{measure} = '{text}': write a limit such as '<= 384MiB' or '< 1000000', or with a \
                 baseline '< +2 %' or '<= +10KiB'"
            )
        };
        let (is_below, rest) = match text.trim().strip_prefix("<=") {
            Some(rest) => (false, rest),
            None => (true, text.trim().strip_prefix('<').ok_or_else(wrong)?),
        };
        let rest = rest.trim();
        let is_relative = rest.starts_with(['+', '-']);
        let bound = if let Some(part) = rest.strip_suffix('%').filter(|_| is_relative) {
            Bound::Percent(part.trim().parse().map_err(|_| wrong())?)
        } else if is_relative {
            let amount = amount(&rest[1..]).ok_or_else(wrong)?;
            Bound::More(if rest.starts_with('-') {
                -amount
            } else {
                amount
            })
        } else {
            Bound::Absolute(amount(rest).ok_or_else(wrong)?)
        };
        let is_number = match bound {
            Bound::Absolute(value) | Bound::Percent(value) | Bound::More(value) => {
                value.is_finite()
            }
        };
        is_number.then_some(()).ok_or_else(wrong)?;
        Ok(Limit {
            site: site.map(String::from),
            measure: measure.into(),
            text: text.trim().into(),
            is_below,
            bound,
        })
    }
}

/// "384MiB", "1.5 GiB", "20000".
pub fn amount(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => 0,
        "KiB" | "K" => 10,
        "MiB" | "M" => 20,
        "GiB" | "G" => 30,
        _ => return None,
    };
    let number: f64 = digits.trim().parse().ok()?;
    (number >= 0.0).then_some(number * f64::from(1 << unit))
}

/// The limits of a file: first those of the whole program, then those of sites.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Limit>> {
    use hakmem_heap::shown::ShownPath;
    let shown = path.shown();
    let written: Written = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            1 + text[..span.start.min(text.len())].matches('\n').count()
        });
        let message = error
            .message()
            .lines()
            .next()
            .unwrap_or_default()
            .to_string();
        usage!("{shown}:{line}: {message}")
    })?;
    let in_file = |error: crate::error::Error| usage!("{shown}: {error}");
    let mut limits = Vec::new();
    for (measure, text) in &written.total {
        limits.push(Limit::parse(None, measure, text).map_err(in_file)?);
    }
    for (site, of_site) in &written.site {
        for (measure, text) in of_site {
            limits.push(Limit::parse(Some(site), measure, text).map_err(in_file)?);
        }
    }
    if limits.is_empty() {
        return Err(usage!("{shown} has no limit: see docs/budgets.md"));
    }
    Ok(limits)
}

/// A figure of a program, and how far it was spread in several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub value: f64,
    #[serde(default)]
    pub spread: f64,
}

/// By the name of the limit; this is what is saved as a baseline.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measurements {
    pub kind: String,
    pub program: String,
    pub figures: BTreeMap<String, Measured>,
}

impl Measurements {
    pub const KIND: &'static str = "hakmem check";

    pub fn parse(path: &Path, text: &str) -> Result<Measurements> {
        use hakmem_heap::shown::ShownPath;
        let read: Option<Measurements> = serde_json::from_str(text).ok();
        let is_it = |read: &Measurements| read.kind == Measurements::KIND;
        read.filter(is_it).ok_or_else(|| {
            usage!(
                "{} is not a baseline of 'hakmem check --save'",
                path.shown()
            )
        })
    }
}

/// A limit, and the measured figure.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub name: String,
    pub limit: String,
    pub measured: Option<Measured>,
    pub baseline: Option<f64>,
    pub is_kept: bool,
}

impl Verdict {
    pub fn of(limit: &Limit, now: &Measurements, baseline: Option<&Measurements>) -> Verdict {
        let name = limit.name();
        let measured = now.figures.get(&name).copied();
        let was = baseline.and_then(|was| was.figures.get(&name));
        let was = was.map(|was| was.value);
        Verdict {
            limit: limit.text.clone(),
            measured,
            baseline: was,
            is_kept: measured.is_some_and(|one| limit.is_kept(one.value, was)),
            name,
        }
    }

    /// "12.3 MiB", "1,234".
    pub fn shown(&self, value: f64) -> String {
        let value = value.round() as u64;
        if self.name.starts_with("allocations") {
            grouped(value)
        } else {
            bytes_and_tenths(value)
        }
    }

    /// "+1.4 %"
    pub fn change(&self) -> Option<String> {
        let (now, was) = (self.measured?.value, self.baseline?);
        (was > 0.0).then(|| format!("{:+.1} %", 100.0 * (now - was) / was))
    }

    /// Why the limit is not kept, for a report.
    pub fn reason(&self) -> String {
        match (self.measured, self.baseline) {
            (None, _) => format!("{}: it was not measured", self.name),
            (Some(now), Some(was)) => format!(
                "{}: {} is not {}; it was {}",
                self.name,
                self.shown(now.value),
                self.limit,
                self.shown(was)
            ),
            (Some(now), None) => {
                format!(
                    "{}: {} is not {}",
                    self.name,
                    self.shown(now.value),
                    self.limit
                )
            }
        }
    }
}

/// A JUnit report for continuous integration: one test case per limit.
pub fn junit(program: &str, verdicts: &[Verdict]) -> String {
    let failures = verdicts.iter().filter(|verdict| !verdict.is_kept).count();
    let suite = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"0\"",
        verdicts.len()
    );
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"hakmem check\" {suite}>\n\
         <testsuite name=\"{}\" {suite}>\n",
        escaped(program)
    );
    for verdict in verdicts {
        let name = escaped(&format!("{} {}", verdict.name, verdict.limit));
        text += &format!("<testcase classname=\"memory\" name=\"{name}\"");
        if verdict.is_kept {
            text += "/>\n";
        } else {
            let reason = escaped(&verdict.reason());
            text += &format!("><failure message=\"{reason}\"/></testcase>\n");
        }
    }
    text + "</testsuite>\n</testsuites>\n"
}

/// Escapes a text for an XML attribute.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            _ if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => safe.push('?'),
            _ => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str) -> Limit {
        Limit::parse(None, "allocated", text).unwrap()
    }

    #[test]
    fn a_limit_is_kept_or_not() {
        for (text, value, was, is_kept) in [
            ("<= 2KiB", 2048.0, None, true),
            ("< 2KiB", 2048.0, None, false),
            ("<1.5 M", 1572863.0, None, true),
            ("< +2 %", 1019.0, Some(1000.0), true),
            ("< +2%", 1020.0, Some(1000.0), false),
            ("<= -10%", 900.0, Some(1000.0), true),
            ("<= +1KiB", 2024.0, Some(1000.0), true),
            ("<= +1KiB", 2025.0, Some(1000.0), false),
            ("<= -100", 901.0, Some(1000.0), false),
            ("< +2 %", 0.0, None, false),
            ("< +2 %", 0.0, Some(0.0), true),
            ("< +2 %", 1.0, Some(0.0), false),
            ("< +0 %", 1000.0, Some(1000.0), false),
            ("< -2 %", 0.0, Some(0.0), false),
        ] {
            assert_eq!(limit(text).is_kept(value, was), is_kept, "{text} {value}");
        }
    }

    #[test]
    fn what_is_no_budget_is_refused_in_a_line() {
        let refusal = |text: &str| parse(Path::new("b.toml"), text).unwrap_err().to_string();
        for (text, begin) in [
            ("", "b.toml has no limit"),
            ("[total]\nallocated = 3", "b.toml:2: invalid type"),
            ("[totals]", "b.toml:1: unknown field `totals`"),
            (
                "[total]\npeak = '< 3'",
                "b.toml: there is no measure 'peak'",
            ),
            (
                "[site.f]\npeak_live = '< 3'",
                "b.toml: there is no measure 'peak_live'",
            ),
            (
                "[total]\nallocated = '> 3'",
                "b.toml: allocated = '> 3': write a limit",
            ),
            (
                "[total]\nallocated = '< 3 parsecs'",
                "b.toml: allocated = '< 3 parsecs'",
            ),
            ("[total]\nallocated = '< +nan %'", "b.toml: allocated"),
            ("[total]\nallocated = '<'", "b.toml: allocated"),
        ] {
            let refusal = refusal(text);
            assert!(refusal.starts_with(begin), "{refusal}");
            assert!(!refusal.contains('\n'));
        }
    }

    #[test]
    fn any_text_is_a_budget_or_refused() {
        let mut random = fastrand::Rng::with_seed(11);
        let parts = [
            "[total]\n",
            "[site.'f*']\n",
            "allocated",
            " = ",
            "'<= ",
            "+2 %'",
            "1GiB'\n",
            "é",
            "\"",
            "\0",
        ];
        for _ in 0..2000 {
            let count = random.usize(..12);
            let text: String = (0..count)
                .map(|_| parts[random.usize(..parts.len())])
                .collect();
            if let Err(refusal) = parse(Path::new("b.toml"), &text) {
                assert!(!refusal.to_string().contains('\n'), "{refusal}");
            }
        }
    }

    #[test]
    fn a_report_has_what_was_not_kept() {
        let limits = parse(
            Path::new("b.toml"),
            "[total]\nallocations = '< +2 %'\n[site.'f<\"']\nallocated = '<= 1KiB'\n",
        );
        let mut now = Measurements::default();
        let figure = |value| Measured { value, spread: 0.0 };
        now.figures.insert("allocations".into(), figure(1010.0));
        now.figures
            .insert("allocated of f<\"".into(), figure(2048.0));
        let mut was = Measurements::default();
        was.figures.insert("allocations".into(), figure(1000.0));
        let limits = limits.unwrap();
        let verdicts: Vec<Verdict> = limits
            .iter()
            .map(|one| Verdict::of(one, &now, Some(&was)))
            .collect();
        let kept: Vec<bool> = verdicts.iter().map(|verdict| verdict.is_kept).collect();
        assert_eq!(kept, [true, false]);
        assert_eq!(verdicts[0].change().unwrap(), "+1.0 %");
        assert_eq!(
            verdicts[0].reason(),
            "allocations: 1,010 is not < +2 %; it was 1,000"
        );
        let xml = junit("a & b", &verdicts);
        assert!(
            xml.contains("<testsuite name=\"a &amp; b\" tests=\"2\" failures=\"1\" errors=\"0\">")
        );
        assert!(xml.contains(
            "name=\"allocated of f&lt;&quot; &lt;= 1KiB\"><failure message=\"allocated of f&lt;&quot;: 2.0 KiB is not &lt;= 1KiB\"/>"
        ));
    }
}
