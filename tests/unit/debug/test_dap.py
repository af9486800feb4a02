"""The debug adapter: each message that goes in and comes out is held against the schema of the protocol."""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path

import debugpy  # noqa: T100 - which has the schema
import jsonschema
import pytest
from ring_kernel import KERNEL, LINES, expected, session_of

from ptxvm.debug.dap.capabilities import CAPABILITIES
from ptxvm.debug.dap.framing import BadMessage, Decoder, encode
from ptxvm.debug.dap.server import CompleteAdapter

SCHEMA = json.loads(
    (Path(debugpy.__file__).parent / "_vendored/pydevd/_pydevd_bundle/_debug_adapter/debugProtocol.json").read_text()
)
STORE = LINES["st.global.u32 [%rd3], %r6;"]


def definition(message) -> str:
    """The name of the definition for a message."""
    if message["type"] == "response" and not message["success"]:
        return "ErrorResponse"
    name = message["event"] if message["type"] == "event" else message["command"]
    return f"{name[0].upper()}{name[1:]}{message['type'].title()}"


def conforms(message) -> None:
    """Hold a message against the schema; what the protocol does not name is refused by name."""
    name = definition(message)
    assert name in SCHEMA["definitions"], name
    validator(name).validate(message)


@cache
def validator(name: str) -> jsonschema.Draft4Validator:
    """What holds messages against a definition."""
    return jsonschema.Draft4Validator({"$ref": f"#/definitions/{name}", "definitions": SCHEMA["definitions"]})


class Client:
    """Sends requests, and holds what comes back against the schema."""

    def __init__(self, text: str, out) -> None:
        self.sent, self.number = [], 0
        self.adapter = CompleteAdapter(lambda arguments: session_of(text, 1, 64, [out, 64]), self.take)

    def take(self, message) -> None:
        (message,) = Decoder().feed(encode(message))
        conforms(message)
        assert message["seq"] == len(self.sent) + 1
        self.sent.append(message)

    def ask(self, command: str, **arguments):
        """The body of the response to a request, which succeeds."""
        answer = self.send(command, **arguments)
        assert answer["success"], answer
        return answer.get("body", {})

    def send(self, command: str, **arguments):
        self.number += 1
        request = {"seq": self.number, "type": "request", "command": command, "arguments": arguments}
        conforms(request)
        before = len(self.sent)
        self.adapter.handle(request)
        answers = [each for each in self.sent[before:] if each["type"] == "response"]
        assert [each["request_seq"] for each in answers] == [self.number]
        return answers[0]

    def stop(self):
        """The body of the last stop."""
        return next(each["body"] for each in reversed(self.sent) if each.get("event") == "stopped")

    def begin(self, **configuration) -> Client:
        """Launch, and stop at the entry unless something else is said."""
        self.ask("initialize", adapterID="ptxvm")
        self.ask("launch", **({"stopOnEntry": True} | configuration))
        self.ask("configurationDone")
        return self

    def frame(self, thread: int = 1) -> int:
        """The innermost frame of a thread."""
        return self.ask("stackTrace", threadId=thread)["stackFrames"][0]["id"]

    def scope(self, name: str) -> int:
        """A reference for the variables of a scope."""
        scopes = self.ask("scopes", frameId=self.frame())["scopes"]
        return next(each["variablesReference"] for each in scopes if each["name"] == name)

    def within(self, reference: int, **page):
        """The variables of a reference, by name."""
        return {each["name"]: each for each in self.ask("variables", variablesReference=reference, **page)["variables"]}


@pytest.fixture
def client(out):
    made = Client(KERNEL, out)
    yield made
    made.ask("disconnect")


def test_what_it_declares_is_what_the_protocol_knows():
    known = SCHEMA["definitions"]["Capabilities"]["properties"]
    assert CAPABILITIES.keys() <= known.keys()


def test_each_declared_request_is_answered_and_no_other():
    """A capability `supportsNAMERequest` is for the request NAME."""
    declared = {name[8:-7] for name in CAPABILITIES if name.startswith("supports") and name.endswith("Request")}
    optional = {
        name[8:-7] for name in SCHEMA["definitions"]["Capabilities"]["properties"]
        if name.startswith("supports") and name.endswith("Request")
    }  # fmt: skip
    answered = {name[0].upper() + name[1:] for name in CompleteAdapter.handlers}
    assert answered & optional == declared


def test_a_session_from_launch_to_end(client, out):
    client.begin(stopOnEntry=False)
    events = [each["event"] for each in client.sent if each["type"] == "event"]
    assert events == ["initialized", "exited", "terminated"]
    assert out.tolist() == expected()


