"""Python programs under the debug adapter: what a client sees of a script and of pytest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest
from driver_program import FIVE, PROGRAM
from ring_kernel import KERNEL, LINES

from ptxvm.debug.dap.framing import Decoder, encode

STORE = LINES["st.global.u32 [%rd3], %r6;"]
SCRIPT = """
import sys
import numpy as np
import ptxvm

kernel = ptxvm.load("ring.ptx").kernel()
for n in range(2):
    out = np.zeros(64, np.uint32)
    kernel.launch(1, 64, [out, 64])
    print("first", out[0], *sys.argv[1:])
sys.exit(3)
"""
TEST = """
import numpy as np
import ptxvm

def test_ring():
    out = np.zeros(64, np.uint32)
    ptxvm.load("ring.ptx").kernel().launch(1, 64, [out, 64])
    assert out[0] == 77
"""


class Client:
    """Asks an adapter of its own process, and waits for events."""

    def __init__(self, folder: Path) -> None:
        background = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]  # SIGINT is ignored in what a shell starts there
        command = [*background, sys.executable, "-m", "ptxvm", "debug", "--dap"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
        self.messages, self.decoder, self.number = [], Decoder(), 0
        self.watchdog = Timer(60, self.process.kill)
        self.watchdog.start()

    def ask(self, command: str, **arguments):
        """The response to a request."""
        self.number += 1
        number = self.number
        self.process.stdin.write(encode({"seq": number, "type": "request", "command": command, "arguments": arguments}))
        self.process.stdin.flush()
        return self.wait(lambda each: each.get("request_seq") == number)

    def event(self, name: str):
        """The body of the next event of a name."""
        return self.wait(lambda each: each.get("event") == name).get("body", {})

    def wait(self, wanted):
        """The first message that is wanted, which is taken out of those that have come."""
        while True:
            for n, each in enumerate(self.messages):
                if wanted(each):
                    return self.messages.pop(n)
            data = self.process.stdout.read1()
            assert data, self.messages
            self.messages += self.decoder.feed(data)

    def printed(self, category: str = "stdout") -> str:
        """What has been printed up to now."""
        found = [each["body"] for each in self.messages if each.get("event") == "output"]
        return "".join(each["output"] for each in found if each["category"] == category)

    def begin(self, breakpoints=(), **launch):
        """Launch as clients do: breakpoints come between `initialized` and `configurationDone`."""
        self.ask("initialize", adapterID="ptxvm")
        assert self.ask("launch", **launch)["success"]
        self.event("initialized")
        answer = self.ask("setBreakpoints", source={"path": "ring.ptx"}, breakpoints=list(breakpoints))["body"]
        self.ask("configurationDone")
        return answer["breakpoints"]


@pytest.fixture
def client(tmp_path):
    (tmp_path / "ring.ptx").write_text(KERNEL)
    (tmp_path / "app.py").write_text(SCRIPT)
    (tmp_path / "test_ring.py").write_text(TEST)
    made = Client(tmp_path)
    yield made
    made.process.stdin.close()
    assert made.process.wait(30) == 0
    made.watchdog.cancel()
    made.process.stdout.close()


def test_breakpoints_wait_for_the_launch_and_go_on_to_the_next(client):
    (waits,) = client.begin([{"line": STORE, "condition": "%tid.x == 0"}], program="app.py", args=["word"])
    assert not waits["verified"]
    for _ in range(2):
        found = client.event("breakpoint")["breakpoint"]
        assert (found["id"], found["verified"], found["line"]) == (waits["id"], True, STORE)
        stop = client.event("stopped")
        assert stop["hitBreakpointIds"] == [waits["id"]]
        frame = client.ask("stackTrace", threadId=stop["threadId"])["body"]["stackFrames"][0]
        assert (frame["line"], frame["source"]["name"]) == (STORE, "ring.ptx")
        assert client.ask("setExpression", frameId=frame["id"], expression="%r6", value="42")["success"]
        client.ask("continue", threadId=stop["threadId"])
    assert client.event("exited") == {"exitCode": 3}
    client.event("terminated")
    assert client.printed() == "first 42 word\n" * 2
    client.ask("disconnect")


def test_a_log_message_is_said_once_by_lanes_that_say_the_same(client):
    client.begin([{"line": STORE, "logMessage": "even: {%r1 % 2 == 0}", "condition": "%r1 < 4"}], program="app.py")
    assert client.event("exited") == {"exitCode": 3}
    said = "[block (0,0,0), warp 0, lanes 0,2] even: 1\n[block (0,0,0), warp 0, lanes 1,3] even: 0\n"
    assert client.printed("console") == said * 2
    client.ask("disconnect")


def test_pytest_is_debugged_and_judges_what_the_debugger_has_left(client):
    words = ["-q", "-p", "no:cacheprovider", "test_ring.py"]
    client.begin([{"line": STORE}], module="pytest", args=words, env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    stop = client.event("stopped")
    client.ask("setBreakpoints", source={"path": "ring.ptx"}, breakpoints=[])
    frame = client.ask("stackTrace", threadId=stop["threadId"])["body"]["stackFrames"][0]["id"]
    client.ask("evaluate", expression="thread (0,0,0)", context="repl", frameId=frame)
    client.ask("evaluate", expression="set %r6 = 77", context="repl")
    client.ask("continue", threadId=stop["threadId"])
    assert client.event("exited") == {"exitCode": 0}
    assert "1 passed" in client.printed()
    client.ask("disconnect")


@pytest.mark.parametrize("asked", ["disconnect", "terminate"])
def test_a_program_that_waits_in_python_can_be_ended(client, asked, tmp_path):
    (tmp_path / "app.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(100)\n")
    client.begin(program="app.py")
    assert client.event("output")["output"] == "here"
    assert client.ask("threads")["body"] == {"threads": []}
    client.ask(asked)
    if asked == "terminate":
        assert client.event("exited") == {"exitCode": 130}
        client.ask("disconnect")


def test_a_program_that_is_stopped_in_a_kernel_can_be_ended(client):
    client.begin(program="app.py", stopOnEntry=True)
    assert client.event("stopped")["reason"] == "entry"
    client.ask("terminate")
    assert client.event("exited") == {"exitCode": 130}
    client.ask("disconnect")


def test_texts_in_no_file_are_named_after_their_kernels_and_have_references_of_their_own(client, tmp_path):
    """DAP, Source: a client may keep the text of a reference, so that of the second module is another one."""
    text = ".version 8.0\\n.target sm_80\\n.visible .entry {}() {{ ret; }}\\n"
    (tmp_path / "app.py").write_text(
        f"import ptxvm\nfor name in ('one', 'two', 'one'): ptxvm.load('{text}'.format(name)).kernel().launch(1, 1, [])\n"
    )
    client.begin(program="app.py", stopOnEntry=True)
    found = []
    for _ in range(3):
        thread = client.event("stopped")["threadId"]
        (frame,) = client.ask("stackTrace", threadId=thread)["body"]["stackFrames"]
        source = frame["source"]
        found.append((source["name"], source["sourceReference"]))
        content = client.ask("source", source=source, sourceReference=source["sourceReference"])["body"]["content"]
        assert f".entry {source['name'].strip('<>')}()" in content
        answer = client.ask("setBreakpoints", source=source, breakpoints=[{"line": 3}])["body"]["breakpoints"]
        assert answer[0]["verified"]
        client.ask("setBreakpoints", source=source, breakpoints=[])
        client.ask("continue", threadId=thread)
    assert found == [("<one>", 1), ("<two>", 2), ("<one>", 1)]
    client.ask("disconnect")


def test_a_program_that_is_not_there_is_refused(client):
    client.ask("initialize", adapterID="ptxvm")
    assert client.ask("launch", exec=True, program="./none")["message"] == "there is no program './none'"
    answer = client.ask("launch", program="none.py")
    assert (answer["success"], answer["message"]) == (False, "there is no file 'none.py'")
    assert json.loads(json.dumps(answer))["body"]["error"]["id"] == 1
    client.ask("disconnect")


def test_a_program_that_calls_cuda_is_debugged_in_its_process(client, tmp_path):
    (tmp_path / "cuda.py").write_text(PROGRAM.replace("PTX", repr(FIVE)) + "\n")
    client.begin(exec=True, program=sys.executable, args=["cuda.py"], stopOnEntry=True)
    for _ in range(2):  # it launches twice
        thread = client.event("stopped")["threadId"]
        (frame,) = client.ask("stackTrace", threadId=thread)["body"]["stackFrames"]
        assert ".entry five" in client.ask("source", **frame["source"])["body"]["content"]
        (at,) = client.ask("setFunctionBreakpoints", breakpoints=[{"name": "opcode st.*"}])["body"]["breakpoints"]
        client.ask("continue", threadId=thread)
        assert client.event("stopped")["hitBreakpointIds"] == [at["id"]]
        client.ask("setExpression", frameId=frame["id"], expression="%r", value="77")
        client.ask("continue", threadId=thread)
    assert client.event("exited") == {"exitCode": 3}
    assert client.printed().endswith("stored 77\n")
    client.ask("disconnect")


def test_a_program_that_calls_no_cuda_runs_until_it_is_ended(client):
    client.begin(exec=True, program="sh", args=["-c", "echo $WORD; sleep 100"], env={"WORD": "said"})
    assert client.event("output") == {"category": "stdout", "output": "said\n"}
    client.ask("terminate")
    assert client.event("exited") == {"exitCode": 137}
    client.ask("disconnect")
