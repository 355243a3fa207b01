// What the studio is tested with: the service as a sandbox, a gateway before it with a configuration and a pack of its own,
// traffic through it, and a browser.

import { spawn, execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const ARTEFACTS = process.env.ARTEFACTS;
const require = createRequire(import.meta.url);
const { chromium } = require("playwright-core");
export const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const OPERATE = "operate-token-of-the-studio-test";
export const READ = "read-token-of-the-studio-test";
// Every one of these would do something if it were taken for markup.
export const HOSTILE = `"><img src=x onerror=alert(1)><script>alert(2)</script>'{{7*7}}\u202e</textarea><svg onload=alert(3)>`;

const program = process.env.SWITCHBACK;

/** Starts a program and waits until it has said something; `ends` is when it has ended. */
const started = (args, env, until, of = "stderr") =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: { ...process.env, ...env } });
    let said = "";
    const hear = (piece) => {
      said += piece;
      if (until.test(said)) resolve({ child, said });
    };
    child[of].on("data", hear);
    child[of === "stderr" ? "stdout" : "stderr"].on("data", () => {});
    child.on("exit", (code) => reject(new Error(`${args[0]} ended with ${code}:\n${said}`)));
  });

const ended = (child) =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.on("exit", resolve);
    child.kill("SIGINT");
  });

/** A browser. */
export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

export class World {
  /** `store`: its address, where it is not a file in the folder; `upstreams`: others than the sandbox; `pack`: changes the pack before it is served; `writable`: whether the studio may save it; `more`: further sections. */
  static async open({ store, upstreams, pack = () => {}, writable = false, more = "" } = {}) {
    const world = new World();
    world.folder = mkdtempSync(join(tmpdir(), "switchback-studio-"));
    world.pack = join(world.folder, "pack");
    cpSync("mappings/messaging", world.pack, { recursive: true });
    pack(world.pack);
    const sandbox = await started(["sandbox", "--listen", "127.0.0.1:0"], {}, /OAuth redirect_uri/, "stdout");
    world.sandbox = sandbox.child;
    world.service = /at (http:\/\/\S+)/.exec(sandbox.said)[1];
    const credentials = await (await fetch(`${world.service}/_sandbox/credentials`)).json();
    world.token = /v2 token\s+(\S+)/.exec(sandbox.said)[1];
    const word = (name) => new RegExp(`${name}\\s+(\\S+)`).exec(sandbox.said)[1];
    world.credentials = credentials;
    world.key = execFileSync(program, ["key", "generate"], { encoding: "utf8" }).trim().split("\n")[0];
    world.file = join(world.folder, "switchback.yaml");
    writeFileSync(
      world.file,
      `listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0, token: ${OPERATE}, read_token: ${READ} }
store: '${store ?? `sqlite:${world.folder}/store.db`}'
key: \${TEST_KEY}
mapping: { folder: '${world.pack}', writable: ${writable} }
upstreams: ${upstreams ?? `{ v3: { url: '${world.service}/v3' }, v2: { url: '${world.service}/v2' } }`}
settings: { agents: { max_chats: 5 } }
oauth: { authorize_url: '${world.service}/oauth/authorize', token_url: '${world.service}/oauth/access_token', redirect_url: '${word("OAuth redirect_uri")}' }
clients:
  - { name: acme, v2_token: '${world.token}', grant: { client_id: '${word("OAuth client id")}', client_secret: '${word("OAuth client secret")}', refresh_token: '${word("OAuth refresh token")}' } }
phases: { default: translated, 'GET /chats': shadow, 'GET /contacts': legacy }
gate: { default: { mismatch: 0.01, confidence: 0.95, compared: 100000, min_period: 30d, share: 0.1, check: 0.01 } }
shadow: { noise: 0, sample: 1, priority: normal }
reload: { watch: false }
log: { format: text, level: info }
${more}`,
    );
    await world.start();
    world.browser = await launch();
    return world;
  }

  async start() {
    const gateway = await started(["serve", "--config", this.file], { TEST_KEY: this.key }, /clients=\S+.*admin=\S+/s);
    this.gateway = gateway.child;
    this.clients = `http://${/clients=(\S+)/.exec(gateway.said)[1]}`;
    this.admin = `http://${/admin=(\S+)/.exec(gateway.said)[1]}`;
  }

