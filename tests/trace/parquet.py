#!/usr/bin/env python3
"""An exported trace opens in DuckDB and in Polars, and both find the same in it as `trace info`.

    tests/trace/parquet.py BUILD

Exit code 77: the two are not installed (tools/setup test).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import duckdb
    import polars
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def by_call_in_duckdb(path: Path) -> dict[str, tuple[int, int]]:
    rows = duckdb.sql(f"select call, count(*), sum(size) from '{path}' group by call").fetchall()
    return {call: (count, int(size)) for call, count, size in rows}


def by_call_in_polars(path: Path) -> dict[str, tuple[int, int]]:
    frame = polars.read_parquet(path).group_by("call").agg(polars.len(), polars.col("size").sum())
    return {call: (count, size) for call, count, size in frame.rows()}


def main() -> int:
    build = Path(sys.argv[1])
    hakmem = build / "hakmem"
    with tempfile.TemporaryDirectory() as name:
        trace, table = Path(name) / "trace.hkt", Path(name) / "events.parquet"
        subprocess.run([hakmem, "record", "-o", trace, "--", build / "tests/trace_calls", "3", "20000", "1"],
                       capture_output=True)
        info = json.loads(run(hakmem, "trace", "info", "--json", trace))["processes"][0]
        run(hakmem, "trace", "export", "--parquet", table, trace)
        found = by_call_in_duckdb(table)
        assert found == by_call_in_polars(table), "DuckDB and Polars disagree"
        for call in ["malloc", "calloc", "aligned", "realloc", "free"]:
            assert found[call][0] == info["calls"][call], (call, found[call], info["calls"])
        allocated = sum(size for call, (_, size) in found.items() if call != "free")
        assert allocated == info["allocated_bytes"], (allocated, info["allocated_bytes"])
        # The sum of the live bytes, by a query in the order of the rows, has the peak that info found.
        peak = duckdb.sql(f"""
            select max(live) from (select sum(size - coalesce(old_size, 0))
                over (rows between unbounded preceding and current row) as live from '{table}')
        """).fetchall()[0][0]
        assert int(peak) == info["live_bytes_peak"], (peak, info["live_bytes_peak"])
        foreign = polars.scan_parquet(table).filter(polars.col("thread") != polars.col("old_thread"))
        by_others = foreign.select(polars.len()).collect().item()
        counted = sum(one["freed_by_another_thread"] for one in info["lifetimes"])
        assert by_others == counted > 0, (by_others, counted)
    print(f"{sum(count for count, _ in found.values())} rows: DuckDB and Polars agree with trace info")
    return 0


if __name__ == "__main__":
    sys.exit(main())
