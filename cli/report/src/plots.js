// The plots, made with uPlot. Each is made when it comes into view, and made again when the theme changes.
import uPlot from "uplot";
import { element } from "./dom.js";
import { bytes } from "./format.js";
import { colour, short } from "./names.js";
import { interval, median } from "./statistics.js";

const figures = () => [...document.querySelectorAll("figure")];
const visible = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((one) => one.isIntersecting)) {
        visible.unobserve(entry.target);
        entry.target.draw();
    }
}, { rootMargin: "400px" });

export function redrawAll() {
    figures().forEach((one) => one.hasChart && one.draw());
}

export function drawAll() {
    figures().forEach((one) => one.hasChart || one.draw());
}

// Steps of axes: powers of two for bytes; on logarithmic axes only the decades are drawn.
const BINARY_STEPS = Array.from({ length: 51 }, (_, power) => 2 ** power);
const isDecade = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-6;
const decades = (_, splits) => splits.map((at) => (at > 0 && isDecade(at) ? at : null));
const steps = (format) => (format === bytes ? { incrs: BINARY_STEPS } : {});

const styled = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function axes(x, y) {
    const common = {
        stroke: styled("--faint"),
        grid: { stroke: styled("--line"), width: 1 },
        ticks: { stroke: styled("--line"), width: 1 },
        font: "11px system-ui, 'DejaVu Sans', sans-serif",
        labelFont: "11px system-ui, 'DejaVu Sans', sans-serif",
        labelSize: 18,
    };
    return [{ ...common, ...x }, { ...common, size: 68, ...y }];
}

// options(width): the options of uPlot. data: its columns.
function figure(title, note, height, options, data) {
    const made = element(
        "figure",
        {},
        element("figcaption", {}, title, note ? element("small", {}, note) : undefined),
        element("div", { style: `min-height:${height}px` }),
    );
    let chart;
    made.draw = () => {
        chart?.destroy();
        made.hasChart = true;
        const place = made.lastElementChild;
        chart = new uPlot({ width: place.clientWidth, height, ...options() }, data, place);
        place.style.minHeight = "";
    };
    new ResizeObserver(() => {
        const width = made.lastElementChild.clientWidth;
        if (chart && width > 0 && Math.abs(width - chart.width) > 1) {
            chart.setSize({ width, height });
        }
    }).observe(made);
    visible.observe(made);
    return made;
}

const ROOM_LETTERS = 55;

// Names below an axis are slanted if they do not fit side by side. They need space below, and behind the last one.
function below(names) {
    const longest = Math.max(...names.map((name) => name.length));
    return longest * names.length > ROOM_LETTERS
        ? { rotate: -30, size: 26 + 3.3 * longest, behind: 3 * names.at(-1).length }
        : { rotate: 0, size: 30, behind: null };
}

// Every sample of each group, a bar at the median, and a line for the interval.
export function samples(title, note, groups, format) {
    const shown = groups.filter((group) => group.values.length > 0);
    const xs = [];
    const ys = [];
    shown.forEach((group, at) =>
        group.values.forEach((value, index) => {
            const spread = ((index + 0.5) / group.values.length - 0.5) * 0.4;
            xs.push(at + spread);
            ys.push(value);
        }),
    );
    const top = Math.max(...ys);
    const names = shown.map((group) => short(group.name));
    const { behind, ...room } = below(names);
    const options = () => ({
        legend: { show: false },
        cursor: { show: false },
        scales: {
            x: { time: false, range: [-0.6, shown.length - 0.4] },
            y: { range: [0, top * 1.08 || 1] },
        },
        padding: [null, behind, null, null],
        axes: axes(
            {
                splits: () => names.map((_, at) => at),
                values: () => names,
                grid: { show: false },
                ...room,
            },
            { values: (_, splits) => splits.map(format), ...steps(format) },
        ),
        series: [{}, { paths: () => null, points: { show: false } }],
        hooks: { draw: [(chart) => drawGroups(chart, shown, xs, ys)] },
    });
    return figure(title, note, 200 + room.size, options, [xs, ys]);
}

