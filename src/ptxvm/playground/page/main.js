// The page: wires the editor, the fields, the backend and the views together.

import { AnswerError, backend } from "./backend.js";
import { h } from "./dom.js";
import { counters } from "./counters.js";
import { Editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { explanation, tip } from "./explain.js";
import { fillFields, fillMore, kernelOf, renewFields } from "./fields.js";
import { Lessons } from "./lessons.js";
import { Litmus } from "./litmus.js";
import { details, listProblems, title } from "./problems.js";
import { results } from "./results.js";
import { cleaned, packed, unpacked } from "./state.js";
import { Stepper } from "./stepper.js";
import { Tabs } from "./tabs.js";

const at = (id) => document.getElementById(id);
const editor = new Editor(at("editor"), at("tip"));
const tabs = new Tabs(at("tabs"), at("panels"), {
  lesson: "Lesson",
  results: "Results",
  step: "Step",
  count: "Count",
  explain: "Explain",
  litmus: "Litmus",
});
const stepper = new Stepper(
  (...content) => tabs.fill("step", ...content),
  (line) => editor.show(line),
);
const litmus = new Litmus(
  (...content) => tabs.fill("litmus", ...content),
  (test) => ask("litmus", test, "Judging …"),
  () => state,
);
const lessons = new Lessons({
  fill: (...content) => tabs.fill("lesson", ...content),
  open: (found) => restore(found),
  solve: (name) => ask("solve", { lesson: name, source: state.source }, "Trying …"),
});
let state = cleaned({});
let python = null;
let launches = 0;
let checked = null; // the text that was checked last, for whose kernels the fields are
let launched = null; // the text that was launched last, whose findings stand until it changes

function say(text) {
  at("status").textContent = text;
}

let awaited = 0; // requests that the user waits for, and may stop

/** Ask the backend; says what goes wrong, and then gives null.  With `doing`, which is said meanwhile, the user may stop it. */
async function ask(method, params, doing) {
  if (doing) return during(doing, () => asked(method, params, doing));
  return asked(method, params);
}

async function asked(method, params, doing) {
  try {
    const found = await python.ask(method, params, Boolean(doing));
    if (doing) say("");
    return found;
  } catch (wrong) {
    if (!(wrong instanceof AnswerError)) throw wrong;
    if (wrong.kind === "stopped" && !doing) return asked(method, params); // the user has stopped something else
    if (doing || ["connection", "limit"].includes(wrong.kind))
      say(["request", "stopped"].includes(wrong.kind) ? wrong.message : `${wrong.kind}: ${wrong.message}`);
    return null;
  }
}

/** Do something that the user waits for, and may stop. */
async function during(doing, work) {
  awaited += 1;
  at("stop").hidden = false;
  say(doing);
  try {
    return await work();
  } finally {
    at("stop").hidden = --awaited === 0;
  }
}

// ── checking ────────────────────────────────────────────────────────────────────────────

let pause = 0;
editor.addEventListener("change", () => {
  state.source = editor.text;
  at("examples").value = begin(state);
  clearTimeout(pause);
  pause = setTimeout(check, 300);
});

let checking = { source: null, done: null };

/** Check the text as it stands; a text that is being checked is waited for. */
function check() {
  if (checking.source !== state.source) {
    const mine = { source: state.source, done: null };
    mine.done = checkOnce().finally(() => {
      if (checking === mine) checking = { source: null, done: null };
    });
    checking = mine;
  }
  return checking.done;
}

async function checkOnce() {
  const { source } = state;
  const found = await ask("check", { source });
  if (found === null || source !== state.source) return; // the kernels of another text would take the arguments of this one
  checked = source;
  if (state.source !== launched) problems(found.diagnostics);
  if (found.kernels.length || !found.diagnostics.length) fillFields(at("fields"), state, found.kernels);
}

function problems(found) {
  editor.mark(found);
  listProblems(at("problems"), found, (line, column) => editor.go(line, column));
}

editor.addEventListener("hover", ({ detail }) => {
  const here = editor.marks.filter(
    (each) =>
      each.line === detail.line &&
      each.column <= detail.column &&
      (detail.column < each.end_column || each.end_line > each.line),
  );
  const wrong = here.map((each) => h("div", { class: each.severity }, h("p", {}, title(each)), details(each)));
  if (wrong.length) editor.say(detail, ...wrong);
  else hovered(detail);
});

async function hovered(detail) {
  const found = await ask("explain", { text: editor.statement(detail.line) });
  if (found) editor.say(detail, ...tip(found));
}

// ── explaining ──────────────────────────────────────────────────────────────────────────

let resting = 0;
editor.addEventListener("move", () => {
  clearTimeout(resting);
  if (tabs.view === "explain") resting = setTimeout(explain, 200);
});

async function explain(values = []) {
  const text = editor.statement(editor.line);
  const found = await ask("explain", { text, values: Array.isArray(values) ? values : [] }, values.length ? "Computing …" : "");
  if (found && text === editor.statement(editor.line)) tabs.fill("explain", explanation(found, explain));
}

// ── running ─────────────────────────────────────────────────────────────────────────────

function launch() {
  const { source, grid, block, shared, checks, schedules, seed, engine, args } = state;
  const words = Array.from(args, (word) => (word ?? "").trim());
  return {
    source,
    arguments: words.filter(Boolean),
    grid,
    block,
    entry: kernelOf(at("fields"), state),
    shared,
    checks,
    schedules,
    seed,
    engine,
  };
}

async function run(event) {
  event?.preventDefault();
  tabs.open("results");
  const done = await start("run", {}, "Running …");
  if (done) finished(done);
}

/** Launch the kernel in some way; null where that failed, or another launch has begun since. */
async function start(method, more, doing) {
  const turn = ++launches;
  if (state.source !== checked) await during("Checking …", check); // a text that was pasted just now has its own fields
  if (turn !== launches) return null;
  const params = { ...launch(), ...more };
  launched = params.source;
  const done = await ask(method, params, doing);
  if (done === null) launched = null;
  return turn === launches ? done : null;
}

/** Scroll to the view where it is below the window, as on a phone. */
function reveal() {
  if (at("panels").getBoundingClientRect().top > 0.6 * innerHeight) at("tabs").scrollIntoView();
}

function finished(done) {
  problems(done.diagnostics);
  tabs.fill("results", results(done));
  say(done.outcome === "done" ? "Done." : "");
  reveal();
}

async function step() {
  const done = await start("step", { checks: [], schedules: 1, engine: "interp", cta: state.cta }, "Recording …");
  if (!done) return;
  finished(done);
  if (!done.steps.length) return tabs.open("results");
  tabs.open("step");
  stepper.begin(done, launched);
}

async function count() {
  const done = await start("count", { checks: [], schedules: 1, engine: "interp" }, "Counting …");
  if (!done) return;
  finished(done);
  if (!done.metrics) return tabs.open("results");
  tabs.open("count");
  tabs.fill(
    "count",
    counters(done, (line) => editor.go(line)),
  );
}

at("step").addEventListener("click", step);
at("count").addEventListener("click", count);
tabs.addEventListener("open", () => {
  if (tabs.view === "explain") explain();
  if (tabs.view !== "step") editor.show(0);
  else stepper.go(stepper.count);
});

at("launch").addEventListener("submit", run);
at("stop").addEventListener("click", () => {
  launches += 1; // what has not been launched yet is not launched
  at("stop").hidden = true; // a check that goes on for the editor is nothing to wait for
  say("Stopped.");
  python.stop();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(event);
  if (!["F9", "F10"].includes(event.key)) return;
  event.preventDefault();
  follow(event);
});

/** Go on in the launch that was recorded; of another text than that, record one first. */
async function follow({ key, shiftKey }) {
  const isFresh = stepper.source !== state.source;
  if (isFresh) await step();
  if (stepper.source !== state.source) return; // it could not be recorded
  tabs.open("step");
  if (key === "F9") stepper.go(stepper.upTo(editor.line));
  else if (!isFresh) stepper.go(shiftKey ? stepper.before() : stepper.after());
}
for (const box of document.querySelectorAll("[name=check]")) {
  box.addEventListener("change", () => {
    state.checks = [...document.querySelectorAll("[name=check]:checked")].map(({ value }) => value);
  });
}

// ── the whole state ─────────────────────────────────────────────────────────────────────

/** The choice that has begun with a state; none where it is of one's own. */
function begin({ lesson, source }) {
  const example = Object.keys(EXAMPLES).find((name) => EXAMPLES[name].source === source);
  return lesson ? `lesson ${lesson}` : example ? `example ${example}` : "";
}

function restore(found) {
  state = cleaned(found);
  at("examples").value = begin(state);
  renewFields(at("fields"));
  fillFields(at("fields"), state, []);
  fillMore(at("more"), state);
  for (const box of document.querySelectorAll("[name=check]")) box.checked = state.checks.includes(box.value);
  tabs.open(state.view);
  stepper.forget();
  launched = checked = null;
  tabs.fill("results", h("p", { class: "hint" }, "Run the kernel to see its arrays."));
  tabs.fill("step", h("p", { class: "hint" }, "Step records a launch; then you can go through it, forwards and backwards."));
  tabs.fill("count", h("p", { class: "hint" }, "Count tells what a launch does: sectors, bank conflicts, idle lanes."));
  litmus.restore(state);
  lessons.show(state.lesson);
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

python = await backend(say);
lessons.list((await ask("lessons", {}, "Starting …")) ?? []);
at("examples").append(
  h(
    "optgroup",
    { label: "Examples" },
    Object.keys(EXAMPLES).map((name) => h("option", { value: `example ${name}` }, name)),
  ),
  h(
    "optgroup",
    { label: "Lessons" },
    lessons.titles.map(({ name, title: text }) => h("option", { value: `lesson ${name}` }, text)),
  ),
);
at("examples").addEventListener("change", ({ target }) => {
  const [kind, ...name] = target.value.split(" ");
  restore(kind === "lesson" ? lessons.start(name.join(" ")) : EXAMPLES[name.join(" ")]);
});
restore((await unpacked(location.hash)) ?? Object.values(EXAMPLES)[0]);
document.documentElement.dataset.ready = "";
