"""What a user may pass by mistake: every public parameter with wrong values, and what is said of them.

Each is a TypeError or a ValueError of one line that names the parameter, the same on every engine and on a repeated
launch, and nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxvm
import ptxvm.litmus
from ptxvm import model
from ptxvm.engine.jit.run import relaunch

SOURCE = """
    .version 8.0
    .target sm_80
    .address_size 64
    .global .u32 number = 7;
    .global .texref image;
    .visible .entry k(.param .u64 out, .param .align 4 .b8 pair[8]) {
        .reg .b64 %d;
        ld.param.u64 %d, [out];
        st.global.u32 [%d], 1;
        ret;
    }
    """
# Of the options of a launch: values, the error, and what it says.
LAUNCH: dict[str, tuple[tuple[Any, ...], type[Exception], str]] = {
    "grid": (("x", 1.5, 1.0, True, None, (1, 1.0), [1.0], np.float32(1), (1, None)), ValueError, "grid is an integer or up"),
    "grid sizes": (((1, 1, 1, 1), (), 0, (1, 0), -1, 1 << 31, np.zeros(0, int)), ValueError, "grid"),
    "block": (("32", 1.0, None, True, {}), ValueError, "block is an integer or up to three of them, not"),
    "block sizes": ((0, 1025, (1, 1, 65), (1025, 1)), ValueError, "block"),
    "args": ((None, 5, "ab", b"ab", {}, {1}, iter(()), np.zeros(2)), TypeError, "args is a list or tuple with one value"),
    "shared": (
        ("x", 1.5, 16.0, None, True, [4], np.float64(4)),
        TypeError,
        "shared is how many bytes of dynamic shared memory",
    ),
    "shared size": ((-1, np.int64(-5)), ValueError, "shared is how many bytes of dynamic shared memory a CTA gets, not -"),
    "cluster": (("x", 1.5, (1.0,), True, {}), ValueError, "cluster is an integer or up to three of them, not"),
    "cluster sizes": ((0, -1, (), (1, 1, 1, 1)), ValueError, "cluster has one to three sizes of 1 or more"),
    "engine": ((5, None, True, b"jit", ["jit"], np.zeros(2)), TypeError, "engine is one of auto, interp, jit, not"),
    "engine name": (("gpu", "", "JIT"), ValueError, "there is no engine '.*'; there are auto, interp, jit"),
    "stream": (("x", 5, 0, False, ptxvm.Stream, ptxvm.Event()), TypeError, "stream is a ptxvm.Stream, not"),
    "check": ((True, False, 0, 5, 1.5, b"race", [5], {"race": 1}, iter(["race"]), [["race"]]), TypeError, "check is None, or"),
    "check name": (("x", "", ["race", "x"], ("Race",), "memory,race"), ValueError, "there is no check '.*'; there are memory"),
    "allow": ((5, None, True, [5], b"race"), TypeError, "allow is the code of a finding, or several, not"),
    "allow name": (("x", ["nothing"]), ValueError, "there is no finding '.*'"),
    "schedules": (("x", 1.5, None, True, [1]), TypeError, "a launch is run 1 or more times, not"),
    "schedules count": ((0, -1), ValueError, "a launch is run 1 or more times, not"),
    "seed": (("x", 1.5, True, [1]), TypeError, "seed is an integer, from which random schedules are made, not"),
    "steps": (("x", 1.5, True, [1]), TypeError, "steps is how many .*, not"),
    "steps count": ((0, -1), ValueError, "steps is how many .*, not"),
    "timeout": (("x", True, [1]), TypeError, "timeout is a number of seconds.*, not"),
    "timeout seconds": ((0, -1.5, float("nan")), ValueError, "timeout is a number of seconds.*, not"),
    "threads": (("x", 1.5, True, [1]), TypeError, "a kernel is run by 1 or more threads of the host, not"),
    "threads count": ((0, -1), ValueError, "a kernel is run by 1 or more threads of the host, not"),
    "numerics": ((5, None, True, b"fast"), TypeError, "numerics is one of exact, fast, not"),
    "numerics name": (("x", ""), ValueError, "there are no numerics '.*'; there are exact, fast"),
}


def refused(call: Callable[[], object], error: type[Exception], said: str) -> None:
    """A call raises an error of one line."""
    with pytest.raises(error, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.fixture(params=["auto", "interp", "jit", "repeated"])
def launch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Launches the kernel with options: for the first time on an engine, or after launches that get it ready."""
    kernel, out = ptxvm.load(SOURCE).kernel(), np.zeros(1, np.uint32)
    usual: dict[str, Any] = {"grid": 1, "block": 1, "args": [out, np.zeros((), "u4,u4")[()]]}
    if request.param == "repeated":
        monkeypatch.setattr(relaunch, "limit", lambda _: float("inf"))
        for _ in range(6):
            kernel.launch(**usual)
        out[0] = 0
    else:
        usual["engine"] = request.param

    def run(**more: Any) -> Any:
        try:
            return kernel.launch(**{**usual, **more})
        finally:
            assert not out[0] or not more

    return run


