"""What a launch with a wrong count of arguments says, whatever a compiler called the kernel.

The mangled names are in the forms of the Itanium C++ ABI (5.1) and of Numba 0.6x; what they stand for was written by hand.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

ARRAYS = "_ZN8__main__4vaddB2v2B92cw51cXTLSUwv1sDUaKthoaNgoKmjgOR3W3CwAkMXLaJtQYkOIgxJU0gCqOkEJoHkbttqdVhoqlspQGNFHSgJ5BnXagIAE"
VADD = ARRAYS + "5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi1E1C7mutable7alignedEi8UniTupleIfLi3EE"


def kernel(name: str, count: int) -> ptxvm.Kernel:
    parameters = ", ".join(f".param .u64 {name}_param_{n}" for n in range(count))
    text = f".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry {name}({parameters}) {{ ret; }}\n"
    return ptxvm.load(text).kernel()


def refusal(of: ptxvm.Kernel, *args: object) -> str:
    with pytest.raises(TypeError) as caught:
        of.launch(1, 1, list(args))
    return str(caught.value)


def test_the_arguments_of_numba_are_listed_with_their_parameters():
    assert refusal(kernel(VADD, 9 + 7 + 1 + 3), 1).splitlines() == [
        "kernel '__main__.vadd' takes 20 arguments, and 1 were given:",
        "    0 to 8: Array<float32, 2, C, mutable, aligned>",
        "    9 to 15: Array<float32, 1, C, mutable, aligned>",
        "   16: int32",
        "   17 to 19: UniTuple<float32, 3>",
        "an array `x` of Numba is passed as 0, 0, x.size, x.itemsize, x, *x.shape, *x.strides",
    ]


def test_what_is_passed_as_the_message_says_arrives():
    of = kernel(VADD, 20)
    one, two = np.zeros((2, 3), np.float32), np.zeros(4, np.float32)
    passed = [value for x in (one, two) for value in (0, 0, x.size, x.itemsize, x, *x.shape, *x.strides)]
    of.launch(1, 1, [*passed, 1, 1, 2, 3])


def test_many_parameters_are_shortened():
    said = refusal(kernel(ARRAYS + "x", 30), 1)
    assert said == (
        "kernel '__main__.vadd' takes 30 arguments (param_0 .u64, param_1 .u64, param_2 .u64, param_3 .u64, param_4 .u64, "
        "param_5 .u64, …, param_29 .u64), and 1 were given"
    )


def test_a_wrong_argument_of_a_long_name_is_named_shortly():
    assert refusal(kernel(ARRAYS + "x", 1), "text").startswith("argument 0 (`param_0`, .u64) cannot be of type str")
