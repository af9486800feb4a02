"""tinygrad on ptxvm's driver: its operations on tensors, through NVRTC and its own PTX, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tinygrad import Tensor, TinyJit, dtypes
from tinygrad.helpers import Context


@pytest.fixture(params=["CUDA", "CUDA:PTX"], autouse=True)
def device(request):
    """C++ that NVRTC compiles, or the PTX that tinygrad writes itself."""
    with Context(DEV=request.param):
        yield request.param


@pytest.fixture
def rng():
    return np.random.default_rng(13)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def pooled(x):
    return x.reshape(2, 3, 4, 2, 4, 2).max((3, 5))


def convolved(x, kernels):
    """A convolution without padding, as sums over the places of the kernels."""
    windows = np.lib.stride_tricks.sliding_window_view(x, kernels.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, kernels)


UNARY = {
    "neg": (lambda x: -x, lambda x: -x),
    "exp": (lambda x: x.exp(), np.exp),
    "log": (lambda x: (x.abs() + 0.5).log(), lambda x: np.log(np.abs(x) + 0.5)),
    "sin": (lambda x: x.sin(), np.sin),
    "sqrt": (lambda x: x.abs().sqrt(), lambda x: np.sqrt(np.abs(x))),
    "relu": (lambda x: x.relu(), lambda x: np.maximum(x, 0)),
    "sigmoid": (lambda x: x.sigmoid(), sigmoid),
    "tanh": (lambda x: x.tanh(), np.tanh),
    "reciprocal": (lambda x: (x.abs() + 1).reciprocal(), lambda x: 1 / (np.abs(x) + 1)),
    "floor": (lambda x: x.floor(), np.floor),
    "to half and back": (lambda x: x.half().contiguous().float(), lambda x: x.astype(np.float16).astype(np.float32)),
    "to integers": (lambda x: (x * 100).cast(dtypes.int32), lambda x: (x * np.float32(100)).astype(np.int32)),
    "where": (lambda x: (x > 0).where(x, 7), lambda x: np.where(x > 0, x, 7)),
    "clip": (lambda x: x.clip(-0.5, 0.5), lambda x: np.clip(x, -0.5, 0.5)),
    "sum": (lambda x: x.sum(), np.sum),
    "sum of rows": (lambda x: x.sum(1), lambda x: x.sum(1)),
    "mean of columns": (lambda x: x.mean(0), lambda x: x.mean(0)),
    "greatest": (lambda x: x.max(1), lambda x: x.max(1)),
    "its place": (lambda x: x.argmax(1), lambda x: x.argmax(1)),
    "deviation": (lambda x: x.std(1, correction=0), lambda x: x.std(1)),
    "cumulated": (lambda x: x.cumsum(1), lambda x: np.cumsum(x, 1)),
    "softmax": (lambda x: x.softmax(), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "transposed": (lambda x: x.T.contiguous(), np.transpose),
    "padded": (lambda x: x.pad(((1, 2), (0, 3))), lambda x: np.pad(x, ((1, 2), (0, 3)))),
    "part": (lambda x: x[3:20:2, ::-1].contiguous(), lambda x: x[3:20:2, ::-1]),
    "gathered": (lambda x: x[Tensor([5, 0, 5, 23])], lambda x: x[[5, 0, 5, 23]]),
    "sorted": (lambda x: x.sort(1)[0], lambda x: np.sort(x, 1)),
}


def test_operations_on_one_tensor(rng):
    """All of them in one test: what costs is the start, not an operation."""
    x = rng.normal(0, 2, (24, 33)).astype(np.float32)
    wrong = {}
    for name, (ours, exact) in UNARY.items():
        try:
            np.testing.assert_allclose(ours(Tensor(x)).numpy(), exact(x), rtol=2e-5, atol=2e-6)
        except AssertionError as error:
            wrong[name] = str(error)
    assert wrong == {}


def test_operations_on_two_tensors(rng):
    a, b = (rng.normal(0, 2, (17, 33)).astype(np.float32) for _ in range(2))
    m, n = (rng.integers(-1000, 1000, 500, np.int32) for _ in range(2))
    x, y, i, j = Tensor(a), Tensor(b), Tensor(m), Tensor(n)
    assert ((x + y).numpy() == a + b).all()
    assert ((x * y).numpy() == a * b).all()
    assert (x.maximum(y).numpy() == np.maximum(a, b)).all()
    assert ((x < y).numpy() == (a < b)).all()
    np.testing.assert_allclose((x / y).numpy(), a / b, rtol=1e-6)
    assert ((i * j + i).numpy() == m * n + m).all()
    assert ((i & j).numpy() == (m & n)).all()
    assert ((i ^ j).numpy() == (m ^ n)).all()
    assert (((i.abs() + 1) // (j.abs() + 1)).numpy() == (abs(m) + 1) // (abs(n) + 1)).all()
    np.testing.assert_allclose((x @ y.T).numpy(), a @ b.T, rtol=1e-4, atol=1e-4)
    assert (x.cat(y, dim=1).numpy() == np.concatenate([a, b], 1)).all()


def test_halves_are_multiplied_by_tensor_cores(rng):
    """Small integers: products and sums are exact."""
    a, b = (rng.integers(-8, 9, (64, 64)).astype(np.float16) for _ in range(2))
    product = Tensor(a).matmul(Tensor(b), dtype=dtypes.float32)
    assert (product.numpy() == a.astype(np.float32) @ b.astype(np.float32)).all()


def test_convolution_and_pooling(rng):
    x, kernels = rng.normal(0, 1, (2, 3, 10, 10)).astype(np.float32), rng.normal(0, 1, (4, 3, 3, 3)).astype(np.float32)
    np.testing.assert_allclose(Tensor(x).conv2d(Tensor(kernels)).numpy(), convolved(x, kernels), rtol=1e-4, atol=1e-4)
    squares = x[:, :, :8, :8].copy()
    assert (Tensor(squares).max_pool2d().numpy() == pooled(squares)).all()


def network(x, weights, labels):
    """The loss of a network of two layers, in float64, and its gradients by the weights."""
    x, (first, second) = x.astype(np.float64), [each.astype(np.float64) for each in weights]
    hidden = np.maximum(x @ first, 0)
    scores = hidden @ second
    powers = np.exp(scores - scores.max(1, keepdims=True))
    chances = powers / powers.sum(1, keepdims=True)
    loss = -np.log(chances[np.arange(len(x)), labels]).mean()
    wrong = chances.copy()
    wrong[np.arange(len(x)), labels] -= 1
    wrong /= len(x)
    return loss, (x.T @ (wrong @ second.T * (hidden > 0)), hidden.T @ wrong)


def test_a_network_learns_as_its_derivatives_say(rng):
    """Forward and backward, and a step; the step is captured and replayed, as a graph of the driver."""
    x, labels = rng.normal(0, 1, (32, 20)).astype(np.float32), rng.integers(0, 5, 32)
    weights = [rng.normal(0, 0.3, shape).astype(np.float32) for shape in ((20, 16), (16, 5))]
    ours = [Tensor(each).realize() for each in weights]
    given, wanted = Tensor(x).realize(), Tensor(labels.astype(np.int32)).realize()

    @TinyJit
    def step():
        loss = ((given @ ours[0]).relu() @ ours[1]).sparse_categorical_crossentropy(wanted)
        updated = [each - 0.5 * gradient for each, gradient in zip(ours, loss.gradient(*ours), strict=True)]
        for each, now in zip(ours, updated, strict=True):
            each.assign(now)
        return loss.realize(*ours)

    for _ in range(4):
        loss, gradients = network(x, weights, labels)
        assert abs(step().item() - loss) < 1e-4
        weights = [
            each - np.float32(0.5) * gradient.astype(np.float32) for each, gradient in zip(weights, gradients, strict=True)
        ]
        for mine, exact in zip(ours, weights, strict=True):
            np.testing.assert_allclose(mine.numpy(), exact, rtol=1e-3, atol=1e-5)
