"""Networks in TorchScript, where PyTorch is installed; those in ONNX are in test_policy.py."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from refusals import refusal

from bipedsim.control.policy.network import open_network, trial


def test_without_its_package_a_network_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, suffix in (("torch", ".pt"), ("onnxruntime", ".onnx")):
        (tmp_path / f"policy{suffix}").write_bytes(b"")
        monkeypatch.setitem(sys.modules, name, None)
        with refusal(place=f"{tmp_path / f'policy{suffix}'}: {name}", cause=ImportError):
            open_network(tmp_path / f"policy{suffix}")


def test_the_library_of_a_network_leaves_nothing_in_the_temporary_folder(tmp_path: Path) -> None:
    """After its import, onnxruntime sends telemetry with a thread and a file, unless it is disabled."""
    pytest.importorskip("onnxruntime")
    from policy_support import Plain

    Plain(3, 2).save(tmp_path / "policy.onnx")
    (tmp_path / "temporary").mkdir()
    env = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    program = (
        "import sys; from pathlib import Path; from bipedsim.control.policy.network import open_session; "
        "open_session(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "policy.onnx")]
    subprocess.run(command, env={**env, "TMPDIR": str(tmp_path / "temporary")}, check=True)
    assert not list((tmp_path / "temporary").iterdir())


def test_torchscript_remembers_in_its_buffers(tmp_path: Path) -> None:
    """As exporters of LSTMs write it: the state is a buffer, means of a normalisation are another."""
    torch = pytest.importorskip("torch")

    class Policy(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.memory = torch.nn.LSTM(4, 3)
            self.register_buffer("hidden_state", torch.zeros(1, 1, 3))
            self.register_buffer("cell_state", torch.zeros(1, 1, 3))
            self.register_buffer("mean", torch.ones(4))

        def forward(self, x):  # type: ignore[no-untyped-def]
            out, (h, c) = self.memory((x - self.mean).unsqueeze(0), (self.hidden_state, self.cell_state))
            self.hidden_state[:] = h
            self.cell_state[:] = c
            return out.squeeze(0)

    torch.manual_seed(0)
    model = Policy()
    torch.jit.script(model).save(str(tmp_path / "policy.pt"))
    network = open_network(tmp_path / "policy.pt")
    assert trial(network, 4) == 3
    assert network.memory == ("hidden_state", "cell_state")
    seen = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    with torch.no_grad():
        expected = model.memory(torch.from_numpy(seen - 1.0).unsqueeze(1))[0].squeeze(1).numpy()
    for _ in range(2):
        network.reset()
        np.testing.assert_allclose([network(x) for x in seen], expected, atol=1e-6)
    twin = copy.deepcopy(network)
    twin.reset()
    np.testing.assert_allclose(twin(seen[0]), expected[0], atol=1e-6)
    assert not np.allclose(network(seen[0]), expected[0])
    with refusal(place=f"{tmp_path / 'policy.pt'}: 5 values"):
        network(np.zeros(5, dtype=np.float32))
    with refusal(place=f"{tmp_path / 'policy.pt'}: input, output, states"):
        open_network(tmp_path / "policy.pt", output="actions")
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    with refusal(place=tmp_path / "weights.pt"):
        open_network(tmp_path / "weights.pt")


@pytest.mark.parametrize(
    "content", [None, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", b"\x93not a network"]
)
def test_a_file_that_is_no_network_says_why_and_what_to_do(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "policy.onnx"
    if content is not None:
        path.write_bytes(content)
    if content == b"\x93not a network":
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install bipedsim[policy]")
    with refusal(place=path):
        open_network(path)
