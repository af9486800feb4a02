"use strict";

// Colours the lines by a metric, shows what the chosen line did, and chooses lines by pointer and by keys.

const lines = JSON.parse(document.getElementById("lines").textContent);
const byId = (id) => document.getElementById(id);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 });
const metric = byId("metric");

function colour() {
  const name = metric.value;
  for (const listing of all(".listing")) {
    const rows = all(".line", listing);
    const values = rows.map((row) => lines[row.id].metrics[name] || 0);
    const most = Math.max(1, ...values);
    rows.forEach((row, n) => {
      row.style.setProperty("--heat", values[n] / most);
      row.querySelector(".amount").textContent = values[n] ? number(values[n]) : "";
    });
  }
  byId("metric-said").textContent = metric.selectedOptions.length ? metric.selectedOptions[0].title : "";
}

function choose(key, scrolls = false) {
  const line = lines[key];
  if (!line) return;
  for (const row of all(".line")) {
    const chosen = row.id === key;
    row.setAttribute("aria-selected", chosen);
    row.classList.toggle("of", line.of.includes(row.id));
    if (chosen) {
      const listing = row.closest(".listing");
      listing.setAttribute("aria-activedescendant", key);
      if (scrolls) row.scrollIntoView({ block: "nearest" });
      else if (!inside(row, listing)) listing.scrollTop += row.getBoundingClientRect().top - listing.getBoundingClientRect().top - 80;
    }
  }
  for (const step of all("g[data-line]")) step.classList.toggle("of", step.dataset.line === key);
  byId("chosen-title").textContent = `${line.place}  (${line.kinds.join(", ")})`;
  byId("chosen-text").textContent = line.text;
  byId("chosen-of").textContent = line.of.length ? `${key.startsWith("ptx") ? "compiled from" : "compiled to"} ${places(line.of)}` : "";
  show(line.metrics);
  const below = key.startsWith("ptx") ? [key] : line.of;
  let pictures = 0;
  for (const figure of all("figure.access")) {
    figure.hidden = !below.includes(figure.dataset.line);
    pictures += !figure.hidden;
  }
  byId("chosen-none").hidden = pictures > 0;
}

function inside(row, listing) {
  const inner = row.getBoundingClientRect(), outer = listing.getBoundingClientRect();
  return inner.top >= outer.top && inner.bottom <= outer.bottom;
}

function chooseAsUser(key, scrolls) {
  choose(key, scrolls);
  history.replaceState(null, "", `#${key}`);
}

function places(keys) {
  const found = keys.map((key) => lines[key].place);
  return found.length > 6 ? `${found.slice(0, 6).join(", ")} and ${found.length - 6} more` : found.join(", ");
}

function show(metrics) {
  byId("chosen-metrics").tBodies[0].replaceChildren(...Object.entries(metrics).map(([name, value]) => {
    const row = document.createElement("tr"), head = document.createElement("th"), cell = document.createElement("td");
    head.scope = "row";
    head.textContent = name;
    cell.className = "right";
    cell.textContent = number(value);
    row.append(head, cell);
    return row;
  }));
}

function move(event) {
  const rows = all(".line", event.currentTarget);
  const now = rows.findIndex((row) => row.getAttribute("aria-selected") === "true");
  const to = { ArrowDown: now + 1, ArrowUp: Math.max(now - 1, 0), Home: 0, End: rows.length - 1 }[event.key];
  if (to === undefined || !rows[to]) return;
  event.preventDefault();
  chooseAsUser(rows[to].id, true);
}

metric.addEventListener("change", colour);
for (const listing of all(".listing")) {
  listing.addEventListener("keydown", move);
  listing.addEventListener("click", (event) => {
    const row = event.target.closest(".line");
    if (row) chooseAsUser(row.id);
  });
}
for (const figure of all("figure.lanes")) {
  figure.addEventListener("click", (event) => {
    const step = event.target.closest("g[data-line]");
    if (step) chooseAsUser(step.dataset.line, true);
  });
}
const warp = byId("warp");
if (warp) {
  warp.addEventListener("change", () => {
    for (const figure of all("figure.lanes")) figure.hidden = figure.dataset.warp !== warp.value;
  });
}
colour();
const asked = decodeURIComponent(location.hash.slice(1));
const costliest = document.querySelector("figure.access");  // the first one
choose(lines[asked] ? asked : costliest ? costliest.dataset.line : "");
