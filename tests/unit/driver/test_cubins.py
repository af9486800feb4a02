"""Cubins with line information: the PTX in them, and the places of the source that their line tables give it (DWARF 2)."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from struct import pack

import pytest

from ptxvm import InvalidPTX, load
from ptxvm.driver.code_images import linked_image, texts_at, texts_of
from ptxvm.driver.configuration import in_threads
from ptxvm.driver.cubins import AssembledPTX, cubin_at, ptx_texts
from ptxvm.driver.programs import loaded
from ptxvm.driver.results import BuildError, DriverError, Result
from ptxvm.machine.launch_options import LaunchOptions

from .test_code_images import WRAPPER, entry, fatbin, texts

PTX = """
.version 8.0
.target sm_89
.address_size 64

.visible .entry k(.param .u64 p)
{
.reg .b64 %rd<3>;

ld.param.u64 %rd1, [p];
add.s64 %rd2, %rd1, 8;

st.global.u64 [%rd2], %rd1;
ret;
}
"""


def elf(*sections: tuple[str, bytes], relocations: dict[str, list[tuple[int, int]]] | None = None) -> bytes:
    """A file of sections and, by section, of relocations: offsets and symbols (System V ABI)."""
    moved = [(f".rel{name}", b"".join(pack("<QQ", at, symbol << 32 | 2) for at, symbol in some))
             for name, some in (relocations or {}).items()]  # fmt: skip
    every = [("", b""), *sections, *moved]
    names = b"".join(name.encode() + b"\0" for name, _ in [*every, (".shstrtab", b"")])
    every.append((".shstrtab", names))
    data, heads = b"", b""
    for name, each in every:
        heads += pack("<IIQQQQIIQQ", names.index(name.encode() + b"\0"), 1, 0, 0, 64 + len(data), len(each), 0, 0, 1, 0)
        data += each
    header = b"\x7fELF\2\1\1" + bytes(9) + pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(data), 0, 64, 0, 0, 64,
                                               len(every), len(every) - 1)  # fmt: skip
    return header + data + heads


def line_table(files: list[tuple[str, int]], folders: list[str], rows: list[tuple[int, int]]) -> tuple[bytes, int]:
    """The table of one function, with rows of an address and a line; and where its relocation is (DWARF 2, 6.2)."""
    lengths = bytes((0, 1, 1, 1, 1, 0, 0, 0, 1))
    names = b"".join(each.encode() + b"\0" for each in folders) + b"\0"
    names += b"".join(name.encode() + b"\0" + bytes((folder, 0, 0)) for name, folder in files) + b"\0"
    program, address, line = b"\0\x09\2" + bytes(8), 0, 1
    for at, number in rows:
        program += b"\3" + bytes(((number - line) & 0x7F,)) + b"\2" + bytes((at - address,)) + b"\1"
        address, line = at, number
    program += b"\2\x10\0\1\1"
    head = bytes((1, 1, 0xFB, 14, 10)) + lengths + names
    body = pack("<HI", 2, len(head)) + head + program
    return pack("<I", len(body)) + body, 10 + len(head) + 3


def with_lines(text: str = PTX) -> bytes:
    """The cubin of a text, whose lines 10 to 14 come from lines 4 and 5 of a file."""
    of_ptx, at = line_table([], [], [(0, 10), (16, 13), (32, 14)])
    of_source, there = line_table([("a.py", 1)], ["/src"], [(0, 4), (16, 5)])
    held = text.encode().replace(b"\n", b"\0") + b"\0\0"
    sections = ((".nv_debug_ptx_txt", held), (".nv_debug_line_sass", of_ptx), (".debug_line", of_source))
    return elf(*sections, relocations={".nv_debug_line_sass": [(at, 7)], ".debug_line": [(there, 7)]})


def test_a_cubin_gives_its_text_with_the_files_and_places_of_the_source():
    lines = PTX.split("\n")
    lines[3] += ' .file 1 "/src/a.py"'
    lines[8], lines[11] = ".loc 1 4 0", ".loc 1 5 0"
    assert ptx_texts(with_lines()) == ["\n".join(lines).rstrip("\n").encode() + b"\n"]
    load(ptx_texts(with_lines())[0])  # it is right


def test_a_cubin_in_memory_ends_with_its_last_table():
    held = ctypes.create_string_buffer(with_lines() + b"other memory")
    assert cubin_at(ctypes.addressof(held)) == with_lines()
    assert texts_at(ctypes.addressof(held)) == ptx_texts(with_lines())


def test_a_linked_cubin_has_a_text_for_each_module():
    image = elf((".nv_debug_ptx_txt.12", b".version 8.0\0"), (".text.k", b"code"), (".nv_debug_ptx_txt.3", b"second\0"))
    assert ptx_texts(image) == [b".version 8.0\n", b"second\n"]


@pytest.mark.parametrize(
    "image", [elf((".text.k", b"code")), with_lines(PTX.replace(".param .u64 p", ".hidden  .param .u64 p"))]
)
def test_code_without_ptx_and_code_with_hidden_parameters_cannot_run(image):
    with pytest.raises(BuildError, match=r"no PTX|hidden parameters") as raised:
        texts_of(image)
    assert raised.value.result is Result.NO_BINARY_FOR_GPU


def test_a_damaged_cubin_is_an_invalid_image():
    broken = bytearray(with_lines())
    broken[0x3E:0x40] = pack("<H", 60000)  # the number of the section with the names
    with pytest.raises(DriverError, match="damaged") as raised:
        ptx_texts(bytes(broken))
    assert raised.value.result is Result.INVALID_IMAGE


def test_cubins_with_any_wrong_bytes_are_read_or_refused(rng):
    """Offsets that lead out of the file, a range of lines of 0, numbers without an end: never another error."""
    image, refused = with_lines(), 0
    for _ in range(2000):
        broken = bytearray(image)
        for at in rng.integers(0, len(broken), rng.integers(1, 6)):
            broken[at] = rng.choice([0, 1, 255, rng.integers(256)])
        try:
            ptx_texts(bytes(broken[: rng.integers(len(image) // 2, 3 * len(image))]))
        except DriverError:
            refused += 1
    assert refused > 100


def test_machine_code_of_a_fatbin_runs_on_later_devices_of_its_major_version():
    code = entry(with_lines(), 86, kind=2)
    [text] = ptx_texts(with_lines())
    assert texts(fatbin(code), (8, 9)) == [text]
    assert texts(fatbin(entry(b"for 75", 75), code), (8, 9)) == [b"for 75"]  # without a search in code
    assert texts(fatbin(entry(b"for 90", 90), code), (8, 9)) == [text]
    for capability in ((9, 0), (8, 0)):
        with pytest.raises(BuildError, match=r"code for sm_86, and the device is sm_.0; PTXVM_DEVICE"):
            texts(fatbin(code), capability)


def test_linked_machine_code_is_taken_where_modules_have_no_ptx():
    linked, module = fatbin(entry(with_lines(), 89, kind=2)), fatbin(entry(elf((".text.k", b"code")), 89, kind=2))
    buffers = [ctypes.create_string_buffer(image, len(image)) for image in (linked, module)]
    listed = (ctypes.c_uint64 * 2)(ctypes.addressof(buffers[1]), 0)
    assert texts(pack("<IIQQ", WRAPPER, 2, ctypes.addressof(buffers[0]), ctypes.addressof(listed))) == ptx_texts(with_lines())


def test_assembled_code_may_declare_all_the_shared_memory_of_a_device():
    large = PTX.replace("\n.visible", "\n.shared .b8 s[65536];\n.visible").replace("ret;", "st.shared.u64 [s], %rd1;\nret;")
    [text] = ptx_texts(with_lines(large))
    with pytest.raises(InvalidPTX, match="65,536 bytes of shared memory, and sm_89 has 49,152"):
        loaded(bytes(text))
    assert loaded(text).programs[0].extended_shared
    [again] = texts_of(linked_image([text]))  # the linker keeps what it is
    assert isinstance(again, AssembledPTX)
    assert again == text
    with pytest.raises(InvalidPTX, match="400,000 bytes of shared memory, and sm_89 has 232,448"):
        loaded(AssembledPTX(text.replace(b"65536", b"400000")))


def test_a_kernel_of_tiles_is_launched_with_blocks_of_one():
    head = ".visible .entry k(.param .u64 p) .reqntid 128 .language 7"
    tiles, threads = (load(PTX.replace("8.0", "9.4").replace(".visible .entry k(.param .u64 p)", each)).kernels["k"].function
                      for each in (head, head.removesuffix(".language 7")))  # fmt: skip
    one = LaunchOptions(grid=(3, 1, 1), block=(1, 1, 1))
    assert in_threads(tiles, one) == one._replace(block=(128, 1, 1))
    assert in_threads(threads, one) == one
    with pytest.raises(DriverError, match=r"is launched with blocks of \(1, 1, 1\), not \(64, 1, 1\)"):
        in_threads(tiles, one._replace(block=(64, 1, 1)))


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="there is no ptxas")
def test_a_real_cubin_gives_what_the_assembler_was_given(tmp_path):
    comment = PTX.replace("ld.param", "// of the manual\n.loc 1 30 2\nld.param")
    (tmp_path / "k.ptx").write_text(comment + '.file 1 "/there/k.cu"\n')
    command = ["ptxas", "-lineinfo", "-arch", "sm_89", "k.ptx", "-o", "k.cubin"]
    subprocess.run(command, cwd=tmp_path, check=True)
    [text] = ptx_texts((tmp_path / "k.cubin").read_bytes())
    assert b'.file 1 "/there/k.cu"' in text
    assert b".loc 1 30 0" in text
    assert re.sub(rb"\.(loc|file).*", b"", text).split() == PTX.encode().split()
