"""A detector on other machines: its saved files are sent, never a pickled object that could run code."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from awatt.detector.detector import AspectDetector

_loaded: dict[str, tuple[AspectDetector, Any]] = {}  # in this process: the last detector and its folder


class Shipped(NamedTuple):
    """The files of a saved detector in Ray's object store, identified by their hash."""

    digest: str
    files: Any  # a reference to {name: bytes}

    def load(self) -> AspectDetector:
        """The detector, loaded once per process."""
        if self.digest not in _loaded:
            import ray

            from awatt.detector.detector import AspectDetector

            os.environ.setdefault("RAYON_NUM_THREADS", "1")  # a task has one core; the tokenizer would use all
            folder = tempfile.TemporaryDirectory(prefix="awatt-")  # kept: the detector's model path is here
            for name, content in ray.get(self.files).items():
                (Path(folder.name) / name).write_bytes(content)
            _loaded.clear()
            _loaded[self.digest] = AspectDetector.from_pretrained(folder.name), folder
        return _loaded[self.digest][0]


def ship(detector: AspectDetector) -> Shipped:
    """Save a detector, without its examples, and put the files where all workers can read them."""
    import ray

    with tempfile.TemporaryDirectory() as parent:
        folder = detector.save_pretrained(Path(parent) / "detector", examples=False)
        files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    digest = hashlib.sha256(b"".join(name.encode() + content for name, content in files.items()))
    return Shipped(digest.hexdigest(), ray.put(files))
