"""Timelines: pieces of a grid on threads of the host."""

from __future__ import annotations

import threading
import time

from ptxvm.profile.timeline import Timeline


def test_pieces_are_in_the_order_in_which_they_began_and_count_threads():
    timeline, began = Timeline(), time.perf_counter()

    def other():
        timeline.ran(4, 8, began + 1)

    timeline.ran(8, 16, began + 2)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert [(piece.thread, piece.first, piece.last) for piece in timeline.pieces] == [(0, 4, 8), (1, 8, 16)]
    assert [round(piece.began, 6) for piece in timeline.pieces] == [0, 1]


def test_nothing_ran():
    assert Timeline().pieces == []