def test_a_thread_is_a_warp_and_shows_its_lanes(client):
    client.begin()
    assert [(each["id"], each["name"]) for each in client.ask("threads")["threads"]] == [
        (1, "block (0,0,0) warp 0"), (2, "block (0,0,0) warp 1"),
    ]  # fmt: skip
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "hundred"}])
    client.ask("continue", threadId=1)
    assert (client.stop()["reason"], client.stop()["threadId"]) == ("function breakpoint", 1)
    stack = client.ask("stackTrace", threadId=1)["stackFrames"]
    assert [each["name"] for each in stack] == ["hundred [lane 1]", "turn [lane 1]"]
    assert [each["line"] for each in stack] == [LINES["add.u32 %out, %in, 100;"], LINES["call (%r6), hundred, (%r6);"]]
    lanes = client.within(client.scope("Lanes"))
    assert len(lanes) == 32
    assert lanes["lane 3"]["value"] == f"thread (3,0,0): active at line {LINES['add.u32 %out, %in, 100;']}"
    assert client.within(lanes["lane 3"]["variablesReference"])["%in"]["value"] == "4"


def test_arrays_come_in_pages(client):
    client.begin()
    parameter = client.within(client.scope("Parameters"))["turn_param_0"]
    assert parameter["indexedVariables"] == 64
    page = client.within(parameter["variablesReference"], start=62, count=5, filter="indexed")
    assert list(page) == ["[62]", "[63]"]
    shared = client.within(client.scope("Shared"))["ring"]
    assert (shared["value"], shared["indexedVariables"]) == (".u32[64]", 64)


def test_variables_and_expressions_are_changed(client, out):
    client.begin()
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "opcode st.global.*"}])
    client.ask("continue", threadId=1)
    assert (
        client.ask("setVariable", variablesReference=client.scope("Registers .b32"), name="%r6", value="-1")["value"]
        == "0xffffffff"
    )
    parameter = client.within(client.scope("Parameters"))["turn_param_0"]["variablesReference"]
    assert client.ask("setVariable", variablesReference=parameter, name="[63]", value="9")["value"] == "9"
    assert client.ask("setExpression", expression="ring[1] ", value="%tid.x + 3", frameId=client.frame())["value"] == "3"
    assert out[63] == 9
    client.ask("next", threadId=1, granularity="instruction")
    assert out[0] == 0xFFFF_FFFF
    refused = client.send("setExpression", expression="%tid.x", value="1", frameId=client.frame())
    assert "cannot be changed" in refused["message"]


def test_references_end_when_the_run_goes_on(client):
    client.begin()
    reference = client.scope("Registers .b32")
    client.ask("stepIn", threadId=1)
    assert "has gone on" in client.send("variables", variablesReference=reference)["message"]


def test_steps_go_both_ways(client):
    client.begin()
    lines = []
    for command in ("next", "stepIn", "stepBack", "stepBack", "stepBack"):
        client.ask(command, threadId=1)
        lines.append(client.ask("stackTrace", threadId=1)["stackFrames"][0]["line"])
    first = LINES["ld.param.u64 %rd1, [turn_param_0];"]
    assert lines == [first + 1, first + 2, first + 1, first, first]
    assert client.stop()["description"] == "no more history"


def test_breakpoints_say_where_they_are_and_what_is_wrong(client):
    client.begin()
    path = "/nowhere/ring.cu"
    found = client.ask(
        "setBreakpoints", source={"path": path},
        breakpoints=[{"line": 12}, {"line": 99}, {"line": 12, "condition": "1 +"}, {"line": 12, "hitCondition": "soon"}],
    )["breakpoints"]  # fmt: skip
    assert [each["verified"] for each in found] == [True, False, False, False]
    assert found[0]["line"] == 12
    assert "ends too early" in found[2]["message"]
    assert "is a number" in found[3]["message"]
    hits = [{"line": 12, "hitCondition": "2"}, {"line": 17, "hitCondition": "== 1"}]  # each is come to once
    once = client.ask("setBreakpoints", source={"path": path}, breakpoints=hits)["breakpoints"][1]
    client.ask("continue", threadId=1)
    assert client.stop()["hitBreakpointIds"] == [once["id"]]
    found = client.ask("breakpointLocations", source={"path": path}, line=10, endLine=14)["breakpoints"]
    assert [each["line"] for each in found] == [10, 11, 12, 13, 14]


def test_data_breakpoints_watch_every_space(client):
    client.begin()
    info = client.ask("dataBreakpointInfo", name="ring[7]", frameId=client.frame())
    assert info["accessTypes"] == ["read", "write", "readWrite"]
    assert client.ask("dataBreakpointInfo", name="%r1", frameId=client.frame())["dataId"] is None
    client.ask("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"], "accessType": "write"}])
    client.ask("continue", threadId=1)
    assert (client.stop()["reason"], client.stop()["text"]) == ("data breakpoint", "ring[7]: 0 → 7")
    client.ask("reverseContinue", threadId=1)
    assert client.ask("evaluate", expression="ring[7]", frameId=client.frame())["result"] == "0"


