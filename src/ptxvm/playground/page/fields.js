// The fields of a launch: the kernel, its grid, and an argument for each parameter.

import { h } from "./dom.js";

/** Fill in the fields for the kernels of the text; what the user wrote stays, where a parameter still is of its type, and the
 * kernel requires no other block. */
export function fillFields(root, state, kernels) {
  const kernel = kernels.find(({ name }) => name === state.entry) ?? kernels[0];
  const parameters = kernel ? kernel.parameters : state.args.map((_, n) => ({ name: `argument ${n}`, type: "" }));
  root.dataset.kernel = kernel?.name ?? "";
  const shape = JSON.stringify([kernels.map(({ name }) => name), kernel?.name, parameters, kernel?.block]);
  if (root.dataset.shape === shape) return;
  if (kernel && root.dataset.shape) state.args = carried(state.args, JSON.parse(root.dataset.shape)[2], parameters);
  root.dataset.shape = shape;
  if (kernel?.block) state.block = kernel.block; // .reqntid: no other can be launched
  state.args.length = parameters.length;
  root.replaceChildren(
    ...(kernels.length > 1 ? [choice(root, state, kernels, kernel)] : []),
    field("grid", "grid", state.grid, 9, (value) => (state.grid = value)),
    field("block", "block", state.block, 9, (value) => (state.block = value)),
    ...parameters.map(({ name, type }, n) =>
      field(short(name, kernel), type, state.args[n] ?? "", 16, (value) => (state.args[n] = value)),
    ),
  );
}

/** The arguments of other parameters: that of the same name and type, or at the same place, where the type is not another. */
function carried(args, before, after) {
  return after.map(({ name, type }, n) => {
    const same = before.findIndex((each) => each.name === name && each.type === type);
    if (same >= 0) return args[same];
    return before[n] && ["", type].includes(before[n].type) ? args[n] : "";
  });
}

/** The kernel that the fields are for: the one that was chosen, or the first where there is no such one (any more). */
export function kernelOf(root, state) {
  return root.dataset.kernel || state.entry || null;
}

/** Forget what the fields were made for: a new state has other values. */
export function renewFields(root) {
  delete root.dataset.shape;
}

function short(name, kernel) {
  return kernel && name.startsWith(`${kernel.name}_`) ? name.slice(kernel.name.length + 1) : name;
}

function field(name, type, value, size, set) {
  const hint = type && type !== name ? h("small", {}, type) : null;
  const input = h("input", { value, size: String(size), spellcheck: "false", oninput: (event) => set(event.target.value) });
  if (size > 9) input.placeholder = "5, 2.5, f32[64]=arange";
  return h("label", {}, h("span", {}, name, " ", hint ?? ""), input);
}

function choice(root, state, kernels, kernel) {
  const options = kernels.map(({ name }) => h("option", { value: name, selected: name === kernel.name }, name));
  const pick = (event) => {
    state.entry = event.target.value;
    fillFields(root, state, kernels);
  };
  return h("label", {}, h("span", {}, "kernel"), h("select", { onchange: pick }, options));
}

/** The fields that few launches need. */
export function fillMore(root, state) {
  const number = (name, key) =>
    field(name, "", String(state[key]), 9, (value) => (state[key] = Math.max(0, Number.parseInt(value, 10) || 0)));
  const engines = ["interp", "jit"].map((name) =>
    h("option", { value: name, selected: state.engine === name }, name === "jit" ? "compiled code" : "the interpreter"),
  );
  root.replaceChildren(
    number("bytes of shared memory", "shared"),
    number("schedules", "schedules"),
    number("seed", "seed"),
    number("CTA to follow", "cta"),
    h("label", {}, h("span", {}, "run by"), h("select", { onchange: (event) => (state.engine = event.target.value) }, engines)),
  );
}
