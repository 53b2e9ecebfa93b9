// Bundles the page into one file: node build.mjs OUTPUT
//
// The result contains everything inline, and a place for the data, which `hakmem report` fills in.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";

const bundle = async (entry) => {
    const result = await build({
        entryPoints: [new URL(entry, import.meta.url).pathname],
        bundle: true,
        minify: true,
        write: false,
        target: ["es2020"],
        format: "iife",
        legalComments: "inline",
    });
    return result.outputFiles[0].text.trim();
};

const page = await readFile(new URL("src/page.html", import.meta.url), "utf8");
const [script, style] = await Promise.all([bundle("src/main.js"), bundle("src/style.css")]);
const inline = (text) => () => text.replaceAll("</script", "<\\/script");
await writeFile(
    process.argv[2] ?? "report.html",
    page.replace("/*STYLE*/", inline(style)).replace("/*SCRIPT*/", inline(script)),
);
