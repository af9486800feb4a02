"""Broken modules: pieces of real ones, cut, swapped, doubled and spoilt.  The reader never raises and never hangs."""

from __future__ import annotations

import tarfile
import time
from functools import cache
from pathlib import Path

from hypothesis import given, settings, strategies as st

from ptxvm.campaign.fuzz.seeds import WHOLE
from ptxvm.campaign.fuzz.text import PIECES, mutated, survive

REPOSITORY = Path(__file__).parents[2]
SNAPSHOTS = REPOSITORY / "tests" / "unit" / "syntax" / "snapshots"


@cache
def modules() -> list[str]:
    """Texts to start from: the one above, the broken ones, the examples, and small modules of the corpus."""
    paths = [*sorted(SNAPSHOTS.glob("*.ptx")), *sorted((REPOSITORY / "examples").glob("*.ptx"))]
    texts = [WHOLE, *(path.read_text(encoding="utf-8")[:20_000] for path in paths)]
    corpus = REPOSITORY.parent / "shared" / "corpus" / "corpus.tar.xz"
    if corpus.is_file():
        with tarfile.open(corpus) as archive:
            small = [member for member in archive if member.isfile() and member.size < 5000][::10]
            texts += [file.read().decode("latin-1") for member in small if (file := archive.extractfile(member))]
    return texts


TEXTS = st.deferred(lambda: st.sampled_from(modules()))


@st.composite
def broken(draw: st.DrawFn) -> str:
    """A text with some tokens deleted, doubled, swapped, replaced, and perhaps its end cut off."""
    return mutated(draw(TEXTS), draw(TEXTS), draw(st.randoms(use_true_random=True)))


def survives(text: str | bytes) -> None:
    """Reading does not raise or hang."""
    start = time.process_time()
    survive(text)
    assert time.process_time() - start < 5


@given(broken())
@settings(max_examples=150)
def test_broken_modules(text):
    survives(text)


@given(st.text(alphabet=st.sampled_from("{}[]()<>;:,.@!|%$_+-*/#\"'\\\n 0f1xU.~^&=?ab\0é\u4e2d"), max_size=200))
@settings(max_examples=150)
def test_random_punctuation(text):
    survives(".entry k() {" + text)


@given(st.binary(max_size=400))
def test_random_bytes(data):
    survives(data)


@given(st.lists(st.sampled_from(PIECES), max_size=60), st.booleans())
@settings(max_examples=150)
def test_random_tokens(pieces, in_body):
    survives((".entry k() {\n" if in_body else "") + " ".join(pieces))
