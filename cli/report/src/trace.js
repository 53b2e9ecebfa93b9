// What `hakmem record` recorded: sizes, lifetimes and live memory of a process.
import { about } from "./about.js";
import { element } from "./dom.js";
import { bytes, count, percent, plural, round, seconds } from "./format.js";
import { bars, curves } from "./plots.js";
import { table } from "./table.js";

export function traceSection({ name, analysis, command, whose }) {
    const calls = Object.entries(analysis.calls).filter(([, number]) => number > 0);
    const blocks = analysis.lifetimes.reduce((sum, one) => sum + one.count, 0);
    const sizeNames = analysis.sizes.map((one) => (one.to === 0 ? "0" : `≤ ${round(bytes(one.to))}`));
    const lifetimes = analysis.lifetimes.filter((one) => one.count > 0);
    const lifeNames = lifetimes.map((one) =>
        one.seconds_below === null ? "never freed" : `< ${round(seconds(one.seconds_below))}`);
    const foreign = lifetimes.map((one) => one.freed_by_another_thread);
    const curve = (key) => analysis.curve.map((one) => [one.seconds, one[key]]);
    return [
        element("h2", {}, name),
        about(
            `${command.join(" ").slice(0, 200)} · ${whose} · ` +
                `${plural(analysis.threads, "thread")} · ${seconds(analysis.seconds)}`,
        ),
        about(calls.map(([call, number]) => `${count(number)} ${call.replaceAll("_", " ")}`).join(" · ")),
        analysis.curve.length === 0
            ? about(`At most ${bytes(analysis.live_bytes_peak)} live, as the sum of what was each process's own peak; ` +
                `${bytes(analysis.live_bytes_end)} live at their ends.`)
            : element(
                "div",
                { class: "plots wide" },
                curves("Live bytes", `at most ${bytes(analysis.live_bytes_peak)}`,
                    [{ name: "live", dashed: false, points: curve("live_bytes") }],
                    { x: { name: "time", label: "time", format: seconds }, y: { format: bytes } }),
            ),
        element(
            "div",
            { class: "plots" },
            bars("Sizes asked for", "blocks", sizeNames, analysis.sizes.map((one) => one.count), count),
            bars("Sizes asked for", "bytes", sizeNames, analysis.sizes.map((one) => one.bytes), bytes),
            bars("Lifetimes", "blocks", lifeNames, lifetimes.map((one) => one.count), count),
            foreign.some((number) => number > 0)
                ? bars("Freed by another thread", "blocks, by lifetime", lifeNames, foreign, count)
                : "",
        ),
        element("h3", {}, "The sizes asked for most"),
        table(
            ["size", "blocks", "of all"],
            analysis.top_sizes.map(([size, number]) => [
                { text: count(size), value: size },
                { text: count(number), value: number },
                { text: percent(number, blocks), value: number },
            ]),
        ).element,
    ];
}