  /** A further gateway with the same configuration: its process and where it is. */
  async another() {
    const gateway = await started(["serve", "--config", this.file], { TEST_KEY: this.key }, /clients=\S+.*admin=\S+/s);
    const found = { child: gateway.child, clients: `http://${/clients=(\S+)/.exec(gateway.said)[1]}`, admin: `http://${/admin=(\S+)/.exec(gateway.said)[1]}` };
    (this.others ??= []).push(found.child);
    return found;
  }

  /** A call of the client. */
  call(path, more = {}) {
    return fetch(`${this.clients}/v2${path}`, { ...more, headers: { "X-Authorization": `Bearer ${this.token}`, ...more.headers } });
  }

  /** Some traffic: what works, what is refused, what nobody knows. */
  async traffic(rounds = 8) {
    for (let round = 0; round < rounds; round++) {
      await Promise.all([
        this.call("/chats/7/messages"),
        this.call("/chats"),
        this.call("/chats/7"),
        this.call("/contacts"),
        this.call("/chats/7/feedback"),
        this.call("/chats/999999"),
      ].map((answer) => answer.then((answer) => answer.arrayBuffer())));
    }
  }

  api(path) {
    return fetch(this.admin + path, { headers: { authorization: `Bearer ${OPERATE}` } }).then((answer) => answer.json());
  }

  /** A page as a program with a token is given it. */
  page(path, of = this.admin) {
    return fetch(of + path, { headers: { authorization: `Bearer ${OPERATE}`, accept: "text/html" } }).then((answer) => answer.text());
  }

  /** The phase of an operation as the gateway has it. */
  async phase(operation) {
    return (await this.api("/api/phases")).find((one) => one.operation === operation);
  }

  /** A browser window that has signed in; nothing in it may ask the outside, fail, or run what is not ours. */
  async visitor({ token = OPERATE, name = "Ada", scheme = "light", phone = false, script = true } = {}) {
    const context = await this.browser.newContext({
      baseURL: this.admin,
      colorScheme: scheme,
      javaScriptEnabled: script,
      viewport: phone ? { width: 390, height: 844 } : { width: 1360, height: 900 },
      reducedMotion: "reduce",
    });
    const page = await context.newPage();
    page.troubles = [];
    page.on("dialog", (dialog) => {
      page.troubles.push(`a dialogue: ${dialog.message()}`);
      dialog.dismiss();
    });
    page.on("pageerror", (error) => page.troubles.push(String(error)));
    page.on("console", (line) => {
      if (line.type() === "error" && !/status of (4|5)/.test(line.text())) page.troubles.push(line.text());
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(this.admin) && !request.url().startsWith("data:")) page.troubles.push(`it asks ${request.url()}`);
    });
    if (token) {
      await page.goto("/login");
      await page.getByLabel("Token").fill(token);
      await page.getByLabel("Your name").fill(name);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.waitForURL("**/");
    }
    return page;
  }

  async close() {
    await this.browser?.close();
    for (const other of this.others ?? []) await ended(other);
    if (this.gateway) await ended(this.gateway);
    if (this.sandbox) await ended(this.sandbox);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The violations of axe, best practices included, and controls that a window of this width does not show, of the open page. */
export const faultsOf = async (page) => {
  await page.waitForLoadState("load");
  await page.evaluate(() => document.fonts.ready);
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const found = violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join(" | ")}`);
  return found.concat(await page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    const wide = document.scrollingElement.scrollWidth;
    // A region that scrolls and takes the focus brings its controls into view.
    const scrolls = (node) => node && (node.tabIndex >= 0 && node.scrollWidth > node.clientWidth && getComputedStyle(node).overflowX === "auto" ? true : scrolls(node.parentElement));
    const isOut = (node) => {
      const { left, right } = node.getBoundingClientRect();
      return node.checkVisibility({ visibilityProperty: true }) && !node.closest(".skip") && (left < -0.5 || right > width + 0.5) && !scrolls(node.parentElement);
    };
    const out = [...document.querySelectorAll("a, button, input, select, textarea, summary, [aria-current]")].filter(isOut);
    return [...(wide > width ? [`${wide} px wide`] : []), ...out.map((node) => `out of reach: ${node.outerHTML.slice(0, 120)}`)];
  }));
};

/** Waits until something holds, by asking again; the time is a bound and nothing that is asserted. */
export const eventually = async (what, holds) => {
  const end = Date.now() + 30_000;
  for (;;) {
    const outcome = await holds();
    if (outcome) return outcome;
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};
