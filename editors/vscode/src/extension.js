// The client of `ptxvm lsp`, and of the debug adapter `ptxvm debug --dap`.
const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

/** The words of the command that starts ptxvm. */
function command() {
  return vscode.workspace.getConfiguration("ptxvm").get("command", ["ptxvm"]);
}

/** The documents that the server looks at. */
function selector() {
  const languages = ["ptx"];
  if (vscode.workspace.getConfiguration("ptxvm").get("embedded", true)) languages.push("cuda-cpp", "python");
  return languages.flatMap((language) => [
    { scheme: "file", language },
    { scheme: "untitled", language },
  ]);
}

async function start() {
  const [executable, ...words] = command();
  const run = { command: executable, args: [...words, "lsp"], transport: TransportKind.stdio };
  client = new LanguageClient("ptxvm", "PTX", { run, debug: run }, { documentSelector: selector() });
  try {
    await client.start();
  } catch (error) {
    const reason = String(error?.message ?? error).replace(/\.$/, "");
    vscode.window.showErrorMessage(
      `The PTX language server does not start: ${reason}. Is it installed (pip install 'ptxvm[lsp]'), and is the setting ptxvm.command right?`
    );
  }
}

async function restart() {
  if (client) await client.stop().catch(() => undefined);
  await start();
}

/** Put a command line into a terminal, for the user to complete and run. */
function terminal(line) {
  const [executable, ...words] = command();
  const own = [executable, ...words].map((word) => (/^[\w./:=@%+-]+$/.test(word) ? word : `'${word}'`)).join(" ");
  const found = vscode.window.terminals.find((each) => each.name === "ptxvm") ?? vscode.window.createTerminal("ptxvm");
  found.show();
  found.sendText(line.replace(/^ptxvm\b/, own), false);
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("ptxvm.terminal", terminal),
    vscode.commands.registerCommand("ptxvm.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("ptxvm") && restart()),
    vscode.debug.registerDebugAdapterDescriptorFactory("ptxvm", {
      createDebugAdapterDescriptor() {
        const [executable, ...words] = command();
        return new vscode.DebugAdapterExecutable(executable, [...words, "debug", "--dap"]);
      },
    })
  );
  await start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
