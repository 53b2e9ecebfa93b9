"""The command line: built by cargo and linked by zig, for any target; its man pages and completions, and its report's HTML page.

Two builds are the same, bit for bit, wherever the sources are: the compiler is told other names for their folders, by a script
around it, as cargo would make flags a part of the names' hashes.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from steps import quietly, said, script

# folder below share/ -> the files' names in `hakmem generate`, and their names there
PAGES = {
    "bash-completion/completions": ("hakmem.bash", "hakmem"),
    "zsh/site-functions": ("_hakmem", "_hakmem"),
    "fish/vendor_completions.d": ("hakmem.fish", "hakmem.fish"),
}


class Command:
    """The builds of all targets share a folder: code that runs during the build is compiled once."""

    def __init__(self, root: Path, folder: Path, zig: Path) -> None:
        self.root = root
        self.folder = folder
        self.zig = zig
        self.log = folder / "command.log"
        folder.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")

    def _environment(self) -> dict[str, str]:
        cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
        renamed = f"--remap-path-prefix={cargo}=cargo --remap-path-prefix={self.root}=."
        compiler = script(self.folder / "rustc", f'exec "$@" {renamed}')
        flags = f"-ffile-prefix-map={cargo}=cargo -ffile-prefix-map={self.root}=. -ffile-prefix-map={self.folder}=build"
        musl = {
            # Dynamically linked, as `hakmem replay` preloads the library into itself. zig must be told as well.
            f"CARGO_TARGET_{machine}_UNKNOWN_LINUX_MUSL_RUSTFLAGS": "-C target-feature=-crt-static -C link-arg=-dynamic"
            for machine in ("X86_64", "AARCH64")
        }
        path = f"{self.zig.parent}:{os.environ['PATH']}"
        tools = {"RUSTC_WRAPPER": str(compiler), "CARGO_ZIGBUILD_ZIG_PATH": str(self.zig), "PATH": path}
        return os.environ | musl | tools | {"CFLAGS": flags}

    def build(self, targets: list[str], oldest_glibc: str) -> None:
        """All at the same time, so that no processor waits for the last crates of each. `targets`: rustc's names."""
        for target in targets:
            libraries = said("rustc", "--print", "target-libdir", "--target", target)
            if not Path(libraries).is_dir():
                sys.exit(f"dist: rustc has no {target}; `rustup target add {target}` installs it")
        named = (f"{target}.{oldest_glibc}" if target.endswith("-gnu") else target for target in targets)
        quietly(
            "cargo-zigbuild", "build", "--release", "--locked", "--package", "hakmem", "--bin", "hakmem",
            "--manifest-path", self.root / "cli/Cargo.toml", "--target-dir", self.folder / "cargo",
            *(word for name in named for word in ("--target", name)),
            log=self.log, env=self._environment(),
        )  # fmt: skip

    def program(self, target: str) -> Path:
        return self.folder / "cargo" / target / "release/hakmem"

    def report(self) -> Path:
        """The HTML page that `hakmem report` fills in."""
        page = self.folder / "report.html"
        if not page.exists():
            for tool in ("node", "npm"):
                if shutil.which(tool) is None:
                    sys.exit(f"dist: no {tool}, by which the page of hakmem report is made; `tools/setup build` installs it")
            packages = self.folder / "report"
            shutil.copytree(self.root / "cli/report", packages, dirs_exist_ok=True)
            quietly(
                "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error",
                log=self.log, folder=packages,
            )  # fmt: skip
            quietly("node", packages / "build.mjs", page, log=self.log)
        return page

    def install(self, program: Path, native: Path, tree: Path, strip: str) -> None:
        """Into `tree`, as cmake/cli.cmake installs it. `native`: a build that runs here."""
        installed = tree / "bin/hakmem"
        installed.parent.mkdir(parents=True, exist_ok=True)
        quietly(strip, "--strip-all", "-o", installed, program, log=self.log)
        pages = self.folder / "pages"
        quietly(native, "generate", pages, log=self.log)
        share = tree / "share"
        for folder, (made, name) in PAGES.items():
            (share / folder).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(pages / made, share / folder / name)
        (share / "man/man1").mkdir(parents=True, exist_ok=True)
        for page in pages.glob("*.1"):
            shutil.copyfile(page, share / "man/man1" / page.name)
        (share / "hakmem").mkdir(exist_ok=True)
        shutil.copyfile(self.report(), share / "hakmem/report.html")
