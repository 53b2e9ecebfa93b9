// Fills in the page from the data that `hakmem report` has put into it.
import { documentSection } from "./document.js";
import { element } from "./dom.js";
import { drawAll, redrawAll } from "./plots.js";
import { replaySection } from "./replay.js";
import { traceSection } from "./trace.js";

const raw = document.getElementById("data").textContent;
const data = JSON.parse(raw);
const root = document.documentElement;

const setTheme = (theme) => {
    root.dataset.theme = theme;
};
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
document.getElementById("theme").addEventListener("click", () => {
    setTheme(root.dataset.theme === "dark" ? "light" : "dark");
    redrawAll();
});

document.getElementById("save").addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([raw], { type: "application/json" }));
    element("a", { href: address, download: "hakmem-report.json" }).click();
    URL.revokeObjectURL(address);
});

// For printing: light colours, and all plots drawn.
let before;
addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    setTheme("light");
    drawAll();
    redrawAll();
});
addEventListener("afterprint", () => {
    setTheme(before);
    redrawAll();
});

const kinds = { comparison: documentSection, replay: replaySection, trace: traceSection };
const main = document.querySelector("main");
const nav = document.querySelector("nav");
data.parts.forEach((part, at) => {
    const section = element("section", { id: `part-${at}` }, ...kinds[part.kind](part));
    main.append(section);
    nav.append(element("a", { href: `#part-${at}` }, part.name));
});
