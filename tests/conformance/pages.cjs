// Looks at report pages in Chromium, and ends with 1 where one of them is not as it must be.
// usage: node pages.cjs CHROMIUM FOLDER-FOR-SCREENSHOTS NAME=PAGE...
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');
const { chromium } = require('playwright-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const [program, screens, ...named] = process.argv.slice(2);
const pages = named.map((text) => [text.slice(0, text.indexOf('=')), path.resolve(text.slice(text.indexOf('=') + 1))]);
// A desk, a telephone, and a sheet of A4.
const LOOKS = [[1280, 'light', 'screen'], [1280, 'dark', 'screen'], [400, 'light', 'screen'], [400, 'dark', 'screen'], [794, 'light', 'print']];
// What Jenkins serves a build's files with.
const JENKINS = "sandbox allow-same-origin; default-src 'none'; img-src 'self'; style-src 'self';";
// So many charts has the page of a run at least, and that of many.
const LEAST = { run: 8, many: 3 };
// Text no smaller than this is read at a phone's width.
const LEAST_TEXT = 9.5;
const wrong = [];

/** What is wrong with the charts of the page that is open, as sentences. Runs in the page. */
function faults({ least, smallest }) {
    const found = [];
    const meet = (a, b) => a.left < b.right - 1 && a.right > b.left + 1 && a.top < b.bottom - 1 && a.bottom > b.top + 1;
    const charts = [...document.querySelectorAll('svg[role=img]')];
    if (charts.length < least) found.push(`${charts.length} charts, fewer than ${least}`);
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > width + 1) found.push(`the page is ${document.documentElement.scrollWidth} px wide in ${width}`);
    for (const chart of charts) {
        const name = (chart.querySelector('title') || chart).textContent.trim().slice(0, 60);
        const box = chart.getBoundingClientRect();
        if (!chart.querySelector('title')) found.push(`${name}: no title`);
        if (box.width < 40 || box.height < 16) found.push(`${name}: ${box.width} x ${box.height} px`);
        const scrolls = chart.closest('[tabindex="0"]');
        if (!scrolls && (box.left < -1 || box.right > width + 1)) found.push(`${name}: from ${box.left} to ${box.right} of ${width}`);
        const marks = [...chart.querySelectorAll('path, rect, line, circle, polyline, polygon, text')].filter((mark) => !mark.closest('defs, clipPath, pattern, [hidden]'));
        const drawn = marks.filter((mark) => mark.tagName !== 'text' && mark.tagName !== 'line');
        if (drawn.length === 0) found.push(`${name}: nothing is drawn`);
        for (const mark of marks) {
            const at = mark.getBoundingClientRect();
            // An inner drawing area clips what it holds.
            // What is drawn in an inner area ends with it.
            const area = mark.ownerSVGElement;
            const clipped = mark.closest('[clip-path]') || (area !== chart && getComputedStyle(area).overflow !== 'visible');
            // Labels of an axis stand left of what they label: on the page, and over no other chart.
            const room = mark.tagName === 'text' ? { left: Math.max(0, box.left - 64), right: Math.min(width, box.right + 24), top: box.top - 8, bottom: box.bottom + 8 } : box;
            const over = mark.tagName === 'text' && charts.some((other) => other !== chart && meet(at, other.getBoundingClientRect()));
            const out = over || at.left < room.left - 2 || at.right > room.right + 2 || at.top < room.top - 2 || at.bottom > room.bottom + 2;
            if (out && !clipped && at.width + at.height > 0) {
                found.push(`${name}: a ${mark.tagName} (${mark.textContent.slice(0, 20)}) leaves it: ${[at.left - box.left, at.right - box.right, at.top - box.top, at.bottom - box.bottom].map(Math.round)}`);
                break;
            }
            if (/NaN|Infinity|undefined/.test(mark.outerHTML)) {
                found.push(`${name}: ${mark.outerHTML.slice(0, 80)}`);
                break;
            }
        }
        const texts = marks.filter((mark) => mark.tagName === 'text' && mark.textContent.trim());
        const scale = chart.getScreenCTM() ? chart.getScreenCTM().a : 1;
        // What is seen of a text: an inner area cuts it.
        const seen = (text) => {
            const at = text.getBoundingClientRect(), area = text.ownerSVGElement;
            if (area === chart || getComputedStyle(area).overflow === 'visible') return at;
            const corner = area.getScreenCTM(), right = corner.e + area.width.baseVal.value;
            return { left: Math.max(at.left, corner.e), right: Math.min(at.right, right), top: at.top, bottom: at.bottom };
        };
        const places = texts.filter((text) => text.getBoundingClientRect().width > 0).map((text) => [text.textContent.trim().slice(0, 20), seen(text)]);
        for (const [index, [text, at]] of places.entries()) {
            const over = places.slice(index + 1).find(([, other]) => at.left < other.right - 2 && at.right > other.left + 2 && at.top < other.bottom - 3 && at.bottom > other.top + 3);
            if (over) {
                found.push(`${name}: "${text}" and "${over[0]}" lie over each other`);
                break;
            }
        }
        const small = texts.find((text) => parseFloat(getComputedStyle(text).fontSize) * scale < smallest);
        if (small) found.push(`${name}: "${small.textContent.trim().slice(0, 20)}" is ${(parseFloat(getComputedStyle(small).fontSize) * scale).toFixed(1)} px high`);
    }
    if (window.struck) found.push('a name was run as a script');
    const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
    const twice = ids.find((id, index) => ids.indexOf(id) !== index);
    if (twice) found.push(`the id ${twice} stands twice`);
    return found;
}

