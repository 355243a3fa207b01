// Makes the mapping of the page "A first pair" editable: the compiler and the engine (crates/playground) run in the browser, and
// show the findings, the calls and the answer of a request. The files are those of the code blocks on the page. Without
// WebAssembly, or without the built module, the page stays as it is.
'use strict';

(() => {
    const place = document.getElementById('try-it');
    if (!place) return;

    const MAPPING = 'books.map.yaml';
    const REQUESTS = [
        { side: 'v1', method: 'GET', target: '/books/7', reply: '{"id": 7, "title": "Tea", "cents": 1999}' },
        { side: 'v2', method: 'GET', target: '/library/books/7', reply: '{"id": 7, "name": "Tea", "price": 0.5}' },
    ];

    /** The files of the pack, by name, from blocks that begin with their name. */
    function files() {
        const blocks = [...document.querySelectorAll('pre code')].map(block => block.textContent);
        const named = blocks.map(text => /^# file: first\/(\S+)\n([^]*)$/.exec(text)).filter(Boolean);
        return Object.fromEntries(named.map(([, name, text]) => [name, text]));
    }

    /** The function that runs an input of the module. */
    function runner({ memory, switchback_input, switchback_run, switchback_output }) {
        return input => {
            const bytes = new TextEncoder().encode(JSON.stringify(input));
            const address = switchback_input(bytes.length);
            // The memory may grow with each call, which detaches earlier views.
            new Uint8Array(memory.buffer, address, bytes.length).set(bytes);
            const length = switchback_run();
            return JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, switchback_output(), length)));
        };
    }

    function labelled(text, control) {
        const label = document.createElement('label');
        label.style.cssText = 'display: block; margin: 0.8em 0';
        label.append(text, control);
        return label;
    }

    function area(text, lines) {
        const area = document.createElement('textarea');
        Object.assign(area, { value: text, rows: lines, spellcheck: false });
        area.style.cssText = 'display: block; width: 100%; box-sizing: border-box; font-family: monospace; font-size: 0.9em';
        return area;
    }

    function shown({ findings, calls, answer, fault }) {
        const lines = findings.trimEnd().split('\n').filter(Boolean);
        calls.forEach(({ method, target, body }) => lines.push(`call    ${method} ${target} ${body}`.trimEnd()));
        if (answer) lines.push(`answer  ${answer.status} ${answer.body}`.trimEnd());
        if (fault) lines.push(`fault   ${fault}`);
        return lines.join('\n');
    }

    async function start() {
        const module = await fetch(`${path_to_root}playground.wasm`);
        if (!module.ok) return;
        const { instance } = await WebAssembly.instantiate(await module.arrayBuffer());
        const run = runner(instance.exports);
        const pack = files();
        const mapping = area(pack[MAPPING], pack[MAPPING].split('\n').length);
        const request = document.createElement('select');
        REQUESTS.forEach(({ side, method, target }) => request.add(new Option(`${method} ${target}, a client of ${side}`)));
        const reply = area('', 2);
        const result = document.createElement('pre');
        result.setAttribute('aria-live', 'polite');
        const update = () => {
            const { side, method, target } = REQUESTS[request.selectedIndex];
            const edited = { ...pack, [MAPPING]: mapping.value };
            const input = { files: edited, side, method, target, reply: { status: 200, body: reply.value } };
            result.textContent = shown(run(input));
        };
        const choose = () => {
            reply.value = REQUESTS[request.selectedIndex].reply;
            update();
        };
        request.addEventListener('change', choose);
        [mapping, reply].forEach(text => text.addEventListener('input', update));
        place.replaceChildren(
            labelled(MAPPING, mapping),
            labelled('Request ', request),
            labelled('Reply of the service', reply),
            result,
        );
        choose();
    }

    start();
})();
