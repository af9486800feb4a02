// What is wrong: a list below the editor, and marks in it.

import { h } from "./dom.js";

/** Fill the list; a click or Enter goes to the place. */
export function listProblems(list, found, go) {
  list.replaceChildren(...(found.length ? found.map((each) => entry(each, go)) : [h("li", { class: "none" }, "None.")]));
}

function entry(found, go) {
  const where = found.line ? `line ${found.line}` : "";
  return h(
    "li",
    { class: found.severity },
    h(
      "button",
      { type: "button", onclick: () => found.line && go(found.line, found.column) },
      title(found),
      " ",
      h("small", {}, where),
    ),
    details(found),
  );
}

/** The severity, the code and the message. */
export function title({ severity, code, message }) {
  return [h("b", {}, `${severity}[${code}]`), `: ${message}`];
}

/** What stands below a message: the label, notes, help, other places. */
export function details({ label, note, help, related }) {
  const rows = [label, note, help && `help: ${help}`, ...related.map((each) => `${each.message}: line ${each.line}`)];
  return rows.filter(Boolean).map((text) => h("p", {}, text));
}
