// The studio's script. Pages are whole without it; with it they follow what happens.
//
//   body[data-live]      the page is asked for every two seconds, and what has changed is taken over
//   time[data-ms]        relative times count on
//   [data-copy]          a button that copies the text of the element with this id
//   form.theme           colours change at once
//   svg[data-chart]      shows the values under the pointer, or under the arrow keys
//   [data-submit]        a field that sends its form when it changes
//   [role=alert], [role=status]   the outcome of a form, which has the focus after it
//   .leaf.made           a field that lights up what it was made of (data-from, data-place) and the line that made it (data-by, data-line)
"use strict";
(() => {
  const EVERY_MS = 2000;
  const state = document.getElementById("live-state");
  let failing = null;
  let timer = 0;

  // Times -----------------------------------------------------------------------------------------------------------------
  const span = (s) =>
    s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
  const relative = (at, now) => {
    const seconds = Math.floor((now - at) / 1000);
    return seconds === 0 ? "now" : seconds > 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`;
  };
  const count = () => {
    const now = Date.now();
    for (const time of document.querySelectorAll("time[data-ms]")) {
      const words = relative(Number(time.dataset.ms), now);
      if (time.textContent !== words) time.textContent = words;
    }
  };

  // Taking over what has changed, and leaving alone what a person is at --------------------------------------------------
  const key = (node) => (node.nodeType === 1 ? node.id || node.dataset?.key || "" : "");
  const isAlike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && key(a) === key(b);
  // Where nothing is selected by the page, browsers take the first.
  const isChosen = (select) => select.selectedIndex !== Math.max(0, [...select.options].findIndex((option) => option.defaultSelected));
  // A form that nobody has touched follows what happens, what it was made from included; one that somebody is at stays whole.
  const isTouched = (form) =>
    !form ||
    (form.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")) ||
    [...form.elements].some((one) =>
      one.type === "hidden" ? false : one.nodeName === "SELECT" ? isChosen(one) : one.type === "checkbox" || one.type === "radio" ? one.checked !== one.defaultChecked : "defaultValue" in one && one.value !== one.defaultValue);
  const isOwn = (element, name) =>
    (name === "open" && element.nodeName === "DETAILS") ||
    (["value", "checked"].includes(name) && element.nodeName === "INPUT" && isTouched(element.form)) ||
    (["value", "selected"].includes(name) && ["TEXTAREA", "SELECT", "OPTION"].includes(element.nodeName)) ||
    (name === "aria-pressed" && element.closest("form.theme"));
  const takeAttributes = (from, to) => {
    for (const { name, value } of [...to.attributes]) {
      if (!isOwn(from, name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
    for (const { name } of [...from.attributes]) {
      if (!to.hasAttribute(name) && !isOwn(from, name) && name !== "tabindex" && !name.startsWith("data-own")) from.removeAttribute(name);
    }
  };
  const take = (from, to) => {
    if (from.nodeType === 3) {
      if (from.data !== to.data) from.data = to.data;
      return;
    }
    if (from.nodeType !== 1 || from.isEqualNode(to)) return;
    if (from.hasAttribute("data-keep") || from.classList.contains("cursor") || from.nodeName === "TEXTAREA") return;
    if (from.nodeName === "TIME" && from.dataset.ms === to.dataset.ms) return;
    takeAttributes(from, to);
    takeChildren(from, to);
  };
  const takeChildren = (from, to) => {
    const keyed = new Map();
    for (const child of from.childNodes) if (key(child)) keyed.set(key(child), child);
    const wantedKeys = new Set([...to.childNodes].map(key).filter(Boolean));
    const isHeld = (node) => wantedKeys.has(key(node)) || node.contains(document.activeElement);
    let at = from.firstChild;
    for (const wanted of [...to.childNodes]) {
      let found = key(wanted) ? keyed.get(key(wanted)) : at && isAlike(at, wanted) ? at : null;
      if (found && !isAlike(found, wanted)) found = null;
      // What somebody may be writing in is not made anew because something before it came or went.
      if (!found && !key(wanted) && ["FORM", "FIELDSET", "DETAILS"].includes(wanted.nodeName)) {
        for (found = at; found && !isAlike(found, wanted); ) found = found.nextSibling;
      }
      // Nor is it moved, which would take the focus from it, where what stands before it can go.
      const between = [];
      for (let node = at; found && node && node !== found; node = node.nextSibling) between.push(node);
      if (found && found !== at && found.contains(document.activeElement) && !between.some(isHeld)) {
        for (const node of between) node.remove();
        at = found;
      }
      if (!found) {
        from.insertBefore(document.importNode(wanted, true), at);
        continue;
      }
      if (found === at) at = at.nextSibling;
      else from.insertBefore(found, at);
      take(found, wanted);
    }
    while (at) {
      const next = at.nextSibling;
      // A person at a field that is no longer on the page may finish.
      if (!(at.nodeType === 1 && at.contains(document.activeElement) && document.activeElement.matches("input,select,textarea"))) at.remove();
      at = next;
    }
  };

  // Following -------------------------------------------------------------------------------------------------------------
  const say = (tone, text, link) => {
    if (!state) return;
    if (!text) {
      state.hidden = true;
      return;
    }
    const words = document.createElement("span");
    words.textContent = text;
    state.replaceChildren(words);
    if (link) {
      const a = document.createElement("a");
      a.href = link;
      a.textContent = "Sign in again";
      a.target = "_blank";
      state.append(" ", a);
    }
    state.className = `live-state notice ${tone}`;
    state.hidden = false;
  };
  const follow = async () => {
    if (document.hidden) return again();
    try {
      const answer = await fetch(location.href, { headers: { "x-studio-follow": "1" }, cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (answer.status === 401) {
        say("warn", "Your session has ended; this page stands still. What you have typed stays.", "/login");
        return again();
      }
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (failing || state?.textContent) say();
      failing = null;
      const main = document.getElementById("main");
      const others = page.getElementById("main");
      if (main && others && page.body.dataset.path === document.body.dataset.path) {
        others.querySelector("#live-state")?.replaceWith(state.cloneNode(true));
        takeChildren(main, others);
        const standing = document.querySelector(".standing .pack-line");
        const newer = page.querySelector(".standing .pack-line");
        if (standing && newer) take(standing, newer);
        count();
        document.dispatchEvent(new Event("studio:taken"));
        // What was awaited is there, and a person will work on it.
        if (!page.body.hasAttribute("data-live")) return;
      }
    } catch {
      failing ??= new Date();
      say("bad", `The gateway has not answered since ${failing.toLocaleTimeString()}. What you see is from then.`);
    }
    again();
  };
  const again = () => {
    clearTimeout(timer);
    timer = setTimeout(follow, EVERY_MS);
  };
  if (document.body.hasAttribute("data-live")) {
    again();
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) follow();
    });
  }
  count();
  setInterval(count, 1000);

  // Colours ---------------------------------------------------------------------------------------------------------------
  for (const form of document.querySelectorAll("form.theme")) {
    form.addEventListener("submit", (event) => {
      const chosen = event.submitter?.value;
      if (!chosen) return;
      event.preventDefault();
      document.documentElement.dataset.theme = chosen;
      document.cookie = `switchback_theme=${chosen}; Path=/; SameSite=Strict; Max-Age=31536000`;
      for (const button of form.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.value === chosen));
    });
  }

  // The focus after a form: on its outcome, on the control that sent it, or on the headline -------------------------------
  const SENT = "switchback_sent";
  const describe = (control) =>
    [control.nodeName, control.id, control.name, control.getAttribute("formaction"), control.nodeName === "BUTTON" && control.textContent, control.form?.getAttribute("action")].join("\n");
  let sent = null;
  document.addEventListener("click", () => (sent = null), true);
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    const active = document.activeElement;
    sent = { method: event.target.method, control: describe(event.target.contains(active) ? active : event.submitter ?? event.target) };
  });
  addEventListener("pagehide", () => sent && sessionStorage.setItem(SENT, JSON.stringify(sent)));
  const arrived = JSON.parse(sessionStorage.getItem(SENT));
  sessionStorage.removeItem(SENT);
  if (arrived && !document.querySelector("[autofocus]")) {
    const of = (role) => document.querySelector(`main [role=${role}]:not(#store-away, #live-state, #trail-note)`);
    const control = () => [...document.querySelectorAll("main :is(input, select, textarea, button)")].find((one) => describe(one) === arrived.control);
    const target = of("alert") || (arrived.method === "post" && of("status")) || control() || document.querySelector("h1");
    if (!target?.matches("input, select, textarea, button")) target?.setAttribute("tabindex", "-1");
    target?.focus();
  }

  // Small helps -------------------------------------------------------------------------------------------------------------
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    event.preventDefault();
    const text = document.getElementById(button.dataset.copy)?.textContent ?? "";
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it and copy";
    }
    setTimeout(() => (button.textContent = before), 1500);
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit]")) event.target.form?.requestSubmit();
  });

  // The way of a field: what it was made of and the line that made it light up while it is pointed at or focused -----------------
  const holds = (whole, part) => part === whole || (part.startsWith(whole) && ".[".includes(part[whole.length]));
  const unlight = () => {
    for (const lit of document.querySelectorAll(".lit, .origin")) lit.classList.remove("lit", "origin");
  };
  const light = (leaf) => {
    unlight();
    leaf.classList.add("origin");
    const from = (leaf.dataset.from || "").split("\n").filter(Boolean);
    const found = [...document.querySelectorAll("[data-place]")].filter((one) =>
      from.some((place) => holds(place, one.dataset.place) || holds(one.dataset.place, place)));
    found.forEach((one) => one !== leaf && one.classList.add("lit"));
    const line = [...document.querySelectorAll("[data-line]")].filter((one) => one.dataset.line === leaf.dataset.by);
    line.forEach((one) => one.classList.add("lit"));
    for (const first of [found[0], line[0]]) {
      const box = first?.closest("pre, ol");
      if (box && box.scrollHeight > box.clientHeight) box.scrollTop = first.offsetTop - box.offsetTop - box.clientHeight / 3;
    }
    const note = document.getElementById("trail-note");
    if (note && leaf.closest("[data-trail]")) note.textContent = leaf.dataset.note;
  };
  for (const [name, act] of [["pointerover", light], ["focusin", light], ["pointerout", unlight], ["focusout", unlight]]) {
    document.addEventListener(name, (event) => {
      const leaf = event.target.closest?.(".leaf.made");
      if (leaf) act(leaf);
    });
  }

  // Charts: the values at one moment, by pointer and by arrow keys -----------------------------------------------------------
  const note = document.createElement("div");
  note.className = "chart-note";
  note.setAttribute("role", "status");
  note.hidden = true;
  document.body.append(note);
  const show = (chart, index) => {
    const data = JSON.parse(chart.dataset.chart);
    const at = Math.max(0, Math.min(data.times.length - 1, index));
    chart.dataset.ownAt = at;
    const head = document.createElement("strong");
    head.textContent = new Date(data.times[at]).toLocaleTimeString();
    const lines = data.series.map(({ name, unit, values }) => {
      const line = document.createElement("div");
      line.textContent = values[at] === null ? `${name}: –` : `${name}: ${values[at]} ${unit}`;
      return line;
    });
    note.replaceChildren(head, ...lines);
    note.hidden = false;
    const box = chart.getBoundingClientRect();
    const x = box.left + (box.width * at) / Math.max(1, data.times.length - 1);
    note.style.left = `${Math.max(4, Math.min(innerWidth - note.offsetWidth - 4, x + 10))}px`;
    note.style.top = `${Math.max(4, box.top - note.offsetHeight - 6)}px`;
    const line = chart.querySelector(".cursor");
    const width = chart.viewBox.baseVal.width;
    line?.setAttribute("x1", (width * at) / Math.max(1, data.times.length - 1));
    line?.setAttribute("x2", (width * at) / Math.max(1, data.times.length - 1));
    line?.classList.add("shown");
  };
  const hide = (chart) => {
    note.hidden = true;
    chart.querySelector(".cursor")?.classList.remove("shown");
  };
  const length = (chart) => JSON.parse(chart.dataset.chart).times.length;
  document.addEventListener("pointermove", (event) => {
    const chart = event.target.closest?.("svg[data-chart]");
    if (!chart) return;
    const box = chart.getBoundingClientRect();
    show(chart, Math.round(((event.clientX - box.left) / box.width) * (length(chart) - 1)));
  });
  document.addEventListener("pointerout", (event) => {
    const chart = event.target.closest?.("svg[data-chart]");
    if (chart && !chart.contains(event.relatedTarget)) hide(chart);
  });
  document.addEventListener("keydown", (event) => {
    const chart = event.target.closest?.("svg[data-chart]");
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!chart || !step) return;
    event.preventDefault();
    const last = length(chart) - 1;
    show(chart, Number(chart.dataset.ownAt ?? last) + step);
  });
  document.addEventListener("focusout", (event) => {
    const chart = event.target.closest?.("svg[data-chart]");
    if (chart) hide(chart);
  });
})();
