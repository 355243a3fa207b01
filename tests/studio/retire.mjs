// What the tests of these pages share: a demo of its own with a pack of its own, a browser that is signed in, and waiting.
//
// `run` beside this file says where the browser and the program are.
import { spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium as browsers } from 'playwright-core';

const here = dirname(fileURLToPath(import.meta.url));
export const root = join(here, '..', '..');
export const chromium = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const program = process.env.SWITCHBACK ?? join(root, 'target', 'debug', 'switchback');
const shots = process.env.ARTEFACTS;

/** A demo on free ports, from a copy of the messaging pack that `change` may edit. */
export async function demo(change, words = []) {
  const folder = await mkdtemp(join(tmpdir(), 'switchback-studio-'));
  const pack = join(folder, 'pack');
  await cp(join(root, 'mappings', 'messaging'), pack, { recursive: true });
  await change?.(pack);
  const any = '127.0.0.1:0';
  const args = ['demo', '--listen', any, '--admin', any, '--sandbox', any, '--mapping', pack, ...words];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  await new Promise((done, failed) => {
    child.stdout.on('data', (piece) => {
      said += piece;
      if (said.includes('Ctrl-C')) done();
    });
    child.on('exit', (code) => failed(new Error(`the demo ended with ${code}:\n${said}`)));
  });
  const find = (pattern) => said.match(pattern)?.[1] ?? (() => { throw new Error(`no ${pattern} in\n${said}`); })();
  return {
    pack,
    admin: find(/studio\s+(http:\S+)\//),
    token: find(/sign in with the token (\S+)/),
    gateway: find(/gateway\s+(http:\S+)\/v2/),
    sandbox: find(/service\s+(http:\S+)/),
    client: find(/Bearer (\S+)'/),
    config: find(/--config (\S+)/),
    async edit(file, edit) {
      const path = join(pack, file);
      await writeFile(path, edit(await readFile(path, 'utf8')));
    },
    read: (file) => readFile(join(pack, file), 'utf8'),
    async stop() {
      const ended = new Promise((done) => child.on('exit', done));
      child.kill('SIGINT');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Calls the gateway as one of the demo's clients. */
export async function call(demo, path, options = {}) {
  const response = await fetch(`${demo.gateway}${path}`, {
    ...options,
    headers: { authorization: `Bearer ${demo.client}`, 'content-type': 'application/json', ...options.headers },
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Asks the admin API. */
export async function api(demo, path, body) {
  const response = await fetch(`${demo.admin}${path}`, {
    method: body ? 'POST' : 'GET',
    body: body && JSON.stringify(body),
    headers: { authorization: `Bearer ${demo.token}`, 'content-type': 'application/json' },
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

/** A browser, and a page of it that is signed in; `options` are those of its context. */
export async function visitor(demo, options = {}) {
  const browser = await browsers.launch({ executablePath: chromium, args: ['--headless', '--no-sandbox', '--disable-gpu'] });
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('dialog', (dialog) => {
    faults.push(`a dialogue: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('console', (message) => message.type() === 'error' && !/status of 4/.test(message.text()) && faults.push(message.text()));
  await page.goto(`${demo.admin}/login`);
  await page.fill('input[name="token"]', demo.token);
  await Promise.all([page.waitForURL(`${demo.admin}/`), page.click('form button[type="submit"]')]);
  return { browser, page, faults };
}

/** Clicks what sends a form or leads away, and waits for the page that follows. */
export async function press(page, selector) {
  await page.waitForSelector(selector, { state: 'attached' });
  await Promise.all([page.waitForEvent('load'), page.$eval(selector, (element) => element.click())]);
}

/** Waits until something holds, asking again and again. */
export async function until(what, holds, patience = 60_000) {
  const end = Date.now() + patience;
  for (;;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() > end) throw new Error(`never happened: ${what}`);
    await new Promise((done) => setTimeout(done, 150));
  }
}

/** Keeps a picture, where somebody wants pictures. */
export async function shot(page, name) {
  if (!shots) return;
  await mkdir(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}
