"""The results of a campaign, in one SQLite file: a row for each case, written when it ends.

A campaign that was interrupted goes on where it was: cases that have a row are not run again.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from ptxvm.campaign.outcome import Done, Outcome, Verdict
from ptxvm.campaign.parameter_space import ParameterSpace
from ptxvm.dataclass import dataclass
from ptxvm.named_tuple import NamedTuple

MOST_VALUES = 1000  # of a parameter, that are listed

SCHEMA = """
CREATE TABLE IF NOT EXISTS campaign (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cases (
    number INTEGER PRIMARY KEY,
    parameters TEXT NOT NULL,  -- as JSON
    verdict TEXT NOT NULL,
    kind TEXT NOT NULL,
    place TEXT NOT NULL,
    message TEXT NOT NULL,
    seconds REAL NOT NULL,
    attempts INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS corpus (text TEXT PRIMARY KEY, features TEXT NOT NULL);  -- of a fuzzing campaign
CREATE INDEX IF NOT EXISTS failures ON cases (verdict, kind, place) WHERE verdict <> 'passed';
"""


class Case(NamedTuple):
    """A case that has ended, with its parameters."""

    number: int
    parameters: dict[str, object]
    outcome: Outcome
    attempts: int


@dataclass(frozen=True, slots=True)
class Reason:
    """Cases that failed alike: how many, and the first."""

    count: int
    first: Case


class Results(AbstractContextManager["Results"]):
    """The file of a campaign with this fingerprint, for one process; ValueError where it is of another, or in use."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.lock = os.open(path.parent, os.O_RDONLY)  # SQLite's own locks are of the file, and not of the folder
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self.lock)
            raise ValueError(f"'{path}' is in use: another process runs this campaign") from None
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")  # a kill leaves what was committed
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.executescript(SCHEMA)
        known = self.connection.execute("SELECT value FROM campaign WHERE key = 'fingerprint'").fetchone()
        if known is None:
            self.connection.execute("INSERT INTO campaign VALUES ('fingerprint', ?)", (fingerprint,))
        elif known[0] != fingerprint:
            self.close()
            raise ValueError(f"'{path}' has the results of another campaign, or of this one before it was changed; remove it")

    def __exit__(self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.connection.close()
        os.close(self.lock)

    def add(self, done: Iterable[tuple[Done, str]]) -> None:
        """Write cases that have ended, with the JSON of their parameters, in one transaction."""
        rows = [
            (job.number, parameters, o.verdict, o.kind, o.place, o.message, o.seconds, attempts)
            for (job, o, attempts), parameters in done
        ]
        self.connection.execute("BEGIN")
        self.connection.executemany("INSERT INTO cases VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self.connection.execute("COMMIT")

    def describe(self, name: str, space: ParameterSpace) -> None:
        """Write what is run."""
        axes = {each: list(values) if len(values) <= MOST_VALUES else repr(values) for each, values in space.axes.items()}
        said = {"name": name, "cases": str(space.cases), "parameters": json.dumps(axes, default=str)}
        self.connection.executemany("INSERT OR REPLACE INTO campaign VALUES (?, ?)", said.items())

    def number(self, key: str) -> int:
        """A number that the campaign keeps; 0 where it has none."""
        found = self.connection.execute("SELECT value FROM campaign WHERE key = ?", (key,)).fetchone()
        return int(found[0]) if found else 0

    def keep(self, key: str, value: int) -> None:
        """Keep a number."""
        self.connection.execute("INSERT OR REPLACE INTO campaign VALUES (?, ?)", (key, str(value)))

    def corpus(self) -> Iterator[tuple[str, list[str]]]:
        """The texts of a fuzzing campaign, each with what it showed first."""
        for text, features in self.connection.execute("SELECT text, features FROM corpus ORDER BY rowid"):
            yield text, features.split("\n")

    def grow(self, text: str, features: Iterable[str]) -> None:
        """Add a text to the corpus."""
        self.connection.execute("INSERT OR IGNORE INTO corpus VALUES (?, ?)", (text, "\n".join(features)))

    def waiting(self, cases: int) -> Iterator[int]:
        """The numbers of the cases that have no row, in order."""
        ended = bytearray(cases)
        for (number,) in self.connection.execute("SELECT number FROM cases WHERE number < ?", (cases,)):
            ended[number] = 1
        at = ended.find(0)
        while at >= 0:
            yield at
            at = ended.find(0, at + 1)

    def counts(self) -> dict[Verdict, int]:
        """How many cases ended how."""
        found = self.connection.execute("SELECT verdict, count(*) FROM cases GROUP BY verdict")
        return {Verdict(verdict): count for verdict, count in found}

    def failed(self) -> int:
        """How many cases failed."""
        return int(self.connection.execute("SELECT count(*) FROM cases WHERE verdict <> 'passed'").fetchone()[0])

    def failures(self) -> Iterator[tuple[int, int]]:
        """The number of each case, and that of its reason from 1 on, in the order of `reasons`; 0 of those that passed."""
        numbers = {tuple(alike): n for n, (*alike, _, _) in enumerate(self._grouped(), 1)}
        for number, *reason in self.connection.execute("SELECT number, verdict, kind, place FROM cases"):
            yield number, numbers.get((*reason,), 0)

    def seconds(self) -> float:
        """The seconds of all cases together."""
        return float(self.connection.execute("SELECT total(seconds) FROM cases").fetchone()[0])

    def reasons(self) -> list[Reason]:
        """The failures by what failed where, the most frequent first."""
        return [Reason(count, next(self.cases("WHERE number = ?", first))) for *_, count, first in self._grouped()]

    def _grouped(self) -> list[tuple[str, str, str, int, int]]:
        """The verdict, kind and place of failures that are alike, how many there are, and the first of them."""
        alike = "SELECT verdict, kind, place, count(*) AS n, min(number) FROM cases WHERE verdict <> 'passed'"
        return self.connection.execute(f"{alike} GROUP BY verdict, kind, place ORDER BY n DESC, min(number)").fetchall()

    def cases(self, where: str = "", *values: object) -> Iterator[Case]:
        """The cases that have ended, or some of them, in order."""
        return read_cases(self.connection, where, *values)


def read_cases(connection: sqlite3.Connection, where: str = "", *values: object) -> Iterator[Case]:
    """The cases in a file, or some of them, in order."""
    columns = "number, parameters, verdict, kind, place, message, seconds, attempts"
    query = f"SELECT {columns} FROM cases {where} ORDER BY number"  # noqa: S608 - `where` has our own words only
    for number, parameters, verdict, kind, place, message, seconds, attempts in connection.execute(query, values):
        yield Case(number, json.loads(parameters), Outcome(Verdict(verdict), kind, place, message, seconds), attempts)


__all__ = ["Case", "Reason", "Results", "read_cases"]
