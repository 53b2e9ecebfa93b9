#!/usr/bin/env python3
"""Generate the inputs of the real programs into build/real.

    bench/real/make_inputs.py            only inputs that are missing or were made by another version
    bench/real/make_inputs.py --check    exit code 1 if something is missing or differs

Every input is made from fixed numbers: two machines get the same bytes, which
inputs.json records. Needs git and as. Exit code: 0 ok, 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from inputs import code, data, documents
from inputs.numbers import Numbers

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = ROOT / "build" / "real"


def c_function(number: int, numbers: Numbers) -> str:
    """One function with loops, a switch, arrays and calls of earlier ones."""
    lines = [f"int function_{number}(struct item *item, int count)", "{"]
    lines.append(f"    int sum = {numbers.below(1000)}, table[{8 + numbers.below(24)}] = {{0}};")
    lines.append("    for (int i = 0; i < count; i++) {")
    lines.append("        switch ((item->value + i) & 7) {")
    for case in range(8):
        lines.append(f"        case {case}: sum {'+-^|'[numbers.below(4)]}= item->name[i & 15] * "
                     f"{numbers.below(97)}; table[i & 7] += sum >> {numbers.below(9)}; break;")
    lines.append("        }")
    lines.append(f"        item->weight = item->weight * {numbers.below(50)}.5 + table[i & 7];")
    lines.append("        if (item->next && sum & 1) { item = item->next; }")
    lines.append("    }")
    for _ in range(min(number, 2)):
        lines.append(f"    sum += function_{numbers.below(number)}(item, count - 1 - (sum & 3));")
    lines.append("    return sum;")
    lines.append("}")
    return "\n".join(lines) + "\n"


def c_source(functions: int) -> bytes:
    numbers = Numbers(1)
    text = io.StringIO()
    text.write("struct item { struct item *next; int value; char name[16]; double weight; };\n")
    for number in range(functions):
        text.write(c_function(number, numbers))
    return text.getvalue().encode()


def resp(*words: str) -> bytes:
    parts = [f"*{len(words)}\r\n".encode()]
    for word in words:
        raw = word.encode()
        parts.append(f"${len(raw)}\r\n".encode() + raw + b"\r\n")
    return b"".join(parts)


def redis_commands(count: int) -> Iterator[bytes]:
    """A mix of all kinds of values, of growing and of shrinking ones."""
    numbers = Numbers(2)
    for number in range(count):
        key = str(numbers.below(count // 8))
        text = "v" * (8 + numbers.below(1 << numbers.below(11)))
        kind = numbers.below(8)
        if kind <= 1:
            yield resp("SET", f"user:{key}", text)
        elif kind == 2:
            yield resp("RPUSH", f"list:{numbers.below(500)}", text[:200], key)
        elif kind == 3:
            yield resp("HSET", f"hash:{numbers.below(2000)}", f"field{key}", text[:100])
        elif kind == 4:
            yield resp("ZADD", f"rank:{numbers.below(100)}", str(number), f"member{key}")
        elif kind == 5:
            yield resp("SADD", f"set:{numbers.below(1000)}", key, text[:12])
        elif kind == 6:
            yield resp("APPEND", f"user:{key}", text[:64])
        else:
            yield resp("DEL", f"user:{key}")


def smt_problem(bits: int, product: int) -> bytes:
    """Factor a number as bit vectors: much search from few lines."""
    return f"""(set-logic QF_BV)
