// Formats numbers with three significant digits and a unit.

const digits = (number) => number.toFixed(number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2);

function scaled(number, units, step) {
    let unit = 0;
    let value = number;
    while (unit + 1 < units.length && Math.abs(value) >= step) {
        value /= step;
        unit += 1;
    }
    return `${value === 0 ? "0" : digits(value)} ${units[unit]}`;
}

export const seconds = (value) => scaled(value * 1e9, ["ns", "µs", "ms", "s"], 1000);
export const bytes = (value) => scaled(value, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
// Without a fraction if it is zero: for the names of ranges.
export const round = (text) => text.replace(/\.0+ /, " ");
export const count = (value) => Math.round(value).toLocaleString("en");
export const ratio = (value) => digits(value);
export const plural = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;
export const percent = (part, whole) => `${((part * 100) / Math.max(whole, 1)).toFixed(1)} %`;
