"""`ptxvm play` from outside: it tells where it serves, and ends when it is interrupted."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request

from ptxvm.cli import main

SERVE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which may be ignored where the tests run
from ptxvm.cli import main
sys.exit(main(["play", "--port", "0", "--no-browser"]))
"""


def test_it_serves_until_it_is_interrupted():
    with subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as serving:
        said = serving.stdout.readline()
        url = re.fullmatch(r"The playground is at (http://127\.0\.0\.1:\d+/) \(Ctrl-C ends it\)\.\n", said)[1]
        with urllib.request.urlopen(url) as page:  # noqa: S310 - matched above
            assert b"<title>ptxvm playground</title>" in page.read()
        serving.send_signal(signal.SIGINT)
        assert serving.wait(10) == 0
        assert serving.stderr.read() == ""


def test_a_port_that_is_taken_is_told(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["play", "--no-browser", "--port", str(port)]) == 2
    told = f"ptxvm play: --port {port}: Address already in use on 127.0.0.1; --port 0 takes a free one\n"
    assert capsys.readouterr().err == told
