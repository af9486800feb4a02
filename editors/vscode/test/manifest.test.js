// What the manifest names exists, and the client starts the server that the settings name.
const assert = require("node:assert");
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const test = require("node:test");

const root = path.join(__dirname, "..");
const manifest = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));

test("the files that the manifest names are there", () => {
  const { languages, grammars } = manifest.contributes;
  for (const file of [...languages.map((each) => each.configuration), ...grammars.map((each) => each.path)])
    assert.doesNotThrow(() => JSON.parse(fs.readFileSync(path.join(root, file), "utf8")), file);
});

/** The extension with an editor that only notes what it is asked. */
function load(settings) {
  const noted = { commands: {}, clients: [], sent: [] };
  const vscode = {
    commands: { registerCommand: (name, run) => (noted.commands[name] = run) },
    debug: { registerDebugAdapterDescriptorFactory: (type, factory) => (noted.debug = { type, factory }) },
    DebugAdapterExecutable: class {
      constructor(command, args) {
        Object.assign(this, { command, args });
      }
    },
    window: {
      terminals: [],
      createTerminal: (name) => ({ name, show() {}, sendText: (...words) => noted.sent.push(words) }),
      showErrorMessage: (text) => (noted.error = text),
    },
    workspace: {
      getConfiguration: () => ({ get: (name, usual) => settings[name] ?? usual }),
      onDidChangeConfiguration: () => undefined,
    },
  };
  const languageclient = {
    TransportKind: { stdio: 0 },
    LanguageClient: class {
      constructor(...words) {
        noted.clients.push(words);
      }
      async start() {
        if (settings.fails) throw settings.fails;
      }
      async stop() {}
    },
  };
  const before = Module._load;
  Module._load = (name, ...rest) =>
    name === "vscode" ? vscode : name === "vscode-languageclient/node" ? languageclient : before(name, ...rest);
  const file = path.join(root, "src", "extension.js");
  delete require.cache[file];
  try {
    return { extension: require(file), noted };
  } finally {
    Module._load = before;
  }
}

test("the server and the debug adapter are the command of the settings", async () => {
  const { extension, noted } = load({ command: ["/opt/python", "-m", "ptxvm"] });
  await extension.activate({ subscriptions: [] });
  assert.deepEqual(noted.clients[0][2].run, { command: "/opt/python", args: ["-m", "ptxvm", "lsp"], transport: 0 });
  assert.equal(noted.debug.type, manifest.contributes.debuggers[0].type);
  assert.deepEqual({ ...noted.debug.factory.createDebugAdapterDescriptor() }, {
    command: "/opt/python",
    args: ["-m", "ptxvm", "debug", "--dap"],
  });
  for (const { command } of manifest.contributes.commands) assert.ok(noted.commands[command]);
});

test("a lens puts its command line into the terminal, and does not run it", async () => {
  const { extension, noted } = load({ command: ["my python", "-m", "ptxvm"] });
  await extension.activate({ subscriptions: [] });
  noted.commands["ptxvm.terminal"]("ptxvm run a.ptx 1");
  assert.deepEqual(noted.sent, [["'my python' -m ptxvm run a.ptx 1", false]]);
});

test("a server that does not start is reported with the way out", async () => {
  // The client rejects with an error, or with a text where the command is not found (vscode-languageclient, node/main).
  for (const fails of [new Error("no such file"), "Launching server using command ptxvm failed."]) {
    const { extension, noted } = load({ fails });
    await extension.activate({ subscriptions: [] });
    assert.match(noted.error, /(no such file|command ptxvm failed).*pip install 'ptxvm\[lsp\]'/);
  }
});

test("documents of other languages are looked at where the setting says so", async () => {
  const { extension, noted } = load({ embedded: false });
  await extension.activate({ subscriptions: [] });
  assert.deepEqual(new Set(noted.clients[0][3].documentSelector.map((each) => each.language)), new Set(["ptx"]));
});
