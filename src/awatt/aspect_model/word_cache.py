"""Token ids of texts from a memory of words: many times as fast as the tokenizer, and the same ids.

BERT's tokenizers read each word, a stretch between spaces, on its own, so that its ids are the same in every text.
They come from the tokenizer itself, once. A text with other characters that may separate words, or that may be left
out (those that are not printable), goes to the tokenizer as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from threading import Lock

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import ByteLevel

from awatt.arrays import Sentences, differences, ranges, starts

END = "\0"  # after each text; not printable, so that it is no word
MOST_CHARACTERS = 400_000  # of the words that are kept: some 50,000 words, 10 MB


class Numbers(dict[str, int]):
    """Gives each new word the next number."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


class WordCache:
    """Gives the ids that the tokenizer gives."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer, self.usable = tokenizer, reads_words_separately(tokenizer)
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        self._numbers = Numbers({END: 0})
        self._ids = np.zeros(0, dtype=np.int64)  # of all known words, one after the other
        self._lengths = np.zeros(1, dtype=np.int64)  # of each word, in ids
        self._first = np.zeros(1, dtype=np.int64)  # where the ids of each word begin
        self._size = 0  # in characters

    def tokenize(self, texts: Sequence[str]) -> Sentences:
        """The ids of each text; of some texts there may be none."""
        if not self.usable:
            return self._encode(texts)
        # Of the printable characters only the space separates words.
        whole = [number for number, plain in enumerate(map(str.isprintable, texts)) if not plain]
        if not whole:
            return self._join(texts)
        found = self._join([text if text.isprintable() else "" for text in texts])
        others = self._encode([texts[number] for number in whole])
        rows = np.arange(len(texts))
        rows[whole] = len(texts) + np.arange(len(whole))
        both = Sentences(np.concatenate([found.ids, others.ids]), np.concatenate([found.lengths, others.lengths]))
        return both.take(rows)

    def _join(self, texts: Sequence[str]) -> Sentences:
        """The ids of texts from those of their words."""
        words = f" {END} ".join([*texts, ""]).split()
        with self._lock:
            numbers = np.fromiter(map(self._numbers.__getitem__, words), dtype=np.int64, count=len(words))
            self._learn_new_words()
            ids, lengths = self._ids, self._lengths[numbers]
            places = ranges(self._first[numbers], lengths)
            if self._size > MOST_CHARACTERS:
                self._forget()  # frequent words are soon back
        return Sentences(ids[places], differences(lengths.cumsum()[numbers == 0]))

    def _learn_new_words(self) -> None:
        count = len(self._numbers) - len(self._lengths)
        if count:
            new = list(islice(reversed(self._numbers), count))[::-1]
            found = self._encode(new)
            self._first = np.concatenate([self._first, len(self._ids) + starts(found.lengths)])
            self._ids = np.concatenate([self._ids, found.ids])
            self._lengths = np.concatenate([self._lengths, found.lengths])
            self._size += sum(map(len, new))

    def _encode(self, texts: Sequence[str]) -> Sentences:
        return Sentences.from_ids([encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts)])


def reads_words_separately(tokenizer: Tokenizer) -> bool:
    """Whether the ids of a text are those of its words, one after the other."""
    return (
        isinstance(tokenizer.normalizer, BertNormalizer)
        and isinstance(tokenizer.pre_tokenizer, BertPreTokenizer)
        and isinstance(tokenizer.model, WordPiece)
        and (tokenizer.post_processor is None or isinstance(tokenizer.post_processor, ByteLevel))
        and tokenizer.truncation is None
        and tokenizer.padding is None
        and not any(
            token.lstrip or token.rstrip or " " in token.content
            for token in tokenizer.get_added_tokens_decoder().values()
        )
    )
