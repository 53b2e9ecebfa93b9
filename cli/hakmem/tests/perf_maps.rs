//! Generated code has the names that the program writes down for perf, in every view.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::waiting::Waiting;
use support::{Answer, Workshop, library, text};

/// Generates two functions that keep a frame pointer, and calls malloc through them. Writes down their names: as lines of a
/// perf map; or, if a path is given, as records of a jitdump file there, which it maps.
const MAKER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
// Calls its first argument with its second.
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
#else
static const unsigned code[] = {0xa9bf7bfd, 0x910003fd, 0xaa0003e2, 0xaa0103e0, 0xd63f0040, 0xa8c17bfd, 0xd65f03c0};
#endif
typedef void *made(void *(*)(void *), void *);
static made *inner;
static void *allocate(void *unused)
{
    (void)unused;
    void *volatile block = malloc(66666);
    memset(block, 1, 66666);
    return NULL;
}
static void *call_inner(void *unused)
{
    (void)unused;
    inner(allocate, NULL);
    return (void *)1; // no tail call
}
static void write_record(FILE *file, const void *start, const char *name)
{
    unsigned head[4] = {0, 56 + (unsigned)strlen(name) + 1 + 64, 0, 0};
    unsigned long numbers[5] = {0, (unsigned long)start, (unsigned long)start, 64, 1};
    fwrite(head, sizeof head, 1, file);
    fwrite(numbers, sizeof numbers, 1, file);
    fwrite(name, strlen(name) + 1, 1, file);
    fwrite(start, 64, 1, file);
}
static void write_dump(const char *folder)
{
    char path[200];
    sprintf(path, "%s/jit-%d.dump", folder, (int)getpid());
    FILE *file = fopen(path, "w+");
    unsigned head[10] = {0x4a695444, 1, sizeof head, 0, 0, (unsigned)getpid()};
    fwrite(head, sizeof head, 1, file);
    write_record(file, (char *)inner - 256, "py::Order.export:/srv/my orders/views.py");
    write_record(file, inner, "JS:~tick /srv/app.js:4:14");
    fflush(file);
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0);
    fclose(file);
}
int main(int count, char **words)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    memcpy(page + 256, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    inner = (made *)(page + 256);
    made *outer = (made *)page;
    char path[100];
    sprintf(path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = count > 2 ? tmpfile() : fopen(path, "w");
    if (count > 2) {
        write_dump(words[2]);
    }
    fprintf(map, "%lx 200 old name of both\n", (unsigned long)page);
    fprintf(map, "%lx 40 py::Order.export:/srv/my orders/views.py\n", (unsigned long)outer);
    fprintf(map, "%lx 40 JS:~tick /srv/app.js:4:14\n", (unsigned long)inner);
    fprintf(map, "%lx 40 cut", (unsigned long)inner);
    fclose(map);
    outer(call_inner, NULL);
    puts("ready");
    fflush(stdout);
    char end;
    if (count == 1) {
        fprintf(stderr, "%s\n", path);
        return 0;
    }
    return read(0, &end, 1) != 0;
}
"#;
const INNER: &str = "tick (app.js:4)";
const OUTER: &str = "Order.export (views.py)";

fn maker(workshop: &Workshop) -> PathBuf {
    workshop.compile("maker", MAKER, &["-g", "-fno-omit-frame-pointer"])
}

fn sampled(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library());
    command.env("HAKMEM_SAMPLE_BYTES", "1");
    command
}

/// The map of a process in our own namespaces.
fn map_of(pid: &str) -> PathBuf {
    format!("/tmp/perf-{pid}.map").into()
}

