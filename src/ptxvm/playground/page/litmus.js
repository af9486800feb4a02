// Litmus tests: a test, the answer of the memory model, and its executions drawn.

import { framed, h } from "./dom.js";

export const TESTS = {
  "message passing": `PTX MP
{ x = 0; f = 0; P1:r0 = 0; P1:r1 = 0; }
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0        ;
 st.weak x, 1          | ld.relaxed.gpu r0, f  ;
 st.relaxed.gpu f, 1   | ld.weak r1, x         ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
`,
  "message passing, released": `PTX MP-released
{ x = 0; f = 0; P1:r0 = 0; P1:r1 = 0; }
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0        ;
 st.weak x, 1          | ld.acquire.gpu r0, f  ;
 st.release.gpu f, 1   | ld.weak r1, x         ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
`,
  "store buffering": `PTX SB
{ x = 0; y = 0; P0:r0 = 0; P1:r1 = 0; }
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0        ;
 st.relaxed.gpu x, 1   | st.relaxed.gpu y, 1   ;
 ld.relaxed.gpu r0, y  | ld.relaxed.gpu r1, x  ;
exists (P0:r0 == 0 /\\ P1:r1 == 0)
`,
};

export class Litmus {
  /** `ask` judges a test; `state` keeps its text. */
  constructor(panel, ask, state) {
    this.ask = ask;
    this.state = state;
    this.text = h("textarea", {
      class: "test",
      rows: "9",
      spellcheck: "false",
      "aria-label": "Litmus test",
      oninput: () => (state().litmus = this.text.value),
    });
    this.pick = h(
      "select",
      { "aria-label": "Test", onchange: () => this.choose(this.pick.value) },
      Object.keys(TESTS).map((name) => h("option", {}, name)),
    );
    this.answer = h("div", { "aria-live": "polite" });
    const version = h(
      "select",
      { "aria-label": "Version of the model", onchange: () => (state().model = version.value) },
      ["9.1", "6.4"].map((name) => h("option", { value: name }, `PTX ${name}`)),
    );
    this.version = version;
    panel(
      h(
        "div",
        { class: "bar" },
        this.pick,
        version,
        h("button", { type: "button", class: "main", onclick: () => this.judge() }, "Judge"),
      ),
      this.text,
      this.answer,
    );
  }

  choose(name) {
    this.restore({ litmus: TESTS[name], model: this.version.value });
    this.state().litmus = TESTS[name];
  }

  restore({ litmus, model }) {
    this.text.value = litmus || TESTS["message passing"];
    this.version.value = model === "6.4" ? "6.4" : "9.1";
    this.answer.replaceChildren();
  }

  async judge() {
    const found = await this.ask({ source: this.text.value, model: this.version.value });
    if (found) this.answer.replaceChildren(...judgement(found));
  }
}

function judgement({ question, verdict, outcomes, races, axiom, explained }) {
  const head = [
    h("p", { class: "outcome" }, `${question}: ${verdict}${axiom ? `, by ${axiom}` : ""}`),
    ...races.map((race) => h("p", { class: "hint" }, `race: ${race}`)),
  ];
  const why = explained
    ? [
        h(
          "details",
          { open: true },
          h("summary", {}, `Why it is ${verdict}`),
          framed(explained, "The forbidden execution", "paper"),
        ),
      ]
    : [];
  return [...head, ...why, h("h3", {}, "Outcomes"), ...outcomes.map(outcome)];
}

function outcome({ state, condition, allowed, axiom, drawing }) {
  const text = Object.entries(state)
    .map(([name, value]) => `${name} = ${value}`)
    .join(", ");
  const mark = allowed ? (condition ? "allowed, and asked for" : "allowed") : `forbidden${axiom ? ` by ${axiom}` : ""}`;
  return h(
    "details",
    { class: allowed ? "allowed" : "forbidden" },
    h("summary", {}, h("code", {}, text), ` ${mark}`),
    drawing ? framed(drawing, `The execution of ${text}`, "paper") : "",
  );
}
