#!/usr/bin/env python3
"""The library's USDT probes are those that docs/tracing.md lists, each is one nop, and a debugger
that stops at one sees its arguments.

usage: probes.py LIBRARY DOCUMENT     exit code: 0 true, 1 not
"""

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

NOPS = {62: b"\x90", 183: b"\x1f\x20\x03\xd5"}  # by ELF machine: x86-64, 64-bit ARM
PROGRAM = """
#include <stdlib.h>
int main(void)
{
    void *volatile block = malloc((size_t)1 << 50);
    void *volatile sampled = malloc(30000);
    return block != NULL || sampled == NULL;
}
"""


def fail(text):
    sys.exit(f"broken: {text}")


def sections(image):
    """name -> (address, offset, bytes), and the loaded segments: (address, offset, bytes)"""
    offset, entry_bytes, count, names = (
        struct.unpack_from("<Q", image, 40)[0],
        *struct.unpack_from("<HHH", image, 58),
    )
    headers = [struct.unpack_from("<IIQQQQ", image, offset + i * entry_bytes) for i in range(count)]
    texts = headers[names][4]
    found = {}
    for name, _, _, address, start, size in headers:
        end = image.index(b"\0", texts + name)
        found[image[texts + name : end].decode()] = (address, start, size)
    return found


def probes(image, notes):
    """(name, arguments, address) of each note."""
    _, at, size = notes
    end = at + size
    while at < end:
        owner_bytes, bytes_, kind = struct.unpack_from("<III", image, at)
        content = at + 12 + (owner_bytes + 3) // 4 * 4
        if kind != 3 or image[at + 12 : at + 19] != b"stapsdt":
            fail("a note that is no probe")
        place, base, semaphore = struct.unpack_from("<QQQ", image, content)
        texts = image[content + 24 : content + bytes_].split(b"\0")
        if base == 0 or semaphore != 0:
            fail(f"{texts[1]}: base {base}, semaphore {semaphore}")
        yield f"{texts[0].decode()}:{texts[1].decode()}", texts[2].decode().split(), place
        at = content + (bytes_ + 3) // 4 * 4


def documented(path):
    """| `hakmem:map(address, bytes)` | … -> name, number of arguments"""
    text = open(path, encoding="utf-8").read()
    rows = re.findall(r"^\| `(\w+:\w+)\(([^)]*)\)`", text, re.M)
    return {name: len(arguments.split(",")) for name, arguments in rows}


def check_file(library, document):
    image = open(library, "rb").read()
    all_sections = sections(image)
    if ".note.stapsdt" not in all_sections:
        fail(f"{library} has no probes")
    code_address, code_offset, _ = all_sections[".text"]
    nop = NOPS[struct.unpack_from("<H", image, 18)[0]]
    wanted = documented(document)
    seen = set()
    for name, arguments, place in probes(image, all_sections[".note.stapsdt"]):
        if wanted.get(name) != len(arguments):
            fail(f"{name} with {len(arguments)} arguments is not in {document}")
        start = place - code_address + code_offset
        if image[start : start + len(nop)] != nop:
            fail(f"{name} is no nop")
        seen.add(name)
    if seen != set(wanted):
        fail(f"in {document}, and not in {library}: {set(wanted) - seen}")


def check_debugger(library):
    if shutil.which("gdb") is None or shutil.which("cc") is None:
        print("without gdb: nobody has stopped at a probe")
        return
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program")
        subprocess.run(["cc", "-x", "c", "-", "-o", program], input=PROGRAM, text=True, check=True)
        # With 1 byte for a sample, each allocation is one and stands for itself.
        stops(library, program, "hakmem:failure", "", "2 %d" % (1 << 50), 0)
        stops(library, program, "otel_memory:alloc", "if $_probe_arg1 == 30000", "30000 30000", 1)


def stops(library, program, probe, condition, wanted, first):
    """gdb stops at the probe and prints two of its arguments, from `first` on."""
    commands = [
        f"set environment LD_PRELOAD {library}",
        "set environment HAKMEM_SAMPLE_BYTES 1",
        "set breakpoint pending on",
        "set startup-with-shell off",
        f"break -probe-stap {probe} {condition}",
        "run",
        f'printf "%lu %lu\\n", $_probe_arg{first}, $_probe_arg{first + 1}',
    ]
    words = [word for command in commands for word in ("-ex", command)]
    ran = subprocess.run(
        ["gdb", "-q", "-batch", "-nx", *words, program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "ptrace" in ran.stderr or "warning: Error disabling" in ran.stderr:
        print("gdb may not trace here: nobody has stopped at a probe")
    elif wanted not in ran.stdout:
        fail(f"{probe}: gdb did not see its arguments:\n{ran.stdout}{ran.stderr}")


def main():
    library, document = sys.argv[1:]
    check_file(library, document)
    check_debugger(os.path.realpath(library))


main()
