"""cuda.tile on ptxvm's driver: kernels of tiles, against NumPy, where it and its compiler are installed."""

from __future__ import annotations

import numpy as np
import pytest

ct = pytest.importorskip("cuda.tile")
pytest.importorskip("cuda.core")
cuda = pytest.importorskip("cuda.bindings.driver")
SUCCESS = cuda.CUresult.CUDA_SUCCESS
Size = ct.Constant[int]


class Tensor:
    """An array in the memory of the device."""

    def __init__(self, device, stream, values):
        self.values = np.ascontiguousarray(values)
        self.buffer = device.allocate(self.values.nbytes, stream=stream)
        stream.sync()
        assert cuda.cuMemcpyHtoD(int(self.buffer.handle), self.values.ctypes.data, self.values.nbytes) == (SUCCESS,)

    @property
    def __cuda_array_interface__(self):
        data = (int(self.buffer.handle), False)
        return {"shape": self.values.shape, "typestr": self.values.dtype.str, "data": data, "version": 3, "strides": None}

    def get(self):
        result = np.empty_like(self.values)
        assert cuda.cuMemcpyDtoH(result.ctypes.data, int(self.buffer.handle), result.nbytes) == (SUCCESS,)
        return result


@pytest.fixture
def tensor(device, stream):
    return lambda values: Tensor(device, stream, values)


@pytest.fixture
def launch(device, stream):
    def run(grid, kernel, *arguments):
        ct.launch(int(stream.handle), grid, kernel, arguments)
        stream.sync()

    return run


@pytest.fixture
def rng():
    return np.random.default_rng(13)


@ct.kernel
def product(a, b, c, m: Size, n: Size, k: Size):
    row, column = ct.bid(0), ct.bid(1)
    total = ct.full((m, n), 0, dtype=ct.float64 if c.dtype == ct.float64 else ct.float32)
    for step in range(ct.num_tiles(a, axis=1, shape=(m, k))):
        x = ct.load(a, index=(row, step), shape=(m, k), padding_mode=ct.PaddingMode.ZERO)
        y = ct.load(b, index=(step, column), shape=(k, n), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(x, y, total)
    ct.store(c, index=(row, column), tile=ct.astype(total, c.dtype))


@ct.kernel
def softmax(x, y, size: Size):
    row = ct.load(x, index=(ct.bid(0), 0), shape=(1, size), padding_mode=ct.PaddingMode.NEG_INF)
    powers = ct.exp(row - ct.max(row, axis=1, keepdims=True))
    ct.store(y, index=(ct.bid(0), 0), tile=powers / ct.sum(powers, axis=1, keepdims=True))


@ct.kernel
def histogram(x, counts, size: Size):
    ct.atomic_add(counts, ct.load(x, index=(ct.bid(0),), shape=(size,)), 1)


@ct.kernel
def picked(x, places, y, size: Size):
    ct.store(y, index=(ct.bid(0),), tile=ct.gather(x, ct.load(places, index=(ct.bid(0),), shape=(size,))))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 2e-2), (np.float32, 2e-2), (np.float64, 1e-12)])
def test_a_product_of_matrices_that_tiles_do_not_divide(tensor, launch, rng, dtype, tolerance):
    a, b = rng.standard_normal((60, 90)).astype(dtype), rng.standard_normal((90, 70)).astype(dtype)
    result = tensor(np.zeros((60, 70), dtype))
    launch((2, 3), product, tensor(a), tensor(b), result, 32, 32, 32)  # TF32 for float32
    assert np.allclose(result.get(), a.astype(float) @ b.astype(float), rtol=tolerance, atol=5 * tolerance)


def test_softmax_of_rows_in_padded_tiles(tensor, launch, rng):
    x = rng.standard_normal((16, 100)).astype(np.float32)
    result = tensor(x)
    launch((16,), softmax, tensor(x), result, 128)
    powers = np.exp(x - x.max(1, keepdims=True))
    assert np.allclose(result.get(), powers / powers.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


def test_atomic_additions_and_gathered_elements(tensor, launch, rng):
    x = rng.integers(0, 10, 1024).astype(np.int32)
    counts = tensor(np.zeros(10, np.int32))
    launch((8,), histogram, tensor(x), counts, 128)
    assert (counts.get() == np.bincount(x, minlength=10)).all()
    values, places = rng.standard_normal(10).astype(np.float32), tensor(x)
    result = tensor(np.zeros(1024, np.float32))
    launch((16,), picked, tensor(values), places, result, 64)
    assert (result.get() == values[x]).all()
