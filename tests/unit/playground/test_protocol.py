"""The protocol: whatever a page sends, there is an answer that says what is wrong."""

from __future__ import annotations

import json

import pytest

from ptxvm.playground import answer


@pytest.mark.parametrize(
    ("request_text", "said"),
    [
        ("", "the request is no JSON"),
        ("[" * 100_000, "the request is no JSON"),
        ("[]", "a request has a method"),
        ('{"method": 5}', "a request has a method"),
        ('{"method": "chekc"}', "there is no method 'chekc'; did you mean `check`?"),
        ('{"method": "check", "params": []}', "params is an object"),
        ('{"method": "check"}', "the parameter 'source' is missing"),
        ('{"method": "check", "params": {"source": 5}}', "source is a text"),
        (
            '{"method": "check", "params": {"source": "", "targte": "sm_80"}}',
            "there is no parameter 'targte'; did you mean `target`?",
        ),
        ('{"method": "run", "params": {"source": "", "shared": true}}', "shared is a whole number"),
        ('{"method": "run", "params": {"source": "", "arguments": "5"}}', "arguments is a list"),
        ('{"method": "run", "params": {"source": "", "arguments": [5]}}', "each of arguments is a text"),
    ],
)
def test_a_wrong_request_is_told(request_text, said):
    error = json.loads(answer(request_text))["error"]
    assert error["kind"] == "request"
    assert error["message"].startswith(said)


def test_a_text_has_an_end():
    error = json.loads(answer(json.dumps({"method": "check", "params": {"source": " " * ((1 << 20) + 1)}})))["error"]
    assert error == {"kind": "request", "message": "source has 1,048,577 characters; the playground takes 1,048,576"}


def test_a_bug_is_an_answer_too(monkeypatch):
    def broken(*_):
        raise IndexError("two\nlines")

    monkeypatch.setattr("ptxvm.playground.checking.analyse", broken)
    error = json.loads(answer('{"method": "check", "params": {"source": ""}}'))["error"]
    assert error == {"kind": "crash", "message": "IndexError: two lines: a bug of ptxvm, please report it"}
