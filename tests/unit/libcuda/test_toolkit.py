"""Where libraries of a toolkit are looked for."""

from __future__ import annotations

from ptxvm.libcuda.toolkit import installed


def test_packages_come_before_the_environment(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [str(tmp_path / "site")])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    expected = []
    for part in ("site/nvidia/cu12/lib", "site/nvidia/cuda_nvrtc/lib", "cuda/lib64"):
        (tmp_path / part).mkdir(parents=True)
        expected.append(tmp_path / part / "libnvrtc.so.12")
        expected[-1].touch()
    assert list(installed("libnvrtc", "cuda_nvrtc", "12"))[:3] == expected
    assert [path for path in installed("libnvrtc", "cuda_nvrtc", "13") if tmp_path in path.parents] == []
