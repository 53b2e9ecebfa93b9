//! What is hard for the doctor: processes that cannot be read, files that are none.

mod support;

use std::os::unix::process::CommandExt;
use std::process::Command;
use support::waiting::{WAITS, Waiting};
use support::{Workshop, make_program, text};

#[test]
fn a_thread_of_the_kernel_is_called_so() {
    let name = std::fs::read_to_string("/proc/2/comm").unwrap_or_default();
    if name.trim() != "kthreadd" {
        println!("skipped: the kernel's threads are not seen from here");
        return;
    }
    let workshop = Workshop::open();
    workshop.hakmem(&["doctor", "2"]).is_one_line(
        1,
        "process 2: it is a thread of the kernel, which has no memory of its own",
    );
}

/// Before WAITS: no user but root may read it.
const HIDES: &str = r#"
#include <sys/prctl.h>
__attribute__((constructor)) static void hide(void)
{
    prctl(PR_SET_DUMPABLE, 0);
}
"#;

#[test]
fn what_cannot_be_read_is_one_line() {
    const NOBODY: u32 = 65534;
    let workshop = Workshop::open();
    let mut command = Command::new(workshop.compile("hides", &format!("{HIDES}{WAITS}"), &[]));
    let mut process = Waiting::start(&mut command);
    let copy = workshop.path("hakmem");
    make_program(&copy, &std::fs::read(env!("CARGO_BIN_EXE_hakmem")).unwrap());
    let everybodys = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(workshop.folder(), everybodys).unwrap();
    let mut hakmem = Command::new(&copy);
    hakmem.arg("doctor").arg(process.pid());
    let is_root =
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
    if is_root {
        hakmem.uid(NOBODY).gid(NOBODY);
    }
    let pid = process.pid();
    support::answer(hakmem).is_one_line(
        1,
        &format!(
            "process {pid} may not be read: it is another user's, or /proc/sys/kernel/yama/ptrace_scope \
             forbids it; try as root"
        ),
    );
    process.end();
    workshop.hakmem(&["doctor", &pid]).is_one_line(
        2,
        &format!("there is no process {pid}, or it has just ended"),
    );
    let no_core = workshop.write("text", "no core dump");
    workshop
        .hakmem(&["doctor", text(&no_core)])
        .ended_with(2)
        .says("is no core dump: not an ELF file for 64 bits");
    // A head of 64 bytes, of s390x.
    let head = [
        b"\x7fELF\x02\x02\x01".as_slice(),
        &[0; 10],
        &[4, 0, 22],
        &[0; 44],
    ]
    .concat();
    let other = workshop.path("core.s390x");
    std::fs::write(&other, head).unwrap();
    workshop
        .hakmem(&["doctor", text(&other)])
        .ended_with(2)
        .says("is no core dump: of a machine whose words have their highest byte first");
}
