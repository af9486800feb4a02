// A recorded launch, step by step: forwards and backwards, with the registers of a warp as a table.

import { h, plural } from "./dom.js";

const LANES = 32;

/** The values of lanes, an array of 32, as the backend packs them. */
function unpackedCells(cells, old = []) {
  if (typeof cells === "string") return new Array(LANES).fill(cells);
  const values = Array.from({ length: LANES }, (_, lane) => old[lane]);
  for (const [lane, value] of cells) values[lane] = value;
  return values;
}

const has = (mask, lane) => (mask >>> lane) & 1;
const lanesOf = (mask) => Array.from({ length: LANES }, (_, lane) => lane).filter((lane) => has(mask, lane));

/** The registers of each warp before each of some steps, so that any step is near one of them. */
class History {
  constructor(steps) {
    this.steps = steps;
    this.kept = [new Map()];
    this.every = 64;
  }

  /** The registers of a warp after so many steps: name to `{type, values}`. */
  at(count) {
    let page = Math.min(Math.floor(count / this.every), this.kept.length - 1);
    let found = this.kept[page];
    for (let n = page * this.every; n < count; n++) {
      found = applied(found, this.steps[n]);
      if ((n + 1) % this.every === 0) this.kept[(n + 1) / this.every] ??= found;
    }
    return found;
  }
}

/** All registers after a step: those of the other warps are the same. */
function applied(warps, step) {
  if (!step.writes.length) return warps;
  const registers = new Map(warps.get(step.warp));
  for (const { name, type, values } of step.writes)
    registers.set(name, { type, values: unpackedCells(values, registers.get(name)?.values) });
  return new Map(warps).set(step.warp, registers);
}

export class Stepper {
  /** `show` is called with the line of each step, 0 where there is none; `panel` takes the content. */
  constructor(panel, show) {
    this.panel = panel;
    this.show = show;
    this.forget();
  }

  /** There is no recorded launch. */
  forget() {
    this.steps = this.source = null;
  }

  /** Begin with a recorded launch of a kernel. */
  begin(done, source) {
    this.source = source;
    this.done = done;
    this.steps = done.steps;
    this.history = new History(this.steps);
    this.count = 0;
    this.only = done.warps > 1 ? String(done.steps[0].warp) : "";
    this.build();
    this.go(0);
  }

  build() {
    const button = (title, to, keys = "") =>
      h("button", { type: "button", "aria-keyshortcuts": keys, onclick: () => this.go(to()) }, title);
    this.slider = h("input", {
      type: "range",
      min: "0",
      max: String(this.steps.length),
      value: "0",
      "aria-label": "Step",
      oninput: (event) => this.go(Number(event.target.value)),
    });
    const warps = Array.from({ length: this.done.warps }, (_, n) => h("option", { value: String(n) }, `warp ${n}`));
    const follow = h(
      "select",
      { "aria-label": "Which warp", onchange: (event) => this.follow(event.target.value) },
      h("option", { value: "" }, "every warp"),
      warps,
    );
    follow.value = this.only;
    this.where = h("p", { role: "status", class: "where" });
    this.what = h("div", { class: "what" });
    this.table = h("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Registers of the warp" });
    const bar = h(
      "div",
      { class: "bar" },
      button("First", () => 0),
      button("Back", () => this.before(), "Shift+F10"),
      button("Step", () => this.after(), "F10"),
      button("Last", () => this.steps.length),
      this.done.warps > 1 && follow,
    );
    const left =
      this.done.left > 0 &&
      h("p", { class: "hint" }, `${plural(this.done.left, "more instruction")} of this CTA are not recorded.`);
    this.panel(
      bar,
      this.slider,
      this.where,
      this.what,
      this.table,
      left || "",
      h(
        "p",
        { class: "hint" },
        `CTA ${this.done.cta}: ${plural(this.steps.length, "instruction")} of ${plural(this.done.warps, "warp")} recorded. F10 steps, Shift+F10 goes back, F9 goes on to the line of the cursor.`,
      ),
    );
  }

  /** Step through one warp, or through all in the order of the schedule. */
  follow(warp) {
    this.only = warp;
    this.go(this.count);
  }

  after() {
    let n = this.count + 1;
    while (this.only && n < this.steps.length && String(this.steps[n].warp) !== this.only) n++;
    return n;
  }

  /** What was executed last, by the warp that is followed; undefined at the beginning. */
  last() {
    let n = this.count - 1;
    while (this.only && n >= 0 && String(this.steps[n].warp) !== this.only) n--;
    return this.steps[n];
  }

  /** The step before which a line is next; the end where there is none. */
  upTo(line) {
    let n = this.count + 1;
    while (n < this.steps.length && (this.steps[n].line !== line || (this.only && String(this.steps[n].warp) !== this.only)))
      n++;
    return n;
  }

  before() {
    let n = this.count - 1;
    while (this.only && n > 0 && String(this.steps[n].warp) !== this.only) n--;
    return n;
  }

  /** Show the launch after so many steps. */
  go(count) {
    if (!this.steps) return;
    this.count = Math.max(0, Math.min(this.steps.length, count));
    const last = this.last();
    const next = this.steps[this.count];
    this.slider.value = String(this.count);
    const warp = this.only ? Number(this.only) : (next?.warp ?? last?.warp ?? 0);
    this.where.textContent = `Step ${this.count} of ${this.steps.length}${next ? `; next: warp ${next.warp}, line ${next.line}` : "; the end"}`;
    this.what.replaceChildren(...(last ? told(last) : [h("p", { class: "hint" }, "Before the first instruction.")]));
    const registers = this.history.at(this.count).get(warp) ?? new Map();
    this.table.replaceChildren(table(registers, warp, next?.warp === warp ? next : null, last?.warp === warp ? last : null));
    this.show(next?.line ?? 0);
  }
}

