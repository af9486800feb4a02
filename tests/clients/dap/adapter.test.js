// The debug adapter of ptxvm, driven by the client with which VS Code's own adapters are tested.
//
// PTXVM is the command that starts ptxvm's command line; FILE is a kernel whose instructions are known.

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const { mkdtempSync, writeFileSync } = require("node:fs");
const { tmpdir } = require("node:os");
const path = require("node:path");
const { after, afterEach, before, beforeEach, test } = require("node:test");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

const PTX = `.version 8.0
.target sm_80
.address_size 64
.shared .u32 ring[64];
.visible .entry turn(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.lo.u32 %r2, %r1, 4;
    mov.u32 %r3, ring;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    bar.sync 0;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    setp.gt.u32 %p, %r1, 40;
    @%p add.u32 %r1, %r1, 100;
    st.global.u32 [%rd3], %r1;
    ret;
}
`;
const line = (text) => PTX.split("\n").findIndex((each) => each.includes(text)) + 1;
const [MOVE, BARRIER, ADD, STORE] = ["mov.u32 %r1", "bar.sync", "@%p add", "st.global"].map(line);

const folder = mkdtempSync(path.join(tmpdir(), "ptxvm-dap-"));
const file = path.join(folder, "turn.ptx");
const launch = { program: file, grid: 1, block: 64, args: ["u32[64]"] };
let server, port, client;

before(async () => {
  writeFileSync(file, PTX);
  const [command, ...words] = process.env.PTXVM.split(" ");
  server = spawn(command, [...words, "debug", "--dap", "--port", "0"], { stdio: ["ignore", "ignore", "pipe"] });
  port = await new Promise((resolve, reject) => {
    server.on("exit", (code) => reject(new Error(`the adapter has ended with ${code}`)));
    server.stderr.on("data", (data) => {
      const found = /:(\d+)/.exec(String(data));
      if (found) resolve(Number(found[1]));
    });
  });
});
after(() => server.kill());
beforeEach(() => {
  client = new DebugClient("node", "", "ptxvm");
  client.defaultTimeout = 5000;
  return client.start(port);
});
afterEach(() => client.stop());

const value = async (expression, frameId) => (await client.evaluateRequest({ expression, frameId, context: "watch" })).body.result;

/** Stop at a line; the thread and its innermost frame. */
async function stopAt(where) {
  await client.hitBreakpoint(launch, { path: file, ...where });
  const stopped = await client.threadsRequest();
  const thread = stopped.body.threads[0].id;
  const frames = (await client.stackTraceRequest({ threadId: thread })).body.stackFrames;
  return { thread, frame: frames[0] };
}

test("it initialises, and declares what it can do", async () => {
  const { body } = await client.initializeRequest();
  for (const name of ["supportsStepBack", "supportsDataBreakpoints", "supportsReadMemoryRequest", "supportsDisassembleRequest"])
    assert.equal(body[name], true, name);
});

test("an unknown request is refused", async () => {
  await assert.rejects(client.send("frobnicate"), /not supported/);
});

test("a launch of what is not there is refused by name", async () => {
  await client.initializeRequest();
  await assert.rejects(client.launchRequest({ program: path.join(folder, "no.ptx") }), /no\.ptx/);
});

test("it stops on entry", async () => {
  await Promise.all([
    client.configurationSequence(),
    client.launch({ ...launch, stopOnEntry: true }),
    client.assertStoppedLocation("entry", { path: file, line: line("ld.param") }),
  ]);
});

test("it runs to the end", async () => {
  await Promise.all([client.configurationSequence(), client.launch(launch), client.waitForEvent("terminated")]);
});

test("a breakpoint stops at its line", () => client.hitBreakpoint(launch, { path: file, line: BARRIER }));

test("a breakpoint on a line without an instruction goes to the next one", () =>
  client.hitBreakpoint(launch, { path: file, line: 6 }, ...Array(2).fill({ path: file, line: line("ld.param") })));

test("a condition chooses the thread", async () => {
  await Promise.all([
    client.waitForEvent("initialized").then(async () => {
      await client.setBreakpointsRequest({ source: { path: file }, breakpoints: [{ line: STORE, condition: "%tid.x == 45" }] });
      await client.configurationDoneRequest();
    }),
    client.launch(launch),
    client.assertStoppedLocation("breakpoint", { path: file, line: STORE }),
  ]);
  const { body } = await client.stackTraceRequest({ threadId: 2 });
  assert.equal(await value("%tid.x", body.stackFrames[0].id), "45");
  assert.equal(await value("%r1", body.stackFrames[0].id), "0x00000091");
});

test("steps go forwards and backwards", async () => {
  const { thread } = await stopAt({ line: BARRIER });
  const step = (request, to) =>
    Promise.all([client.send(request, { threadId: thread }), client.assertStoppedLocation("step", { path: file, line: to })]);
  await step("next", BARRIER + 1);
  await step("stepIn", BARRIER + 2);
  await step("stepBack", BARRIER + 1);
  await Promise.all([
    client.send("reverseContinue", { threadId: thread }),
    client.assertStoppedLocation("breakpoint", { path: file, line: BARRIER }),
  ]);
});