#[test]
fn every_view_of_a_process_has_the_names() {
    let workshop = Workshop::open();
    let process = Waiting::start(sampled(&maker(&workshop)).arg("wait"));
    let pid = process.pid();
    for command in ["profile", "leaks"] {
        let line = format!("allocate (maker.c:18) < {INNER} < call_inner");
        workshop.hakmem(&[command, &pid]).ended_with(0).says(&line);
    }
    for file in ["--flamegraph=flames.html", "--save=profile.json"] {
        let answer = workshop.hakmem(&["profile", &pid, "--json", file]);
        answer.ended_with(0).says(INNER).says(OUTER);
    }
    for name in ["flames.html", "profile.json"] {
        let written = std::fs::read_to_string(workshop.path(name)).unwrap();
        assert!(written.contains(INNER) && written.contains(OUTER), "{name}");
    }
    let seconds = ["why", &pid, "--seconds", "0", "--json"];
    workshop.hakmem(&seconds).ended_with(0).says(OUTER);
    std::fs::remove_file(map_of(&pid)).unwrap();
    let without = workshop.hakmem(&["leaks", &pid, "--json"]);
    without.ended_with(0).says("(of no file)");
    assert!(!without.output.contains(OUTER), "{}", without.output);
}

#[test]
fn a_file_of_records_has_the_names_as_well() {
    let workshop = Workshop::open();
    let folder = workshop.folder().canonicalize().unwrap();
    let arguments = ["wait", text(&folder)];
    let process = Waiting::start(sampled(&maker(&workshop)).args(arguments));
    for command in ["profile", "leaks"] {
        let line = format!("allocate (maker.c:18) < {INNER} < call_inner");
        let answer = workshop.hakmem(&[command, &process.pid()]);
        answer.ended_with(0).says(&line);
    }
    let answer = workshop.hakmem(&["leaks", &process.pid(), "--json"]);
    answer.ended_with(0).says(INNER).says(OUTER);
}

/// Another user could give our functions any names.
#[test]
fn what_another_may_have_written_is_not_believed() {
    let workshop = Workshop::open();
    let process = Waiting::start(sampled(&maker(&workshop)).arg("wait"));
    let map = map_of(&process.pid());
    let kept = workshop.path("kept");
    std::fs::copy(&map, &kept).unwrap();
    std::fs::remove_file(&map).unwrap();
    std::os::unix::fs::symlink(&kept, &map).unwrap();
    let refused = |why: &str| {
        let answer = workshop.hakmem(&["leaks", &process.pid()]);
        answer
            .ended_with(0)
            .says("no names from /tmp/perf-")
            .says(why);
        assert!(!answer.output.contains(INNER), "{}", answer.output);
    };
    refused("it is a symbolic link");
    std::fs::remove_file(&map).unwrap();
    nix::unistd::mkfifo(&map, nix::sys::stat::Mode::S_IRWXU).unwrap();
    refused("it is not a file");
    std::fs::remove_file(&map).unwrap();
    std::fs::copy(&kept, &map).unwrap();
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(&map, Some(12345), None).unwrap();
        refused("neither the process's user nor root owns it");
    }
    std::fs::remove_file(&map).unwrap();
}

#[test]
fn the_names_stay_when_the_process_has_ended() {
    let workshop = Workshop::open();
    let maker = maker(&workshop);
    let at_end = workshop.hakmem(&["leaks", "--exit", "--json", "--", text(&maker)]);
    at_end.ended_with(0).says(INNER).says(OUTER);
    remove_map(&at_end);
    let recorded = workshop.hakmem(&["record", "--stacks", "--", text(&maker)]);
    recorded.ended_with(0);
    remove_map(&recorded);
    // The C library makes the stacks of traces; they end at the first function without an unwind table.
    let sites = workshop.hakmem(&["trace", "top-sites", "trace.hkt"]);
    sites.ended_with(0).says(INNER);
}

/// Removes the map of a program that a command has run; the program has printed its path.
fn remove_map(answer: &Answer) {
    let mut lines = answer.errors.lines();
    let path = lines.find(|line| line.starts_with("/tmp/perf-")).unwrap();
    std::fs::remove_file(path).unwrap();
}

