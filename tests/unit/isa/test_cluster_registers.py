"""Special registers about clusters are known as such (PTX 10.11 to 10.17)."""

from __future__ import annotations

from ptxvm.isa.special_registers import SPECIAL


def test_which_registers_are_about_clusters():
    found = {name for name, register in SPECIAL.items() if register.of_cluster}
    assert found == {
        "is_explicit_cluster", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid", "cluster_ctarank",
        "cluster_nctarank",
    }  # fmt: skip