test("variables are shown and changed, and the change counts", async () => {
  const { thread, frame } = await stopAt({ line: STORE });
  const { scopes } = (await client.scopesRequest({ frameId: frame.id })).body;
  const registers = scopes.find((each) => each.name === "Registers .b32").variablesReference;
  const { body } = await client.setVariableRequest({ variablesReference: registers, name: "%r1", value: "7" });
  assert.equal(body.value, "0x00000007");
  await Promise.all([
    client.nextRequest({ threadId: thread }),
    client.assertStoppedLocation("step", { path: file, line: STORE + 1 }),
  ]);
  const after = (await client.stackTraceRequest({ threadId: thread })).body.stackFrames[0].id;
  assert.equal(await value("out[0]", after), "7");
});

test("a data breakpoint stops after the write", async () => {
  const { thread, frame } = await stopAt({ line: MOVE });
  const { dataId } = (await client.send("dataBreakpointInfo", { name: "out[9]", frameId: frame.id })).body;
  await client.send("setDataBreakpoints", { breakpoints: [{ dataId, accessType: "write" }] });
  await client.setBreakpointsRequest({ source: { path: file }, breakpoints: [] });
  await Promise.all([
    client.continueRequest({ threadId: thread }),
    client.assertStoppedLocation("data breakpoint", { path: file, line: STORE + 1 }),
  ]);
});

test("function and instruction breakpoints stop for their reasons", async () => {
  const { thread, frame } = await stopAt({ line: MOVE });
  const code = (await client.send("disassemble", { memoryReference: frame.instructionPointerReference, instructionCount: 12 })).body;
  const target = code.instructions.find((each) => each.instruction.startsWith("bar.sync"));
  await client.send("setInstructionBreakpoints", { breakpoints: [{ instructionReference: target.address }] });
  await Promise.all([
    client.continueRequest({ threadId: thread }),
    client.assertStoppedLocation("instruction breakpoint", { path: file, line: BARRIER }),
  ]);
  await client.setFunctionBreakpointsRequest({ breakpoints: [{ name: "opcode setp.*" }] });
  await Promise.all([
    client.continueRequest({ threadId: thread }),
    client.assertStoppedLocation("function breakpoint", { path: file, line: ADD - 1 }),
  ]);
});

test("memory is read and written", async () => {
  const { frame } = await stopAt({ line: BARRIER });
  const { memoryReference } = (await client.evaluateRequest({ expression: "ring[5]", frameId: frame.id })).body;
  const read = async () => Buffer.from((await client.send("readMemory", { memoryReference, count: 4 })).body.data, "base64");
  assert.equal((await read()).readUInt32LE(), 5);
  await client.send("writeMemory", { memoryReference, data: Buffer.from([1, 2, 0, 0]).toString("base64") });
  assert.equal((await read()).readUInt32LE(), 513);
});

test("a fault is an exception", async () => {
  await Promise.all([
    client.waitForEvent("initialized").then(async () => {
      await client.setExceptionBreakpointsRequest({ filters: ["fault"] });
      await client.configurationDoneRequest();
    }),
    client.launch({ ...launch, args: ["0"] }),
    client.assertStoppedLocation("exception", { path: file, line: STORE }),
  ]);
  const { body } = await client.send("exceptionInfo", { threadId: 1 });
  assert.equal(body.exceptionId, "null-pointer");
});

test("a kernel that runs on is paused", async () => {
  const endless = path.join(folder, "endless.ptx");
  writeFileSync(endless, ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nL: bra L;\n}\n");
  await Promise.all([client.configurationSequence(), client.launch({ program: endless, grid: 1, block: 32 })]);
  const [stopped] = await Promise.all([client.waitForEvent("stopped"), client.pauseRequest({ threadId: 1 })]);
  assert.equal(stopped.body.reason, "pause");
});

test("a log message is output, and stops nothing", async () => {
  const [said] = await Promise.all([
    client.waitForEvent("output"),
    client.waitForEvent("terminated"),
    client.waitForEvent("initialized").then(async () => {
      const breakpoints = [{ line: STORE, condition: "%tid.x == 41", logMessage: "stores {%r1}" }];
      await client.setBreakpointsRequest({ source: { path: file }, breakpoints });
      await client.configurationDoneRequest();
    }),
    client.launch(launch),
  ]);
  assert.equal(said.body.output, "[block (0,0,0), warp 1, lane 9] stores 0x0000008d\n");
});

test("a Python program stops in its launch, and goes on", async () => {
  writeFileSync(
    path.join(folder, "app.py"),
    `import numpy, ptxvm
out = numpy.zeros(64, numpy.uint32)
ptxvm.load("turn.ptx").kernel().launch(1, 64, [out])
raise SystemExit(int(out[63]) - 160)
`,
  );
  await Promise.all([
    client.waitForEvent("initialized").then(async () => {
      const { body } = await client.setBreakpointsRequest({ source: { path: file }, breakpoints: [{ line: BARRIER }] });
      assert.equal(body.breakpoints[0].verified, false);
      await client.configurationDoneRequest();
    }),
    client.launch({ program: "app.py", cwd: folder }),
    client.waitForEvent("breakpoint").then(({ body }) => assert.equal(body.breakpoint.verified, true)),
    client.assertStoppedLocation("breakpoint", { path: file, line: BARRIER }),
  ]);
  const [exited] = await Promise.all([client.waitForEvent("exited"), client.continueRequest({ threadId: 1 })]);
  assert.equal(exited.body.exitCode, 3);
});