@pytest.mark.parametrize("which", LAUNCH)
def test_the_options_of_a_launch(which: str, launch: Callable[..., Any]) -> None:
    values, error, said = LAUNCH[which]
    for value in values:
        refused(lambda value=value: launch(**{which.split(maxsplit=1)[0]: value}), error, said)
    assert launch().grid == (1, 1, 1)


def test_a_grid_is_a_multiple_of_its_clusters(launch: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=re.escape("grid.x is 1, which is no multiple of the 2 CTAs of a cluster")):
        launch(cluster=(2, 1))


def test_numbers_of_numpy_are_numbers() -> None:
    kernel, out = ptxvm.load(SOURCE).kernel(), np.zeros(1, np.uint32)
    args = (out, bytes(8))
    for engine in ("interp", "jit"):
        result = kernel.launch(
            np.int64(2), [np.int32(3), 1], args, shared=np.uint8(4), threads=np.int8(1), seed=np.int16(5),
            schedules=np.int64(1), cluster=np.int8(1), check=["memory"], engine=engine,
        )  # fmt: skip
        assert (result.grid, result.block) == ((2, 1, 1), (3, 1, 1))
        assert kernel.launch(1, 1, args, check="race", cluster=(1, 1, 1), engine=engine).findings == []


MODULE = ptxvm.load(SOURCE)
KERNEL = MODULE.kernel()
STREAM = ptxvm.Stream()
IMAGE = np.zeros((4, 4), np.float32)
TEST: Any = None  # of which nothing is asked before the options are

