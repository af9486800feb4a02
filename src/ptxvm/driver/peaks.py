"""Published peak figures of the cards of `driver.models`: what their data sheets say that they do at most.

No kernel reaches them, and nothing here is measured.  A matrix product is dense: for sparse ones
sheets name twice as much.
"""

from __future__ import annotations

from ptxvm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Peaks:
    """Floating-point operations (a fused multiply-add is two) and bytes of device memory, in 10^12 a second.

    `tensor` is for matrices of .f16 with sums of .f32.
    """

    fp64: float
    fp32: float
    tensor: float
    memory: float


PEAKS = {
    #                fp64    fp32  tensor memory
    "sm_75":  Peaks( 0.25,    8.1,   65.0, 0.320),
    "sm_80":  Peaks( 9.7,    19.5,  312.0, 1.555),
    "sm_86":  Peaks( 0.49,   31.2,  125.0, 0.600),
    "sm_89":  Peaks( 0.47,   30.3,  121.0, 0.300),
    "sm_90":  Peaks(34.0,    67.0,  989.0, 3.350),
    "sm_100": Peaks(37.0,    75.0, 2250.0, 7.700),
    "sm_120": Peaks( 1.64,  104.8,  209.5, 1.792),
}  # fmt: skip
"""By the names of `MODELS`."""


__all__ = ["PEAKS", "Peaks"]