/** Opens a page and hears what it says and asks for. */
async function open(browser, address, options, least) {
    const context = await browser.newContext({ viewport: { width: options.width, height: 900 }, colorScheme: options.scheme, javaScriptEnabled: options.scripts });
    const page = await context.newPage();
    const heard = [];
    page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) heard.push(`console: ${message.text().slice(0, 200)}`); });
    page.on('pageerror', (error) => heard.push(`script: ${error.message}`));
    page.on('request', (request) => { if (request.url() !== address) heard.push(`asks for ${request.url().slice(0, 120)}`); });
    await page.goto(address);
    await page.emulateMedia({ media: options.media, colorScheme: options.scheme });
    const found = await page.evaluate(faults, { least, smallest: LEAST_TEXT });
    return { context, page, heard, found };
}

/** What axe finds that is serious. */
async function accessible(page) {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    const grave = violations.filter((violation) => ['serious', 'critical'].includes(violation.impact));
    return grave.map((violation) => `axe: ${violation.id}, ${violation.nodes.length} times: ${violation.nodes[0].html.slice(0, 160)} ${violation.nodes[0].failureSummary.replace(/\s+/g, ' ').slice(0, 200)}`);
}

async function look(browser, name, file) {
    const least = /seeds|policies/.test(name) ? LEAST.many : LEAST.run;
    const address = 'file://' + file;
    let charts = 0;
    for (const [width, scheme, media] of LOOKS) {
        for (const scripts of [true, false]) {
            const seen = media === 'print' ? 'print' : `${width}-${scheme}`;
            const said = `${name}, ${seen}, scripts ${scripts ? 'on' : 'off'}`;
            const { context, page, heard, found } = await open(browser, address, { width, scheme, media, scripts }, least);
            charts = await page.evaluate(() => document.querySelectorAll('svg[role=img]').length);
            if (scripts) {
                found.push(...await accessible(page));
                await page.screenshot({ path: path.join(screens, `${name}-${seen}.png`), fullPage: true });
                await page.screenshot({ path: path.join(screens, `${name}-${seen}-top.png`) });
            }
            wrong.push(...[...heard, ...found].map((text) => `${said}: ${text}`));
            await context.close();
        }
    }
    console.log(`${name}: ${charts} charts, ${(fs.statSync(file).size / 1000).toFixed(0)} kB`);
}

/** The same from a server that allows neither scripts nor styles: charts must be there all the same. */
async function underJenkins(browser, name, file) {
    const server = http.createServer((request, response) => {
        response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': JENKINS });
        response.end(request.url === '/' ? fs.readFileSync(file) : '');
    });
    await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
    const address = `http://127.0.0.1:${server.address().port}/`;
    const least = /seeds|policies/.test(name) ? LEAST.many : LEAST.run;
    const options = { width: LOOKS[0][0], scheme: 'light', media: 'screen', scripts: true };
    const { context, page, heard, found } = await open(browser, address, options, least);
    await page.screenshot({ path: path.join(screens, `${name}-jenkins.png`), fullPage: true });
    // That scripts and styles are refused is what the policy is for; nothing else may be asked.
    const asked = heard.filter((text) => text.startsWith('asks for') && !text.includes('favicon'));
    wrong.push(...[...asked, ...found].map((text) => `${name} under Jenkins' policy: ${text}`));
    await context.close();
    server.close();
}

async function main() {
    fs.mkdirSync(screens, { recursive: true });
    const quiet = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
    const browser = await chromium.launch({ executablePath: program, args: quiet });
    try {
        for (const [name, file] of pages) {
            await look(browser, name, file);
            await underJenkins(browser, name, file);
        }
    } finally {
        await browser.close();
    }
    wrong.forEach((text) => console.error(text));
    console.log(wrong.length ? `${wrong.length} things are wrong` : 'nothing is wrong');
    process.exitCode = wrong.length ? 1 : 0;
}

main().catch((error) => { console.error(error); process.exitCode = 1; });
