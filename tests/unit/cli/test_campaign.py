import json
from pathlib import Path

import pytest

from ptxvm.cli import main

ROOT = Path(__file__).parents[3]
SUBJECTS = Path(__file__).parents[1] / "campaign" / "subjects.py"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A campaign of four cases, of which two fail; the test runs in its folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "odd.toml"
    path.write_text(f"[campaign]\nfunction = {json.dumps(f'{SUBJECTS}:odd_fails')}\n[parameters]\nn = [0, 1, 2, 3]\n")
    return path


def test_what_failed_is_listed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["campaign", "odd.toml", "--workers", "1"]) == 1
    out, err = capsys.readouterr()
    line = SUBJECTS.read_text().splitlines().index('    assert n % 2 == 0, f"{n} is odd"') + 1
    assert out.splitlines() == [
        "odd: 2 passed, 2 error",
        "cases  first  reason",
        f"    2      1  error AssertionError at subjects.py:{line}",
        "repeat: pytest odd.campaign/test_odd_AssertionError_1.py",
        "page: odd.campaign/index.html",
    ]
    assert not err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no such file: 'odd.toml'"),
        ("[campaign]\n", "odd.toml: [campaign] names what is run: a kernel or a function, and not both"),
        ("[campain]\n", "odd.toml: no table is called 'campain'; did you mean `campaign`?"),
        ("x", "odd.toml: Expected '=' after a key in a key/value pair (at end of document)"),
    ],
)
def test_a_wrong_file_is_one_line(file: Path, text: str | None, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    file.unlink()
    if text is not None:
        file.write_text(text)
    assert main(["campaign", "odd.toml"]) == 2
    assert capsys.readouterr().err == f"ptxvm campaign: {said}\n"


def test_fuzz_asks_for_an_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["campaign", "fuzz", "--kind", "text"]) == 2
    wanted = "--cases N, or --budget with a time such as 30s, 10m or 8h"
    assert capsys.readouterr().err == f"ptxvm campaign: fuzz needs an end: {wanted}\n"


@pytest.mark.long
def test_the_guide_shows_what_its_campaign_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All but the folder, which would stay in the repository."""
    guide = (ROOT / "docs" / "how-to" / "campaigns.md").read_text(encoding="utf-8")
    shown = guide.partition("$ ptxvm campaign docs/shapes.toml --folder build/shapes.campaign\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    assert main(["campaign", str(ROOT / "docs" / "shapes.toml"), "--folder", "build/shapes.campaign"]) == 1
    assert capsys.readouterr().out == shown
