// The lessons: a text and a task beside the kernel, and whether it is solved.

import { button, h } from "./dom.js";

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
    return (
      lesson && {
        source: lesson.source,
        grid: lesson.grid,
        block: lesson.block,
        args: lesson.arguments,
        checks: lesson.checks,
        seed: 1,
        lesson: name,
        view: "lesson",
      }
    );
  }

  /** Show a lesson; all of them where there is none of the name. */
  show(name) {
    const number = this.all.findIndex((each) => each.name === name);
    if (number < 0) return this.overview();
    const lesson = this.all[number];
    this.page.fill(
      h("h2", {}, `${number + 1}. ${lesson.title}`),
      lesson.text.split("\n\n").map((part) => h("p", {}, part)),
      this.task(lesson, this.all[number + 1]),
      h(
        "div",
        { class: "bar" },
        button("Start again", () => this.page.open(this.start(name))),
        button("Show a solution", () => this.page.open({ ...this.start(name), source: lesson.solution })),
        button("All lessons", () => this.page.open({ ...this.start(name), lesson: "" })),
      ),
    );
  }

  overview() {
    const said =
      "Twelve short lessons lead from one thread that adds to the tensor cores. Each has a kernel with something missing.";
    const entry = ({ name, title }) => button(title.replace(/^\d+\. /, ""), () => this.page.open(this.start(name)), "plain");
    const list = this.titles.map((each) => h("li", {}, entry(each)));
    this.page.fill(h("h2", {}, "Lessons"), h("p", {}, said), h("ol", { class: "course" }, list));
  }

  /** The task of a lesson, and whether it is solved; `following` is the lesson after it. */
  task({ name, task }, following) {
    const verdict = h("p", { role: "status", class: "verdict" });
    const next = button("Next lesson", () => this.page.open(this.start(following.name)));
    next.hidden = true;
    const check = async () => {
      verdict.textContent = "Trying …";
      const found = await this.page.solve(name);
      const right = found?.missing === "";
      verdict.className = `verdict ${right ? "right" : "wrong"}`;
      verdict.textContent = !found ? "" : right ? "Solved." : `Not yet: ${found.missing}`;
      next.hidden = !right || !following;
      if (right) this.remember(name);
    };
    const ask = button("Is it solved?", check, "main");
    ask.id = "solve";
    return h("div", { class: "task" }, h("h3", {}, "Task"), h("p", {}, task), h("div", { class: "bar" }, ask, next), verdict);
  }

  remember(name) {
    try {
      localStorage.setItem(SOLVED, JSON.stringify([...solved().add(name)]));
    } catch {
      return; // a browser that keeps nothing still shows that it is solved
    }
  }
}
