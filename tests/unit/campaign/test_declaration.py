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
        ({**FUNCTION, "limits": {"seconds": -1}}, r"\[limits\] seconds is 0 or more"),
        ({**FUNCTION, "limits": {"memory": 1.5}}, r"\[limits\] memory is an integer"),
        ({**FUNCTION, "expect": {"warnings": 1}}, r"\[expect\] warnings is true or false"),
        ({**FUNCTION, "expect": {"agree": ["jit"]}}, r"\[expect\] agree is a table"),
        ({**FUNCTION, "parameters": {"n": []}}, "n has no values"),
    ],
)
def test_what_is_wrong_is_named(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        declared(tables)


def test_a_file_names_the_campaign_and_an_integer_stands_for_a_number(tmp_path: Path) -> None:
    file = tmp_path / "shapes.toml"
    file.write_text('[campaign]\nfunction = "json:dumps"\n[parameters]\nobj = [1, 2]\n[limits]\nseconds = 5\n')
    found = read_declaration(file)
    assert (found.subject.name, found.limits.seconds, found.space.cases, found.folder) == ("shapes", 5.0, 2, str(tmp_path))


def test_a_file_that_is_no_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[campaign\n")
    with pytest.raises(ValueError, match="line 1"):
        read_declaration(tmp_path / "a.toml")


def test_another_kernel_is_another_campaign(tmp_path: Path) -> None:
    """Results of a kernel that was changed are not mixed with those before."""
    (tmp_path / "a.ptx").write_text("one")
    tables = {"campaign": {"kernel": "a.ptx"}}
    before = declared(tables, tmp_path).fingerprint
    assert declared(tables, tmp_path).fingerprint == before
    (tmp_path / "a.ptx").write_text("two")
    assert declared(tables, tmp_path).fingerprint != before
    assert declared({**tables, "parameters": {"n": [1]}}, tmp_path).fingerprint != before


def test_the_page_of_the_reference_has_every_key() -> None:
    """The keys that the reader knows are those that it shows."""
    page = campaign_page()["reference/campaigns.md"]
    for table in (Subject, Expectation, CaseLimits):
        assert all(f"| `{each.name}` |" in page for each in fields(table))
    assert "`stream`" not in page
