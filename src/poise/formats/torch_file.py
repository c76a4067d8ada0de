"""Files that `torch.save` wrote, read without torch: an archive of a pickle and of raw arrays.

Of the pickle, only dictionaries, lists, numbers and dense tensors are built; no code in it runs.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from poise.errors import ParseError
from poise.formats.amass import MOST_BYTES, UNREADABLE
from poise.types import Array

_KINDS = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}


def tensors(file: Path) -> Any:
    """What `torch.save` wrote, with arrays in place of dense tensors and None in place of others."""
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
                raise ParseError(f"it unpacks to more than {MOST_BYTES >> 30} GB", path=file)
            name = next(one for one in archive.namelist() if one.endswith("data.pkl"))
            return _TensorUnpickler(archive, name).load()
    except StopIteration as error:
        raise ParseError("it is not a torch file: it has no data.pkl", path=file) from error
    except (*UNREADABLE, pickle.UnpicklingError, IndexError) as error:
        raise ParseError(f"it is not a torch file of arrays: {error}", path=file) from error


class _Storage(NamedTuple):
    """Numbers in the archive."""

    kind: str
    key: str


class _TensorUnpickler(pickle.Unpickler):
    """Builds dictionaries, numbers and tensors, and nothing else."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        super().__init__(io.BytesIO(archive.read(name)))
        self._archive, self._folder = archive, name.removesuffix("data.pkl")

    def find_class(self, module: str, name: str) -> Any:
        """What the pickle may name."""
        known: dict[tuple[str, str], Any] = {
            ("collections", "OrderedDict"): OrderedDict, ("torch._utils", "_rebuild_tensor_v2"): self._tensor,
            ("torch._utils", "_rebuild_sparse_tensor"): lambda *_: None,
            ("torch.serialization", "_get_layout"): str,
            ("torch", "Size"): tuple,
        }  # fmt: skip
        if module == "torch" and name in _KINDS:
            return _KINDS[name]
        if (module, name) not in known:
            raise pickle.UnpicklingError(f"it needs {module}.{name}, and only arrays are read")
        return known[module, name]

    def persistent_load(self, pid: Any) -> _Storage:
        """Numbers that the pickle refers to."""
        _, kind, key, *_ = pid
        return _Storage(kind, str(key))

    def _tensor(
        self, storage: _Storage, offset: int, size: tuple[int, ...], steps: tuple[int, ...], *_: Any
    ) -> Array:
        flat = np.frombuffer(self._archive.read(f"{self._folder}data/{storage.key}"), storage.kind)[offset:]
        last = sum((count - 1) * step for count, step in zip(size, steps, strict=True)) if all(size) else -1
        if last >= len(flat):
            raise pickle.UnpicklingError("a tensor is larger than its numbers")
        width = flat.itemsize
        return np.lib.stride_tricks.as_strided(flat, size, [step * width for step in steps]).copy()
