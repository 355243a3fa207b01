// Load times of the studio's pages in Chromium, with many clients and operations. `pages` starts it.
//
// The services answer at once. A third of the operations is in the shadow and differs in one member, a third is in the shadow
// and agrees, a third is translated. Each page is loaded five times; its time is that of the `load` event.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { chromium } = createRequire(new URL("../../tests/studio/package.json", import.meta.url))("playwright-core");
const ADMIN = "operate-token-of-the-studio-bench";
const LOADS = 5;

const [operations, clients, calls] = ["operations", "clients", "calls"].map((name, at) => {
  const given = process.argv.indexOf(`--${name}`);
  return given < 0 ? [1_000, 10_000, 20_000][at] : Number(process.argv[given + 1]);
});
const all = (count, line) => Array.from({ length: count }, (_, at) => line(at)).join("");
const folder = mkdtempSync(join(tmpdir(), "switchback-pages-"));
const ending = [() => rmSync(folder, { recursive: true, force: true })];
try {
  await measure();
} finally {
  for (const end of ending.reverse()) await end();
}

function writePack() {
  mkdirSync(join(folder, "pack/contracts"), { recursive: true });
  writeFileSync(join(folder, "pack/pack.yaml"), readFileSync("benches/peers/configs/growth-pack.yaml"));
  for (const [side, name] of [["v2", "title"], ["v3", "name"]]) {
    writeFileSync(
      join(folder, `pack/contracts/${side}.openapi.yaml`),
      `openapi: 3.1.0\ninfo: { title: Things, version: '${side}' }\npaths:\n` +
        all(operations, (at) => `  /things-${at}/{id}:\n    parameters: [{ name: id, in: path, required: true, schema: { type: string } }]\n    get: { responses: { '200': { description: ok, content: { application/json: { schema: { $ref: '#/components/schemas/Thing' } } } } } }\n`) +
        `components:\n  schemas:\n    Error: { type: object, required: [reason], properties: { reason: { type: string } } }\n    Thing: { type: object, required: [id, ${name}, size], properties: { id: { type: integer }, ${name}: { type: string }, size: { type: integer } } }\n`,
    );
  }
  const mapping = "mapping: 1\nshapes:\n  Thing: { of: { v2: Thing, v3: Thing }, same: [id, size], rename: { title: name } }\nroutes:\n";
  const route = (at) => `  - { pair: { v2: 'GET /things-${at}/{id}', v3: 'GET /things-${at}/{id}' }, response: Thing }\n`;
  writeFileSync(join(folder, "pack/things.map.yaml"), mapping + all(operations, route));
}

