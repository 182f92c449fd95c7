"""Token vectors in context beside static ones: what the evidence reads with the accurate model."""

from __future__ import annotations

import numpy as np

from awatt.evidence import Line
from awatt.models.ops import Array, namespace, segment_sums, unit
from awatt.packed import Integers

#: Of the squared length of a token's vector, what its context has; the rest is the static vector's.
CONTEXT_SHARE = 0.5


def lay_beside(words: Array, norms: Array, places: Integers, context: Array, lengths: Integers) -> Line:
    """Sentences as the evidence reads them, numpy or torch.

    ``words`` (n_words, n_static) are unit vectors of the distinct tokens and ``norms`` (n_words, 1) how much each
    counts in a mean, ``places`` (n_tokens,) says which one each token is, ``context`` (n_tokens, n_context) are
    unit vectors of the tokens in their sentences. The two parts of a mean vector have fixed lengths, too, which is
    better than the mean of the joined vectors.
    """
    xp = namespace(words)
    static, weights = words[places], norms[places]
    of_static, of_context = (1 - CONTEXT_SHARE) ** 0.5, CONTEXT_SHARE**0.5
    tokens = xp.concatenate([of_static * static, of_context * context], -1)
    means = [unit(segment_sums(part * weights, lengths)) for part in (static, context)]
    joined = xp.concatenate([of_static * means[0], of_context * means[1]], -1)
    # Every token is a word of its own: the same word differs from sentence to sentence.
    return Line(tokens, np.arange(len(places)), joined, lengths)
