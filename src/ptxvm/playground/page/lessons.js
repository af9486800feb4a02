// The lessons: a text and a task beside the kernel, and whether it is solved.

import { h } from "./dom.js";

const SOLVED = "ptxvm-lessons-solved";

/** The names of the lessons that were solved in this browser. */
function solved() {
  try {
    const found = JSON.parse(localStorage.getItem(SOLVED));
    return new Set(Array.isArray(found) ? found : []);
  } catch {
    return new Set();
  }
}

export class Lessons {
  /** `page` has `open(state)`, `solve(name)`, `source()` and `fill(...content)`. */
  constructor(page) {
    this.page = page;
    this.all = [];
  }

  list(all) {
    this.all = all;
  }

  get titles() {
    const done = solved();
    return this.all.map(({ name, title }, n) => ({ name, title: `${n + 1}. ${title}${done.has(name) ? " ✓" : ""}` }));
  }

  /** The state that a lesson begins with. */
  start(name) {
    const lesson = this.all.find((each) => each.name === name);
    return lesson && { source: lesson.source, grid: lesson.grid, block: lesson.block, args: lesson.arguments, checks: lesson.checks, seed: 1, lesson: name, view: "lesson" };
  }

  /** Show a lesson; nothing where there is none of the name. */
  show(name) {
    const number = this.all.findIndex((each) => each.name === name);
    const lesson = this.all[number];
    if (!lesson) return this.page.fill(h("h2", {}, "Lessons"), h("p", {}, "Twelve short lessons lead from one thread that adds to the tensor cores. Each has a kernel with something missing."), h("ol", { class: "course" }, this.titles.map((each) => h("li", {}, h("button", { type: "button", class: "plain", onclick: () => this.page.open(this.start(each.name)) }, each.title.replace(/^\d+\. /, ""))))));
    const verdict = h("p", { role: "status", class: "verdict" });
    const next = h("button", { type: "button", hidden: true, onclick: () => this.page.open(this.start(this.all[number + 1].name)) }, "Next lesson");
    const check = async () => {
      verdict.textContent = "Trying …";
      const found = await this.page.solve(name);
      if (!found) return (verdict.textContent = "");
      const right = found.missing === "";
      verdict.className = `verdict ${right ? "right" : "wrong"}`;
      verdict.textContent = right ? "Solved." : `Not yet: ${found.missing}`;
      next.hidden = !right || number + 1 >= this.all.length;
      if (right) this.remember(name);
    };
    const restart = () => this.page.open(this.start(name));
    const reveal = () => this.page.open({ ...this.start(name), source: lesson.solution });
    this.page.fill(
      h("h2", {}, `${number + 1}. ${lesson.title}`),
      lesson.text.split("\n\n").map((part) => h("p", {}, part)),
      h("div", { class: "task" }, h("h3", {}, "Task"), h("p", {}, lesson.task), h("div", { class: "bar" }, h("button", { type: "button", class: "main", id: "solve", onclick: check }, "Is it solved?"), next), verdict),
      h("div", { class: "bar" }, h("button", { type: "button", onclick: restart }, "Start again"), h("button", { type: "button", onclick: reveal }, "Show a solution"), h("button", { type: "button", onclick: () => this.page.open({ ...this.start(name), lesson: "" }) }, "All lessons")),
    );
  }

  remember(name) {
    try {
      localStorage.setItem(SOLVED, JSON.stringify([...solved().add(name)]));
    } catch {
      return; // a browser that keeps nothing still shows that it is solved
    }
  }
}
