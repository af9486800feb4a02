// The editor: a text area, with colours, marks and numbers drawn behind it for the lines that are in view.

import { h } from "./dom.js";
import { parts } from "./highlight.js";

const TAB = 4;

/** The column on the screen of a column of a line (both from 0), where tabs are wide. */
function visual(line, column) {
  let at = 0;
  for (const letter of [...line].slice(0, column)) at += letter === "\t" ? TAB - (at % TAB) : 1;
  return at;
}

export class Editor extends EventTarget {
  constructor(root, tip) {
    super();
    this.area = root.querySelector("textarea");
    this.ink = root.querySelector(".ink");
    this.gutter = root.querySelector(".gutter");
    this.tip = tip;
    this.marks = [];
    this.current = 0;
    this.lines = [""];
    this.states = [false];
    this.area.addEventListener("input", () => this.changed());
    this.area.addEventListener("scroll", () => this.draw());
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.area.addEventListener("mousemove", (event) => this.hover(event));
    this.area.addEventListener("mouseleave", () => this.hide());
    document.addEventListener("selectionchange", () => document.activeElement === this.area && this.moved());
    new ResizeObserver(() => this.draw()).observe(this.area);
  }

  get text() {
    return this.area.value;
  }

  set text(value) {
    this.area.value = value;
    this.area.scrollTop = 0;
    this.area.setSelectionRange(0, 0);
    this.changed();
  }

  /** The line of the cursor, from 1. */
  get line() {
    return this.text.slice(0, this.area.selectionStart).split("\n").length;
  }

  /** The statement that a line is in: with the lines after it up to its semicolon. */
  statement(line) {
    let text = this.lines[line - 1] ?? "";
    const bare = (each) => each.replace(/\/\/.*/, "").trim();
    for (let n = line; bare(text) && !/[;{}:]$/.test(bare(text)) && n < Math.min(line + 8, this.lines.length); n++)
      text = `${bare(text)} ${this.lines[n]}`;
    return text;
  }

  changed() {
    this.lines = this.text.split("\n");
    this.states = [false];
    for (const line of this.lines) this.states.push(parts(line, this.states.at(-1)).inComment);
    this.marks = [];
    this.current = 0;
    this.draw();
    this.dispatchEvent(new Event("change"));
  }

  moved() {
    if (this.line === this.was) return;
    this.was = this.line;
    this.dispatchEvent(new Event("move"));
  }

  /** Mark places: `{line, column, end_line, end_column, severity, message}`, columns from 1. */
  mark(marks) {
    this.marks = marks;
    this.draw();
  }

  /** Show which line is being executed; 0 is none. */
  show(line) {
    this.current = line;
    if (line) this.reveal(line);
    this.draw();
  }

