"""The corpus, as fixture."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ptxvm.syntax import Source


@pytest.fixture(scope="session")
def corpus(shared: Path) -> list[tuple[Source, dict[str, Any]]]:
    """The name, the text and the index entry of every module."""
    folder = shared / "corpus"
    if not (folder / "corpus.tar.xz").is_file():
        pytest.skip(f"the corpus is missing: no {folder / 'corpus.tar.xz'}")
    index = {entry["file"]: entry for entry in json.loads((folder / "index.json").read_text())}
    modules = []
    with tarfile.open(folder / "corpus.tar.xz") as archive:
        for member in archive:
            name = member.name.removeprefix("./").removeprefix("corpus/")
            if name in index and (file := archive.extractfile(member)) is not None:
                modules.append((Source(file.read(), name), index[name]))
    assert len(modules) == len(index)
    return modules
