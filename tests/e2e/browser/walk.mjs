// Walks through the Models page of a running Airflow as a reader does, and prints what was seen as one line of JSON.
// node walk.mjs <address of Airflow> <user> <password> <folder for pictures> <path of Chromium> <model>

import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [url, user, password, pictures, executablePath, model] = process.argv.slice(2);
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const seen = { errors: [], outside: [], serious: [], steps: {} };
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--no-proxy-server"] });

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  context.on("page", watch);
  return context;
}

function watch(page) {
  page.on("console", (message) => message.type() === "error" && seen.errors.push(`${page.url()}: ${message.text()}`));
  page.on("pageerror", (error) => seen.errors.push(`${page.url()}: ${error}`));
  page.on("request", (request) => {
    const to = request.url();
    if (!to.startsWith(url) && !to.startsWith(`blob:${url}`) && !to.startsWith("data:")) seen.outside.push(to);
  });
}

// axe is laid into the page by the debugger, past the page's own policy, which lets no script run.
async function judge(page, name) {
  const source = await import("node:fs").then((fs) => fs.readFileSync(axe, "utf8"));
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: source });
  const { result } = await session.send("Runtime.evaluate", {
    expression: "axe.run(document, {resultTypes: ['violations']}).then((found) => JSON.stringify(found.violations))",
    awaitPromise: true,
    returnByValue: true,
  });
  for (const found of JSON.parse(result.value)) {
    if (["serious", "critical"].includes(found.impact)) {
      seen.serious.push(`${name}: ${found.id}: ${found.help}: ${found.nodes.map((node) => node.target).slice(0, 3).join(" ")}`);
    }
  }
}

async function picture(page, name, fullPage = true) {
  await page.screenshot({ path: `${pictures}/${name}.png`, fullPage });
}

// Not logged in: to the login, and back to where the reader wanted to go.
const context = await open();
const page = await context.newPage();
await page.goto(`${url}/retraining/models`);
seen.steps.login = new URL(page.url()).pathname;
await page.fill("input[name=username]", user);
await page.fill("input[name=password]", password);
await page.press("input[name=password]", "Enter");
await page.waitForURL((address) => address.pathname === "/retraining/models", { timeout: 30000 });
seen.steps.back = new URL(page.url()).pathname;
seen.errors.length = 0; // Airflow's own login page answers for its own
seen.steps.models = await page.locator("tbody tr").count();
await judge(page, "all models");
await picture(page, "all-wide");

// What needs a look alone, with the keyboard: the first stop skips to the content.
await page.keyboard.press("Tab");
seen.steps.first = await page.evaluate(() => document.activeElement.textContent);
await page.focus("#only-all");
await page.keyboard.press("ArrowRight");
seen.steps.looks = await page.locator("tbody tr:visible").count();
await page.keyboard.press("ArrowLeft");

// Into a model by the keyboard, through its details, and back.
await page.focus(`a[href="models/${model}"]`);
await page.keyboard.press("Enter");
await page.waitForURL(`**/retraining/models/${model}`);
seen.steps.model = await page.locator("h1").textContent();
await judge(page, "model");
await picture(page, "model-wide");
for (const summary of await page.locator("summary").all()) {
  await summary.focus();
  await page.keyboard.press("Enter");
}
seen.steps.drawn = await page.locator("svg").count();
await judge(page, "model, all open");
seen.steps.links = await page.locator("a[href]").evaluateAll((links) => links.map((link) => link.href));
await page.click('header a:text("Models")');
await page.waitForURL("**/retraining/models");

// From the model to the page of a run, which a job may have written: its script does not run, and its links lead on.
await page.goto(`${url}/retraining/models/${model}`);
const clean = seen.errors.length;
await page.click('a[aria-label="Page of the run of 2026-05-19 03:00"]');
await page.waitForURL("**/report.html");
seen.steps.runTitle = await page.title();
await picture(page, "run");
seen.blocked = seen.errors.splice(clean); // what the browser says of the script that it refused
await page.click('a:text("all runs")');
await page.waitForURL("**/runs.html");
seen.steps.allRuns = new URL(page.url()).pathname;
await page.goto(`${url}/retraining/models/${model}`);
await page.click('a[aria-label="Documents of the run of 2026-05-19 03:00"]');
await page.waitForURL(/runs\/[^/]*$/);
await judge(page, "documents");
await picture(page, "documents");
await page.click('a:text("plan.json")');
await page.waitForURL("**/plan.json");
seen.steps.plan = JSON.parse(await page.locator("body").innerText()).model;
seen.errors.splice(clean);

// From the model to Airflow's own page of its DAG.
await page.goto(`${url}/retraining/models/${model}`);
await page.click(`a:text("retrain__${model}")`);
await page.waitForURL(`**/dags/retrain__${model}**`);
seen.steps.dag = new URL(page.url()).pathname;
const ofAirflow = seen.errors.length;

// From Airflow's menu: a tab of its own.
await page.goto(`${url}/`);
await page.click("button:has-text('Browse')");
const entry = page.locator('a[href$="retraining/models"]');
await entry.waitFor();
await picture(page, "menu", false);
const [tab] = await Promise.all([context.waitForEvent("page"), entry.click()]);
await tab.waitForLoadState();
seen.steps.tab = new URL(tab.url()).pathname;
seen.steps.title = await tab.title();
seen.ofAirflow = seen.errors.splice(ofAirflow);
const storageState = await context.storageState();

// Narrow and dark; nothing is wider than the screen.
for (const [name, options] of Object.entries({
  narrow: { viewport: { width: 390, height: 844 } },
  dark: { colorScheme: "dark" },
})) {
  const other = await (await open({ ...options, storageState })).newPage();
  for (const [what, path] of Object.entries({ all: "models", model: `models/${model}` })) {
    await other.goto(`${url}/retraining/${path}`);
    await judge(other, `${what}, ${name}`);
    await picture(other, `${what}-${name}`);
    const over = await other.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    seen.steps[`${what}-${name}-over`] = over;
  }
}
await browser.close();
console.log(JSON.stringify(seen));