/** What a step did, in words. */
function told({ line, text, lanes, on, warp, targets }) {
  const idle = lanesOf(lanes & ~on);
  const parts = [];
  if (lanes !== -1 && lanes !== 0xffffffff) parts.push(`${plural(lanesOf(lanes).length, "lane")} active`);
  if (idle.length) parts.push(`guard off in ${plural(idle.length, "lane")}`);
  const to = [...new Set(unpackedCells(targets).filter(Boolean))].map((each) => (each === "0" ? "the end" : `line ${each}`));
  if (to.length) parts.push(`goes on at ${to.join(" and ")}${to.length > 1 ? ": the warp diverges" : ""}`);
  return [h("p", {}, h("code", {}, `${line}  ${text}`), ` warp ${warp}${parts.length ? `; ${parts.join(", ")}` : ""}`)];
}

/** What the last step accessed, and the registers of a warp: a row each, a column a lane; one cell where all lanes have the same. */
function table(registers, warp, next, last) {
  const active = next ? next.lanes : 0;
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, `warp ${warp}`),
    Array.from({ length: LANES }, (_, lane) =>
      h("th", { scope: "col", class: next && !has(active, lane) ? "idle" : "" }, String(lane)),
    ),
  );
  const written = new Set(last ? last.writes.map(({ name }) => name) : []);
  const row = (name, type, values, kind) => {
    const same = values[0] !== undefined && values.every((value) => value === values[0]);
    const cells = same
      ? h("td", { class: `${kind} all`, colspan: String(LANES) }, `${values[0]}  in all lanes`)
      : values.map((value, lane) => h("td", { class: `${kind} ${next && !has(active, lane) ? "idle" : ""}` }, value ?? "·"));
    return h("tr", {}, h("th", { scope: "row" }, name, " ", h("small", {}, `.${type}`)), cells);
  };
  const touched = (last?.accesses ?? []).flatMap(({ verb, space, type, places, values }) => [
    row(verb, space, unpackedCells(places), "access"),
    row("", type, unpackedCells(values), "access"),
  ]);
  const sorted = [...registers].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
  const rows = [
    ...touched,
    ...sorted.map(([name, { type, values }]) => row(name, type, values, written.has(name) ? "changed" : "")),
  ];
  return h("table", { class: "values registers" }, h("thead", {}, head), h("tbody", {}, rows));
}
