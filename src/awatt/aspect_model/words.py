"""What single words add once there are labels: a ridge regression on what the rest of the model gets wrong.

The static vectors of two words can be alike although one of them decides: with labels enough, the word itself is
evidence. Sentences are unit vectors over the vocabulary, each word of them with the weight that it has in a mean
vector; the regression predicts label minus left-out probability. Its left-out predictions are one more value of the
calibration, so that words count no more than the labels show.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from awatt.arrays import Integers, Sentences, cut

Floats = npt.NDArray[np.float64]

PENALTY = 0.3
SCALE = 5.0  # of the values, so that all that the calibration reads has about the same size
MOST = 1000  # labelled sentences of which words are learned; bounds the time with thousands
_TOGETHER = 2048  # sentences that are scored at once; bounds the memory with many


class WordRidge(NamedTuple):
    """What each word of the labelled sentences adds to each aspect's value."""

    ids: Integers  # (n_known,) ascending
    weights: Floats  # (n_known, n_aspects)


class _Bags(NamedTuple):
    """Sentences as unit vectors over the vocabulary: the entries that are not 0, sentence by sentence."""

    rows: Integers  # (n_entries,) number of the sentence
    ids: Integers  # (n_entries,) the word
    values: Floats  # (n_entries,)
    n_sentences: int


def no_words(n_aspects: int) -> WordRidge:
    """Before there are labels."""
    return WordRidge(np.zeros(0, dtype=np.int64), np.zeros((0, n_aspects)))


def learn_words(
    norms: npt.NDArray[np.floating], sentences: Sentences, errors: Floats, sentence_weights: Floats
) -> tuple[WordRidge, Floats]:
    """The ridge, and what it says of each sentence when that one is left out. Both in the calibration's scale.

    ``norms`` (n_vocabulary,) weigh the words, ``errors`` (n_sentences, n_aspects) are labels minus probabilities.
    """
    n_sentences = len(sentences.lengths)
    chosen = np.unique(np.linspace(0, n_sentences - 1, min(n_sentences, MOST)).astype(np.int64))
    bags = _bags(norms, sentences.take(chosen))
    ids, columns = np.unique(bags.ids, return_inverse=True)
    dense = np.zeros((len(chosen), len(ids)))
    dense[bags.rows, columns] = bags.values
    penalties = PENALTY / np.maximum(sentence_weights[chosen], 1e-3)
    inverse = np.linalg.inv(dense @ dense.T + np.diag(penalties))
    dual = inverse @ errors[chosen]
    ridge = WordRidge(ids.astype(np.int64), SCALE * (dense.T @ dual))
    left_out = score_words(ridge, norms, sentences)
    left_out[chosen] = SCALE * (errors[chosen] - dual / np.diag(inverse)[:, None])
    return ridge, left_out


def score_words(ridge: WordRidge, norms: npt.NDArray[np.floating], sentences: Sentences) -> Floats:
    """(n_sentences, n_aspects)"""
    n_sentences = len(sentences.lengths)
    found = np.zeros((n_sentences, ridge.weights.shape[1]))
    if not len(ridge.ids):
        return found
    for part in cut(n_sentences, _TOGETHER):
        bags = _bags(norms, sentences.take(np.arange(n_sentences)[part]))
        places = np.searchsorted(ridge.ids, bags.ids).clip(max=len(ridge.ids) - 1)
        known = ridge.ids[places] == bags.ids
        rows, added = bags.rows[known], bags.values[known, None] * ridge.weights[places[known]]
        sums = [np.bincount(rows, column, minlength=bags.n_sentences) for column in added.T]
        found[part] = np.stack(sums, 1)
    return found


def _bags(norms: npt.NDArray[np.floating], sentences: Sentences) -> _Bags:
    n_sentences, n_words = len(sentences.lengths), len(norms)
    rows = np.repeat(np.arange(n_sentences), sentences.lengths)
    rows, ids = np.divmod(np.unique(rows * n_words + sentences.ids), n_words)
    values = norms[ids].astype(np.float64)
    lengths = np.sqrt(np.bincount(rows, values**2, minlength=n_sentences))
    return _Bags(rows, ids, values / np.maximum(lengths[rows], 1e-12), n_sentences)
