"""A launch whose lanes conflict in shared memory, and a page in headless Chromium."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxvm

Answer = dict[str, Any]
"""An answer of the debugging protocol."""

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

# Each of 64 threads writes a word of a column of shared memory, and reads its row; odd lanes take another way.
COLUMN = """.version 8.0
.target sm_80
.address_size 64
.file 1 "column.cu"
// </script><script>document.title = 'escaped'</script>
.visible .entry column(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<4>;
    .shared .b8 tile[8192];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, tile;
    mad.lo.u32 %r3, %r1, 128, %r2;
    .loc 1 3 1
    st.shared.u32 [%r3], %r1;  // </script><b>
    ld.shared.u32 %r4, [%r3];
    and.b32 %r5, %r1, 1;
    setp.eq.u32 %p, %r5, 0;
    .loc 1 5 1
    @%p bra EVEN;
    add.u32 %r4, %r4, 1;
EVEN:
    cvt.rn.f32.u32 %f1, %r4;
    add.f32 %f2, %f1, %f1;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    .loc 1 7 1
    st.global.f32 [%rd3], %f2;
    ret;
}
"""
CUDA = """__global__ void column(float *out) {
    __shared__ int tile[64][32];
    tile[threadIdx.x][0] = threadIdx.x;  // </script><i>

    if (threadIdx.x & 1)
        ;
    out[threadIdx.x] = 2.0f * tile[threadIdx.x][0];
}
"""


def written(folder: Path) -> Path:
    """The module in a folder, with its source beside it."""
    (folder / "column.cu").write_text(CUDA)
    path = folder / "column.ptx"
    path.write_text(COLUMN)
    return path


@pytest.fixture
def column(tmp_path: Path) -> Path:
    """The module, to be changed."""
    return written(tmp_path)


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> ptxvm.LaunchReport:
    """The report of a launch of two CTAs of it."""
    return report_of(written(tmp_path_factory.mktemp("column")))


@pytest.fixture
def html(report: ptxvm.LaunchReport) -> str:
    """Its page."""
    return report.html


@pytest.fixture
def reported() -> Callable[..., ptxvm.LaunchReport]:
    """Launches the module in a file."""
    return report_of


def report_of(column: Path, device: str = "sm_89") -> ptxvm.LaunchReport:
    """The report of a launch of two CTAs."""
    return ptxvm.launch_report(ptxvm.load(column).kernel(), 2, 64, [np.zeros(64, np.float32)], device=device)


class Browser:
    """A page in Chromium, by the pipe of its debugging protocol: commands and answers are JSON that ends in a NUL."""

    def __init__(self, program: str, profile: Path) -> None:
        (commands, to), (back, answers) = os.pipe(), os.pipe()
        flags = f"--headless --no-sandbox --disable-gpu --remote-debugging-pipe --user-data-dir={profile}"
        wired = f"exec {program} {flags} about:blank 3<&{commands} 4>&{answers}"
        self.process = subprocess.Popen(
            ["bash", "-c", wired], pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(commands)
        os.close(answers)
        self.to, self.back = os.fdopen(to, "wb", buffering=0), os.fdopen(back, "rb", buffering=0)
        self.numbers, self.session, self.rest = itertools.count(1), "", b""

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.to.close()
        self.back.close()

    def call(self, method: str, **parameters: object) -> Answer:
        """Run a command of the protocol, and wait for its answer."""
        number = next(self.numbers)
        command = {"id": number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        self.to.write(json.dumps(command).encode() + b"\0")
        return next(answer for answer in self.answers() if answer.get("id") == number)

    def answers(self) -> Iterator[Answer]:
        while True:
            while b"\0" not in self.rest:
                read = self.back.read(1 << 16)
                assert read, "Chromium has ended"
                self.rest += read
            answer, _, self.rest = self.rest.partition(b"\0")
            yield json.loads(answer)

    def open(self, path: Path, width: int, *, dark: bool = False) -> None:
        """Load a page of a width, and wait until it is there."""
        target = self.call("Target.createTarget", url="about:blank")["result"]["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["result"]["sessionId"]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.enable")
        self.call("Page.navigate", url=path.as_uri())
        next(answer for answer in self.answers() if answer.get("method") == "Page.loadEventFired")

    def value(self, expression: str) -> object:
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key."""
        code = {"ArrowDown": 40, "ArrowUp": 38, "End": 35, "Home": 36}[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Headless Chromium; the test skips where there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"it needs Chromium: none of {', '.join(NAMES)} is on the path")
    found = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()
