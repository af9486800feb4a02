"""The order of calls; expectations are read off the graphs."""

from ptxvm.analysis.call_graph import callees_first


def test_callees_stand_before_their_callers():
    calls = {"k": ["a", "b"], "a": ["b", "c"], "b": ["c"], "c": []}
    order = callees_first(["k"], calls.__getitem__)
    assert sorted(order) == sorted(calls)
    assert all(order.index(callee) < order.index(caller) for caller, callees in calls.items() for callee in callees)


def test_what_calls_itself_has_no_order():
    assert callees_first([0], {0: [1], 1: [2], 2: [1]}.__getitem__) is None
    assert callees_first([0], {0: [0]}.__getitem__) is None


def test_a_chain_may_have_any_length():
    order = callees_first([0], lambda n: [n + 1] if n < 100_000 else [])
    assert order == list(range(100_000, -1, -1))


def test_each_function_is_visited_once_however_many_paths_lead_to_it():
    asked = []

    def callees(n):
        asked.append(n)
        return [n + 1, n + 1] if n < 100 else []

    assert callees_first([0], callees) == list(range(100, -1, -1))
    assert len(asked) == 101
