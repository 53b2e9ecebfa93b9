// What `hakmem replay` measured: one trace with several allocators.
import { about, allocators, machine } from "./about.js";
import { element, select } from "./dom.js";
import { bytes, count, plural, ratio, round, seconds } from "./format.js";
import { curves, samples } from "./plots.js";
import { median, tail } from "./statistics.js";
import { table } from "./table.js";

export function replaySection({ name, document: result }) {
    const names = Object.keys(result.allocators).filter((one) =>
        result.runs.some((run) => run.allocator === one),
    );
    const runsOf = (one) => result.runs.filter((run) => run.allocator === one);
    const liveSum = result.live.reduce((sum, live) => sum + live.bytes, 0);
    const overhead = (run) => run.resident.reduce((sum, one) => sum + one, 0) / Math.max(liveSum, 1);
    const end = (run) => run.resident.at(-1) ?? 0;
    const figure = (title, of, format) =>
        samples(title, "", names.map((one) => ({ name: one, values: runsOf(one).map(of) })), format);
    return [
        element("h2", {}, name),
        about(
            `${result.command.join(" ").slice(0, 200)} · ${count(result.operations)} operations · ` +
                `${plural(result.threads, "thread")} · at most ${bytes(result.live_bytes_peak)} live · touching: ${result.touch}`,
        ),
        about(result.parts
            ? `${result.parts} processes, replayed one after the other: times and memory are sums`
            : `process ${result.process}, ${result.program}`),
        about(`${result.started} · ${machine(result.machine)}`),
        ...result.refused.map((one) =>
            element("p", { class: "warning" }, `${one.allocator} was refused: ${one.reason}`)),
        ...(result.limit ? limitSection(result) : []),
        summary(result, names, runsOf, overhead, end),
        about("Medians of the runs; the best of each column is marked. Latencies include the reading of the clock, " +
            `${Math.round(result.clock_ns)} ns.`),
        element(
            "div",
            { class: "plots" },
            figure("Time", (run) => run.seconds, seconds),
            figure("Peak memory", (run) => run.resident_peak, bytes),
        ),
        element("h3", {}, "Memory over time"),
        memory(result, names, runsOf),
        element("h3", {}, "Latencies"),
        ...latencies(result, names),
        allocators(result.allocators),
    ];
}

// With which allocators the program would have fitted.
function limitSection({ limit, touch }) {
    const call = ({ place, between }) => {
        if (!place) {
            return between ? `between ${seconds(between[0])} and ${seconds(between[1])}` : "";
        }
        const by = place.frames.length > 0 ? `, ${place.frames.slice(0, 3).join(" < ")}` : "";
        return `call ${count(place.operation)} at ${seconds(place.seconds)}: ${place.call} of ${bytes(place.size)}${by}`;
    };
    const rows = [...limit.verdicts].sort((a, b) => a.peak - b.peak).map((one) => [
        { text: one.allocator },
        one.runs_over === 0
            ? { text: "yes", value: 0, best: true }
            : { text: one.runs_over === one.runs ? "no" : `not in ${one.runs_over} of ${one.runs} runs`, value: one.runs_over, refused: true },
        { text: bytes(one.peak), value: one.peak },
        { text: call(one) },
    ]);
    return [
        element("h3", {}, `Limit: ${bytes(limit.bytes)}`),
        table(["allocator", "fits", "peak", "exceeds it with"], rows).element,
        about("For blocks only; code, stacks and files need more. Which pages the program touched is not recorded but " +
            `estimated (touching: ${touch}).`),
    ];
}

