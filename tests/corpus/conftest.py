"""The corpus; and what runs real modules shares a module of its own (`modules`), which lies beside them."""

import json
import sys
import tarfile
from pathlib import Path

import pytest

from ptxvm.syntax import Source

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def corpus(shared):
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
