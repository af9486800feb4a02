// Values as pictures: a row of bars, a line, or a field of squares.

import { s } from "./dom.js";

const WIDE = 640;
const HIGH = 150;
const LEFT = 56;
const BARS = 128; // values that have a bar each; more are a line

/** A plot of an array, a picture with a title; null where no number is finite. */
export function plot({ name, type, shape, values }) {
  const numbers = values.map(Number);
  const finite = numbers.filter(Number.isFinite);
  if (finite.length < 2) return null;
  const [low, high] = finite.reduce(([a, b], x) => [Math.min(a, x), Math.max(b, x)], [Infinity, -Infinity]);
  const title = `${name}: ${type}, ${values.length} values from ${short(low)} to ${short(high)}`;
  if (shape.length === 2 && shape[0] > 1 && shape[1] > 1 && numbers.length === shape[0] * shape[1])
    return field(title, shape, numbers, low, high);
  return graph(title, numbers, Math.min(0, low), Math.max(0, high));
}

function graph(title, numbers, low, high) {
  const range = high - low || 1;
  const x = (n) => LEFT + (n / numbers.length) * (WIDE - LEFT);
  const y = (value) => 8 + (1 - (value - low) / range) * (HIGH - 26);
  const drawn = numbers.length <= BARS ? numbers.map((value, n) => bar(value, n, x, y)) : [line(numbers, x, y)];
  const axis = s("line", { x1: LEFT, x2: WIDE, y1: y(0), y2: y(0), class: "axis" });
  const labels = [
    label(LEFT - 6, y(high) + 4, short(high), "end"),
    label(LEFT, HIGH - 2, "0", "start"),
    label(WIDE, HIGH - 2, numbers.length - 1, "end"),
  ];
  if (low < 0 || high > 0) labels.push(label(LEFT - 6, y(low) + 4, short(low), "end"));
  return s("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", class: "plot" }, s("title", {}, title), drawn, axis, labels);
}

function bar(value, n, x, y) {
  if (!Number.isFinite(value))
    return s("text", { x: (x(n) + x(n + 1)) / 2, y: y(0) - 2, class: "odd", "text-anchor": "middle" }, "×");
  const [top, bottom] = [Math.min(y(value), y(0)), Math.max(y(value), y(0))];
  return s("rect", {
    x: x(n) + 0.5,
    y: top,
    width: Math.max(1, x(n + 1) - x(n) - 1),
    height: Math.max(0.5, bottom - top),
    class: "bar",
  });
}

function line(numbers, x, y) {
  let path = "";
  numbers.forEach((value, n) => {
    if (Number.isFinite(value))
      path += `${path && Number.isFinite(numbers[n - 1]) ? "L" : "M"}${x(n + 0.5).toFixed(1)} ${y(value).toFixed(1)}`;
  });
  return s("path", { d: path, class: "line" });
}

function field(title, [rows, columns], numbers, low, high) {
  const cell = Math.max(2, Math.min(24, 560 / columns));
  const squares = numbers.map((value, n) => {
    const part = Number.isFinite(value) ? (value - low) / (high - low || 1) : 0;
    return s("rect", {
      x: (n % columns) * cell,
      y: Math.floor(n / columns) * cell,
      width: cell,
      height: cell,
      class: "cell",
      "fill-opacity": (0.06 + 0.94 * part).toFixed(3),
    });
  });
  return s(
    "svg",
    { viewBox: `0 0 ${columns * cell} ${rows * cell}`, width: columns * cell, role: "img", class: "plot field" },
    s("title", {}, title),
    squares,
  );
}

function label(x, y, text, anchor) {
  return s("text", { x, y, "text-anchor": anchor, class: "label" }, String(text));
}

/** A number in few digits. */
export function short(value) {
  return Number.isInteger(value) && Math.abs(value) < 1e7 ? String(value) : Number(value.toPrecision(4)).toString();
}
