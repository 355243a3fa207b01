// The editor of mapping files. Replaces the text area of the page, and asks the gateway for findings and names while the user
// types. The text area stays the field of the form.
//
//   textarea[data-editor]   name of the file; `data-line` is the line to open; `readonly` without the right to change
import { autocompletion, closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { forceLinting, lintGutter, linter, lintKeymap } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

// Colours are the custom properties of the page, which pass into the shadow tree and follow its theme.
const theme = EditorView.theme({
  "&": { height: "min(70vh, 46rem)", fontSize: "13px", color: "var(--ink)", backgroundColor: "var(--paper)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--sunk)", color: "var(--soft)", border: "none", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--warn-paper) 60%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--warn-paper)", color: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "light-dark(#ffd9c2, #6a3a1d)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--busy-paper)" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--strong-line)", borderRadius: "6px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-ink)" },
  ".cm-completionDetail": { color: "inherit", opacity: "1", marginLeft: "1em" },
  ".cm-completionInfo": { maxWidth: "26rem", fontFamily: "var(--sans)", whiteSpace: "pre-wrap" },
  // CodeMirror draws these by images in its style sheet, which the content security policy forbids.
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warn)" },
  ".cm-lintRange-info, .cm-lintRange-hint": { backgroundImage: "none", textDecoration: "underline dotted var(--busy)" },
  ".cm-lint-marker": { width: ".7em", height: ".7em", borderRadius: "50%", margin: ".35em auto 0", content: "normal" },
  ".cm-lint-marker-error": { content: "normal", backgroundColor: "var(--bad)" },
  ".cm-lint-marker-warning": { content: "normal", backgroundColor: "var(--warn)" },
  ".cm-lint-marker-info": { content: "normal", backgroundColor: "var(--busy)" },
  ".cm-diagnostic": { fontFamily: "var(--sans)", whiteSpace: "pre-wrap" },
});

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.keyword, tags.bool, tags.number], color: "var(--shadow)" },
  { tag: [tags.labelName, tags.typeName], color: "var(--warn)" },
]);

const KINDS = { 2: "function", 5: "property", 7: "class", 10: "keyword", 12: "constant", 21: "constant", 22: "type" };
const SEVERITIES = { 1: "error", 2: "warning", 3: "info" };

const area = document.querySelector("textarea[data-editor]");
if (area) {
  const form = area.form;
  const may = !area.readOnly;
  const file = area.dataset.editor;

  // Offsets in a document of lines and UTF-16 columns, those of the Language Server Protocol.
  const offset = (doc, { line, character }) => {
    const found = doc.line(Math.min(line + 1, doc.lines));
    return Math.min(found.from + character, found.to);
  };
  const text = (state) => state.sliceDoc();
  const ask = async (path, state, more, signal) => {
    const body = new URLSearchParams();
    for (const [name, value] of new FormData(form)) body.append(name, value);
    body.set(area.name, text(state));
    for (const [name, value] of Object.entries(more)) body.set(name, value);
    const answer = await fetch(path, { method: "POST", body, signal });
    return answer.ok ? answer.json() : null;
  };

  const status = document.createElement("p");
  status.className = "hint";
  status.id = "editor-status";
  status.setAttribute("role", "status");
  let checking = null;
  const check = async (view) => {
    checking?.abort();
    checking = new AbortController();
    const { signal } = checking;
    try {
      const answer = await ask("/editor/check", view.state, {}, signal);
      if (signal.aborted) return [];
      if (!answer) {
        status.textContent = "The text could not be checked.";
        return [];
      }
      const all = Object.entries(answer.findings);
      const count = (found) => found.filter((one) => one.severity === 1).length;
      const errors = all.reduce((sum, [, found]) => sum + count(found), 0);
      const others = all.filter(([name, found]) => name !== file && count(found)).map(([name]) => name);
      status.textContent = errors === 0 ? "The pack compiles." : `${errors} ${errors === 1 ? "error" : "errors"}${others.length ? `, also in ${others.join(", ")}` : ""}.`;
      const doc = view.state.doc;
      return (answer.findings[file] ?? []).map((one) => ({
        from: offset(doc, one.range.start),
        to: offset(doc, one.range.end),
        severity: SEVERITIES[one.severity] ?? "info",
        source: one.code ? String(one.code) : undefined,
        message: one.message,
      }));
    } catch {
      if (!signal.aborted) status.textContent = "The gateway does not answer, so the text is not checked.";
      return [];
    }
  };

  const complete = async (context) => {
    const word = context.matchBefore(/[\w$*.-]*/);
    if (!context.explicit && (!word || word.from === word.to)) return null;
    const line = context.state.doc.lineAt(context.pos);
    const signal = new AbortController();
    context.addEventListener("abort", () => signal.abort());
    const answer = await ask("/editor/complete", context.state, { file, row: line.number - 1, column: context.pos - line.from }, signal.signal).catch(() => null);
    const items = answer?.items ?? [];
    if (!items.length) return null;
    // The compiler lists all names of a place. What is typed of one may be in its middle, such as in the path of an operation.
    const typed = word?.text.split(".").pop() ?? "";
    const fitting = items.filter((item) => item.label.includes(typed));
    const from = offset(context.state.doc, items[0].textEdit.range.start);
    return {
      from: Math.min(from, context.pos),
      filter: false,
      options: (fitting.length ? fitting : items).map((item) => ({
        label: item.label,
        detail: item.detail ?? undefined,
        info: item.documentation ?? undefined,
        type: KINDS[item.kind],
        apply: (view) => {
          const { doc, selection } = view.state;
          const start = offset(doc, item.textEdit.range.start);
          // The text may have grown since the list was requested.
          const to = Math.max(offset(doc, item.textEdit.range.end), selection.main.head);
          view.dispatch({ changes: { from: start, to, insert: item.textEdit.newText }, selection: { anchor: start + item.textEdit.newText.length } });
        },
      })),
    };
  };

  const host = document.createElement("div");
  host.className = "mapping-editor";
  area.before(host);
  area.hidden = true;
  if (may) host.after(status);
  // In a shadow tree, styles are constructed sheets, which the content security policy permits. In a document they would be
  // inline style elements.
  const root = host.attachShadow({ mode: "open" });
  const extensions = [
    lineNumbers(),
    highlightActiveLineGutter(),
    highlightActiveLine(),
    history(),
    drawSelection(),
    indentOnInput(),
    indentUnit.of("  "),
    bracketMatching(),
    closeBrackets(),
    yaml(),
    syntaxHighlighting(colours),
    theme,
    EditorState.readOnly.of(!may),
    EditorView.contentAttributes.of({ "aria-label": area.getAttribute("aria-label"), tabindex: "0" }),
    // Tab is not bound, so it leaves the editor.
    keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...lintKeymap]),
  ];
  if (may) {
    extensions.push(autocompletion({ override: [complete], activateOnTypingDelay: 300 }), lintGutter(), linter(check, { delay: 600 }));
  }
  const view = new EditorView({ doc: area.value, extensions, parent: root, root });
  form.addEventListener("formdata", ({ formData }) => {
    formData.set(area.name, text(view.state));
    formData.set("line", view.state.doc.lineAt(view.state.selection.main.head).number);
  });
  const opened = view.state.doc.line(Math.max(1, Math.min(Number(area.dataset.line) || 1, view.state.doc.lines)));
  view.dispatch({ selection: { anchor: opened.from }, effects: EditorView.scrollIntoView(opened.from, { y: "center" }) });
  // A result above is read first.
  if (may && Number(area.dataset.line) > 1 && !document.querySelector("#effect, #fault")) view.focus();
  if (may) forceLinting(view);
}