(declare-const a (_ BitVec {2 * bits}))
(declare-const b (_ BitVec {2 * bits}))
(assert (bvult a (_ bv{1 << bits} {2 * bits})))
(assert (bvult b (_ bv{1 << bits} {2 * bits})))
(assert (bvugt a (_ bv1 {2 * bits})))
(assert (bvuge a b))
(assert (= (bvmul a b) (_ bv{product} {2 * bits})))
(check-sat)
(get-value (a b))
""".encode()


def smt_quantified(size: int) -> bytes:
    """Arrays and integer sums over many terms: many small objects with few conflicts."""
    numbers = Numbers(3)
    lines = ["(set-logic QF_ALIA)", "(declare-const memory (Array Int Int))"]
    lines += [f"(declare-const x{number} Int)" for number in range(size)]
    for number in range(size):
        other, third = numbers.below(size), numbers.below(size)
        lines.append(f"(assert (< (+ x{number} {numbers.below(50)}) "
                     f"(+ x{(number + 1) % size} {60 + numbers.below(50)})))")
        lines.append(f"(assert (or (= (select (store memory x{number} x{other}) x{third}) "
                     f"x{other}) (> x{number} (+ x{third} {numbers.below(9)}))))")
    lines.append("(check-sat)")
    return ("\n".join(lines) + "\n").encode()


def file_lines(numbers: Numbers, count: int) -> list[str]:
    return [f"{numbers.below(1000)} " + "word " * numbers.below(12) for _ in range(count)]


def import_stream(commits: int, files: int) -> Iterator[bytes]:
    """A history for git fast-import: files that grow and change line by line."""
    numbers = Numbers(4)
    contents = {f"dir{number % 17}/file{number}.txt": file_lines(numbers, 40)
                for number in range(files)}
    names = list(contents)
    for commit in range(commits):
        changed = names if commit == 0 else [names[numbers.below(files)] for _ in range(6)]
        for name in changed if commit else []:
            lines = contents[name]
            lines[numbers.below(len(lines))] = f"changed in {commit} " + "new " * numbers.below(9)
            lines.insert(numbers.below(len(lines)), f"added in {commit}")
        message = f"Change number {commit}\n".encode()
        when = 1500000000 + commit * 3600
        yield (f"commit refs/heads/main\ncommitter A Person <a@example.org> {when} +0000\n"
               f"data {len(message)}\n").encode() + message
        for name in dict.fromkeys(changed):
            data = ("\n".join(contents[name]) + "\n").encode()
            yield f"M 100644 inline {name}\ndata {len(data)}\n".encode() + data + b"\n"


def make_repository(target: Path, commits: int, files: int) -> None:
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", target], check=True)
    subprocess.run(["git", "-C", target, "fast-import", "--quiet"], check=True,
                   input=b"".join(import_stream(commits, files)))


def own_texts() -> dict[str, bytes]:
    """Texts from the programs that this file has inputs for."""
    return {
        "large.c": c_source(170),
        "small.c": c_source(40),
        "commands.resp": b"".join(redis_commands(160000)),
        "commands_small.resp": b"".join(redis_commands(4000)),
        "factor.smt2": smt_problem(26, 67108859 * 67076093),
        "factor_small.smt2": smt_problem(8, 251 * 239),
        "arrays.smt2": smt_quantified(280),
        "arrays_small.smt2": smt_quantified(12),
        "large.xml": documents.shop_xml(100000),
        "large.cpp": code.classes_cpp(400),
    }


# Name, function that makes it, its size, and its size for --quick.
SIZED = (
    ("shop.xml", documents.shop_xml, 16000, 300),
    ("shop.json", documents.shop_json, 10000, 200),
    ("picture.svg", documents.picture_svg, 5000, 50),
    ("text.txt", documents.text_lines, 80000, 1000),
    ("document.md", documents.document_md, 36000, 200),
    ("page.html", documents.page_html, 20000, 200),
    ("manual.1", documents.manual_roff, 2800, 20),
    ("pages.pdf", documents.pages_pdf, 3500, 20),
    ("classes.cpp", code.classes_cpp, 5, 1),
    ("messages.proto", code.messages_proto, 600, 20),
    ("style.scss", code.style_scss, 5000, 50),
    ("cmake/CMakeLists.txt", code.build_cmake, 800, 20),
    ("ninja/build.ninja", code.manifest_ninja, 60000, 500),
    ("work.ledger", data.journal_ledger, 10000, 200),
    ("reads.sam", data.reads_sam, 200000, 4000),
    ("graph.dot", data.graph_dot, 2200, 50),
)


def small_name(name: str) -> str:
    """shop_small.xml, cmake_small/CMakeLists.txt"""
    path = Path(name)
    if path.parent.name:
        return f"{path.parent}_small/{path.name}"
    return f"{path.stem}_small{path.suffix}"


def make_texts() -> dict[str, str]:
    texts = own_texts()
    for name, make, full, small in SIZED:
        texts[name] = make(full)
        texts[small_name(name)] = make(small)
    for name, content in texts.items():
        (TARGET / name).parent.mkdir(exist_ok=True)
        (TARGET / name).write_bytes(content)
    return {name: hashlib.sha256(content).hexdigest() for name, content in texts.items()}


def make_objects(folder: Path, files: int, symbols: int) -> str:
    """Object files for a linker, and `all`, which names them."""
    folder.mkdir(exist_ok=True)
    fingerprint = hashlib.sha256()
    names = []
    for number in range(files):
        source = code.object_source(number, symbols, files)
        fingerprint.update(source)
        names.append(f'"{folder}/file{number}.o"\n')
        subprocess.run(["as", "-o", folder / f"file{number}.o"], check=True, input=source)
    (folder / "all").write_text("".join(names))
    return fingerprint.hexdigest()


def make_all() -> dict[str, str]:
    """Write all inputs; returns the fingerprint of each."""
    prints = make_texts()
    for name, files, symbols in (("objects", 60, 1500), ("objects_small", 4, 50)):
        prints[name] = make_objects(TARGET / name, files, symbols)
    for name, commits, files in (("repo.git", 2500, 300), ("small.git", 60, 30)):
        make_repository(TARGET / name, commits, files)
        head = subprocess.run(["git", "-C", TARGET / name, "rev-parse", "main"], check=True,
                              capture_output=True, text=True)
        prints[name] = head.stdout.strip()
    return prints


def own_version() -> str:
    here = Path(__file__).resolve()
    version = hashlib.sha256(here.read_bytes())
    for module in sorted(here.parent.glob("inputs/*.py")):
        version.update(module.read_bytes())
    return version.hexdigest()


def is_current(record: Path) -> bool:
    if not record.is_file():
        return False
    made = json.loads(record.read_text(encoding="utf-8"))
    if made["generator"] != own_version():
        return False
    return all((TARGET / name).exists() for name in made["inputs"])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    record = TARGET / "inputs.json"
    if is_current(record):
        return 0
    if arguments.check:
        print("make_inputs: the inputs are missing or old", file=sys.stderr)
        return 1
    TARGET.mkdir(parents=True, exist_ok=True)
    record.unlink(missing_ok=True)
    try:
        prints = make_all()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"make_inputs: {error}", file=sys.stderr)
        return 1
    record.write_text(json.dumps({"generator": own_version(), "inputs": prints}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
