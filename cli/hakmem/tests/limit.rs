//! Would a program have fitted into a limit, and where would it not have?

mod support;

use serde_json::Value;
use support::{Workshop, text};

/// 20 MiB in blocks of 1,000 bytes, and then one block of 20 MiB.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
#define NEVER_INLINE __attribute__((noinline, noclone))
static void *volatile kept[20971];
NEVER_INLINE void *small(int at) { return kept[at] = malloc(1000); }
NEVER_INLINE void *large(void) { return memset(malloc(20 << 20), 1, 20 << 20); }
int main(void)
{
    for (int at = 0; at < 20971; at++) {
        small(at);
    }
    void *volatile last = large();
    free(last);
    return 0;
}
"#;

#[test]
fn a_replay_says_with_which_call_a_limit_is_exceeded() {
    let workshop = Workshop::open();
    let flags = ["-g", "-fno-optimize-sibling-calls"];
    let program = workshop.compile("program", PROGRAM, &flags);
    workshop
        .hakmem(&["record", "--stacks", "--", text(&program)])
        .ended_with(0);
    let replay = |limit: &str, more: &[&str]| {
        let first = [
            "replay",
            "trace.hkt",
            "-n1",
            "-a",
            "glibc",
            "--limit",
            limit,
        ];
        workshop.hakmem(&[&first[..], more].concat())
    };
    replay("60MiB", &[]).ended_with(0).says("glibc      yes");
    replay("30MiB", &[])
        .ended_with(0)
        .says("glibc      no")
        .says("call 20,972 at ")
        .says("large (program.c:7)")
        .says("not recorded but estimated");
    // Without touching, the large block takes no memory.
    replay("30MiB", &["--touch=none"]).ended_with(0).says("yes");
    let json = replay("10MiB", &["--json"]);
    let json: Value = serde_json::from_str(&json.ended_with(0).output).unwrap();
    let place = &json["limit"]["verdicts"][0]["place"];
    let number = place["operation"].as_u64().unwrap();
    assert!((9_000..11_000).contains(&number), "{place}");
    assert!(place["frames"][0].as_str().unwrap().starts_with("small ("));
    replay("much", &[])
        .ended_with(2)
        .says("a limit is a size such as 384MiB");
}

/// calloc and reallocarray multiply.
#[test]
fn a_product_that_is_too_large_is_a_failed_call() {
    let workshop = Workshop::open();
    let source = "#define _GNU_SOURCE\n#include <stdint.h>\n#include <stdlib.h>\nint main(void)\n{\n\
        volatile size_t half = SIZE_MAX / 2;\n    void *kept = malloc(100);\n    for (int i = 0; i < 9; i++) {\n\
        if (calloc(half, 3) != NULL || reallocarray(NULL, half, 3) != NULL ||\n\
        reallocarray(kept, half, 3) != NULL) {\n            return 1;\n        }\n    }\n    free(kept);\n    return 0;\n}\n";
    let program = workshop.compile("products", source, &[]);
    workshop
        .hakmem(&["record", "--", text(&program)])
        .ended_with(0);
    let said = workshop.hakmem(&["trace", "info", "trace.hkt", "--json"]);
    let value: Value = serde_json::from_str(&said.output).unwrap();
    let process = &value["processes"][0];
    assert_eq!(process["calls"]["failed"], 3 * 9, "{process}");
    assert_eq!(process["live_blocks_end"], 0, "{process}");
}