/// As in a container: with another /tmp and another PID. Users other than root need user namespaces for it, which not every
/// machine allows.
#[test]
fn a_process_in_namespaces_of_its_own_has_its_names() {
    let workshop = Workshop::open();
    let maker = maker(&workshop);
    let inside = |command: &str| {
        let line = format!("mount -t tmpfs none /tmp && {command}");
        let mut unshare = Command::new("unshare");
        unshare.args(["-rm", "--pid", "--fork", "sh", "-c", &line]);
        unshare
    };
    let is_possible = inside("true").stderr(Stdio::null()).status();
    if !is_possible.is_ok_and(|status| status.success()) {
        eprintln!("left out: no namespaces here");
        return;
    }
    // Files in our /tmp are not visible inside.
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let [program, library] = [(maker, "maker"), (library(), "libhakmem.so")].map(|(file, name)| {
        let copy = outside.path().join(name);
        std::fs::copy(file, &copy).unwrap();
        copy
    });
    let run = format!(
        "LD_PRELOAD={} HAKMEM_SAMPLE_BYTES=1 {} wait",
        text(&library),
        text(&program)
    );
    let process = Waiting::start(&mut inside(&run));
    let pid = process_of(&program);
    let answer = workshop.hakmem(&["leaks", &pid, "--json"]);
    answer.ended_with(0).says(INNER).says(OUTER);
    drop(process);
}

/// The number of the process that runs this file.
fn process_of(program: &Path) -> String {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut found = entries.filter(|entry| {
        let exe = std::fs::read_link(entry.path().join("exe"));
        exe.is_ok_and(|exe| exe == program)
    });
    let name = found.next().unwrap().file_name();
    name.into_string().unwrap()
}

/// An interpreter that writes perf maps, started so that it allocates. None, with a message, if it is missing.
fn interpreter(
    workshop: &Workshop,
    names: &[&str],
    check: &[&str],
    arguments: &[&str],
) -> Option<(Waiting, String)> {
    let has_it = |name: &&&str| {
        let mut command = Command::new(name);
        let status = command
            .args(check)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        status.status().is_ok_and(|status| status.success())
    };
    let Some(name) = names.iter().find(has_it) else {
        eprintln!(
            "left out: none of {} here, or none that is new enough",
            names.join(", ")
        );
        return None;
    };
    let mut command = Command::new(name);
    command.args(arguments).env("LD_PRELOAD", library());
    command
        .env("HAKMEM_SAMPLE_BYTES", "4096")
        .env("PYTHONMALLOC", "malloc");
    command.current_dir(workshop.folder()); // Node leaves a log there
    let process = Waiting::start(&mut command);
    let pid = process.pid();
    Some((process, pid))
}

