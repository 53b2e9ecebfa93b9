"""recipes -- how each peer allocator becomes one shared library.

Every function compiles one peer from the sources that `cargo vendor` fetched and
writes the library to `job.output`. A peer is built the way its own project builds
a release: nothing is switched on that its users would not have, nothing off.
The text of a function is part of its cache key, so editing it rebuilds that peer.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path


class BuildError(Exception):
    """A peer could not be built; the message is one line for the user."""


@dataclass
class Compilers:
    """The compilers found on this machine: gcc's family and the newest clang."""

    gcc: str
    gxx: str
    clang: str | None
    clangxx: str | None

    def best_cxx(self) -> str:
        return self.clangxx or self.gxx

    def best_c(self) -> str:
        return self.clang or self.gcc


@dataclass
class Job:
    """One build: where its sources are, where it may write, and its log."""

    crate: Path
    work: Path
    output: Path
    log: Path
    compilers: Compilers
    jobs: int

    def run(self, command: list[str | Path], cwd: Path | None = None) -> None:
        text = [str(part) for part in command]
        with self.log.open("a", encoding="utf-8") as log:
            log.write("$ " + " ".join(text) + "\n")
            log.flush()
            done = subprocess.run(text, cwd=cwd or self.work, stdout=log, stderr=log, check=False)
        if done.returncode != 0:
            program = Path(text[0]).name
            raise BuildError(f"{program} exited with {done.returncode}; see {self.log}")


def build_mimalloc(job: Job, folder: str) -> None:
    # The defines are those of mimalloc's own release build with MI_OVERRIDE=ON.
    job.run(
        [
            job.compilers.gcc, "-O3", "-fPIC", "-shared", "-std=gnu11",
            "-DNDEBUG", "-DMI_MALLOC_OVERRIDE", "-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT",
            "-DMI_FREE_IS_CHECKED=1",
            "-ftls-model=initial-exec", "-fvisibility=hidden", "-fno-builtin-malloc",
            f"-I{job.crate}/c_src/mimalloc/{folder}/include",
            f"{job.crate}/c_src/mimalloc/{folder}/src/static.c",
            "-o", job.output, "-lpthread", "-latomic",
        ]
    )


def build_mimalloc3(job: Job) -> None:
    build_mimalloc(job, "v3")


def build_mimalloc2(job: Job) -> None:
    build_mimalloc(job, "v2")


def build_snmalloc(job: Job) -> None:
    # C++11 destructors are the only cleanup that links without snmalloc's own
    # replacement of the C++ runtime; their cost is one call per ended thread.
    job.run(
        [
            "cmake", "-S", job.crate / "upstream", "-B", job.work / "cmake",
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_C_COMPILER={job.compilers.best_c()}",
            f"-DCMAKE_CXX_COMPILER={job.compilers.best_cxx()}",
            "-DSNMALLOC_BUILD_TESTING=OFF", "-DSNMALLOC_CLEANUP=CXX11_DESTRUCTORS",
        ]
    )
    job.run(
        [
            "cmake", "--build", job.work / "cmake", "--target", "snmallocshim",
            "--parallel", str(job.jobs),
        ]
    )
    shutil.copyfile(job.work / "cmake" / "libsnmallocshim.so", job.output)


def build_jemalloc(job: Job) -> None:
    # The crate ships a ready configure script beside the sources. Statistics are
    # off, as in the crate: that is in jemalloc's favour.
    source = job.work / "jemalloc"
    shutil.copytree(job.crate / "jemalloc", source)
    shutil.copyfile(job.crate / "configure" / "configure", source / "configure")
    job.run(
        [
            "sh", "./configure", f"CC={job.compilers.gcc}",
            "--with-version=5.3.1-0-g81034ce1f1373e37dc865038e1bc8eeecf559ce8",
            "--disable-stats", "--disable-cxx", "--enable-doc=no", "--enable-static=no",
        ],
        cwd=source,
    )
    job.run(["make", f"-j{job.jobs}", "build_lib_shared"], cwd=source)
    shutil.copyfile(source / "lib" / "libjemalloc.so.2", job.output)


def build_tcmalloc(job: Job) -> None:
    # Its Bazel build is not usable offline; the crate's own file list is complete
    # but for the file that defines malloc, in place of which it has a bridge.
    listed = re.findall(r'"(c_src/[^"]+\.(?:cc|S))"', (job.crate / "build.rs").read_text())
    sources = [name for name in listed if not name.endswith("_bridge.cc")]
    sources.append("c_src/tcmalloc/tcmalloc/tcmalloc.cc")
    flags = [
        "-O3", "-DNDEBUG", "-fPIC", "-std=c++17", "-w", "-DNOMINMAX",
        "-DTCMALLOC_INTERNAL_8K_PAGES",
        f"-I{job.crate}/c_src/abseil-cpp", f"-I{job.crate}/c_src/tcmalloc",
    ]
    cxx = job.compilers.best_cxx()

    def compile_one(numbered: tuple[int, str]) -> Path:
        number, name = numbered
        target = job.work / f"{number:03d}.o"
        job.run([cxx, *flags, "-c", job.crate / name, "-o", target])
        return target

    with ThreadPoolExecutor(max_workers=job.jobs) as pool:
        objects = list(pool.map(compile_one, enumerate(sources)))
    job.run([cxx, "-shared", "-Wl,-Bsymbolic", "-o", job.output, *objects, "-lpthread"])


def build_rpmalloc(job: Job) -> None:
    job.run(
        [
            job.compilers.gcc, "-O3", "-DNDEBUG", "-fPIC", "-shared", "-std=gnu11", "-w",
            "-D_GNU_SOURCE=1", "-DENABLE_PRELOAD=1", "-DENABLE_OVERRIDE=1",
            "-ftls-model=initial-exec", "-fno-builtin-malloc",
            job.crate / "rpmalloc" / "rpmalloc" / "rpmalloc.c",
            "-o", job.output, "-lpthread", "-ldl",
        ]
    )


@dataclass(frozen=True)
class Peer:
    """A peer: where its sources come from and what it needs when it runs."""

    name: str
    crate: str
    version: str
    build: Callable[[Job], None]
    helpers: tuple[Callable[..., None], ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


PEERS = [
    Peer("mimalloc3", "libmimalloc-sys", "3.3.2", build_mimalloc3, (build_mimalloc,)),
    Peer("mimalloc2", "libmimalloc-sys", "2.3.2", build_mimalloc2, (build_mimalloc,)),
    Peer("snmalloc", "snmalloc-sys", "0.7.6", build_snmalloc),
    Peer("jemalloc", "tikv-jemalloc-sys", "5.3.1", build_jemalloc),
    Peer(
        "tcmalloc",
        "libtcmalloc-sys",
        "2025-06",
        build_tcmalloc,
        # glibc registers restartable sequences before tcmalloc can; without them
        # tcmalloc falls back to per-thread caches and is up to 25 % slower.
        environment={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"},
    ),
    Peer("rpmalloc", "rpmalloc-sys", "1.4.3", build_rpmalloc),
]
