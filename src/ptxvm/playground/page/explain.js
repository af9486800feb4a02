// The instruction under the cursor: in words, with the values of lanes, and drawn.

import { framed, h, prose } from "./dom.js";

/** The content of the view; `ask` is called with NAME=VALUE of registers that the user sets. */
export function explanation(found, ask) {
  if (!found.found) return [h("p", { class: "hint" }, "Put the cursor on an instruction.")];
  const rows = (label, each) =>
    each?.length
      ? [
          h("h3", {}, label),
          h(
            "table",
            { class: "rows" },
            h(
              "tbody",
              {},
              each.map((cells) =>
                h(
                  "tr",
                  {},
                  cells.map((cell, n) =>
                    h(n ? "td" : "th", n ? {} : { scope: "row" }, h(n && n === cells.length - 1 ? "span" : "code", {}, cell)),
                  ),
                ),
              ),
            ),
          ),
        ]
      : [];
  return [
    h("h2", {}, h("code", {}, found.title)),
    ...found.summary.split("\n\n").map((part) => h("p", {}, prose(part))),
    found.form && h("p", { class: "hint" }, h("code", {}, found.form), h("br"), `${found.section}; needs ${found.needs}`),
    !found.form && found.section && h("p", { class: "hint" }, found.section),
    rows("Modifiers", found.modifiers),
    rows("Operands", found.operands),
    found.effects?.length ? h("p", { class: "hint" }, `It ${found.effects.join("; ")}.`) : null,
    found.inputs?.length ? inputs(found.inputs, ask) : null,
    found.note && h("p", { class: "hint" }, found.note),
    (found.pictures ?? []).map((each, n) => framed(each, `Picture ${n + 1}`)),
  ];
}

function inputs(found, ask) {
  const fields = found.map(([name, type, value]) =>
    h("label", {}, h("span", {}, name, " ", h("small", {}, `.${type}`)), h("input", { name, value, spellcheck: "false" })),
  );
  const submit = (event) => {
    event.preventDefault();
    ask([...event.target.querySelectorAll("input")].map((field) => `${field.name}=${field.value}`));
  };
  return [
    h("h3", {}, "With values"),
    h("p", { class: "hint" }, "A number, bits as 0x6400, or an expression in lane, as lane*4."),
    h("form", { class: "fields", onsubmit: submit }, fields, h("button", {}, "Compute")),
  ];
}

/** What a hover shows of it. */
export function tip(found) {
  if (!found.found) return [];
  const modifiers = (found.modifiers ?? []).map(([word, said]) => h("p", {}, h("code", {}, word), ` ${said}`));
  return [h("div", {}, h("b", {}, h("code", {}, found.title)), h("p", {}, prose(found.summary.split("\n\n")[0])), modifiers)];
}
