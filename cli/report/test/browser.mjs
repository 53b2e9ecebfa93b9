// Opens a report in a headless browser: node browser.mjs REPORT SCREENSHOT-FOLDER
//
// The page must show the data, sort, filter and change its theme, and the browser must report no error. Exit code 77: there is
// no browser here.
import assert from "node:assert/strict";
import { accessSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import puppeteer from "puppeteer-core";

const browsers = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/google-chrome"];
const executablePath = browsers.find((path) => {
    try {
        accessSync(path);
        return true;
    } catch {
        return false;
    }
});
if (!executablePath) {
    console.log("skipped: no chromium (tools/setup test installs it)");
    process.exit(77);
}
const [report, pictures] = process.argv.slice(2);
mkdirSync(pictures, { recursive: true });
const browser = await puppeteer.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});
try {
    const page = await browser.newPage();
    const complaints = [];
    page.on("console", (message) => complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("request", (request) => {
        if (!/^(file|data|blob):/.test(request.url())) {
            complaints.push(`a request to ${request.url()}`);
        }
    });
    await page.setViewport({ width: 1280, height: 900 });
    await page.goto(`file://${resolve(report)}`);
    await check(page);
    await page.screenshot({ path: join(pictures, "light.png"), fullPage: true });
    await checkPlaces(page);
    await page.click("#theme");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    await drawn(page);
    await page.screenshot({ path: join(pictures, "dark.png"), fullPage: true });
    await page.pdf({ path: join(pictures, "print.pdf"), format: "A4" });
    await page.setViewport({ width: 390, height: 800 });
    const overflow = () =>
        document.documentElement.scrollWidth - document.documentElement.clientWidth;
    // The plots take on the page's new width a moment later.
    const fits = page.waitForFunction(`(${overflow})() <= 0`, { timeout: 10000 });
    await fits.catch(async () => {
        const pixels = await page.evaluate(overflow);
        assert.fail(`on a narrow screen the page is ${pixels} pixels too wide`);
    });
    assert.deepEqual(complaints, []);
} finally {
    await browser.close();
}

// Scrolls to the end, so that every plot is drawn.
async function drawn(page) {
    await page.evaluate(async () => {
        for (let y = 0; y < document.body.scrollHeight; y += 400) {
            scrollTo(0, y);
            await new Promise((done) => setTimeout(done, 30));
        }
        scrollTo(0, 0);
    });
}

async function check(page) {
    await drawn(page);
    const data = await page.evaluate(() => JSON.parse(document.getElementById("data").textContent));
    const kinds = data.parts.map((part) => part.kind);
    assert.equal((await page.$$("section")).length, kinds.length);
    const plots = await page.evaluate(() => {
        const all = [...document.querySelectorAll("figure")];
        return { all: all.length, drawn: all.filter((one) => one.querySelector("canvas")).length };
    });
    assert.equal(plots.drawn, plots.all, "every plot is drawn");
    assert.ok(plots.all > 0);
    const at = kinds.indexOf("comparison");
    if (at >= 0) {
        await checkTable(page, `#part-${at}`, data.parts[at].document);
    }
}

// The figures beside call stacks are visible, however long the stacks are.
async function checkPlaces(page) {
    await page.setViewport({ width: 390, height: 900 });
    const hidden = await page.$$eval(".scroll:has(td.place)", (all) =>
        all.map((one) => one.scrollWidth - one.clientWidth));
    assert.ok(hidden.length > 0, "the trace has call stacks");
    assert.ok(hidden.every((pixels) => pixels <= 0), `figures are ${hidden} pixels beside the page`);
    await page.setViewport({ width: 1280, height: 900 });
}

async function checkTable(page, part, document) {
    const rows = () => page.$$eval(`${part} table tbody tr`, (all) =>
        all.map((row) => row.cells[0].textContent));
    const variants = Object.keys(document.variants);
    assert.equal((await rows()).filter((name) => variants.includes(name)).length, variants.length);
    await page.click(`${part} th`);
    assert.deepEqual((await rows()).slice(0, variants.length), [...variants].sort());
    const best = await page.$$eval(`${part} td.best`, (all) => all.length);
    assert.ok(best >= variants.length, "each row has a winner");
    await page.type(`${part} input[type=search]`, variants[0]);
    const left = (await rows()).filter((name) => variants.includes(name));
    assert.ok(left.includes(variants[0]) && left.every((name) => name.includes(variants[0])));
    await page.$eval(`${part} input[type=search]`, (box) => {
        box.value = "";
        box.dispatchEvent(new Event("input"));
    });
    await drawn(page);
}
