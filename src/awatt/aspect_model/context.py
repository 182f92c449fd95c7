"""Token vectors that depend on the sentence: what gives them, and a memory of the latest ones."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from awatt.arrays import Sentences

Floats = npt.NDArray[np.float32]

#: From sentences to a unit vector of each token in its sentence. (n_tokens, dim)
Context: TypeAlias = Callable[[Sentences], Floats]

REMEMBERED = 65_536  # tokens; a file's sample and its labels, which are needed several times; 50 MB


class Memory:
    """Computes a repeated sentence once: within a call, and while it is among the latest ``n_tokens`` tokens."""

    def __init__(self, context: Context, n_tokens: float = REMEMBERED, dtype: npt.DTypeLike = np.float32) -> None:
        self.context, self.n_tokens, self.dtype = context, n_tokens, dtype
        self._known: dict[bytes, npt.NDArray[np.floating]] = {}  # the oldest first
        self._size = 0
        self._lock = Lock()

    def __call__(self, sentences: Sentences) -> Floats:
        """The same vectors as ``context`` gives, but for the rounding to ``dtype``."""
        keys = sentences.keys()
        if not keys:
            return self.context(sentences)
        found = {key: self._known.get(key) for key in keys}
        missing = {key: number for number, key in enumerate(keys) if found[key] is None}
        if missing:
            part = sentences.take(np.array(list(missing.values())))
            vectors = self.context(part).astype(self.dtype, copy=False)
            computed = dict(zip(missing, map(np.copy, np.split(vectors, np.cumsum(part.lengths)[:-1])), strict=True))
            found |= computed
            self._keep(computed)
        return np.concatenate([found[key] for key in keys]).astype(np.float32, copy=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._known, self._size = {}, 0

    def _keep(self, computed: dict[bytes, npt.NDArray[np.floating]]) -> None:
        with self._lock:
            for key, vectors in computed.items():
                if key not in self._known:
                    self._known[key] = vectors
                    self._size += len(vectors)
            while self._size > self.n_tokens:
                oldest = next(iter(self._known))
                self._size -= len(self._known.pop(oldest))
