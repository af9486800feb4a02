"""Random kernels in clusters."""

from __future__ import annotations

from random import Random

import pytest

import ptxvm
from ptxvm.campaign.fuzz import engines
from ptxvm.campaign.random_kernels import clusters
from ptxvm.campaign.random_kernels.kernels import Launch, RandomKernel, multiple, random_kernel
from ptxvm.campaign.random_kernels.parts import Shape


@pytest.mark.parametrize("shape", [(1,), (5, 3, 2), (128,)])
def test_what_ctas_of_a_cluster_do_together_is_valid(shape: Shape) -> None:
    every = [clusters.neighbour(shape), clusters.cluster_histogram(shape), clusters.sent(shape)]
    drawn = [each.draw(Random(number)) for number in range(12) for each in every]
    kernel = RandomKernel(drawn, [], shape, [Launch((2,), 0, 0, 1)], cluster=(2,))
    assert not [each.message for each in ptxvm.check(kernel.text) if each.severity == "error"]


def test_kernels_that_use_clusters_are_launched_in_some() -> None:
    """Grids are multiples of clusters, which a launch refuses otherwise."""
    found = [each for each in map(random_kernel, range(60)) if each.cluster is not None]
    assert 2 < len(found) < 20
    for each in found:
        assert all(n % m == 0 for run in each.launches for n, m in zip(run.grid, each.cluster or (), strict=False))
        assert f"in clusters {each.cluster} on data" in repr(each)
    body = [clusters.neighbour((1,)).draw(Random(1))]
    kernel = RandomKernel(body, [], (1,), [Launch((4,), 0, 0, 1)], cluster=(2,))
    memory = engines.Memory(kernel, kernel.launches[0])
    assert engines.launched(memory, ptxvm.load(kernel.text).kernel(), engine="interp").cluster == (2, 1, 1)


def test_a_grid_has_as_many_clusters_as_it_had_ctas_or_one() -> None:
    assert multiple((3,), (1, 2)) == (3, 2)
    assert multiple((1, 2, 2), (2,)) == (2, 2, 2)
    assert multiple((8, 5), (2, 1, 2)) == (2, 1, 2)
