// Views beside the editor: a list of tabs, as the pattern of ARIA has it: arrows go from one to the next.

import { h } from "./dom.js";

export class Tabs extends EventTarget {
  constructor(list, panels, views) {
    super();
    this.views = Object.keys(views);
    this.tabs = {};
    this.panels = {};
    for (const [name, title] of Object.entries(views)) {
      this.tabs[name] = h(
        "button",
        { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, onclick: () => this.open(name) },
        title,
      );
      this.panels[name] = h("div", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, tabindex: "0" });
    }
    list.append(...Object.values(this.tabs));
    panels.append(...Object.values(this.panels));
    list.addEventListener("keydown", (event) => this.key(event));
    this.open(this.views[0]);
  }

  /** Show a view. */
  open(name) {
    if (!this.views.includes(name)) return;
    this.view = name;
    for (const each of this.views) {
      this.tabs[each].setAttribute("aria-selected", String(each === name));
      this.tabs[each].tabIndex = each === name ? 0 : -1;
      this.panels[each].hidden = each !== name;
    }
    this.dispatchEvent(new Event("open"));
  }

  /** Fill a view. */
  fill(name, ...content) {
    this.panels[name].replaceChildren(
      ...content.flat(Infinity).filter((each) => each !== null && each !== false && each !== undefined && each !== ""),
    );
  }

  key(event) {
    const at = this.views.indexOf(this.view);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.views.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.open(this.views[(to + this.views.length) % this.views.length]);
    this.tabs[this.view].focus();
  }
}
