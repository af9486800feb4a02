"""The kernels of `../shared/races`: each race is found within twenty schedules, by its kind and place, and no other.

The verdicts are those of PTX 8.7.1, worked out by reasoning beside the kernels (manifest.json).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ptxvm

RACES = Path(__file__).parents[3] / "shared" / "races"
SCHEDULES = 20


@cache
def kernels():
    manifest = RACES / "manifest.json"
    return json.loads(manifest.read_text())["kernels"] if manifest.is_file() else []


def named(record):
    return record["name"]


@pytest.fixture(autouse=True)
def _data(shared):
    """Skip where the folder is missing."""


def values(argument):
    make = {"iota": np.arange, "zero": np.zeros}[argument["init"]]
    return make(argument["count"], dtype={"int": np.int32}[argument["type"]])


def findings(record, checks, schedules=SCHEDULES):
    module = ptxvm.load(RACES / record["ptx"])
    args = [values(each) for each in record["args"]]
    kernel = module.kernel(record["kernel"])
    return kernel.launch(record["grid"], record["block"], args, check=checks, schedules=schedules, seed=0).findings


def test_the_manifest_is_read():
    assert len(kernels()) == 42


@pytest.mark.parametrize("record", [k for k in kernels() if k["verdict"] == "race"], ids=named)
def test_a_race_is_found(record):
    races = [each for each in findings(record, ("race",)) if each.kind == "race"]
    hazards = record["kind"].replace("mixed-size ", "").removesuffix(" (async)").split("/")
    fitting = [each for each in races if each.hazard in hazards and each.mixed_size == ("mixed-size" in record["kind"])]
    assert fitting, [str(each) for each in races]
    assert all(each.space == record["space"] for each in races)
    for each in races:
        assert len(each.accesses) == 2
        assert all(party.line for party in each.accesses)
        assert set(each.accesses[0].bytes) & set(each.accesses[1].bytes)
        earlier, later = each.accesses
        late = any(party.operation.startswith("asynchronous") for party in each.accesses)  # is no access of its thread
        assert late or (earlier.cta, earlier.thread) != (later.cta, later.thread)
        assert each.missing


@pytest.mark.parametrize("record", [k for k in kernels() if k["verdict"] == "no-race"], ids=named)
def test_nothing_is_found_where_there_is_no_race(record):
    assert findings(record, ("race", "sync", "memory")) == []


@pytest.mark.parametrize("record", [k for k in kernels() if k["verdict"] == "sync-error"], ids=named)
def test_misuse_of_barriers_is_found(record):
    (found,) = findings(record, ("race", "sync"))
    assert found.kind == record["kind"]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("record", [k for k in kernels() if k["verdict"] == "race"], ids=named)
def test_the_seed_repeats_what_a_schedule_showed(record):
    found = [each for each in findings(record, ("race",)) if each.seed is not None]
    module = ptxvm.load(RACES / record["ptx"])
    for each in found[:2]:
        args = [values(argument) for argument in record["args"]]
        again = module.kernel().launch(record["grid"], record["block"], args, check=("race",), seed=each.seed).findings
        assert {party.line for party in each.accesses} in [{party.line for party in other.accesses} for other in again]


# ── on the JIT ──────────────────────────────────────────────────────────────────────────

CLEARED = {"sh_raw_bar", "sh_war_loop_ok", "sh_reduce_ok", "sh_bytes_adjacent"}  # only barriers of the CTA order anything


def launched(record, engine, **how):
    module = ptxvm.load(RACES / record["ptx"])
    args = [values(each) for each in record["args"]]
    kernel = module.kernel(record["kernel"])
    found = kernel.launch(
        record["grid"], record["block"], args, check=("race", "sync", "memory"), engine=engine, **how
    ).findings
    return found, [each.tolist() for each in args]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("how", [{}, {"schedules": 5, "seed": 0}], ids=["one", "several"])
@pytest.mark.parametrize("record", kernels(), ids=named)
def test_both_engines_find_the_same(record, how):
    found, left = launched(record, "interp", **how)
    again, also_left = launched(record, "jit", **how)
    assert [str(each) for each in again] == [str(each) for each in found]
    assert [(each.schedule, each.seed) for each in again] == [(each.schedule, each.seed) for each in found]
    assert also_left == left


@pytest.mark.parametrize("record", [k for k in kernels() if k["name"] in CLEARED], ids=named)
def test_what_the_quick_look_clears_is_not_interpreted(record, caplog):
    caplog.set_level("INFO", "ptxvm.jit")
    found, _ = launched(record, "jit", schedules=20, seed=0)
    assert found == []
    assert not caplog.records
