"""The word-level tokeniser. Every encoder's tokeniser is a ``tokenizers.Tokenizer`` with character offsets.

It splits text like the benchmark's own tokens (Penn Treebank conventions, lower case: ``did n't``, ``it 's``, both
kinds of double quote written as two backticks), so that raw reviews have the words that a model was trained on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

UNKNOWN = "[UNK]"

# A period after one of these is part of the word, except at the end of a text, where it is always split off.
_ABBREVIATIONS = (
    *("mr", "mrs", "ms", "dr", "st", "vs", "jr", "ft", "ave", "co", "bros", "lt", "ok", "a.m", "p.m", "u.s", "n.c"),
    *("jan", "feb", "mar", "apr", "jun", "jul", "aug", "sept", "oct", "nov", "dec", "wed", "sat"),
)
_SHORT = (*(word.replace(".", "[.]") for word in _ABBREVIATIONS), r"\w")
_ABBREVIATED = "|".join(rf"{start}{word}" for start in (r"\A", r"\s") for word in _SHORT)
_CLOSERS = r"[\])}>'`]*"
_PERIOD = rf"(?<=[^.\s])\.(?={_CLOSERS}\s*$)|(?<=[^.\s])(?<!{_ABBREVIATED})\.(?={_CLOSERS}\s)"
_PUNCTUATION = r"\.\.\.|--|``|[;@#$%&?!()\[\]{}<>]|[:,](?!\d)"
# Clitics and words that the Penn Treebank splits in two; (?<=\S) keeps a lone "n't" or "'s" whole.
_CLITIC = (
    r"(?<=\S)(?:n't|'(?:s|m|d|ll|re|ve)|')(?=\s|$)"
    r"|(?<=\bcan)not(?=\s|$)|(?<=\bgon|\bwan)na(?=\s|$)|(?<=\bgot)ta(?=\s|$)|(?<=\bgim|\blem)me(?=\s|$)"
)


def word_tokenizer(vocabulary: Sequence[str]) -> Tokenizer:
    """A word-level tokeniser over ``vocabulary`` (id = position); its first entry must be ``UNKNOWN``."""
    if not vocabulary or vocabulary[0] != UNKNOWN:
        raise ValueError(f"a vocabulary must begin with {UNKNOWN!r}, found {list(vocabulary[:1])!r}")
    ids = {word: position for position, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex("[’‘´]"), "'"),
            normalizers.Replace(Regex("[\"“”]|''"), "``"),
            normalizers.Lowercase(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PERIOD), "isolated"),
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Split(Regex(_PUNCTUATION), "isolated"),
            pre_tokenizers.Split(Regex(_CLITIC), "isolated"),
        ]
    )
    return tokenizer


def split_words(tokenizer: Tokenizer, text: str) -> list[str]:
    """The words of ``text`` as the tokeniser splits them, known or unknown."""
    normalized = tokenizer.normalizer.normalize_str(text)
    return [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normalized)]


def build_vocabulary(frequent: Sequence[str], needed: Iterable[str], limit: int) -> list[str]:
    """``UNKNOWN``, the ``needed`` words that are in ``frequent``, then its most frequent words up to ``limit``.

    ``frequent`` are the words with vectors, most frequent first. All needed words are kept, whatever the limit.
    """
    wanted = set(needed)
    known = [word for word in frequent if word in wanted]
    taken = set(known)
    room = max(0, limit - 1 - len(known))
    return [UNKNOWN, *known, *islice((word for word in frequent if word not in taken), room)]
