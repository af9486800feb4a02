"""Remedies of data races: the synchronisation that would order the two accesses."""

from __future__ import annotations

from ptxvm.checkers.race_pair import Cause, Race
from ptxvm.checkers.strength import WIDE, Site
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.events import EQUAL_VALUES, Scene, Scenes

OF_PROXIES = {
    Cause.INCOHERENT: "another grid for one of the two: in the grid that writes nothing makes what it wrote visible there",
    Cause.UNFENCED: "fence.proxy.async after the write, before the threads synchronise for the copy",
    Cause.UNMAPPED: (
        "fence.proxy.tensormap::generic.release (or tensormap.cp_fenceproxy) after the write, and "
        "fence.proxy.tensormap::generic.acquire before the copy, with synchronisation between the two"
    ),
}


def remedy(race: Race, scenes: Scenes) -> str:
    """The synchronisation that two racing accesses lack."""
    one, other = race.threads
    scene = scenes.of(one)
    size, first = scene.shape.threads, scene.first
    apart = scene is not scenes.of(other) or (one - first) // size != (other - first) // size
    if race.equal_values:
        return f"a store by one thread alone; where all are meant to store the value, {EQUAL_VALUES} can be allowed"
    if race.cause in OF_PROXIES:
        return OF_PROXIES[race.cause]
    if race.sites[0].asynchronous:  # what begins after the other access is not waited for before it
        return remedy_of_asynchronous(race)
    if all(site.scope for site in race.sites):
        if race.mixed_size:
            return "accesses of one size: strong ones of different sizes are not morally strong"
        if apart and min(site.scope for site in race.sites) < WIDE:
            scope = "cluster" if neighbours(race, scene) else "gpu"
            return f"a scope of .{scope}: the accesses are strong, but their scopes do not include each other's thread"
    if scene is not scenes.of(other):
        return remedy_of_grids(scene, scenes.of(other))
    if apart:
        return remedy_of_ctas(race, scene)
    if (one - first) % size // WARP == (other - first) % size // WARP:
        return "bar.warp.sync with both lanes in the mask, or a barrier of the CTA, between the two"
    return "a barrier of the CTA (bar.sync) between the two, or release and acquire at .cta scope or wider"


def remedy_of_asynchronous(race: Race) -> str:
    """The wait for the first access, and what makes it known to the other one."""
    first, second = race.sites
    both = second.asynchronous
    told = race.threads[0] == race.threads[1] or (both and not copied(first))
    fence = ", fence.proxy.async" if both and copied(first) and not copied(second) else ""
    return end_of(first) + fence + ("" if told else ", then a barrier of the CTA (bar.sync),") + " between the two"


def remedy_of_ctas(race: Race, scene: Scene) -> str:
    """The synchronisation for accesses of two CTAs of a grid."""
    if not neighbours(race, scene):
        return "release by the first CTA and acquire by the second at .gpu scope, or atomic operations"
    if race.sites[0].initialises:
        return "fence.mbarrier_init.release.cluster after the mbarrier.init, before the CTAs of the cluster synchronise"
    return "release by the first CTA and acquire by the second at .cluster scope, or atomic operations"


def neighbours(race: Race, scene: Scene) -> bool:
    """Are the threads in one cluster of several CTAs?"""
    near = scene.shape.cluster_size * scene.shape.threads
    one, other = (thread - scene.first for thread in race.threads)
    return scene.shape.cluster_size > 1 and one // near == other // near


def copied(site: Site) -> bool:
    """Is it of `cp.async`, whose accesses are of the generic proxy?"""
    summary = site.bound.summary
    return summary.writes and not summary.bulk and not summary.uses_tensor_memory


def end_of(site: Site) -> str:
    """The instruction that waits for the end of an asynchronous access: of a product, which only reads memory, or of a copy."""
    summary = site.bound.summary
    if summary.uses_tensor_memory:
        return "tcgen05.commit, and a wait for its mbarrier that covers the access"
    if not summary.writes:
        return "wgmma.wait_group that covers the product"
    ends = "cp.async.bulk.wait_group (or the mbarrier)" if summary.bulk else "cp.async.wait_group (or wait_all, or an mbarrier)"
    return f"{ends} that covers the copy"


def remedy_of_grids(one: Scene, other: Scene) -> str:
    """The synchronisation for accesses of two grids of one launch."""
    if one.launched is not None and other.launched is not None:
        return "one stream for both grids, or waiting for the first before the launch of the second, or atomic operations"
    return (
        "the parent's access before the launch, in program order of the thread that launches or before a barrier with it, "
        "or after the launching CTA has waited for the grid (cudaDeviceSynchronize), or in a grid of cudaStreamTailLaunch"
    )


__all__ = ["end_of", "remedy"]
