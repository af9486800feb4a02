"""PTX in CUDA C and in Python: found, checked and explained where it stands."""

from __future__ import annotations

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from ptxvm.analysis.incremental import IncrementalChecker
from ptxvm.lsp.document import Document
from ptxvm.lsp.embedded import findings, fragments, hover
from ptxvm.lsp.text import DocumentText

C = r"""
__device__ int f(int a, float x, void *p) {
    int d, lane; unsigned short h;
    asm("add.s32 %0, %1, %1;" : "=r"(d) : "r"(a));
    asm volatile("{\n\t"
        ".reg .pred q; // é a comment\n\t"
        "setp.lt.s32 q, %1, 0;\n"  /* of C */
        "@q mov.u32 %0, %%laneid;\n\t}"
        : "=r"(lane) : "r"(a) : "memory");
    // asm("not.ptx");
    const char *s = "asm(\"neither\")";
    __asm__("cvt.f64.f32 %0, %1;" : "=d"(y) : "f"(x));
    asm("wgmma.fence.sync.aligned;");
    asm("mov.u32 %0, CONSTANT;" : "=Q"(d));
    return d;
}
"""

PY = '''
import triton
KERNEL = """
.version 8.0
.target sm_90
.address_size 64
.entry k() { .reg .b32 %r<3>; mov.u32 %r1, %tid.x; ret; }
"""
y = tl.inline_asm_elementwise("""
    { .reg .b32 t; add.u32 t, $1, 1; mov.b32 $0, t; }
""", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)
OTHER = f".version {v}"
'''


def document(text, language):
    return Document("file:///a", DocumentText(text), 1, language)


def wrong(text, language):
    """What is wrong: the code, and the text that is marked."""
    return [
        (each.code, text[each.span.start : each.span.end]) for each in findings(document(text, language), IncrementalChecker())
    ]


def test_asm_of_c_is_found_and_right():
    assert len(fragments(document(C, "cuda-cpp"))) == 4
    assert wrong(C, "cuda-cpp") == []


@pytest.mark.parametrize(
    ("right", "text", "found"),
    [
        ("add.s32 %0, %1, %1;", "add.s33 %0, %1, %1;", ("P0305", ".s33")),
        ("add.s32 %0, %1, %1;", "add.s32 %0, %1, %7;", ("P0201", "%7")),
        ("add.s32 %0, %1, %1;", "add.s32 %0, %1 %1;", ("P0101", "%1")),
        ("@q mov.u32 %0, %%laneid;", "@q mov.u32 %0, %%lane;", ("P0201", "%lane")),
        ("setp.lt.s32 q, %1, 0;", "setp.lt.f64 q, %1, 0d0000000000000000;", ("P0304", "%1")),
        ("cvt.f64.f32 %0, %1;", "cvt.f64.f32 %1, %0;", ("P0303", "cvt.f64.f32")),
    ],
)
def test_errors_in_asm_stand_where_they_are(right, text, found):
    """The operands have the registers of their constraints: `r` 32 bits, `f` and `d` floats (CUDA, Inline PTX Assembly)."""
    assert found in wrong(C.replace(right, text), "cuda-cpp")


def test_python_is_found_and_right():
    assert len(fragments(document(PY, "python"))) == 2
    assert wrong(PY, "python") == []


@pytest.mark.parametrize(
    ("right", "text", "found"),
    [
        ("mov.u32 %r1, %tid.x", "mov.u32 %r9, %tid.x", ("P0201", "%r9")),
        ("add.u32 t, $1, 1;", "add.u32 t, $2, 1;", ("P0201", "$2")),
    ],
)
def test_errors_in_python_stand_where_they_are(right, text, found):
    assert wrong(PY.replace(right, text), "python") == [found]


@pytest.mark.parametrize(
    ("text", "language", "word", "said"),
    [
        (C, "cuda-cpp", "add.s32", "Add two values"),
        (C, "cuda-cpp", "laneid", "The number of this lane"),
        (C, "cuda-cpp", "setp", "Compare"),
        (PY, "python", "tid.x", "The place of the thread"),
        (PY, "python", "add.u32", "Add two values"),
    ],
)
def test_hover(text, language, word, said):
    explains(text, language, word, said)


def explains(text, language, word, said):
    there = document(text, language)
    found = hover(there, there.text.position(text.index(word) + 1))
    assert said in found.contents.value
    assert word.split(".")[0] in text[slice(*there.text.span(found.range))]


