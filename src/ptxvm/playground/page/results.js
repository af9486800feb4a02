// What a launch left: its arrays as numbers and plots, what was printed, and what it did.

import { h, plural } from "./dom.js";
import { plot } from "./plots.js";

const FIRST = 256; // values that are shown before one asks for more
const IN_A_ROW = 8;
const WORDS = {
  done: "The kernel has run.",
  invalid: "This is no valid PTX.",
  fault: "The kernel has a fault.",
  unsupported: "ptxvm cannot run this yet.",
};

/** The content of the view. */
export function results(done) {
  const found = done.diagnostics.filter((each) => each.severity !== "note").length;
  const checked = done.outcome === "done" && found ? ` ${plural(found, "problem")} found.` : "";
  return [
    h("p", { class: `outcome ${done.outcome}` }, (WORDS[done.outcome] ?? done.outcome) + checked),
    done.message && h("p", { class: "message" }, done.message),
    done.counters && h("p", { class: "hint" }, counted(done.counters)),
    done.output && [h("h3", {}, "Printed"), h("pre", { tabindex: "0" }, done.output)],
    done.arguments.map(argument),
  ];
}

function counted({ ctas, threads, instructions, thread_instructions: all, seconds, schedules }) {
  const runs = schedules > 1 ? `, in each of ${schedules} schedules` : "";
  const groups = `${instructions.toLocaleString("en")} instructions of groups`;
  return `${plural(ctas, "CTA")}, ${plural(threads, "thread")}: ${groups}, ${all.toLocaleString("en")} of threads${runs}; ${(seconds * 1000).toFixed(1)} ms here`;
}

function argument(found) {
  if (found.values === undefined) return h("p", { class: "scalar" }, h("code", {}, found.name), ` = ${found.value}`);
  const changed = found.changed.length ? `, ${found.changed.length} changed` : ", unchanged";
  const title = h("h3", {}, h("code", {}, found.name), ` ${found.type}[${found.shape.join(",")}]`, h("small", {}, changed));
  const table = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Values of ${found.name}` });
  const columns = found.shape.length > 1 ? Math.min(found.shape.at(-1), 32) : IN_A_ROW;
  const show = (count) => table.replaceChildren(values(found, columns, count));
  show(FIRST);
  const rest = found.size - FIRST;
  const more =
    rest > 0 &&
    h(
      "button",
      { type: "button", onclick: (event) => (show(Infinity), event.target.remove()) },
      `Show ${rest > found.values.length - FIRST ? "more" : "all"}`,
    );
  return h("section", { class: "array" }, title, plot(found), table, more);
}

function values({ values: all, changed }, columns, count) {
  const places = new Set(changed);
  const shown = all.slice(0, count);
  const rows = [];
  for (let from = 0; from < shown.length; from += columns) {
    const cells = shown
      .slice(from, from + columns)
      .map((value, n) => h("td", places.has(from + n) ? { class: "changed" } : {}, String(value)));
    rows.push(h("tr", {}, h("th", { scope: "row" }, String(from)), cells));
  }
  return h("table", { class: "values" }, h("tbody", {}, rows));
}