# Calls, the error, and what it says.
CALLS: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "load of nothing": (lambda: ptxvm.load(None), TypeError, "a source is a path, or PTX as text or bytes, not None"),
    "load of a number": (lambda: ptxvm.load(5), TypeError, "a source is a path"),
    "load of a list": (lambda: ptxvm.load([SOURCE]), TypeError, "a source is a path"),
    "check of nothing": (lambda: ptxvm.check(None), TypeError, "a source is a path"),
    "check of a module": (lambda: ptxvm.check(MODULE), TypeError, "a source is a path"),
    "target 75": (lambda: ptxvm.load(SOURCE, 75), TypeError, "target is the name of one, such as 'sm_90', not 75"),
    "target of a check": (lambda: ptxvm.check(SOURCE, 7.5), TypeError, "target is the name of one"),
    "target bytes": (lambda: ptxvm.load(SOURCE, b"sm_75"), TypeError, "target is the name of one"),
    "link of a module": (lambda: ptxvm.link(MODULE), TypeError, "modules is a list of the modules to link, not <Module"),
    "link of a number": (lambda: ptxvm.link(5), TypeError, "modules is a list of the modules"),
    "link of a text": (lambda: ptxvm.link(SOURCE), TypeError, "modules is a list of the modules"),
    "link of texts": (lambda: ptxvm.link([SOURCE]), TypeError, "a module to link is what ptxvm.load returns, not"),
    "link of none": (lambda: ptxvm.link([]), ValueError, "there are no modules to link"),
    "link with itself": (lambda: ptxvm.link([MODULE, MODULE]), ValueError, "a module is linked with itself"),
    "kernel 5": (lambda: MODULE.kernel(5), TypeError, "a kernel is called by its name, not 5"),
    "kernels": (lambda: MODULE.kernel(["k"]), TypeError, "a kernel is called by its name"),
    "symbol 5": (lambda: MODULE.symbol(5), TypeError, "a variable is called by its name, not 5"),
    "symbols": (lambda: MODULE.symbol(["number"]), TypeError, "a variable is called by its name"),
    "bind 5": (lambda: MODULE.bind(5, ptxvm.Texture(IMAGE)), TypeError, "a variable is called by its name"),
    "bind an array": (lambda: MODULE.bind("image", IMAGE), TypeError, "what is bound is a Texture, Sampler or Surface, not"),
    "bind a surface": (lambda: MODULE.bind("image", ptxvm.Surface(IMAGE)), TypeError, "is a .texref and takes no Surface"),
    "dump": (lambda: KERNEL.dump("x"), ValueError, "there is no dump of 'x'; there are shapes, llvm, asm"),
    "dump 5": (lambda: KERNEL.dump(5), TypeError, "what is one of shapes, llvm, asm, not 5"),
    "dump block": (lambda: KERNEL.dump("llvm", 1.0), ValueError, "block is an integer or up to three"),
    "dump shared": (lambda: KERNEL.dump("llvm", shared=1.5), TypeError, "shared is how many bytes"),
    "dump numerics": (lambda: KERNEL.dump("llvm", numerics="x"), ValueError, "there are no numerics 'x'"),
    "array -1": (lambda: ptxvm.DeviceArray(-1), ValueError, "the shape of a DeviceArray has no negative sizes, and -1 was"),
    "array (2, -1)": (lambda: ptxvm.DeviceArray((2, -1)), ValueError, "has no negative sizes"),
    "array 1.5": (lambda: ptxvm.DeviceArray(1.5), TypeError, "the shape of a DeviceArray is an integer or a tuple"),
    "array of text": (lambda: ptxvm.DeviceArray("4"), TypeError, "the shape of a DeviceArray is"),
    "array of nothing": (lambda: ptxvm.DeviceArray(None), TypeError, "the shape of a DeviceArray is"),
    "array dtype": (lambda: ptxvm.DeviceArray(4, "nonsense"), TypeError, "nonsense"),
    "array memory": (lambda: ptxvm.DeviceArray(4, memory=5), TypeError, "memory is a Memory, not 5"),
    "array values": (lambda: ptxvm.DeviceArray(4).copy_from_host(np.zeros(3)), ValueError, "broadcast"),
    "stream name": (lambda: ptxvm.Stream(5), TypeError, "the name of a stream is a word, not 5"),
    "stream record": (lambda: STREAM.record(5), TypeError, "a stream records a ptxvm.Event, not 5"),
    "stream wait": (lambda: STREAM.wait(5), TypeError, "a stream waits for a ptxvm.Event or ptxvm.Stream, not for 5"),
    "stream wait none": (lambda: STREAM.wait(None), TypeError, "a stream waits for"),
    "texture of text": (lambda: ptxvm.Texture("x"), TypeError, "elements are one of"),
    "texture filter": (lambda: ptxvm.Texture(IMAGE, "x"), ValueError, "filter is one of nearest, linear, not 'x'"),
    "texture filter 5": (lambda: ptxvm.Texture(IMAGE, 5), ValueError, "filter is one of"),
    "texture address": (lambda: ptxvm.Texture(IMAGE, address="x"), ValueError, "address is one of"),
    "texture address 5": (lambda: ptxvm.Texture(IMAGE, address=5), ValueError, "address is one of"),
    "texture four": (lambda: ptxvm.Texture(IMAGE, address=["clamp"] * 4), ValueError, "or one to three of them"),
    "texture read": (lambda: ptxvm.Texture(IMAGE, read="x"), ValueError, "read is one of"),
    "texture border": (lambda: ptxvm.Texture(IMAGE, border="x"), TypeError, "border is up to four numbers, not 'x'"),
    "texture border 5": (lambda: ptxvm.Texture(IMAGE, border=5), TypeError, "border is up to four numbers"),
    "texture borders": (lambda: ptxvm.Texture(IMAGE, border=[0] * 5), TypeError, "border is up to four numbers"),
    "texture channels": (lambda: ptxvm.Texture(IMAGE, channels=1.5), TypeError, "an element has 1, 2 or 4 channels"),
    "texture 3 channels": (lambda: ptxvm.Texture(IMAGE, channels=3), ValueError, "an element has 1, 2 or 4 channels"),
    "texture samples": (lambda: ptxvm.Texture(IMAGE, samples="x"), TypeError, "samples is how many"),
    "texture samples -1": (lambda: ptxvm.Texture(IMAGE, samples=-1), ValueError, "samples is how many"),
    "texture bias": (lambda: ptxvm.Texture(IMAGE, mipmap_bias="1"), TypeError, "mipmap_bias is a number"),
    "texture range": (lambda: ptxvm.Texture(IMAGE, mipmap_range=3), TypeError, "mipmap_range is the least and the greatest"),
    "texture mipmaps": (lambda: ptxvm.Texture(IMAGE, mipmaps=5), TypeError, "mipmaps is a list of arrays"),
    "texture compare": (lambda: ptxvm.Texture(IMAGE, compare="x"), ValueError, "compare is one of lt, le"),
    "sampler compare": (lambda: ptxvm.Sampler(compare="x"), ValueError, "compare is one of lt, le"),
    "sampler filter": (lambda: ptxvm.Sampler("x"), ValueError, "filter is one of"),
    "surface of a list": (lambda: ptxvm.Surface([1, 2]), TypeError, "a surface is a contiguous NumPy array or a DeviceArray"),
    "surface of rows": (lambda: ptxvm.Surface(IMAGE[:, ::2]), TypeError, "a surface is a contiguous NumPy array"),
    "surface channels": (lambda: ptxvm.Surface(IMAGE, channels="x"), TypeError, "an element has 1, 2 or 4 channels"),
    "litmus file": (lambda: ptxvm.litmus.read(5), TypeError, "os.PathLike"),
    "litmus runs": (lambda: ptxvm.litmus.observe([None], -1), ValueError, "runs is how often a test is run, not -1"),
    "litmus runs x": (lambda: ptxvm.litmus.observe([None], "x"), TypeError, "runs is how often a test is run, not 'x'"),
    "litmus machines": (lambda: ptxvm.litmus.observe([], 1), ValueError, "there is no machine"),
    "litmus model": (lambda: model.judge(TEST, "5.0"), ValueError, "there is no model '5.0'; there are 6.4, 9.1"),
    "litmus model 9.1": (lambda: model.judge(TEST, 9.1), TypeError, "model is one of 6.4, 9.1, not 9.1"),
    "litmus solver": (lambda: model.judge(TEST, solver="x"), ValueError, "there is no solver 'x'"),
    "litmus bound": (lambda: model.judge(TEST, bound=1.5), TypeError, "bound is how often a loop is followed"),
}