function drawGroups(chart, groups, xs, ys) {
    const pen = chart.ctx;
    const scale = devicePixelRatio;
    const x = (value) => chart.valToPos(value, "x", true);
    const y = (value) => chart.valToPos(value, "y", true);
    let next = 0;
    pen.save();
    groups.forEach((group, at) => {
        pen.fillStyle = pen.strokeStyle = colour(group.name);
        pen.globalAlpha = 0.65;
        group.values.forEach(() => {
            pen.beginPath();
            pen.arc(x(xs[next]), y(ys[next]), 3 * scale, 0, 2 * Math.PI);
            pen.fill();
            next += 1;
        });
        pen.globalAlpha = 1;
        const [low, high] = interval(group.values);
        pen.lineWidth = 2 * scale;
        line(pen, x(at - 0.3), y(median(group.values)), x(at + 0.3), y(median(group.values)));
        pen.lineWidth = 1.2 * scale;
        line(pen, x(at + 0.3), y(low), x(at + 0.3), y(high));
        line(pen, x(at + 0.26), y(low), x(at + 0.34), y(low));
        line(pen, x(at + 0.26), y(high), x(at + 0.34), y(high));
    });
    pen.restore();
}

function line(pen, x0, y0, x1, y1) {
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.stroke();
}

const named = ({ format }) => (_, splits) => splits.map((at) => (at == null ? "" : format(at)));

function logarithmic(isLogarithmic) {
    return isLogarithmic
        ? { filter: decades, grid: { filter: decades, stroke: styled("--line"), width: 1 }, ticks: { show: false } }
        : {};
}

// Curves over a common x axis. series: { name, points: [[x, y], …], dashed }.
// mark: a vertical line, with its name.
export function curves(title, note, series, { x, y, logX, logY, stepped, mark }) {
    const tables = series.map(({ points }) => [
        points.map((point) => point[0]),
        points.map((point) => point[1]),
    ]);
    const data = uPlot.join(tables);
    const path = stepped ? uPlot.paths.stepped({ align: 1 }) : undefined;
    const options = () => ({
        cursor: { drag: { x: true, y: false } },
        hooks: mark ? { draw: [(chart) => drawMark(chart, mark)] } : {},
        scales: {
            x: { time: false, distr: logX ? 3 : 1, dir: x.reversed ? -1 : 1 },
            y: logY ? { distr: 3 } : { range: (_, low, high) => [0, high * 1.05 || 1] },
        },
        axes: axes(
            { label: x.label, values: named(x), size: 34, ...logarithmic(logX) },
            { values: named(y), ...steps(y.format), ...logarithmic(logY) },
        ),
        series: [
            { label: x.name, value: (_, at) => (at == null ? "" : x.format(at)) },
            ...series.map(({ name, dashed }) => ({
                label: name,
                stroke: dashed ? styled("--text") : colour(name),
                dash: dashed ? [6, 4] : undefined,
                width: 1.6,
                spanGaps: true,
                paths: path,
                points: { show: false },
                value: (_, at) => (at == null ? "" : y.format(at)),
            })),
        ],
    });
    return figure(title, note, 280, options, data);
}

function drawMark(chart, { at, name }) {
    const pen = chart.ctx;
    const { top, height, left, width } = chart.bbox;
    const x = chart.valToPos(at, "x", true);
    if (x < left || x > left + width) {
        return;
    }
    const isRight = x > left + width / 2;
    pen.save();
    pen.strokeStyle = pen.fillStyle = styled("--text");
    pen.lineWidth = devicePixelRatio;
    pen.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    line(pen, x, top, x, top + height);
    pen.font = `${11 * devicePixelRatio}px system-ui, 'DejaVu Sans', sans-serif`;
    pen.textAlign = isRight ? "right" : "left";
    pen.fillText(name, x + (isRight ? -5 : 5) * devicePixelRatio, top + height - 6 * devicePixelRatio);
    pen.restore();
}

// Bars with their names below.
export function bars(title, note, names, values, format) {
    const options = () => ({
        scales: {
            x: { time: false, range: [-0.7, names.length - 0.3] },
            y: { range: (_, low, high) => [0, high * 1.05 || 1] },
        },
        padding: [null, 40, null, null], // for the last name, which is slanted
        axes: axes(
            {
                splits: () => names.map((_, at) => at),
                values: () => names,
                grid: { show: false },
                rotate: -40,
                size: 78,
            },
            { values: (_, splits) => splits.map(format), ...steps(format) },
        ),
        series: [
            { label: "range", value: (_, at) => (at == null ? "" : names[Math.round(at)]) },
            {
                label: "value",
                fill: `${colour("hakmem")}aa`,
                stroke: colour("hakmem"),
                paths: uPlot.paths.bars({ size: [0.8, 60] }),
                points: { show: false },
                value: (_, at) => (at == null ? "" : format(at)),
            },
        ],
    });
    return figure(title, note, 260, options, [names.map((_, at) => at), values]);
}
