//! A visit as one HTML file that works offline: the answer, the tables, and a map of the heap.

use super::{Visit, sentences, words};
use hakmem_foreign::map::{Cell, Map, Strip};
use hakmem_lab::render::Tone;
use serde_json::{Value, json};

const PAGE: &str = include_str!("page.html");

pub fn draw(visit: &Visit) -> String {
    let answer = sentences::answer(visit);
    let rows = words::rows(visit).into_iter().map(|(line, tone)| {
        let (name, bytes, note) = line;
        json!({ "name": name, "bytes": bytes, "note": note, "strong": tone == Tone::Strong })
    });
    let tables = words::tables(visit).into_iter().map(|(title, table)| {
        json!({ "title": title, "columns": table.titles(), "rows": table.texts() })
    });
    let data = json!({
        "title": visit.title,
        "uses": words::uses(visit),
        "verdict": answer.verdict,
        "evidence": answer.evidence,
        "rows": rows.collect::<Vec<_>>(),
        "besides": words::besides(visit),
        "advice": answer.advice,
        "unknown": answer.unknown,
        "how": words::how_it_was_read(visit),
        "tables": tables.collect::<Vec<_>>(),
        "map": map(&visit.now.map),
    });
    // A program may have any name, but it must not end the script.
    let text = data.to_string().replace('<', "\\u003c");
    PAGE.replacen("/*DATA*/", &text, 1)
}

/// Names are short, as there may be many cells. Addresses are text, as a script's numbers lack 64 bits.
fn map(map: &Map) -> Value {
    let cell = |cell: &Cell| json!([cell.resident, cell.live, cell.cached, cell.own]);
    let strip = |strip: &Strip| {
        json!({
            "name": strip.name,
            "start": format!("{:x}", strip.start),
            "bytes": strip.bytes,
            "cells": strip.cells.iter().map(cell).collect::<Vec<_>>(),
        })
    };
    json!({
        "cell_bytes": map.cell_bytes,
        "strips": map.strips.iter().map(strip).collect::<Vec<_>>(),
    })
}
