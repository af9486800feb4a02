"""Figures of Nsight Compute that were published with their kernels: a warp's requests there and here ask for the same.

Wavefronts of hardware are up to 2 % more than follow from the addresses: other requests stand in their way.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = ".version 7.0\n.target sm_80\n.address_size 64\n"

# Two loads of four bytes, of A and B, at N * row + k or N * k + column; rows of threads are 32 wide.
PRODUCT = """
.visible .entry product(.param .u64 a, .param .u64 b)
{
    .reg .b32 %r<8>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;
    mul.lo.u32 %r3, %r2, 64;    // N * row + k, with k = 0
    mad.wide.u32 %rd3, OF_A, 4, %rd1; ld.global.u32 %r4, [%rd3];
    mad.wide.u32 %rd4, OF_B, 4, %rd2; ld.global.u32 %r5, [%rd4];
    ret;
}
"""


@pytest.mark.parametrize(
    ("of_a", "of_b", "published"),
    [("%r3", "%r1", 2.5), ("%r3", "%r3", 1), ("%r1", "%r1", 4)],
)
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_sectors_of_a_matrix_product(of_a, of_b, published, engine):
    """Three orders of a product of integers (forums.developer.nvidia.com/t/169185), sectors a request of loads."""
    kernel = ptxvm.load(HEAD + PRODUCT.replace("OF_A", of_a).replace("OF_B", of_b)).kernel()
    data = [np.zeros((64, 64), np.int32) for _ in "ab"]
    found = kernel.launch(1, (32, 16), data, profile=True, engine=engine).profile
    assert found is not None
    assert found["global_load_sectors"] / found["global_load_requests"] == published


TRANSPOSE = """
.visible .entry transpose(.param .u64 a, .param .u64 c)
{
    .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .f64 %fd<3>;
    .shared .align 8 .f64 tile[1024];
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [c];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r2, 32, %r1; mad.lo.u32 %r5, %r1, 32, %r2;
    mad.wide.u32 %rd3, %r4, 8, %rd1; mad.wide.u32 %rd4, %r4, 8, %rd2;
    ld.global.f64 %fd1, [%rd3];
    mad.lo.u32 %r6, %r5, 8, %r3; st.shared.f64 [%r6], %fd1;     // tile[x][y]
    bar.sync 0;
    mad.lo.u32 %r7, %r4, 8, %r3; ld.shared.f64 %fd2, [%r7];     // tile[y][x]
    st.global.f64 [%rd4], %fd2;
    ret;
}
"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_transpose_of_doubles_without_padding(engine):
    """524,288 requests of each kind (forums.developer.nvidia.com/t/217015): 8 sectors each, wavefronts below."""
    requests, sectors, stores, loads = 524_288, 4_194_304, 17_061_038, 1_048_664
    a, c = np.arange(1024.0).reshape(32, 32), np.zeros((32, 32))
    found = ptxvm.load(HEAD + TRANSPOSE).kernel().launch(1, (32, 32), [a, c], profile=True, engine=engine).profile
    assert found is not None
    assert (c == a.T).all()
    for kind in ("load", "store"):
        assert found[f"global_{kind}_sectors"] / found[f"global_{kind}_requests"] == sectors / requests
    assert found["shared_store_wavefronts"] / found["shared_store_requests"] == pytest.approx(stores / requests, rel=0.02)
    assert found["shared_load_wavefronts"] / found["shared_load_requests"] == pytest.approx(loads / requests, rel=0.02)


WIDE = """
.visible .entry wide()
{
    .reg .b32 %r<8>;
    .shared .align 16 .b8 tile[4096];
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
    mad.lo.u32 %r3, %r1, STRIDE, %r2; ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];
    ret;
}
"""


PAIRS = WIDE.replace("mad.lo.u32 %r3, %r1, STRIDE, %r2;", "PLACE; mad.lo.u32 %r3, %r1, 32, %r2;")


@pytest.mark.parametrize(
    ("place", "wavefronts", "conflicts"),
    [("and.b32 %r1, %r1, 15", 8, True), ("shr.u32 %r1, %r1, 4", 2, False)],
)
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_loads_of_sixteen_bytes_by_several_lanes(place, wavefronts, conflicts, engine):
    """On an A10 and an H100 (forums.developer.nvidia.com/t/373160): lanes 0 and 16, 1 and 17 ..., and lanes 0 to 15, 16 to 31.

    The second is of pairs of lanes (forums.developer.nvidia.com/t/77228, for compute capability 7.0 to 7.5).
    """
    found = ptxvm.load(HEAD + PAIRS.replace("PLACE", place)).kernel().launch(1, 32, profile=True, engine=engine).profile
    assert found is not None
    assert found["shared_wavefronts"] == wavefronts
    assert (found["shared_bank_conflicts"] > 0) == conflicts


@pytest.mark.parametrize(("stride", "wavefronts", "conflicts"), [(128, 283_023_360, 247_645_440), (16, 35_377_920, 0)])
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_loads_of_sixteen_bytes(stride, wavefronts, conflicts, engine):
    """8,844,480 loads (forums.developer.nvidia.com/t/359822): 32 wavefronts each, or 4; lanes are 128 or 16 bytes apart."""
    loads = 8_844_480
    found = ptxvm.load(HEAD + WIDE.replace("STRIDE", str(stride))).kernel().launch(1, 32, profile=True, engine=engine).profile
    assert found is not None
    assert found["shared_load_requests"] == 1
    assert found["shared_wavefronts"] == wavefronts / loads
    assert found["shared_bank_conflicts"] == conflicts / loads