/// The output of `leaks`, as soon as it contains this function: compilers of languages need some time.
fn leaks_that_say(workshop: &Workshop, pid: &str, function: &str) -> Answer {
    let begin = Instant::now();
    loop {
        let answer = workshop.hakmem(&["leaks", pid, "--json"]);
        answer.ended_with(0);
        if answer.output.contains(function) || begin.elapsed() > Duration::from_secs(20) {
            answer.says(function);
            return answer;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn functions_of_node_have_names() {
    let workshop = Workshop::open();
    let source = workshop.write(
        "orders.js",
        "const kept = [];\n\
         function exportAll() { for (let i = 0; i < 100; i++) kept.push(Buffer.alloc(20000, 1)); }\n\
         function handle() { exportAll(); kept.splice(0, kept.length - 200); }\n\
         for (let i = 0; i < 200; i++) handle();\n\
         console.log('ready');\n\
         setInterval(() => handle(), 5);\n\
         process.stdin.resume().on('end', () => process.exit(0));\n",
    );
    let flags = ["--perf-basic-prof", "--interpreted-frames-native-stack"];
    let arguments = [&flags[..], &[text(&source)]].concat();
    let Some((process, pid)) = interpreter(&workshop, &["node"], &["--version"], &arguments) else {
        return;
    };
    let answer = leaks_that_say(&workshop, &pid, "exportAll (orders.js:2)");
    answer.says("handle (orders.js:3)");
    // Its own file has gaps, so the process lists its parts separately.
    assert!(
        !answer.output.contains("another file is there"),
        "{}",
        answer.output
    );
    drop(process);
    let _ = std::fs::remove_file(map_of(&pid));
}

#[test]
fn functions_of_python_have_names() {
    let workshop = Workshop::open();
    let source = workshop.write(
        "orders.py",
        "import sys\n\
         def export_all(): return ['order %d' % i * 300 for i in range(300)]\n\
         kept = export_all()\n\
         print('ready', flush=True)\n\
         sys.stdin.read()\n",
    );
    let has_maps = ["-c", "import sys; sys.activate_stack_trampoline('perf')"];
    let pythons = ["python3.14", "python3.13", "python3.12", "python3"];
    let arguments = ["-X", "perf", text(&source)];
    let Some((process, pid)) = interpreter(&workshop, &pythons, &has_maps, &arguments) else {
        return;
    };
    leaks_that_say(&workshop, &pid, "export_all (orders.py)");
    drop(process);
    let _ = std::fs::remove_file(map_of(&pid));
}

#[test]
fn functions_of_php_have_names() {
    let workshop = Workshop::open();
    let source = workshop.write(
        "orders.php",
        "<?php\n\
         class Orders { public array $kept = [];\n\
         function exportAll() {\n\
         for ($i = 0; $i < 200; $i++) { $this->kept[$i] = str_repeat('x', 20000 + $i); } } }\n\
         $orders = new Orders;\n\
         for ($i = 0; $i < 100; $i++) { $orders->exportAll(); }\n\
         echo \"ready\\n\"; fgets(STDIN);\n",
    );
    // 16: writes a perf map. Without the first option, a file that was just written would not be compiled.
    let options = [
        "opcache.file_update_protection=0",
        "opcache.enable=1",
        "opcache.enable_cli=1",
        "opcache.jit_buffer_size=16M",
        "opcache.jit=function",
        "opcache.jit_debug=16",
    ];
    let options = options.iter().flat_map(|option| ["-d", option]);
    let arguments: Vec<&str> = options.chain([text(&source)]).collect();
    let has_jit = ["-r", "exit(function_exists('opcache_get_status') ? 0 : 1);"];
    // Its own allocator would map memory instead of calling malloc.
    let start = ["USE_ZEND_ALLOC=0", "php"];
    let arguments = [&start[..], &arguments].concat();
    let check = [&start[..], &has_jit].concat();
    let Some((process, pid)) = interpreter(&workshop, &["env"], &check, &arguments) else {
        return;
    };
    leaks_that_say(&workshop, &pid, "Orders::exportAll (jit)");
    drop(process);
    let _ = std::fs::remove_file(map_of(&pid));
}

#[test]
fn functions_of_java_have_names() {
    let workshop = Workshop::open();
    let source = workshop.write(
        "Orders.java",
        "import java.nio.ByteBuffer;\n\
         public class Orders {\n\
         static ByteBuffer[] kept = new ByteBuffer[100];\n\
         static void exportAll() { for (int i = 0; i < 100; i++) kept[i] = ByteBuffer.allocateDirect(30000); }\n\
         public static void main(String[] words) throws Exception {\n\
         for (int i = 0; i < 300; i++) exportAll();\n\
         System.out.println(\"ready\");\n\
         while (System.in.available() == 0) { exportAll(); Thread.sleep(5); } } }\n",
    );
    let compiled = Command::new("javac")
        .arg(&source)
        .stderr(Stdio::null())
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        eprintln!("left out: no javac here");
        return;
    }
    let arguments = [
        "-XX:+PreserveFramePointer",
        "-cp",
        text(workshop.folder()),
        "Orders",
    ];
    let Some((mut process, pid)) = interpreter(&workshop, &["java"], &["--version"], &arguments)
    else {
        return;
    };
    let begin = Instant::now();
    let has_names = |answer: &Answer| answer.output.contains("Orders.exportAll() (jit)");
    loop {
        let mut jcmd = Command::new("jcmd");
        let asked = jcmd
            .args([&pid, "Compiler.perfmap"])
            .stdout(Stdio::null())
            .status();
        if !asked.is_ok_and(|status| status.success()) {
            eprintln!("left out: this java writes no perf map");
            break;
        }
        let answer = workshop.hakmem(&["leaks", &pid, "--json"]);
        if has_names(&answer) {
            break;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "{}",
            answer.output
        );
    }
    process.tell("\n");
    drop(process);
    let _ = std::fs::remove_file(map_of(&pid));
}
