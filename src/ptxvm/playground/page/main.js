// The page: wires the editor, the fields, the backend and the views together.

import { AnswerError, backend } from "./backend.js";
import { h } from "./dom.js";
import { Editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { fillFields, renewFields } from "./fields.js";
import { details, listProblems, title } from "./problems.js";
import { results } from "./results.js";
import { cleaned, packed, unpacked } from "./state.js";
import { Tabs } from "./tabs.js";

const at = (id) => document.getElementById(id);
const editor = new Editor(at("editor"), at("tip"));
const tabs = new Tabs(at("tabs"), at("panels"), { results: "Results" });
let state = cleaned({});
let python = null;
const turns = { check: 0, run: 0 };

function say(text) {
  at("status").textContent = text;
}

/** Ask the backend; says what goes wrong, and then gives null. */
async function ask(method, params, doing) {
  at("stop").hidden = !doing;
  if (doing) say(doing);
  try {
    const found = await python.ask(method, params);
    if (doing) say("");
    return found;
  } catch (wrong) {
    if (!(wrong instanceof AnswerError)) throw wrong;
    if (doing || wrong.kind === "connection") say(wrong.kind === "request" ? wrong.message : `${wrong.kind}: ${wrong.message}`);
    return null;
  } finally {
    at("stop").hidden = true;
  }
}

// ── checking ────────────────────────────────────────────────────────────────────────────

let pause = 0;
editor.addEventListener("change", () => {
  state.source = editor.text;
  clearTimeout(pause);
  pause = setTimeout(check, 300);
});

async function check() {
  const [turn, runs] = [++turns.check, turns.run];
  const found = await ask("check", { source: state.source });
  if (found === null || turn !== turns.check) return;
  if (runs === turns.run) problems(found.diagnostics);
  if (found.kernels.length || !found.diagnostics.length) fillFields(at("fields"), state, found.kernels);
}

function problems(found) {
  editor.mark(found);
  listProblems(at("problems"), found, (line, column) => editor.go(line, column));
}

editor.addEventListener("hover", ({ detail }) => {
  const here = editor.marks.filter((each) => each.line === detail.line && each.column <= detail.column && (detail.column < each.end_column || each.end_line > each.line));
  if (here.length) editor.say(detail, ...here.map((each) => h("div", { class: each.severity }, h("p", {}, title(each)), details(each))));
});

// ── running ─────────────────────────────────────────────────────────────────────────────

function launch() {
  const { source, grid, block, entry, shared, checks, schedules, seed, engine, args } = state;
  const words = Array.from(args, (word) => (word ?? "").trim());
  return { source, arguments: words.filter(Boolean), grid, block, entry: entry || null, shared, checks, schedules, seed, engine };
}

async function run(event) {
  event?.preventDefault();
  tabs.open("results");
  const turn = ++turns.run;
  const done = await ask("run", launch(), "Running …");
  if (done === null || turn !== turns.run) return;
  problems(done.diagnostics);
  tabs.fill("results", results(done));
  say(done.outcome === "done" ? "Done." : "");
}

at("launch").addEventListener("submit", run);
at("stop").addEventListener("click", () => python.stop());
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(event);
});
for (const box of document.querySelectorAll("[name=check]")) {
  box.addEventListener("change", () => {
    state.checks = [...document.querySelectorAll("[name=check]:checked")].map(({ value }) => value);
  });
}

// ── the whole state ─────────────────────────────────────────────────────────────────────

function restore(found) {
  state = cleaned(found);
  renewFields(at("fields"));
  fillFields(at("fields"), state, []);
  for (const box of document.querySelectorAll("[name=check]")) box.checked = state.checks.includes(box.value);
  tabs.open(state.view);
  tabs.fill("results", h("p", { class: "hint" }, "Run the kernel to see its arrays."));
  editor.text = state.source;
}

at("share").addEventListener("click", async () => {
  state.view = tabs.view;
  history.replaceState(null, "", `#${await packed(state)}`);
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is in the clipboard, and in the address bar.");
  } catch {
    say("The link is in the address bar.");
  }
});

addEventListener("hashchange", async () => {
  const found = await unpacked(location.hash);
  if (found) restore(found);
});

at("examples").append(...Object.keys(EXAMPLES).map((name) => h("option", {}, name)));
at("examples").addEventListener("change", (event) => restore(EXAMPLES[event.target.value]));

python = await backend(say);
restore((await unpacked(location.hash)) ?? Object.values(EXAMPLES)[0]);
document.documentElement.dataset.ready = "";
