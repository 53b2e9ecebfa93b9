//! Each sample as a line of comma-separated values.

use crate::document::Document;

const COLUMNS: &str = "variant,allocator,round,wall_s,cpu_s,user_s,sys_s,other_cpu_s,minor_faults,\
major_faults,voluntary_switches,involuntary_switches,peak_kib,tree_peak_kib,group_peak_kib,after_peak_kib,\
process_count,answer";

pub fn csv(document: &Document) -> String {
    let mut text = String::from(COLUMNS);
    text.push('\n');
    for one in &document.samples {
        let fields = [
            field(&one.variant),
            field(&one.allocator),
            one.round.to_string(),
            one.wall_s.to_string(),
            one.cpu_s.to_string(),
            one.user_s.to_string(),
            one.sys_s.to_string(),
            one.other_cpu_s.to_string(),
            one.minor_faults.to_string(),
            one.major_faults.to_string(),
            one.voluntary_switches.to_string(),
            one.involuntary_switches.to_string(),
            one.peak_kib.to_string(),
            one.tree_peak_kib.to_string(),
            or_empty(one.group_peak_kib),
            or_empty(one.after_peak_kib),
            one.process_count.to_string(),
            field(&one.answer),
        ];
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

fn or_empty(kib: Option<u64>) -> String {
    kib.map_or(String::new(), |kib| kib.to_string())
}

/// Quotes a field if its content could end the field or the line.
pub fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Sample;

    #[test]
    fn every_sample_is_a_line_with_all_columns() {
        let mut document = Document::default();
        document.samples.push(Sample {
            variant: "a,b".into(),
            ..Sample::default()
        });
        let text = csv(&document);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[1].starts_with("\"a,b\","));
        assert_eq!(
            lines[0].matches(',').count() + 1,
            lines[1].matches(',').count()
        );
    }
}
