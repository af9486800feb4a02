// What the page holds, and links that hold all of it: JSON, compressed, in the fragment of the address, which no server sees.

export const EMPTY = {
  source: "",
  entry: "",
  grid: "1",
  block: "32",
  args: [],
  shared: 0,
  checks: [],
  schedules: 1,
  seed: 0,
  cta: 0,
  engine: "interp",
  lesson: "",
  view: "results",
  litmus: "",
  model: "9.1",
};
const LONGEST = 1 << 20; // characters of an unpacked link

/** The fields that a state has, of the types that they have: everything else of a link is dropped. */
export function cleaned(found) {
  const state = structuredClone(EMPTY);
  for (const [name, usual] of Object.entries(EMPTY)) {
    const value = found?.[name];
    if (Array.isArray(usual)) {
      if (Array.isArray(value) && value.every((each) => typeof each === "string")) state[name] = value.slice(0, 64);
    } else if (typeof value === typeof usual && (typeof value !== "number" || (Number.isInteger(value) && value >= 0))) {
      state[name] = value;
    }
  }
  return state;
}

/** The fragment that stands for a state. */
export async function packed(state) {
  const stream = new Blob([JSON.stringify(cleaned(state))]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return "1." + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** The state that a fragment stands for; null where it stands for none. */
export async function unpacked(fragment) {
  const found = /^#?1\.([\w-]+)$/.exec(fragment);
  if (!found) return null;
  try {
    const text = atob(found[1].replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return cleaned(JSON.parse(await limited(stream.getReader())));
  } catch {
    return null;
  }
}

/** The text of a stream, which may be small and unpack to gigabytes. */
async function limited(reader) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
    if (text.length > LONGEST) {
      await reader.cancel();
      throw new Error("the link is too large");
    }
  }
}
