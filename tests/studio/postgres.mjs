// A PostgreSQL of a test's own, which can be stopped, frozen and started again. It refuses to run as root: then it runs as
// `postgres`, or as `nobody`.

import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "./world.mjs";

const ROOT = "/usr/lib/postgresql";
const newest = existsSync(ROOT) && readdirSync(ROOT).map((version) => join(ROOT, version, "bin")).filter((bin) => existsSync(join(bin, "initdb"))).sort().pop();
/** Why tests of it are skipped; false where it is installed. */
export const missing = newest ? false : `there is no ${ROOT}/*/bin/initdb`;

const person = () => {
  if (process.getuid() !== 0) return {};
  for (const name of ["postgres", "nobody"]) {
    try {
      const id = (flag) => Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
      return { uid: id("-u"), gid: id("-g") };
    } catch {
      // The next one.
    }
  }
  throw new Error("nobody is there to run PostgreSQL");
};

export class Postgres {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "studio-postgres-"));
    this.who = person();
    if (this.who.uid) chownSync(this.folder, this.who.uid, this.who.gid);
    this.data = join(this.folder, "data");
    execFileSync(join(newest, "initdb"), ["-A", "trust", "-U", "switchback", "--no-sync", "-E", "UTF8", "--locale=C", "-D", this.data], { ...this.who, cwd: this.folder, stdio: "ignore" });
    this.url = `postgres://switchback@localhost/postgres?host=${this.folder}`;
  }

  /** Starts it, and comes back when it answers. */
  async start() {
    this.server = spawn(join(newest, "postgres"), ["-D", this.data, "-c", "listen_addresses=", "-c", "fsync=off", "-k", this.folder], { ...this.who, cwd: this.folder, stdio: "ignore" });
    await eventually("PostgreSQL answers", () => {
      try {
        execFileSync(join(newest, "pg_isready"), ["-q", "-h", this.folder], { stdio: "ignore" });
        return true;
      } catch {
        return false;
      }
    });
  }

  /** Stops it as a crash of its machine would. */
  stop() {
    const server = this.server;
    if (!server || server.exitCode !== null || server.signalCode !== null) return undefined;
    const ended = new Promise((resolve) => server.on("exit", resolve));
    server.kill("SIGQUIT");
    return ended;
  }

  /** It neither answers nor refuses, as behind a network that swallows what is sent. */
  freeze() {
    this.signal("SIGSTOP");
  }

  thaw() {
    this.signal("SIGCONT");
  }

  signal(name) {
    const children = execFileSync("ps", ["-o", "pid=", "--ppid", String(this.server.pid)], { encoding: "utf8" }).split(/\s+/).filter(Boolean).map(Number);
    for (const pid of [this.server.pid, ...children]) {
      try {
        process.kill(pid, name);
      } catch {
        // It has ended meanwhile.
      }
    }
  }

  async close() {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
