#!/usr/bin/env python3
"""A real Prometheus accepts what `hakmem export` serves, and every query of the dashboard has an answer.

usage: prometheus.py BUILD DASHBOARD     exit code: 0 true, 1 not, 77 no Prometheus here
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT_S = 60
# Allocates and frees as long as its input is open, a hundred times a second, and is refused once.
PROGRAM = """
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    static void *blocks[2000];
    void *volatile refused = malloc((size_t)1 << 60);
    struct pollfd input = {0, POLLIN, 0};
    write(1, "ready\\n", 6);
    for (unsigned round = 0; refused == NULL && poll(&input, 1, 10) == 0; round++) {
        for (unsigned i = 0; i < 2000; i++) {
            free(blocks[i]);
            blocks[i] = malloc((i * 37 + round) % 3000 + 1);
        }
        free(malloc(1 << 20));
    }
    return 0;
}
"""


def fail(text):
    sys.exit(f"broken: {text}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def check_refusals(address):
    for path, code in (("/other", 404), ("/metrics", 405)):
        request = urllib.request.Request(address + path, data=b"" if code == 405 else None)
        try:
            urllib.request.urlopen(request, timeout=10)
            fail(f"{path} has an answer")
        except urllib.error.HTTPError as error:
            if error.code != code:
                fail(f"{path}: {error.code}, not {code}")


def expressions(dashboard):
    """The queries of its panels, for the running process."""
    for panel in json.load(open(dashboard, encoding="utf-8"))["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def query(base, expression):
    words = urllib.parse.urlencode({"query": expression})
    return json.loads(get(f"{base}/api/v1/query?{words}"))["data"]["result"]


def wait_for(what, ready):
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        try:
            if ready():
                return
        except OSError:
            pass  # it is not listening yet
        time.sleep(0.2)
    fail(f"{what}: not within {TIMEOUT_S} s")


def ask_prometheus(folder, exported, dashboard, pid):
    port = free_port()
    config = os.path.join(folder, "prometheus.yml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(
            "global: {scrape_interval: 500ms, scrape_timeout: 500ms}\n"
            f"scrape_configs: [{{job_name: hakmem, static_configs: [{{targets: ['{exported}']}}]}}]\n"
        )
    log = open(os.path.join(folder, "log"), "w", encoding="utf-8")
    server = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=log,
        stderr=log,
    )
    base = f"http://127.0.0.1:{port}"
    try:
        samples = "count_over_time(hakmem_live_bytes[1m])"
        wait_for("four samples", lambda: int(query(base, samples)[0]["value"][1]) >= 4
                 if query(base, samples) else False)
        for title, expression in expressions(dashboard):
            real = expression.replace("$program", "program").replace("$pid", str(pid))
            real = real.replace("$__rate_interval", "30s")
            if "$" in real:
                fail(f"{title}: a variable that nobody sets: {real}")
            if not query(base, real):
                fail(f"{title}: no answer to {real}")
        if float(query(base, "hakmem_live_bytes")[0]["value"][1]) < 1000:
            fail("a program that holds megabytes has nothing live")
        if float(query(base, "hakmem_failures_total")[0]["value"][1]) != 1:
            fail("one allocation was refused")
    finally:
        server.terminate()
        server.wait()


def main():
    build, dashboard = sys.argv[1:]
    for tool in ("prometheus", "promtool", "cc"):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        binary = os.path.join(folder, "program")
        subprocess.run(
            ["cc", "-O1", "-fno-builtin", "-w", "-x", "c", "-", "-o", binary],
            input=PROGRAM, text=True, check=True,
        )
        library = os.path.realpath(os.path.join(build, "libhakmem.so"))
        program = subprocess.Popen(
            [binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "LD_PRELOAD": library},
        )
        program.stdout.readline()
        tool = os.path.join(build, "hakmem")
        export = subprocess.Popen(
            [tool, "export", str(program.pid), "--prometheus", "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        try:
            address = export.stdout.readline().strip().removesuffix("/metrics")
            if not address.startswith("http://127.0.0.1:"):
                fail(f"it says '{address}'")
            metrics = get(address + "/metrics")
            linted = subprocess.run(
                ["promtool", "check", "metrics"], input=metrics, text=True, capture_output=True, check=False
            )
            if linted.returncode != 0 or linted.stdout or linted.stderr:
                fail(f"promtool: {linted.stdout}{linted.stderr}")
            check_refusals(address)
            ask_prometheus(folder, address.removeprefix("http://"), dashboard, program.pid)
        finally:
            program.stdin.close()
            program.wait()
        # It ends with the process, and reports it.
        _, errors = export.communicate(timeout=TIMEOUT_S)
        if export.returncode != 0 or "has ended" not in errors:
            fail(f"the exporter ended with {export.returncode}: {errors}")


main()