  /** Put the cursor on a line, and give the editor the focus. */
  go(line, column = 1) {
    const before = this.lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    const within = [...(this.lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
    this.area.focus();
    this.area.setSelectionRange(before + within, before + within);
    this.reveal(line);
  }

  get height() {
    return parseFloat(getComputedStyle(this.area).lineHeight);
  }

  reveal(line) {
    const y = (line - 1) * this.height;
    const { scrollTop, clientHeight } = this.area;
    if (y < scrollTop + this.height || y > scrollTop + clientHeight - 3 * this.height)
      this.area.scrollTop = Math.max(0, y - clientHeight / 3);
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    const { scrollTop, scrollLeft, clientHeight } = this.area;
    const height = this.height;
    const first = Math.floor(scrollTop / height);
    const last = Math.min(this.lines.length, first + Math.ceil(clientHeight / height) + 1);
    const numbers = Array.from({ length: last - first }, (_, n) => first + n + 1);
    this.ink.replaceChildren(...numbers.map((number) => this.painted(number)));
    this.ink.style.transform = `translate(${-scrollLeft}px, ${first * height - scrollTop}px)`;
    this.gutter.replaceChildren(...numbers.map((number) => h("div", { class: this.kind(number) }, String(number))));
    this.gutter.firstChild?.style.setProperty("margin-top", `${first * height - scrollTop}px`);
  }

  kind(number) {
    const severities = this.marks.filter((mark) => mark.line === number).map((mark) => mark.severity);
    const worst = ["error", "warning", "note"].find((each) => severities.includes(each)) ?? "";
    return `${worst} ${number === this.current ? "current" : ""}`;
  }

  painted(number) {
    const line = this.lines[number - 1];
    const { found } = parts(line, this.states[number - 1]);
    const row = h(
      "div",
      { class: number === this.current ? "current" : "" },
      found.map(([kind, text]) => h("span", { class: kind }, text)),
    );
    for (const mark of this.marks.filter((each) => each.line <= number && number <= each.end_line)) {
      const from = mark.line === number ? visual(line, mark.column - 1) : visual(line, line.length - line.trimStart().length);
      const to = mark.end_line === number ? visual(line, mark.end_column - 1) : visual(line, line.length);
      const wave = h("i", { class: mark.severity });
      wave.style.left = `${from}ch`;
      wave.style.width = `${Math.max(1, to - from)}ch`;
      row.append(wave);
    }
    return row;
  }

  // ── keys ──────────────────────────────────────────────────────────────────────────────

  key(event) {
    this.hide(); // a tip covers lines that one types in
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey) {
      const indent = /^[ \t]*/.exec(this.lines[this.line - 1])[0];
      if (!indent) return;
      event.preventDefault();
      this.insert(`\n${indent}`);
    } else if (event.key === "F8" && this.marks.length) {
      event.preventDefault();
      const next = this.marks.toSorted((a, b) => a.line - b.line);
      const mark = next.find((each) => each.line > this.line) ?? next[0];
      this.go(mark.line, mark.column);
    }
  }

  /** Insert a text at the cursor, so that it can be undone. */
  insert(text) {
    if (!document.execCommand("insertText", false, text)) {
      this.area.setRangeText(text, this.area.selectionStart, this.area.selectionEnd, "end");
      this.changed();
    }
  }

  // ── what stands under the pointer ─────────────────────────────────────────────────────

  hover(event) {
    const box = this.area.getBoundingClientRect();
    const style = getComputedStyle(this.area);
    const line = Math.floor((event.clientY - box.top - parseFloat(style.paddingTop) + this.area.scrollTop) / this.height) + 1;
    const column = (event.clientX - box.left - parseFloat(style.paddingLeft) + this.area.scrollLeft) / this.wide();
    const text = this.lines[line - 1] ?? "";
    const over = column >= 0 && column < visual(text, text.length) ? this.letter(text, column) : -1;
    if (over < 0 || !text.trim()) return this.hide();
    const key = `${line}:${this.word(text, over)}`;
    if (key === this.over) return;
    this.hide();
    this.over = key;
    const at = {
      line,
      column: over + 1,
      x: event.clientX,
      y: box.top + parseFloat(style.paddingTop) + line * this.height - this.area.scrollTop,
    };
    this.pending = setTimeout(() => this.dispatchEvent(new CustomEvent("hover", { detail: at })), 250);
  }

  letter(text, column) {
    return [...text].findIndex((_, n) => visual(text, n + 1) > column);
  }

  word(text, column) {
    return text.slice(0, column).length - /[\w.%$:]*$/.exec(text.slice(0, column))[0].length;
  }

  wide() {
    const probe = (this.probe ??= this.ink.parentElement.appendChild(
      h("span", { class: "probe", "aria-hidden": "true" }, "0".repeat(100)),
    ));
    return probe.getBoundingClientRect().width / 100;
  }

  /** Show a tip at a place that `hover` told of, if the pointer is still there. */
  say(at, ...content) {
    if (!this.over?.startsWith(`${at.line}:`) || !content.length) return;
    this.tip.replaceChildren(...content);
    this.tip.hidden = false;
    const { width, height } = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.max(8, Math.min(at.x, innerWidth - width - 12))}px`;
    this.tip.style.top = `${at.y + height + 8 > innerHeight ? Math.max(8, at.y - this.height - height - 4) : at.y + 4}px`;
  }

  hide() {
    clearTimeout(this.pending);
    this.over = null;
    this.tip.hidden = true;
  }
}
