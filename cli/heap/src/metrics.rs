//! A heap's figures in the text format of Prometheus, version 0.0.4.

use crate::control::Control;
use crate::figures::{ClassFigures, Figures};
use std::fmt::Write;

/// A figure's description: the library's, for that field, or these words.
enum Help {
    Field(&'static str, &'static str),
    Words(&'static str),
}
use Help::{Field, Words};

struct Metric<Of> {
    name: &'static str,
    help: Help,
    /// A counter only grows; a gauge goes up and down.
    is_counter: bool,
    value: fn(&Of) -> u64,
}

const fn gauge<Of>(name: &'static str, help: Help, value: fn(&Of) -> u64) -> Metric<Of> {
    Metric {
        name,
        help,
        is_counter: false,
        value,
    }
}

const fn counter<Of>(name: &'static str, help: Help, value: fn(&Of) -> u64) -> Metric<Of> {
    Metric {
        name,
        help,
        is_counter: true,
        value,
    }
}

/// Figures of the whole heap.
const TOTALS: [Metric<Figures>; 29] = [
    gauge("mapped_bytes", Words("addresses mapped for blocks"), |f| {
        f.totals.mapped_bytes
    }),
    gauge(
        "live_bytes",
        Words("in blocks that the program holds, each with the size of its class"),
        |f| f.totals.live_bytes,
    ),
    gauge("live_blocks", Words("blocks that the program holds"), |f| {
        f.totals.live_blocks
    }),
    gauge(
        "cached_bytes",
        Words("in free blocks in magazines and on their way between threads"),
        |f| f.totals.cached_bytes,
    ),
    gauge(
        "kept_bytes",
        Words("in freed large blocks that are kept for reuse"),
        |f| f.totals.kept_bytes,
    ),
    gauge(
        "slab_free_bytes",
        Words("in blocks that were used before and are free in their slabs"),
        |f| f.totals.slab_free_bytes,
    ),
    gauge("unit_free_bytes", Field("hak_arena", "free_bytes"), |f| {
        f.totals.unit_free_bytes
    }),
    gauge("dirty_bytes", Field("hak_arena", "dirty_bytes"), |f| {
        f.totals.dirty_bytes
    }),
    gauge("metadata_bytes", Field("hak_pool", "mapped_bytes"), |f| {
        f.totals.metadata_bytes
    }),
    gauge("peak_mapped_bytes", Field("hak_arena", "peak_bytes"), |f| {
        f.counters.peak_mapped_bytes
    }),
    gauge(
        "caches",
        Words("caches of threads and heaps, live or ended"),
        |f| f.totals.cache_count,
    ),
    gauge("superslabs", Words("superslabs of 4 MiB"), |f| {
        f.totals.superslab_count
    }),
    gauge(
        "mappings",
        Words("large blocks with a mapping of their own"),
        |f| f.totals.mapping_count,
    ),
    gauge(
        "large_live_bytes",
        Words("of the live bytes, in large blocks"),
        |f| f.totals.large_live_bytes,
    ),
    gauge(
        "large_live_blocks",
        Words("of the live blocks, large ones"),
        |f| f.totals.large_live_blocks,
    ),
    gauge(
        "moved_blocks",
        Words("blocks that moved while the heap was read, by which the figures may be off"),
        |f| f.moved_blocks,
    ),
    counter("slow_events_total", Field("hak_owner", "events"), |f| {
        f.counters.slow_events
    }),
    counter(
        "sent_parcels_total",
        Field("hak_cache_counts", "sent_parcels"),
        |f| f.counters.caches.sent_parcels,
    ),
    counter(
        "sent_blocks_total",
        Field("hak_cache_counts", "sent_blocks"),
        |f| f.counters.caches.sent_blocks,
    ),
    counter(
        "opened_parcels_total",
        Field("hak_owner", "opened_parcels"),
        |f| f.counters.caches.opened_parcels,
    ),
    counter(
        "adopted_slabs_total",
        Field("hak_cache_counts", "adopted_slabs"),
        |f| f.counters.caches.adopted_slabs,
    ),
    counter("maps_total", Field("hak_os_counts", "maps"), |f| {
        f.counters.os.maps
    }),
    counter("unmaps_total", Field("hak_os_counts", "unmaps"), |f| {
        f.counters.os.unmaps
    }),
    counter("remaps_total", Field("hak_os_counts", "remaps"), |f| {
        f.counters.os.remaps
    }),
    counter("purges_total", Field("hak_os_counts", "purges"), |f| {
        f.counters.os.purges
    }),
    counter(
        "purged_bytes_total",
        Field("hak_os_counts", "purged_bytes"),
        |f| f.counters.os.purged_bytes,
    ),
    counter(
        "huge_advices_total",
        Field("hak_os_counts", "huge_advices"),
        |f| f.counters.os.huge_advices,
    ),
    counter(
        "refused_calls_total",
        Field("hak_os_counts", "refused"),
        |f| f.counters.os.refused,
    ),
    counter("failures_total", Field("hak_failures", "count"), |f| {
        f.counters.failures
    }),
];

/// Figures of each size class that was used at least once.
const CLASSES: [Metric<ClassFigures>; 12] = [
    gauge("class_slabs", Words("slabs of the class"), |c| c.slabs),
    gauge(
        "class_live_blocks",
        Words("blocks that the program holds"),
        |c| c.live_blocks,
    ),
    gauge(
        "class_cached_blocks",
        Words("free blocks in magazines and on their way between threads"),
        |c| c.cached_blocks,
    ),
    gauge(
        "class_slab_free_blocks",
        Words("blocks that were used before and are free in their slabs"),
        |c| c.slab_free_blocks,
    ),
    counter(
        "class_refills_total",
        Field("hak_class_counts", "refills"),
        |c| c.refills,
    ),
    counter(
        "class_refilled_blocks_total",
        Field("hak_class_counts", "refilled_blocks"),
        |c| c.refilled_blocks,
    ),
    counter(
        "class_spills_total",
        Field("hak_class_counts", "spills"),
        |c| c.spills,
    ),
    counter(
        "class_spilled_blocks_total",
        Field("hak_class_counts", "spilled_blocks"),
        |c| c.spilled_blocks,
    ),
    counter(
        "class_counted_allocations_total",
        Words("allocations while the caches sampled"),
        |c| c.counted_allocations,
    ),
    counter(
        "class_counted_misses_total",
        Words("allocations among them that a magazine did not serve, and samples"),
        |c| c.counted_misses,
    ),
    counter(
        "class_slabs_made_total",
        Field("hak_owner_class", "made_slabs"),
        |c| c.slabs_made,
    ),
    counter(
        "class_slabs_ended_total",
        Field("hak_owner_class", "ended_slabs"),
        |c| c.slabs_ended,
    ),
];

/// The process that the figures are about.
pub struct Subject {
    pub pid: i32,
    pub program: String,
    /// The kernel's figure.
    pub resident_bytes: u64,
}

/// The whole text: each metric with its description.
pub fn text(subject: &Subject, figures: &Figures, control: &Control) -> String {
    let labels = format!(
        "program=\"{}\",pid=\"{}\"",
        escaped(&subject.program),
        subject.pid
    );
    let mut text = String::new();
    head(
        &mut text,
        "info",
        "the release of the library, as a label",
        "gauge",
    );
    let release = escaped(&figures.release);
    let _ = writeln!(text, "hakmem_info{{{labels},release=\"{release}\"}} 1");
    head(
        &mut text,
        "resident_bytes",
        "of the process, as the kernel counts it",
        "gauge",
    );
    let _ = writeln!(
        text,
        "hakmem_resident_bytes{{{labels}}} {}",
        subject.resident_bytes
    );
    for metric in &TOTALS {
        metric.head(&mut text, control);
        let value = (metric.value)(figures);
        let _ = writeln!(text, "hakmem_{}{{{labels}}} {value}", metric.name);
    }
    for metric in &CLASSES {
        metric.head(&mut text, control);
        for class in figures.used_classes() {
            let value = (metric.value)(class);
            let _ = writeln!(
                text,
                "hakmem_{}{{{labels},block_bytes=\"{}\"}} {value}",
                metric.name, class.bytes
            );
        }
    }
    text
}

impl<Of> Metric<Of> {
    fn head(&self, text: &mut String, control: &Control) {
        let help = match self.help {
            Field(of, name) => control.help(of, name),
            Words(words) => words,
        };
        let kind = if self.is_counter { "counter" } else { "gauge" };
        head(text, self.name, help, kind);
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    let help = help.replace('\\', "\\\\").replace('\n', "\\n");
    let _ = writeln!(text, "# HELP hakmem_{name} {help}");
    let _ = writeln!(text, "# TYPE hakmem_{name} {kind}");
}

/// Escapes a label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_label_cannot_hold_is_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }

    #[test]
    fn what_only_grows_says_so_in_its_name() {
        let names = TOTALS.iter().map(|metric| (metric.name, metric.is_counter));
        let of_classes = CLASSES
            .iter()
            .map(|metric| (metric.name, metric.is_counter));
        for (name, is_counter) in names.chain(of_classes) {
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
        }
    }
}
