// How names are told apart: a colour for each name on the page, and a form short enough for an axis.

// Most colour-blind people can tell them apart, too, on both backgrounds.
const KNOWN = {
    hakmem: "#1f86d6",
    glibc: "#d55e00",
    mimalloc3: "#009e73",
    jemalloc: "#cc79a7",
    mimalloc2: "#b8860b",
    tcmalloc: "#56b4e9",
    snmalloc: "#7f6fd6",
    rpmalloc: "#8c8c8c",
};
const FIRST = Object.values(KNOWN);
// For all other names, in the order in which they appear; if there are more, the colours of the known names follow.
const OTHERS = ["#d62839", "#7a9a01", "#c026d3", "#12a5a0", "#8d5a3b", "#f4845f", "#4a5fe0", "#5dbb3f", ...FIRST];
const others = new Map();

export function colour(name) {
    if (KNOWN[name]) {
        return KNOWN[name];
    }
    if (!others.has(name)) {
        others.set(name, OTHERS[others.size % OTHERS.length]);
    }
    return others.get(name);
}

const LETTERS = 24;

// hakmem+HAKMEM_MODE=minimal becomes +MODE=minimal.
export function short(name) {
    const bare = name.replace(/^hakmem(?=\+)/, "").replaceAll("HAKMEM_", "");
    return bare.length > LETTERS ? `${bare.slice(0, LETTERS - 1)}…` : bare;
}