def test_memory_is_bytes(client, out):
    client.begin()
    reference = client.ask("evaluate", expression="turn_param_0[2]", frameId=client.frame())["memoryReference"]
    data = base64.b64encode(bytes(range(8))).decode()
    assert client.ask("writeMemory", memoryReference=reference, data=data)["bytesWritten"] == 8
    assert out[2:4].tolist() == [0x03020100, 0x07060504]
    read = client.ask("readMemory", memoryReference=reference, offset=4, count=4)
    assert base64.b64decode(read["data"]) == bytes(range(4, 8))
    beyond = client.ask("readMemory", memoryReference=reference, count=1000)
    assert beyond["unreadableBytes"] == 1000 - 62 * 4
    assert "0 of 8 bytes" in client.send("writeMemory", memoryReference="0x8", data=data)["message"]
    assert "no base64" in client.send("writeMemory", memoryReference=reference, data="§")["message"]
    shared = client.ask("evaluate", expression="ring[63]", frameId=client.frame())["memoryReference"]
    assert client.ask("readMemory", memoryReference=shared, count=8)["unreadableBytes"] == 4


def test_code_is_disassembled_and_breakpoints_set_there(client):
    client.begin()
    here = client.ask("stackTrace", threadId=1)["stackFrames"][0]["instructionPointerReference"]
    code = client.ask("disassemble", memoryReference=here, instructionOffset=-1, instructionCount=9)["instructions"]
    assert code[0]["presentationHint"] == "invalid"
    assert (code[1]["symbol"], code[3]["instruction"]) == ("turn", "mov.u32 %r1, %tid.x;")
    barrier = next(each["address"] for each in code if each["instruction"] == "bar.sync 0;")
    client.ask("setInstructionBreakpoints", breakpoints=[{"instructionReference": barrier}])
    client.ask("continue", threadId=1)
    assert client.stop()["reason"] == "instruction breakpoint"
    assert client.ask("stackTrace", threadId=1)["stackFrames"][0]["instructionPointerReference"] == barrier


def test_a_fault_is_an_exception_unless_it_is_not_wanted(out):
    faulty = KERNEL.replace("[%rd3], %r6", "[%rd2], %r6")
    client = Client(faulty, out).begin(stopOnEntry=False)
    assert client.stop()["reason"] == "exception"
    assert client.ask("exceptionInfo", threadId=1)["exceptionId"] == "null-pointer"
    client.ask("setExceptionBreakpoints", filters=[])
    client.ask("restart")
    client.ask("continue", threadId=1)
    assert client.sent[-2]["body"] == {"exitCode": 1}
    client.ask("disconnect")


def test_the_console_takes_expressions_and_commands(client):
    client.begin()
    said = client.ask("evaluate", expression="info cuda kernels", context="repl")["result"]
    assert "turn" in said
    client.ask("evaluate", expression="break ODD", context="repl")
    client.ask("evaluate", expression="continue", context="repl")
    assert client.stop()["reason"] == "breakpoint"
    assert client.ask("evaluate", expression="%r1", context="repl")["result"] == "0x00000001"
    assert "no command" in client.send("evaluate", expression="frobnicate", context="repl")["message"]
    targets = client.ask("completions", text="info cuda la", column=13)["targets"]
    assert [each["label"] for each in targets] == ["info cuda lanes"]


def test_a_source_without_a_file_has_its_text(client):
    client.begin()
    (ptx, cuda) = client.ask("loadedSources")["sources"]
    assert cuda["name"] == "ring.cu"
    assert client.ask("source", sourceReference=ptx["sourceReference"])["content"] == KERNEL


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("continue", {"threadId": 1}), ("stackTrace", {"threadId": 1}), ("scopes", {"frameId": 1}),
        ("evaluate", {"expression": "1"}), ("setBreakpoints", {"source": {"path": "x"}, "breakpoints": []}),
        ("configurationDone", {}), ("restart", {}), ("gotoTargets", {"source": {}, "line": 1}),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(out, command, arguments):
    client = Client(KERNEL, out)
    client.ask("initialize", adapterID="ptxvm")
    assert not client.send(command, **arguments)["success"]


