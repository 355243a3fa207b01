// `run` beside this says what it is for. The service is a thread of its own that answers at once; the load is open: requests go
// out at their time, whatever became of those before. A page that is open is asked for every two seconds, as its script does.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker, isMainThread, parentPort } from "node:worker_threads";

const TOKEN = "token-of-the-client-of-the-bench";
const ADMIN = "operate-token-of-the-studio-bench";
/** What people leave open. */
const PAGES = ["/", "/operations", "/operations/v2/GET%20%2Fcontacts", "/differences", "/clients", "/history"];

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

if (!isMainThread) {
  const body = JSON.stringify(Array.from({ length: 20 }, (_, id) => ({ id, name: `contact ${id}`, number: "5511999999999" })));
  const server = createServer((asked, answer) => {
    asked.resume();
    answer.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body);
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
} else {
  await main();
}

async function main() {
  const named = (name, fallback) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? fallback : Number(process.argv[at + 1]);
  };
  const tiny = process.argv.includes("--tiny");
  const rate = named("rate", tiny ? 100 : 5_000);
  const rounds = named("rounds", tiny ? 1 : 5);
  const seconds = named("seconds", tiny ? 3 : 10);
  const pages = PAGES.slice(0, named("pages", 1));

  const service = new Worker(new URL(import.meta.url));
  const port = await new Promise((resolve) => service.once("message", resolve));
  const folder = mkdtempSync(join(tmpdir(), "switchback-bench-"));
  const program = process.env.SWITCHBACK;
  const file = join(folder, "switchback.yaml");
  writeFileSync(
    file,
    `listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0, token: ${ADMIN} }
store: 'sqlite:${folder}/store.db'
key: \${BENCH_KEY}
mapping: mappings/messaging
upstreams: { v3: { url: 'http://127.0.0.1:${port}/v3' }, v2: { url: 'http://127.0.0.1:${port}/v2' } }
settings: { agents: { max_chats: 5 } }
clients: [{ name: bench, v2_token: ${TOKEN} }]
phases: { default: legacy }
reload: { watch: false }
log: { format: text, level: info }
`,
  );
  const key = execFileSync(program, ["key", "generate"], { encoding: "utf8" }).trim().split("\n")[0];
  const gateway = spawn(program, ["serve", "--config", file], { env: { ...process.env, BENCH_KEY: key }, stdio: ["ignore", "ignore", "pipe"] });
  try {
    const said = await new Promise((resolve, reject) => {
      let said = "";
      gateway.stderr.on("data", (piece) => {
        if (said.length < 100_000) said += piece;
        if (/clients=\S+.*admin=\S+/s.test(said)) resolve(said);
      });
      gateway.on("exit", (code) => reject(new Error(`the gateway ended with ${code}:\n${said}`)));
    });
    const clients = /clients=(\S+)/.exec(said)[1];
    const admin = `http://${/admin=(\S+)/.exec(said)[1]}`;
    await measure({ pid: gateway.pid, clients, admin, rate, rounds, seconds, pages });
  } finally {
    const ended = new Promise((resolve) => gateway.once("exit", resolve));
    if (gateway.exitCode === null && gateway.kill("SIGTERM")) await ended;
    await service.terminate();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Seconds of CPU that a process has used; the system counts in hundredths. */
function cpu(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function measure({ pid, clients, admin, rate, rounds, seconds, pages }) {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const [hostname, port] = clients.split(":");
  const counts = { answered: 0, failed: 0 };
  const call = () => {
    const asked = request({ hostname, port, path: "/v2/contacts", agent, headers: { "x-authorization": `Bearer ${TOKEN}` } }, (answer) => {
      answer.resume();
      answer.on("end", () => (answer.statusCode === 200 ? counts.answered++ : counts.failed++));
    });
    asked.on("error", () => counts.failed++);
    asked.end();
  };
  const load = async (until) => {
    const begun = performance.now();
    for (let sent = 0; performance.now() < until; await sleep(2)) {
      for (const due = ((performance.now() - begun) / 1000) * rate; sent < due; sent++) call();
    }
  };
  let looks = 0;
  const look = async (path, until) => {
    while (performance.now() < until) {
      const answer = await fetch(admin + path, { headers: { authorization: `Bearer ${ADMIN}`, accept: "text/html", "x-studio-follow": "1" } });
      if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
      await answer.text();
      looks++;
      await sleep(Math.min(2_000, Math.max(0, until - performance.now())));
    }
  };
  const round = async (open) => {
    const [before, answered, begun] = [cpu(pid), counts.answered, performance.now()];
    const until = begun + seconds * 1000;
    await Promise.all([load(until), ...(open ? pages : []).map((path) => look(path, until))]);
    const took = (performance.now() - begun) / 1000;
    return { cores: (cpu(pid) - before) / took, rate: (counts.answered - answered) / took };
  };
  await round(true);
  [counts.answered, counts.failed, looks] = [0, 0, 0];
  const found = { closed: [], open: [] };
  for (let at = 0; at < rounds; at++) {
    // Whichever comes first is the other one in the next round.
    for (const open of at % 2 ? [true, false] : [false, true]) found[open ? "open" : "closed"].push(await round(open));
  }
  const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];
  const row = (name, all) => `| ${name} | ${median(all.map((one) => one.rate)).toFixed(0)} | ${(median(all.map((one) => one.cores)) * 100).toFixed(1)} % | ${(Math.min(...all.map((one) => one.cores)) * 100).toFixed(1)} % to ${(Math.max(...all.map((one) => one.cores)) * 100).toFixed(1)} % | ${median(all.map((one) => (one.cores / one.rate) * 1e6)).toFixed(1)} µs |`;
  // Of each pair of rounds that follow one another, so that what disturbs the machine disturbs both.
  const more = found.open.map((one, at) => (one.cores - found.closed[at].cores) * 100);
  console.log(`${rounds} rounds of ${seconds} s, ${rate} requests/s wanted; open: ${pages.join(", ")}, ${looks} looks\n`);
  console.log("| Studio | Requests/s | Gateway, of a core | least to most | CPU per request |\n|---|---|---|---|---|");
  console.log(row("closed", found.closed));
  console.log(row("open", found.open));
  console.log(`\nThe live view costs ${median(more).toFixed(2)} % of a core (${more.map((one) => one.toFixed(2)).join(", ")}); aimed at: 1 % at most.`);
  if (counts.failed > 0) throw new Error(`${counts.failed} requests failed`);
}
