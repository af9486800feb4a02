// What a launch did: counters against their ideals, by line, and the costliest accesses drawn.

import { framed, h } from "./dom.js";
import { short } from "./plots.js";

const HEADS = ["line", "warps", "lanes", "sectors", "wavefronts", "instruction"];

/** The content of the view; `go` shows a line in the editor. */
export function counters({ metrics, lines, pictures }, go) {
  const title = h("h3", {}, "By line");
  return [
    h("div", { class: "metrics" }, metrics.map(metric)),
    title,
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Counters by line" }, table(lines, go)),
    pictures.map(access),
  ];
}

function metric({ title, value, ideal, part, sentence }) {
  const meter = h("meter", {
    min: "0",
    max: "1",
    low: "0.5",
    high: "0.9",
    optimum: "1",
    value: String(part),
    "aria-label": `${title}: part of the ideal`,
  });
  return h(
    "div",
    { class: "metric" },
    h("b", {}, title),
    h("span", {}, `${short(value)} (ideal ${short(ideal)})`),
    meter,
    h("p", { class: "hint" }, sentence),
  );
}

function table(lines, go) {
  const over = (value, ideal) => (value && ideal ? `${value}${value > ideal ? ` ×${(value / ideal).toFixed(1)}` : ""}` : "");
  const rows = lines.map((each) =>
    h(
      "tr",
      {},
      h(
        "th",
        { scope: "row" },
        h("button", { type: "button", class: "plain", onclick: () => go(each.line) }, String(each.line)),
      ),
      h("td", {}, String(each.inst_executed)),
      h("td", {}, (each.threads_true_per_inst ?? 0).toFixed(1)),
      h(
        "td",
        { class: each.global_sectors > each.global_sectors_ideal ? "costly" : "" },
        over(each.global_sectors, each.global_sectors_ideal),
      ),
      h(
        "td",
        { class: each.shared_wavefronts > each.shared_wavefronts_ideal ? "costly" : "" },
        over(each.shared_wavefronts, each.shared_wavefronts_ideal),
      ),
      h("td", { class: "left-aligned" }, each.text),
    ),
  );
  return h(
    "table",
    { class: "values" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        HEADS.map((head) => h("th", { scope: "col" }, head)),
      ),
    ),
    h("tbody", {}, rows),
  );
}

function access({ line, text, sentence, drawn, cost, ideal }) {
  return h(
    "details",
    { open: cost > ideal },
    h("summary", {}, h("code", {}, `${line}  ${text}`)),
    h("p", { class: "hint" }, sentence),
    drawn.map((each, n) => framed(each, `Picture ${n + 1} of line ${line}`)),
  );
}
