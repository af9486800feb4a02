"""What compilers of tiles write beside their code (PTX 9.2 to 9.5, of which there is no public text).

Which modules are right, and the words for the others, are those of ptxas 13.5.
"""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.syntax import tree
from ptxvm.syntax.parser import parse
from ptxvm.syntax.printer import print_module

FILES = '.file 1 "a.py"\n.file 2 "b"\n'
SOURCES = """.nv_intermediate_source_section {
  .code_block {
    .ir_name: "tile ir"
    .sourceFileName: 2
    .source_begin
entry @k { ; } // " /*
    .source_end
  }
}
"""


def module(before: str = "", directives: str = "", body: str = "ret;", after: str = "", version: str = "9.5") -> str:
    head = f".version {version}\n.target sm_90\n.address_size 64\n"
    return f"{head}{before}.visible .entry k()\n{directives}\n{{ {body} }}\n{after}"


def said(text: str) -> list[str]:
    return [found.ptxas for found in ptxvm.check(text) if found.severity == "error"]


def sources(old: str = "", new: str = "", version: str = "9.5") -> str:
    assert old in SOURCES
    return module(after=FILES + SOURCES.replace(old, new), version=version)


def needs(name: str, version: str) -> str:
    return f"Feature '{name}' requires PTX ISA .version {version} or later"


@pytest.mark.parametrize("numbers", ["0", "10", "0x7", "7, 8", "7, 7"])
def test_languages_of_a_kernel(numbers: str) -> None:
    for directives in (
        f".language {numbers}",
        f".maxntid 4 .language {numbers}",
        f".language {numbers} .language 1 .maxntid 4",
    ):
        assert said(module(directives=directives, version="9.2")) == []
    assert said(module(directives=f".language {numbers}", version="9.1")) == [needs(".language", "9.2")]


@pytest.mark.parametrize(("numbers", "expected"), [("7, 11", 11), ("255", 255)])
def test_there_are_eleven_languages(numbers: str, expected: int) -> None:
    words = f"Value '{expected}' for 'directive .language' out of range, expected to be in range [0..10]"
    assert said(module(directives=f".language {numbers}")) == [words]


def test_a_language_is_a_number_of_32_bits() -> None:
    assert said(module(directives=".language 4294967296")) == ["Constant overflow"]


@pytest.mark.parametrize("wrong", ["-1", "1+1", "(3)", '"x"', "", "7,", "7 8"])
def test_what_is_no_list_of_languages(wrong: str) -> None:
    assert said(module(directives=f".language {wrong}"))


@pytest.mark.parametrize(
    ("head", "right"),
    [
        (".func f() .language 7 { ret; }", True),
        (".func f() .noreturn .language 3, 4 { exit; }", True),
        (".func f() .language 7 .noreturn { exit; }", False),
        (".func f() .language 7 .language 7 { ret; }", False),
        (".extern .func f() .language 7;", False),
        (".entry f() .language 7;", False),
        (".language 7", False),
        (".func f() { p: .callprototype _ () .language 7; ret; }", False),
        (".func f() { .language 7 ret; }", False),
    ],
)
def test_where_a_language_stands(head: str, right: bool) -> None:
    assert (said(module(before=f"{head}\n")) == []) is right


@pytest.mark.parametrize("place", ["2 1 1", "0x2 1 1", "0 0 0", "3 1 1"])
def test_places_in_intermediate_sources(place: str) -> None:
    for body in (
        f".loc 1 1 1\n.loc_intermediate {place}\nret;",
        f"ret;\n.loc_intermediate {place}\n.loc_intermediate {place}\n",
    ):
        assert said(module(body=body, version="9.4")) == []
    body = f".loc_intermediate {place}\nret;"
    assert said(module(body=body, version="9.3")) == [needs(".loc_intermediate", "9.4")]


@pytest.mark.parametrize("place", ["", "2 1", "2 1 1 1", "-1 1 1", "2, 1, 1", "2 1 1;", "2 1+1 1"])
def test_what_is_no_such_place(place: str) -> None:
    assert said(module(body=f".loc_intermediate {place}\nret;"))


def test_places_are_numbers_of_32_bits_in_functions() -> None:
    assert said(module(body=".loc_intermediate 2 4294967296 1\nret;")) == ["Constant overflow"]
    assert said(module(after=".loc_intermediate 2 1 1\n"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("tile ir", ""),
        ("Name: 2", "Name:0x1"),
        (".sourceFileName", "/* a */ .sourceFileName"),
        ('entry @k { ; } // " /*\n', ""),
        ("entry", "  .source_endx }\nentry .source_end"),
        (".source_begin", ".source_begin  "),
        ("    .source_end", ".source_end  "),
        (SOURCES, ".nv_intermediate_source_section { }"),
        (SOURCES, SOURCES * 2),
        ("  }\n}\n", '  }\n.code_block { .ir_name: "y" .sourceFileName: 1\n.source_begin\n.source_end\n}}'),
    ],
)  # fmt: skip
def test_intermediate_sources(old: str, new: str) -> None:
    text = sources(old, new, "9.4")
    assert said(text) == []
    assert said(sources(old, new, "9.3"))[0] == needs(".nv_intermediate_source_section", "9.4")
    ptxvm.load(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('    .ir_name: "tile ir"\n', ""),
        ("    .sourceFileName: 2\n", ""),
        ('"tile ir"', "tile"),
        (".ir_name:", ".ir_name"),
        (".ir_name:", ".ir_name :"),
        ("Name: 2", 'Name: "b"'),
        (".source_begin\n", ".source_begin "),
        (".source_begin\n", ".source_begin // x\n"),
        ("    .source_end\n", ""),
        (".source_end\n", ".source_end }\n"),
        ("}\n}\n", "}\n"),
        ("}\n}\n", "}\n};\n"),
        (SOURCES, ".nv_intermediate_source_section { .code_block { } }"),
        (".ir_name", ".foo: 1 .ir_name"),
    ],
)
def test_what_are_no_intermediate_sources(old: str, new: str) -> None:
    assert said(sources(old, new))


def test_the_files_of_intermediate_sources_are_declared_above() -> None:
    assert said(sources("Name: 2", "Name: 7")) == ["Undefined file index #7"]
    assert said(module(after=SOURCES + FILES)) == ["Undefined file index #2"]
    assert said(sources("Name: 2", "Name: 4294967296")) == ["Constant overflow"]
    assert said(module(body=f"{SOURCES} ret;", before=FILES))


def test_what_is_printed_says_the_same() -> None:
    text = module(FILES, ".language 3, 4", ".loc_intermediate 2 15 4\nret;", SOURCES)
    again = print_module(parse(text)[0])
    assert ".language 3, 4" in again
    assert ".loc_intermediate 2 15 4\n" in again
    (one,), (other,) = (
        [each for each in parse(source)[0].statements if isinstance(each, tree.IntermediateSources)] for source in (text, again)
    )
    assert [each.text for each in one.blocks] == [each.text for each in other.blocks] == ['entry @k { ; } // " /*']
    assert said(again) == []


def test_many_texts_without_an_end_are_looked_at_once() -> None:
    """120,000 of them, which a search from each one would take hours for."""
    text = module(after=FILES + ".nv_intermediate_source_section {\n" + ".source_begin\n" * 120_000)
    assert said(text)