@pytest.mark.parametrize("which", CALLS)
def test_other_calls(which: str) -> None:
    refused(*CALLS[which])


@pytest.mark.parametrize("engine", ["auto", "interp", "jit"])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PTXVM_CACHE", "~no-such-user/x", "PTXVM_CACHE is a folder, and there is no home directory for"),
        ("PTXVM_CACHE_SIZE", "many", "PTXVM_CACHE_SIZE is a number of MiB, not 'many'"),
        ("PTXVM_CACHE_SIZE", "-5", "PTXVM_CACHE_SIZE is a number of MiB"),
        ("PTXVM_THREADS", "0", "PTXVM_THREADS is a number of threads, not '0'"),
        ("PTXVM_THREADS", "1.5", "PTXVM_THREADS is a number of threads"),
        ("PTXVM_TIER", "good", "PTXVM_TIER is one of auto, quick, best, not 'good'"),
    ],
)
def test_the_environment(engine: Any, name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    out = np.zeros(1, np.uint32)
    refused(lambda: ptxvm.load(SOURCE).kernel().launch(1, 1, [out, bytes(8)], engine=engine), ValueError, said)
    assert not out[0]


def test_check_takes_what_load_takes(tmp_path: Path) -> None:
    path = tmp_path / "wrong.ptx"
    path.write_text(SOURCE.replace("st.global.u32", "st.global.u33"))
    text = path.read_text()
    for given in (path, str(path), text, text.encode()):
        assert [found.line for found in ptxvm.check(given)] == [10]
        with pytest.raises(ptxvm.InvalidPTX):
            ptxvm.load(given)
    for missing in (tmp_path / "none.ptx", str(tmp_path / "none.ptx")):
        for take in (ptxvm.check, ptxvm.load):
            with pytest.raises(FileNotFoundError):
                take(missing)
    assert ptxvm.check(b"") == ptxvm.check("")
    for text in (".version 9.5", "  ", "// a comment", "/* a comment */"):
        assert ptxvm.check(text) == ptxvm.check(text.encode())


def test_what_is_shown_of_objects(tmp_path: Path) -> None:
    path = tmp_path / "some.ptx"
    path.write_text(SOURCE)
    module = ptxvm.load(path)
    assert repr(module) == f"<Module {path} (sm_80): k>"
    assert repr(module.kernel()) == "<Kernel k(.u64 out, .b8[8] pair)>"
    assert repr(ptxvm.load(".version 8.0\n.target sm_80\n")) == "<Module <source> (sm_80): no kernels>"
    text = ".version 8.0\n.target sm_80\n.entry {}() {{ ret; }}\n"
    assert [ptxvm.load(text.format(name)).programs[0].source.name for name in ("k", "_Z5scalePfi")] == ["<k>", "<scale>"]
    (wrong,) = ptxvm.check(SOURCE.replace("st.global.u32", "st.global.u33"))
    assert repr(wrong).startswith(f"<Diagnostic 10:18: error[{wrong.code}]: ")
    out = np.zeros(1, np.uint32)
    shown = repr(module.kernel().launch((2, 1), 32, [out, bytes(8)], check="race"))
    assert shown.startswith("<LaunchResult grid (2, 1, 1), block (32, 1, 1): ")
    assert shown.endswith("findings: race>")
    assert "finding" not in repr(module.kernel().launch(1, 1, [out, bytes(8)]))


def test_all_public_names_are_listed() -> None:
    assert set(ptxvm.__all__) <= set(dir(ptxvm))
    for name in ptxvm.__all__:
        assert getattr(ptxvm, name) is not None
