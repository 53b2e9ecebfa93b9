// What `hakmem record` recorded: sizes, lifetimes and live memory of a process.
import { about } from "./about.js";
import { element } from "./dom.js";
import { bytes, count, percent, plural, round, seconds } from "./format.js";
import { bars, curves } from "./plots.js";
import { table } from "./table.js";

export function traceSection({ name, analysis, command, whose, at_peak: atPeak }) {
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
        ...(atPeak ? peakSection(analysis, atPeak) : []),
        analysis.curve.length === 0
            ? about(`At most ${bytes(analysis.live_bytes_peak)} live, the sum of each process's own peak; ` +
                `${bytes(analysis.live_bytes_end)} live at their ends.`)
            : element(
                "div",
                { class: "plots wide" },
                curves("Live bytes", `at most ${bytes(analysis.live_bytes_peak)}`,
                    [{ name: "live", dashed: false, points: curve("live_bytes") }],
                    {
                        x: { name: "time", label: "time", format: seconds },
                        y: { format: bytes },
                        mark: { at: analysis.peak.seconds, name: "the peak" },
                    }),
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
        element("h3", {}, "The sizes requested most"),
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

// The page opens at the peak: who held what when the most bytes were live.
function peakSection({ peak, temporary_blocks: temporary }, atPeak) {
    const part = (rows, more, heads, cells) => [
        table(heads, rows.map(cells)).element,
        more > 0 ? about(`and ${count(more)} more places: hakmem trace peak`) : "",
    ];
    const place = (row) => ({ text: row.place, value: row.place, place: true });
    const share = (row) => ({ text: percent(row.share, 1), value: row.share });
    const size = (row) => ({ text: bytes(row.bytes), value: row.bytes });
    const blocks = (row) => ({ text: count(row.blocks), value: row.blocks });
    const { held, temporary: short } = atPeak;
    return [
        element("h3", {}, `At the peak: ${bytes(peak.live_bytes)} in ${plural(peak.live_blocks, "block")}`),
        about(`${seconds(peak.seconds)} after the first call, after ${count(peak.operation)} of ${count(peak.operations)} calls`),
        ...(held.rows.length === 0
            ? [about("A trace of hakmem record --stacks shows who allocated it.")]
            : part(held.rows, held.more, ["allocated by", "bytes", "share", "blocks"],
                (row) => [place(row), size(row), share(row), blocks(row)])),
        ...(short.rows.length === 0
            ? []
            : [
                element("h3", {}, `Temporary: ${plural(temporary, "block")}`),
                about("Freed by the thread that allocated them, before it allocated more than one other block."),
                ...part(short.rows, short.more, ["allocated by", "blocks", "share", "bytes"],
                    (row) => [place(row), blocks(row), share(row), size(row)]),
            ]),
    ];
}
