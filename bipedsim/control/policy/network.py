"""Networks from files, with one interface for every format: input, output and the memory between two calls."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Mapping
from copy import copy, deepcopy
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bipedsim.config import open_file, together
from bipedsim.errors import ConfigError, install

Single = NDArray[np.float32]


class Network(Protocol):
    """Compute actions from observations of one robot.

    Attributes:
        input_size: Number of inputs; None if the file does not specify it.
        memory: Names of the states kept between two calls; for TorchScript they are known after the first call.
        outputs: Names of the outputs that are not states; empty for TorchScript.
    """

    @property
    def input_size(self) -> int | None:
        """See above."""
        ...

    @property
    def memory(self) -> tuple[str, ...]:
        """See above."""
        ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """See above."""
        ...

    def reset(self) -> None:
        """Reset the memory."""
        ...

    def __call__(self, observation: Single) -> Single:
        """Return the output (output_size,) for ``observation`` (input_size,), and update the memory.

        Raises:
            ConfigError: The network takes another number of inputs.
        """
        ...


def trial(network: Network, size: int) -> int:
    """Return the number of outputs of a network for ``size`` inputs; its memory is reset before and after.

    Raises:
        ConfigError: The network takes another number of inputs.
    """
    network.reset()
    outputs = len(network(np.linspace(-1.0, 1.0, size, dtype=np.float32)))
    network.reset()
    return outputs


def _library(name: str, path: Path, remedy: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"it needs this package ({error}); {remedy}", f"{path}: {name}") from error


def open_session(path: Path) -> Any:
    """Open an onnxruntime session with one thread, so that results repeat to the bit and other cores stay free.

    Raises:
        ConfigError: onnxruntime is missing, or cannot read the file.
    """
    check_file(path)
    # Without this, onnxruntime starts a telemetry thread at import and leaves .ses in the temporary folder.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    runtime = _library("onnxruntime", path, install("bipedsim[policy]"))
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises another class for every fault
        raise ConfigError(f"onnxruntime cannot read it ({str(error).strip().splitlines()[0]})", path) from error


class OnnxNetwork:
    """Run an ONNX network with onnxruntime; its memory passes from outputs to inputs.

    Raises:
        ConfigError: An input is neither the observation nor a memory, or a named input or output is missing. The
            message lists all faults.
    """

    def __init__(self, path: Path, input: str, output: str, states: dict[str, str]) -> None:
        self._path = path
        self._session = open_session(path)
        inputs = {tensor.name: tensor for tensor in self._session.get_inputs()}
        outputs = {tensor.name: tensor for tensor in self._session.get_outputs()}
        if not states:
            pairs = {name: f"{name.removesuffix('_in')}_out" for name in inputs if name.endswith("_in")}
            states = {name: output_name for name, output_name in pairs.items() if output_name in outputs}
        candidates = [name for name in inputs if name not in states]
        self._input = input or ("obs" if "obs" in candidates else candidates[0] if candidates else "")
        self._output = output or next((name for name in outputs if name not in states.values()), "")
        has = f"the network has not; its inputs are {', '.join(inputs)}, its outputs {', '.join(outputs)}"
        faults = [(f"input {name!r}", has) for name in (self._input, *states) if name not in inputs]
        faults += [(f"output {name!r}", has) for name in (self._output, *states.values()) if name not in outputs]
        faults += [
            (f"input {name!r}", f"neither what is seen ({self._input!r}) nor a memory that an output gives back")
            for name in candidates
            if name != self._input
        ]
        if not faults:
            faults += [
                (f"input {tensor.name!r}", f"is {tensor.type}, and observations are tensor(float): export in float32")
                for tensor in (inputs[self._input], *(inputs[name] for name in states))
                if tensor.type != "tensor(float)"
            ]
        together([ConfigError(text, f"{path}: {place}") for place, text in faults])
        shape = inputs[self._input].shape
        self._shape = [1 if not isinstance(n, int) else n for n in shape[:-1]]
        self.input_size = shape[-1] if shape and isinstance(shape[-1], int) else None
        if any(n != 1 for n in self._shape):
            raise ConfigError(f"shape {shape} is for more than one robot", f"{path}: input {self._input!r}")
        self.memory = tuple(states)
        self.outputs = tuple(name for name in outputs if name not in states.values())
        self._zeros = {
            name: np.zeros([n if isinstance(n, int) else 1 for n in inputs[name].shape], dtype=np.float32)
            for name in states
        }
        self._names = [self._output, *states.values()]
        self._feed: dict[str, Single] = dict(self._zeros)

    def __deepcopy__(self, memo: dict[int, Any]) -> OnnxNetwork:
        # The copies share the weights, but not the memory.
        twin = copy(self)
        twin._feed = dict(self._feed)
        return twin

    def reset(self) -> None:
        """Reset the memory."""
        self._feed = dict(self._zeros)

    def __call__(self, observation: Single) -> Single:
        """Return the output; see :class:`Network`."""
        self._feed[self._input] = observation.reshape(*self._shape, -1)
        try:
            action, *memory = self._session.run(self._names, self._feed)
        except Exception as error:  # as above
            text = str(error).strip().splitlines()[0]
            raise ConfigError(
                f"the network refuses them ({text})", f"{self._path}: {observation.size} values"
            ) from error
        self._feed.update(zip(self._zeros, memory, strict=True))
        output: Single = np.asarray(action, dtype=np.float32).reshape(-1)
        return output


class TorchScriptNetwork:
    """Run a TorchScript network with PyTorch, which users of such files already have.

    The memory consists of the buffers that a call changes. A reset restores them from the file.

    Raises:
        ConfigError: PyTorch is missing, or cannot read the file.
    """

    def __init__(self, path: Path, input: str, output: str, states: dict[str, str]) -> None:
        torch = _library("torch", path, "pip install torch, or export the policy as ONNX")
        if input or output or states:
            raise ConfigError("TorchScript has no such names. Omit these keys", f"{path}: input, output, states")
        self._torch, self._path = torch, path
        # One robot is too little work for several threads, and the simulator needs the other cores.
        torch.set_num_threads(1)
        try:
            with warnings.catch_warnings():
                # PyTorch advises its exporters to use another format; the user of a network cannot follow.
                warnings.simplefilter("ignore", FutureWarning)
                self._module = torch.jit.load(str(path), map_location="cpu").eval()
        except RuntimeError as error:
            raise ConfigError(
                f"no TorchScript ({str(error).strip().splitlines()[0]}); a file of weights alone, as training saves "
                "it, has to be exported first",
                path,
            ) from error
        self.input_size: int | None = None
        self._first = {name: buffer.clone() for name, buffer in self._module.named_buffers()}
        self.memory: tuple[str, ...] = ()
        self.outputs: tuple[str, ...] = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> TorchScriptNetwork:
        twin = copy(self)
        twin._module = deepcopy(self._module, memo)
        return twin

    def reset(self) -> None:
        """Reset the memory."""
        # Buffers that a call changes are the memory; others, such as means of a normalisation, stay constant.
        changed = [n for n, buffer in self._module.named_buffers() if not self._torch.equal(buffer, self._first[n])]
        self.memory = tuple(dict.fromkeys((*self.memory, *changed)))
        with self._torch.no_grad():
            for name, buffer in self._module.named_buffers():
                if name in changed:
                    buffer.copy_(self._first[name])

    def __call__(self, observation: Single) -> Single:
        """Return the output; see :class:`Network`."""
        with self._torch.no_grad():
            try:
                output = self._module(self._torch.from_numpy(observation).unsqueeze(0))
            except (RuntimeError, self._torch.jit.Error) as error:
                text = str(error).strip().splitlines()[-1].removeprefix("builtins.RuntimeError: ")
                raise ConfigError(f"refused ({text})", f"{self._path}: {observation.size} values") from error
            if not isinstance(output, self._torch.Tensor):
                raise ConfigError(f"gives {type(output).__name__}, but must return a tensor of actions", self._path)
            action: Single = output.detach().numpy().astype(np.float32).reshape(-1)
        return action


NETWORKS: Mapping[str, type[OnnxNetwork] | type[TorchScriptNetwork]] = {
    ".onnx": OnnxNetwork,
    ".pt": TorchScriptNetwork,
    ".pth": TorchScriptNetwork,
    ".jit": TorchScriptNetwork,
}
"""Class for each file suffix, constructed from the path and the keys ``input``, ``output``, ``states``."""


_POINTER = b"version https://git-lfs"


def check_file(path: Path) -> None:
    """Check that the file of a network can be read.

    Raises:
        ConfigError: It is missing or a folder, may not be read, or is a pointer of Git LFS.
    """
    try:
        with open_file(path) as file:
            start = file.read(len(_POINTER))
    except ConfigError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            way_out = "the key `network` of the deployment file, or --set network=PATH, says where it is"
            raise ConfigError(f"no such file; {way_out}", path) from error.__cause__
        raise
    if start == _POINTER:
        raise ConfigError("only a pointer of Git LFS, not the file itself: `git lfs pull` fetches it", path)


def open_network(path: Path, input: str = "", output: str = "", states: Mapping[str, str] | None = None) -> Network:
    """Open the network of a file.

    Raises:
        ConfigError: The file or its package is missing, or it is no network for one robot; the message says why.
    """
    if path.suffix not in NETWORKS:
        raise ConfigError(f"a network ends in one of {', '.join(NETWORKS)}", path)
    check_file(path)
    return NETWORKS[path.suffix](path, input, output, dict(states or {}))