CONSTANT = 'asm volatile("cp.async.cg.shared.global [%0], [%1], %2;" :: "r"(to), "l"(from), "n"(16));'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (CONSTANT, []),
        (CONSTANT.replace("(16)", "(12)"), [("P2601", "%2")]),
        (CONSTANT.replace("(16)", "(SIZE)"), []),  # its value is not in the text
        ('asm(R"(add.s32 %0, %1, %1;)" : "=r"(d) : "r"(a));', []),
        ('asm(R"x(add.s33 %0, %1, %1;)x" : "=r"(d) : "r"(a));', [("P0305", ".s33")]),
    ],
)
def test_constants_and_raw_strings_of_c(text, found):
    """`n` is a constant, which stands in the text of the statement (CUDA, Inline PTX Assembly): cp.async.cg takes 16 bytes."""
    assert wrong(text, "cuda-cpp") == found
    explains(text, "cuda-cpp", "cp.async" if text.startswith(CONSTANT[:20]) else "add.s3", "")


F_STRING = """
N = 4
KERNEL = f'''
.version 8.0
.target sm_90
.address_size 64
.entry k{suffix}() {{ .reg .b32 %r<3>; mov.u32 %r1, %tid.x; add.u32 %r1, %r9, {N}; ret; }}
'''
"""


def test_a_format_string_is_explained_and_one_without_expressions_is_checked():
    explains(F_STRING, "python", "add.u32", "Add two values")
    assert wrong(F_STRING, "python") == []
    assert wrong(F_STRING.replace("{suffix}", "").replace("{N}", "4"), "python") == [("P0201", "%r9")]


def test_what_is_no_ptx_says_nothing():
    there = document(C, "cuda-cpp")
    assert hover(there, there.text.position(C.index("__device__"))) is None


@pytest.mark.parametrize(
    "text", ["asm(", 'asm("', 'asm("x', 'asm(""', 'asm("" : "=r"(', '"""', "'''.version 8.0", 'asm("\\', 'asm("{")']
)
@pytest.mark.parametrize("language", ["cuda-cpp", "python"])
def test_half_a_text_does_not_fail(text, language):
    wrong(text, language)


@pytest.mark.parametrize(
    "code",
    [
        r'asm("add.u32 %[d], %[x], 1;" : [d] "=r"(a) : [x] "r"(b));',  # names of operands, as Clang has them
        r'asm("{ L%=: bra L%=; }" ::);',
        'asm("add." KIND " %0, %1, 1;" : "=r"(a) : "r"(b));',  # what a macro stands for is not seen
        'asm("add." KIND(x) " %0, %1, 1;" : "=r"(a) : "r"(b));',
        r"""#define OP(x) asm("add.u32 %0, %1, " #x ";" : "=r"(a) : "r"(b))""",
        """// R"( asm("zzz;")\n/* asm("zzz;") */ char *s = R"(asm("zzz;"))";""",
    ],
)
def test_c_in_which_nothing_is_wrong(code):
    assert wrong(code, "cuda-cpp") == []


@pytest.mark.parametrize(
    "before",
    ["", "char quote = '\"'; ", "int many = 1'000'000; ", 'char *s = "\'"; ', '/* " */ ', "char slash = '\\\\'; "],
)
def test_quotes_of_c_hide_nothing_behind_them(before):
    code = before + r'asm("add.u33 %[d], %[x], 1;" : [d] "=r"(a) : [x] "r"(b));'
    assert [text for _, text in wrong(code, "cuda-cpp")] == [".u33"]


HEAD = '".version 8.0\\n"\n  ".target sm_80\\n"  # of an A100\n  '


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (f'P = ({HEAD}".entry k() {{ ret; }}\\n")', []),
        (f'P = ({HEAD}".entry k() {{ reet; }}\\n")', ["reet"]),
        (f'P = ({HEAD}".entry k() {{{{ {{what}} }}}}\\n").format(what="ret;")', []),
        (f'P = ({HEAD}".entry k() {{ %s }}\\n") % "ret;"', []),
        ('# ".version 8.0 zz"\n', []),
        ('f("add.u33 $0, $1, 1;" " not.b32 $0, $0;", constraints=("=r," "r"), args=[a])', [".u33"]),
        ('f(("add.u32 $0, $1, 1;"), constraints=("=r," "r"), args=[a])', []),
    ],
)
def test_strings_of_python_that_stand_beside_each_other_are_one(code, expected):
    assert [text for _, text in wrong(code, "python")] == expected