async function startService() {
  const server = createServer((asked, answer) => {
    const at = Number(/things-(\d+)/.exec(asked.url)?.[1]);
    const thing = asked.url.startsWith("/v2") ? { id: 7, title: "a", size: 1 } : { id: 7, name: "a", size: at % 3 === 0 ? 2 : 1 };
    const body = JSON.stringify(asked.url.startsWith("/token") ? { access_token: "a", refresh_token: "r", token_type: "Bearer", expires_in: 86_400 } : thing);
    asked.resume().on("end", () => answer.writeHead(200, { "content-type": "application/json" }).end(body));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  ending.push(() => new Promise((resolve) => server.closeAllConnections() ?? server.close(resolve)));
  return server.address().port;
}

async function startGateway(port) {
  const program = process.env.SWITCHBACK;
  const file = join(folder, "switchback.yaml");
  writeFileSync(
    file,
    `listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0, token: ${ADMIN} }
store: 'sqlite:${folder}/store.db'
key: \${BENCH_KEY}
mapping: ${folder}/pack
upstreams: { v3: { url: 'http://127.0.0.1:${port}/v3' }, v2: { url: 'http://127.0.0.1:${port}/v2' } }
oauth: { authorize_url: 'http://127.0.0.1:${port}/authorize', token_url: 'http://127.0.0.1:${port}/token', redirect_url: 'http://127.0.0.1:${port}/' }
clients:
${all(clients, (at) => `  - { name: client-${at}, v2_token: token-of-client-${at}, grant: { client_id: a-${at}, client_secret: not-a-secret, refresh_token: r-${at} } }\n`)}phases:
  default: translated
${all(operations, (at) => (at % 3 < 2 ? `  'GET /things-${at}/{id}': shadow\n` : ""))}shadow: { sample: 1 }
limits: { drain_delay: 0s }
`,
  );
  const key = execFileSync(program, ["key", "generate"], { encoding: "utf8" }).trim().split("\n")[0];
  const begun = performance.now();
  const gateway = spawn(program, ["serve", "--config", file], { env: { ...process.env, BENCH_KEY: key }, stdio: ["ignore", "ignore", "pipe"] });
  ending.push(async () => {
    const ended = new Promise((resolve) => gateway.once("exit", resolve));
    if (gateway.exitCode === null && gateway.kill("SIGTERM")) await ended;
  });
  const log = await new Promise((resolve, reject) => {
    let log = "";
    gateway.stderr.on("data", (piece) => {
      log = (log + piece).slice(-100_000);
      if (/"?clients"?[=:]\S+.*"?admin"?[=:]\S+/s.test(log)) resolve(log);
    });
    gateway.on("exit", (code) => reject(new Error(`the gateway ended with ${code}:\n${log}`)));
  });
  console.log(`${operations} operations, ${clients} clients; the gateway served ${((performance.now() - begun) / 1000).toFixed(1)} s after its start`);
  const address = (name) => new RegExp(`"?${name}"?[=:]"?(127\\.0\\.0\\.1:\\d+)`).exec(log)[1];
  return { serve: address("clients"), admin: `http://${address("admin")}` };
}

/** Calls every operation, by ever other clients. */
async function call(serve) {
  const [hostname, port] = serve.split(":");
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const statuses = {};
  let next = 0;
  const one = (at) =>
    new Promise((resolve, reject) => {
      const headers = { "x-authorization": `Bearer token-of-client-${at % clients}` };
      const sent = request({ hostname, port, path: `/v2/things-${at % operations}/7`, agent, headers }, (answer) => {
        statuses[answer.statusCode] = (statuses[answer.statusCode] ?? 0) + 1;
        answer.resume().on("end", resolve);
      });
      sent.on("error", reject).end();
    });
  const worker = async () => {
    while (next < calls) await one(next++);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  agent.destroy();
  console.log(`${calls} calls: ${JSON.stringify(statuses)}`);
}

async function measure() {
  writePack();
  const { serve, admin } = await startGateway(await startService());
  await call(serve);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--headless", "--no-sandbox", "--disable-gpu"] });
  ending.push(() => browser.close());
  const page = await (await browser.newContext({ baseURL: admin, viewport: { width: 1360, height: 900 } })).newPage();
  await page.goto("/login");
  await page.getByLabel("Token").fill(ADMIN);
  await page.getByLabel("Your name").fill("Ada");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL("**/");
  const operation = `/operations/v2/${encodeURIComponent("GET /things-0/{id}")}`;
  const paths = ["/", "/?span=day", "/operations", "/operations?phase=shadow", operation, `${operation}/move?phase=canary&share=0.25`, "/requests", "/differences", "/playground", "/editor?file=things.map.yaml&line=5", "/clients", "/clients?q=client-77", "/pack", "/pack?show=shapes", "/pack?show=decisions", "/pack?show=contract&side=v3", "/pack?show=files&file=things.map.yaml", "/pack?show=reload", "/pack?show=recorded", "/history"];
  const rows = [];
  for (const path of paths) {
    const [times, answers] = [[], []];
    let bytes = 0;
    for (let at = 0; at < LOADS; at++) {
      const answer = await page.goto(path, { waitUntil: "load" });
      if (!answer.ok()) throw new Error(`${path}: ${answer.status()}`);
      const seen = await page.evaluate(() => performance.getEntriesByType("navigation")[0].toJSON());
      times.push(seen.loadEventEnd);
      answers.push(seen.responseEnd);
      bytes = seen.decodedBodySize;
    }
    for (const all of [times, answers]) all.sort((a, b) => a - b);
    rows.push([path, times[LOADS >> 1], times[LOADS - 1], answers[LOADS >> 1], bytes / 1000]);
  }
  console.log(`\n| Page | median of ${LOADS} loads, ms | slowest | median until the document has arrived | document, kB |\n|---|---|---|---|---|`);
  for (const [path, ...figures] of rows.sort((a, b) => b[1] - a[1])) console.log(`| \`${path}\` | ${figures.map((one) => one.toFixed(0)).join(" | ")} |`);
}