@pytest.mark.parametrize(
    "text",
    [
        b"X: 1\r\n\r\n{}",
        b"Content-Length: 1\r\n\r\n[",
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 99999\r\n\r\n" + b"[" * 99999,
    ],
)
def test_bytes_that_are_no_message_are_refused(text):
    with pytest.raises(BadMessage):
        Decoder().feed(text)


def test_a_body_that_is_no_message_is_told_of_and_the_next_one_follows():
    told = []
    decoder = Decoder(told.append)
    bad = [b"{not json", b"[]", b"3", b"\xff", b"[" * 100_000]
    data = b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(each), each) for each in bad)
    assert decoder.feed(data + encode({"seq": 1})) == [{"seq": 1}]
    assert len(told) == len(bad)


def test_messages_come_in_parts():
    decoder, message = Decoder(), {"type": "event", "text": "→" * 9}
    data = encode(message) * 2
    found = [each for n in range(len(data)) for each in decoder.feed(data[n : n + 1])]
    assert found == [message, message]


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("setBreakpoints", [1], "is an object, not [1]"), ("setBreakpoints", {"source": "x"}, "'source' is an object, not 'x'"),
        ("setBreakpoints", {"source": {"path": 5}}, "'path' is a text, not 5"),
        ("setBreakpoints", {"source": {"path": "a.cu"}, "breakpoints": ["x"]}, "an element of 'breakpoints' is an object"),
        ("stackTrace", {}, "the request has no 'threadId'"), ("stackTrace", {"threadId": "x"}, "'threadId' is a whole number"),
        ("scopes", {"frameId": 1.5}, "'frameId' is a whole number"),
        ("variables", {"variablesReference": {}}, "is a whole number"),
        ("evaluate", {"expression": None}, "has no 'expression'"), ("source", {"source": 5}, "'source' is an object"),
        ("setExceptionBreakpoints", {"filters": 5}, "'filters' is a list"),
        ("disassemble", {"memoryReference": "0x1000000", "instructionCount": 10**9}, "up to 65536 instructions"),
    ],
)  # fmt: skip
def test_a_request_of_another_shape_than_the_specification_has_is_answered(client, command, arguments, message):
    client.begin()
    client.adapter.handle({"seq": 99, "type": "request", "command": command, "arguments": arguments})
    assert not client.sent[-1]["success"]
    assert message in client.sent[-1]["message"]
    assert client.ask("threads")["threads"]


def test_an_error_of_the_adapter_is_an_answer(client, monkeypatch, capsys):
    monkeypatch.setitem(client.adapter.handlers, "threads", lambda *_: 1 // 0)
    assert "please report it: ZeroDivisionError" in client.send("threads")["message"]
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_each_breakpoint_says_what_is_wrong_with_it(client):
    client.begin()
    conditions = [{"filterId": "nan", "condition": "1 +"}, {"filterId": "nan", "condition": "%r1"}]
    found = client.ask("setExceptionBreakpoints", filters=["fault", "nothing"], filterOptions=conditions)["breakpoints"]
    assert [each["verified"] for each in found] == [True, False, False, True]
    data = client.ask("dataBreakpointInfo", name="ring[7]", frameId=client.frame())["dataId"]
    client.adapter.handle(
        {"seq": 99, "type": "request", "command": "setDataBreakpoints",
         "arguments": {"breakpoints": [{"dataId": data, "accessType": "look"}, {"dataId": data}]}}
    )  # fmt: skip
    assert [each["verified"] for each in client.sent[-1]["body"]["breakpoints"]] == [False, True]


def test_what_cannot_be_watched_says_why(client):
    client.begin()
    frame = client.frame()
    for name, why in (("%r1", "not in memory"), ("nothing", "there is no 'nothing' here"), ("1 +", "ends too early")):
        found = client.ask("dataBreakpointInfo", name=name, frameId=frame)
        assert found["dataId"] is None
        assert why in found["description"]
    assert client.ask("dataBreakpointInfo", name="0x10", asAddress=True, bytes=4)["dataId"] is None


def test_a_finding_of_a_check_has_its_code(out):
    client = Client(KERNEL.replace("bar.sync 0;", ""), out)
    client.ask("initialize", adapterID="ptxvm")
    client.ask("launch")
    client.ask("setExceptionBreakpoints", filters=["race"])
    client.ask("configurationDone")
    assert client.stop()["reason"] == "exception"
    assert client.ask("exceptionInfo", threadId=1)["exceptionId"] == "race"
    client.ask("disconnect")


def test_reverse_continue_passes_logpoints(client):
    client.begin()
    client.ask("setFunctionBreakpoints", breakpoints=[{"name": "hundred"}])
    client.ask("setBreakpoints", source={"path": "ring.cu"}, breakpoints=[{"line": 12, "logMessage": "x"}])
    client.ask("continue", threadId=1)
    client.ask("reverseContinue", threadId=1)
    assert client.stop()["description"] == "no more history"