function summary(result, names, runsOf, overhead, end) {
    const curveOf = (one, call) =>
        result.latencies.find((curve) =>
            curve.allocator === one && curve.call === call && curve.size_above === null);
    const quantile = (call, field) => (one) => curveOf(one, call)?.[field];
    const nanoseconds = (value) => seconds(value * 1e-9);
    const of = (value) => (one) => median(runsOf(one).map(value));
    const columns = [
        ["time", of((run) => run.seconds), seconds],
        ["peak", of((run) => run.resident_peak), bytes],
        ["at the end", of(end), bytes],
        ["resident / live", of(overhead), ratio],
        ["malloc 50 %", quantile("malloc", "p50"), nanoseconds],
        ["99.9 %", quantile("malloc", "p99_9"), nanoseconds],
        ["99.999 %", quantile("malloc", "p99_999"), nanoseconds],
        ["free 50 %", quantile("free", "p50"), nanoseconds],
        ["99.9 %", quantile("free", "p99_9"), nanoseconds],
        ["99.999 %", quantile("free", "p99_999"), nanoseconds],
    ];
    const values = columns.map(([, value]) => names.map(value));
    const best = values.map((all) => Math.min(...all.filter((value) => value !== undefined)));
    const rows = names.map((one, row) => [
        { text: one },
        ...columns.map(([, , format], at) => {
            const value = values[at][row];
            return value === undefined
                ? { text: "–", value: Infinity }
                : { text: format(value), value, best: format(value) === format(best[at]) };
        }),
    ]);
    return table(["allocator", ...columns.map(([text]) => text)], rows).element;
}

function memory(result, names, runsOf) {
    if (result.parts) {
        return about("Each process has a curve of its own, below.");
    }
    if (result.live.length < 2) {
        return about("The trace is so short that memory was read only once: see the table.");
    }
    const moments = result.live.map((live) => live.seconds - result.live[0].seconds);
    const series = names.map((one) => ({
        name: one,
        points: runsOf(one)[0].resident.map((value, at) => [moments[at], value]),
    }));
    const live = { name: "live", dashed: true, points: result.live.map((one, at) => [moments[at], one.bytes]) };
    return element(
        "div",
        { class: "plots wide" },
        curves("Resident and live bytes", "over the time of the recording", [...series, live], {
            x: { name: "time", label: "time in the recording", format: seconds },
            y: { format: bytes },
        }),
    );
}

function sizeName(curve) {
    if (curve.size_above === null) {
        return "all sizes";
    }
    return curve.size_up_to === null
        ? `above ${round(bytes(curve.size_above))}`
        : `${round(bytes(curve.size_above))} to ${round(bytes(curve.size_up_to))}`;
}

function latencies(result, names) {
    const calls = [...new Set(result.latencies.map((curve) => curve.call))];
    const sizes = [...new Map(
        [...result.latencies]
            .sort((a, b) => (a.size_above ?? -1) - (b.size_above ?? -1))
            .map((curve) => [sizeName(curve), curve]),
    ).keys()];
    const place = element("div", { class: "plots wide" });
    const chosen = { call: calls.includes("malloc") ? "malloc" : calls[0], size: sizes[0] };
    const fill = () => {
        const series = names.flatMap((name) => {
            const curve = result.latencies.find((one) =>
                one.allocator === name && one.call === chosen.call && sizeName(one) === chosen.size);
            return curve ? [{ name, points: tail(curve.counts, curve.count).reverse() }] : [];
        });
        const part = (value) => `${+((1 - value) * 100).toFixed(6)} %`;
        place.replaceChildren(
            series.length === 0
                ? about("No such call in this trace.")
                : curves(`${chosen.call}, ${chosen.size}`, "latency that a part of the calls does not exceed", series, {
                    x: { name: "part", label: "part of the calls", format: part, reversed: true },
                    y: { format: (value) => seconds(value * 1e-9) },
                    logX: true,
                    logY: true,
                    stepped: true,
                }),
        );
    };
    fill();
    const pick = (key) => (value) => {
        chosen[key] = value;
        fill();
    };
    const ordered = [chosen.call, ...calls.filter((call) => call !== chosen.call)];
    return [
        element(
            "div",
            { class: "controls" },
            select("Call", ordered.map((call) => [call, call]), pick("call")),
            select("Size", sizes.map((size) => [size, size]), pick("size")),
        ),
        place,
    ];
}
