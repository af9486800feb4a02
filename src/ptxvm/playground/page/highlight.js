// The words of a line of PTX, for colours: what they mean is the backend's business.

const WORDS = [
  ["comment", /\/\/.*|\/\*.*?(?:\*\/|$)/y],
  ["text", /"[^"]*"?/y],
  [
    "directive",
    /\.(?:version|target|address_size|visible|entry|func|reg|param|shared|global|local|const|align|extern|weak|maxntid|reqntid|pragma|loc|file|section)\b/y,
  ],
  ["register", /%[\w$]+(?:\.[xyzwrgba])?/y],
  ["number", /\b(?:0[fFdD][0-9a-fA-F]+|0[xX][0-9a-fA-F]+U?|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?U?)\b/y],
  ["label", /[\w$]+(?=\s*:(?!:))/y],
  ["modifier", /\.[a-zA-Z]\w*(?:::\w+)*/y],
  ["word", /[A-Za-z_$][\w$]*/y],
  ["space", /\s+/y],
  ["sign", /./y],
];

/** The parts of a line, `[kind, text]`, and whether a comment goes on in the next one. */
export function parts(line, inComment = false) {
  const found = [];
  let at = 0;
  if (inComment) {
    const end = line.indexOf("*/");
    if (end < 0) return { found: [["comment", line]], inComment: true };
    found.push(["comment", line.slice(0, end + 2)]);
    at = end + 2;
  }
  let first = true; // the first word of a statement is its opcode
  while (at < line.length) {
    for (const [kind, pattern] of WORDS) {
      pattern.lastIndex = at;
      const match = pattern.exec(line);
      if (!match) continue;
      const text = match[0];
      const guard = kind === "register" && line[at - 1] === "@";
      found.push([kind === "word" && first ? "opcode" : kind, text]);
      if (";{}:".includes(text)) first = true;
      else if (!["space", "comment"].includes(kind) && !"@!".includes(text) && !guard && line.slice(0, at).trim() !== "@!")
        first = false;
      at += text.length;
      break;
    }
  }
  const last = found.at(-1);
  return {
    found,
    inComment: last?.[0] === "comment" && last[1].startsWith("/*") && !(last[1].length > 3 && last[1].endsWith("*/")),
  };
}
