// Where and how something was measured, in one line.
import { element } from "./dom.js";

export function machine(one) {
    const memory = `${Math.round(one.memory_kib / 2 ** 20)} GiB`;
    return [
        `${one.cpu}, ${one.cpus} CPUs, ${memory}`,
        one.system,
        `Linux ${one.kernel}`,
        `huge pages: ${one.transparent_huge_pages}`,
    ].join(" · ");
}

export const about = (text) => element("p", { class: "about" }, text);

export function allocators(records) {
    const rows = Object.entries(records).map(([name, one]) => {
        const settings = Object.entries(one.environment ?? {}).map(([key, value]) => `${key}=${value}`);
        return [name, one.version, one.library ?? "the C library", settings.join(" "), one.compiler, one.sha256]
            .filter(Boolean)
            .join(" · ");
    });
    return element("details", {}, element("summary", {}, "Allocators"), element("pre", {}, rows.join("\n")));
}
