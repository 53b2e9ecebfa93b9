//! The page with plots, which works offline: it is bundled by the build (cli/report/), and the data are inserted here.

use hakmem_heap::shown::ShownPath;
use hakmem_lab::document::Document;
use hakmem_lab::error::Result;
use hakmem_lab::failed;
use hakmem_lab::places::Places;
use hakmem_lab::whole_file::Planned;
use hakmem_trace::analysis::Analysis;
use hakmem_trace::replay::{KIND, ReplayDocument};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const PLACE: &str = "/*DATA*/";

pub struct Page {
    file: Planned,
    template: String,
    parts: Vec<Value>,
}

impl Page {
    /// Opens a page that will be written to `file`, after a check that this is possible.
    pub fn open(places: &Places, file: &Path) -> Result<Page> {
        let file = Planned::in_new_folders(file)?;
        let path = places.report_page()?;
        let template = fs::read_to_string(&path)
            .map_err(|error| failed!("cannot read {}: {error}", path.shown()))?;
        Ok(Page {
            file,
            template,
            parts: Vec::new(),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn add_comparison(&mut self, name: &str, document: &Document) {
        self.parts
            .push(json!({ "kind": "comparison", "name": name, "document": document }));
    }

    /// A replay of one process, or the sum of several and then each of them.
    pub fn add_replay(&mut self, name: &str, document: &ReplayDocument) {
        let mut value = json!({ "kind": KIND, "name": name, "document": document });
        if !document.parts.is_empty() {
            value["document"]["parts"] = json!(document.parts.len());
        }
        self.parts.push(value);
        for part in &document.parts {
            self.add_replay(&format!("{name}, process {}", part.process), part);
        }
    }

    /// `whose`: a line that names the process, or says how many there are. `at_peak`: null for several processes, as each has
    /// its own peak.
    pub fn add_trace(
        &mut self,
        name: &str,
        command: &[String],
        whose: &str,
        analysis: &Analysis,
        at_peak: Value,
    ) {
        self.parts.push(json!({
            "kind": "trace", "name": name, "command": command, "whose": whose, "analysis": analysis,
            "at_peak": at_peak,
        }));
    }

    pub fn write(self) -> Result<()> {
        // In a script element, `</` would end the data, and after `<!--<script` nothing would.
        let data = json!({ "parts": self.parts })
            .to_string()
            .replace('<', "\\u003c");
        let path = self.file.path().to_path_buf();
        self.file.write(self.template.replacen(PLACE, &data, 1))?;
        eprintln!("hakmem: the page is {}", path.shown());
        Ok(())
    }
}
