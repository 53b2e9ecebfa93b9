// What `hakmem compare` and `hakmem bench` measured: workloads with several allocators.
import { about, allocators, machine } from "./about.js";
import { element, select } from "./dom.js";
import { bytes, ratio, seconds } from "./format.js";
import { curves, samples } from "./plots.js";
import { geometricMean, median, ratioInterval } from "./statistics.js";
import { table } from "./table.js";

// With fewer runs, nothing is called a difference, as on the command line.
const RUNS_MIN = 5;

const METRICS = {
    wall: ["time", (one) => one.wall_s, seconds],
    cpu: ["CPU time", (one) => one.cpu_s, seconds],
    peak: ["peak memory", (one) => one.peak_kib * 1024, bytes],
    faults: ["page faults", (one) => one.minor_faults, (value) => Math.round(value).toLocaleString("en")],
};

export function documentSection({ name, document: result }) {
    const variants = Object.keys(result.variants);
    const names = Object.keys(result.allocators);
    const bySample = new Map();
    for (const sample of result.samples) {
        const key = `${sample.variant}\n${sample.allocator}`;
        bySample.set(key, [...(bySample.get(key) ?? []), sample]);
    }
    const refused = new Map(result.refused.map((one) => [`${one.variant}\n${one.allocator}`, one.reason]));
    const of = (variant, allocator) => {
        const key = `${variant}\n${allocator}`;
        return refused.has(key) ? [] : (bySample.get(key) ?? []);
    };

    const place = element("div");
    const plots = element("div", { class: "plots" });
    let metric = "wall";
    let filter = "";
    const fill = () => {
        const view = { result, variants, names, of, refused, metric: METRICS[metric] };
        const made = summary(view);
        made.filter(filter);
        place.replaceChildren(made.element);
        plots.replaceChildren(
            ...variants
                .filter((variant) => variant.toLowerCase().includes(filter))
                .map((variant) => plot(view, variant)),
        );
    };
    const controls = element(
        "div",
        { class: "controls" },
        select("Show", Object.entries(METRICS).map(([key, [text]]) => [key, text]), (chosen) => {
            metric = chosen;
            fill();
        }),
        variants.length > 1
            ? element("input", {
                type: "search",
                placeholder: "filter workloads",
                "aria-label": "filter workloads",
                oninput: (event) => {
                    filter = event.target.value.toLowerCase();
                    fill();
                },
            })
            : undefined,
    );
    fill();
    return [
        element("h2", {}, name),
        about(`${result.started} · commit ${result.commit || "unknown"} · ${result.settings.runs} runs each`),
        about(machine(result.machine)),
        ...result.notes.map((note) => element("p", { class: "warning" }, note)),
        controls,
        place,
        about("Medians; in small print the ratio to the best of the row, which is marked. A click on a head sorts."),
        about(
            result.settings.runs < RUNS_MIN
                ? `With fewer than ${RUNS_MIN} runs no difference is certain.`
                : "Underlined: not shown to be worse than the best, as the 95 % interval of the ratio has 1 in it.",
        ),
        element("h3", {}, "Every sample"),
        about("A dot is a run, the bar the median, the line beside it the median's 95 % interval."),
        plots,
        ...timelines(result, variants, names, of),
        allocators(result.allocators),
        rawData(result),
    ];
}

function summary(view) {
    const { variants, names, of, refused, metric: [, value, format] } = view;
    const ratios = names.map(() => []);
    const rows = variants.map((variant) => {
        const samples = names.map((name) => of(variant, name).map(value));
        const all = samples.map((values) => (values.length > 0 ? median(values) : undefined));
        const best = Math.min(...all.filter((one) => one !== undefined));
        const ofBest = samples[all.indexOf(best)];
        const cells = all.map((one, at) => {
            const reason = refused.get(`${variant}\n${names[at]}`);
            if (one === undefined) {
                return { text: reason ? "refused" : "–", value: Infinity, refused: reason, title: reason };
            }
            if (best > 0 && one > 0) {
                ratios[at].push(one / best);
            }
            return {
                text: format(one),
                small: best > 0 ? ratio(one / best) : "",
                value: one,
                best: one === best,
                even: isEven(samples[at], ofBest),
            };
        });
        return [{ text: variant, title: view.result.variants[variant].about }, ...cells];
    });
    if (variants.length > 1) {
        const means = ratios.map((all) => (all.length > 0 ? geometricMean(all) : Infinity));
        const best = Math.min(...means);
        const cells = means.map((value, at) => ({
            text: Number.isFinite(value) ? ratio(value) : "–",
            small: ratios[at].length < variants.length ? `of ${ratios[at].length}` : undefined,
            best: value === best,
        }));
        const mean = [{ text: "geometric mean against the best" }, ...cells];
        mean.isMean = true;
        rows.push(mean);
    }
    return table(["workload", ...names], rows);
}

// Is it not shown to be worse than the best?
function isEven(samples, ofBest) {
    if (samples === ofBest || Math.min(samples.length, ofBest.length) < RUNS_MIN) {
        return false;
    }
    const [low, high] = ratioInterval(samples, ofBest);
    return low <= 1 && 1 <= high;
}

function plot({ result, names, of, metric: [title, value, format] }, variant) {
    const groups = names.map((name) => ({ name, values: of(variant, name).map(value) }));
    return samples(variant, `${title} · ${result.variants[variant].about}`, groups, format);
}

// Memory over time, of the samples that have it.
function timelines(result, variants, names, of) {
    const made = variants.flatMap((variant) => {
        const series = names.flatMap((name) => {
            const sample = of(variant, name).find((one) => (one.timeline ?? []).length > 1);
            const points = sample?.timeline.map(([at, kib]) => [at, kib * 1024]);
            return points ? [{ name, points }] : [];
        });
        const form = { x: { name: "time", label: "time", format: seconds }, y: { format: bytes } };
        return series.length > 0 ? [curves(variant, "resident memory over time", series, form)] : [];
    });
    return made.length > 0
        ? [element("h3", {}, "Memory over time"), element("div", { class: "plots" }, ...made)]
        : [];
}

function rawData(result) {
    const place = element("div");
    const heads = ["workload", "allocator", "round", "time", "CPU", "peak", "faults", "answer"];
    return element(
        "details",
        {
            ontoggle: () => {
                if (place.childElementCount > 0) {
                    return;
                }
                const rows = result.samples.map((one) => [
                    { text: one.variant },
                    { text: one.allocator },
                    { text: String(one.round), value: one.round },
                    { text: seconds(one.wall_s), value: one.wall_s },
                    { text: seconds(one.cpu_s), value: one.cpu_s },
                    { text: bytes(one.peak_kib * 1024), value: one.peak_kib },
                    { text: String(one.minor_faults), value: one.minor_faults },
                    { text: one.answer.slice(0, 24) },
                ]);
                place.append(table(heads, rows).element);
            },
        },
        element("summary", {}, `All ${result.samples.length} samples`),
        place,
    );
}
