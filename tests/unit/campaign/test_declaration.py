from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ptxvm.campaign.declaration import CaseLimits, Expectation, Subject, declared, read_declaration
from ptxvm.reference.campaign_page import campaign_page

FUNCTION = {"campaign": {"function": "json:dumps"}}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"campain": {}}, "no table is called 'campain'; did you mean `campaign`"),
        ({"campaign": 5}, "'campaign' is a table"),
        ({}, "names what is run"),
        ({"campaign": {"kernel": "a.ptx", "function": "b:c"}}, "a kernel or a function, and not both"),
        ({"campaign": {"kernal": "a.ptx"}}, r"no key is called 'kernal' in \[campaign\]; did you mean `kernel`"),
        ({"campaign": {"kernel": "nowhere.ptx"}}, "there is no file '.*nowhere.ptx'"),
        ({"campaign": {"function": "nowhere.py:f"}}, "there is no file '.*nowhere.py'"),
        ({**FUNCTION, "launch": {"gird": 1}}, r"no key is called 'gird' in \[launch\]; did you mean `grid`"),
        ({**FUNCTION, "launch": {"stream": 1}}, "no key is called 'stream'"),
        ({**FUNCTION, "limits": {"seconds": "x"}}, r"\[limits\] seconds is a number, not 'x'"),
        ({**FUNCTION, "limits": {"seconds": 0}}, r"\[limits\] seconds is 0.001 or more, not 0.0"),
        ({**FUNCTION, "limits": {"seconds": float("nan")}}, r"\[limits\] seconds is 0.001 or more, not nan"),
        ({**FUNCTION, "limits": {"memory": -1}}, r"\[limits\] memory is 0 or more"),
        ({**FUNCTION, "limits": {"attempts": 0}}, r"\[limits\] attempts is 1 or more"),
        ({**FUNCTION, "limits": {"memory": 1.5}}, r"\[limits\] memory is an integer"),
        ({**FUNCTION, "expect": {"warnings": 1}}, r"\[expect\] warnings is true or false"),
        ({**FUNCTION, "expect": {"agree": ["jit"]}}, r"\[expect\] agree is a table"),
        ({**FUNCTION, "parameters": {"n": []}}, "n has no values"),
        ({"campaign": {"function": "json:dumps", "name": "../a"}}, "name is that of a folder, without '/', not '../a'"),
        ({"campaign": {"function": "json"}}, "a function is named FILE.py:NAME or MODULE:NAME, not 'json'"),
        ({"campaign": {"function": ":dumps"}}, "a function is named FILE.py:NAME"),
    ],
)
def test_what_is_wrong_is_named(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        declared(tables)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"expect": {"entry": "k"}}, r"\[expect\] entry is a kernel of the module \[expect\] kernel"),
        ({"expect": {"relative": float("inf")}}, "an error that numbers may have is finite"),
        ({"expect": {"absolute": float("inf")}}, "an error that numbers may have is finite"),
        ({"expect": {"agree": {"engine": "jit"}}}, "agree: engine is a list of two values or more, not 'jit'"),
        ({"expect": {"agree": {"engine": ["jit"]}}}, "agree: engine is a list of two values or more"),
        ({"expect": {"agree": {"engin": ["jit", "interp"]}}}, "agree: engin changes nothing: .*; did you mean `engine`"),
        ({"parameters": {"blok": [32]}}, r"\[parameters\] blok changes nothing: .*; did you mean `block`"),
        (
            {"parameters": {"size": [32]}, "launch": {"args": [1, "size"]}},
            r"size changes nothing: .* in no expression in \[launch\]$",
        ),
        ({"launch": {"args": "5"}}, r"\[launch\] args is a list, not '5'"),
        ({**FUNCTION, "launch": {"grid": 1}}, r"\[launch\] grid is for a kernel"),
        ({**FUNCTION, "expect": {"relative": 0.1}}, r"\[expect\] relative is for a kernel"),
        ({"campaign": {**FUNCTION["campaign"], "entry": "k"}}, r"\[campaign\] entry is for a kernel"),
    ],
)
def test_what_would_let_every_case_pass_is_refused(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    (tmp_path / "a.ptx").write_text("")
    with pytest.raises(ValueError, match=said):
        declared({"campaign": {"kernel": "a.ptx"}, **more}, tmp_path)


def test_parameters_stand_in_expressions_or_are_options_or_seeds(tmp_path: Path) -> None:
    (tmp_path / "a.ptx").write_text("")
    tables: dict[str, Any] = {
        "campaign": {"kernel": "a.ptx"},
        "parameters": {"n": [1], "m": [1], "engine": ["jit"], "seed": [1]},
        "launch": {"grid": "{cdiv(n, 32)}", "args": [1, "{2*m}"]},
        "expect": {"agree": {"m": [1, 2]}},
    }
    assert declared(tables, tmp_path).space.cases == 1
    assert declared({**FUNCTION, "parameters": {"any": [1]}, "expect": {"warnings": True}}).space.cases == 1


def test_a_file_names_the_campaign_and_an_integer_stands_for_a_number(tmp_path: Path) -> None:
    file = tmp_path / "shapes.toml"
    file.write_text('[campaign]\nfunction = "json:dumps"\n[parameters]\nobj = [1, 2]\n[limits]\nseconds = 5\n')
    found = read_declaration(file)
    assert (found.subject.name, found.limits.seconds, found.space.cases, found.folder) == ("shapes", 5.0, 2, str(tmp_path))


def test_a_file_that_is_no_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[campaign\n")
    with pytest.raises(ValueError, match="line 1"):
        read_declaration(tmp_path / "a.toml")


@pytest.mark.parametrize("text", [b"[campaign]\nkernal = 'a'", b"# \xe9"])
def test_the_file_is_named_in_which_something_is_wrong(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "b.toml").write_bytes(text)
    with pytest.raises(ValueError, match=r"^\S*b\.toml: "):
        read_declaration(tmp_path / "b.toml")


def test_another_kernel_is_another_campaign(tmp_path: Path) -> None:
    """Results of a kernel that was changed are not mixed with those before."""
    (tmp_path / "a.ptx").write_text("one")
    tables = {"campaign": {"kernel": "a.ptx"}}
    before = declared(tables, tmp_path).fingerprint
    assert declared(tables, tmp_path).fingerprint == before
    (tmp_path / "a.ptx").write_text("two")
    assert declared(tables, tmp_path).fingerprint != before
    assert declared({**tables, "parameters": {"seed": [1]}}, tmp_path).fingerprint != before


def test_the_page_of_the_reference_has_every_key() -> None:
    """The keys that the reader knows are those that it shows."""
    page = campaign_page()["reference/campaigns.md"]
    for table in (Subject, Expectation, CaseLimits):
        assert all(f"| `{each.name}` |" in page for each in fields(table))
    assert "`stream`" not in page
