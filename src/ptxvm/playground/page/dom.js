// Elements from data. Text is always text: nothing here reads markup, so that no text of a kernel or a link becomes an element.

/** An element with properties and children; strings are text, null and false are left out. */
export function h(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && typeof value !== "string") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== false && child !== undefined));
  return element;
}

/** A button. */
export function button(title, onclick, kind = "") {
  return h("button", { type: "button", class: kind, onclick }, title);
}

/** An element of SVG, as `h`. */
export function s(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.flat(Infinity));
  return element;
}

const PARTS = new Set(["svg", "title", "g", "rect", "text", "tspan", "line", "circle", "path", "polygon", "defs", "marker"]);
const ATTRIBUTES = new Set(
  (
    "viewBox width height role x y x1 y1 x2 y2 cx cy r rx d points fill stroke stroke-width stroke-opacity stroke-dasharray " +
    "opacity text-anchor font-size font-weight font-family transform id markerWidth markerHeight refX refY orient marker-end"
  ).split(" "),
);

/** A picture of the backend, part by part: only shapes and letters pass. */
export function picture(text) {
  // The policy refuses styles already where they are read.
  const bare = text.replace(/ style=('[^']*'|"[^"]*")/g, "").replace(/<style>[^<]*<\/style>/g, "");
  const read = new DOMParser().parseFromString(bare, "image/svg+xml").documentElement;
  return copied(read) ?? h("p", {}, "The picture cannot be shown.");
}

/** A picture of the backend in a frame that scrolls, also by keyboard. */
export function framed(text, label, kind = "") {
  return h("div", { class: `scroll drawn ${kind}`, tabindex: "0", role: "region", "aria-label": label }, picture(text));
}

function copied(node) {
  if (!PARTS.has(node.localName)) return null;
  const attributes = [...node.attributes].filter(
    ({ name, value }) => ATTRIBUTES.has(name) && !/url\((?!#)|javascript:/i.test(value),
  );
  const children = [...node.childNodes].map((child) => (child.nodeType === Node.TEXT_NODE ? child.data : copied(child)));
  return s(
    node.localName,
    Object.fromEntries(attributes.map(({ name, value }) => [name, value])),
    children.filter((child) => child !== null),
  );
}

/** A text in which words between backquotes are code. */
export function prose(text) {
  return text.split("`").map((part, n) => (n % 2 ? h("code", {}, part) : part));
}

/** `1 thread`, `2 threads`. */
export function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
