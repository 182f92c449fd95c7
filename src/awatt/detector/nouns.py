"""The words of sentences as numbers, and which of them are used as nouns: those that can name an aspect."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from awatt.arrays import Bools, Integers, Sentences


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


TOKEN = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|\n")  # letters, digits, one sign, or the end of a sentence
END = "\n"
DETERMINERS = _set("the a an my our your his her their its this these those no some any")
#: the word after one of these is not a noun
NOT_BEFORE_NOUNS = _set("is was are were be been very so too really not to and or ,")
#: frequent words that name nothing; the parts of "didn't" and "we've", too
FUNCTION_WORDS = DETERMINERS | _set(
    """
    that of in for with on at about and or but i you he she it we they me him us them is was are were be been being am
    has have had do does did will would can could should may might must not to from by as if when while because so than
    then there here what which who whom how why where also too very really just only even still again ever never always
    all both each every other another such own same more most less least much many few up down out off over under into
    onto after before during through until since between without within around behind back away together ago once twice
    per etc s t d m ll re ve don didn doesn wasn isn weren aren won wouldn couldn shouldn hasn haven hadn ain
    """
)
#: nouns that any review may have
GENERAL_NOUNS = _set(
    """
    thing things time times way day days lot lots bit one ones people person place places year years week weeks month
    months hour hours minute minutes night today review reviews star stars part kind type sort fact point reason
    something anything everything nothing someone anyone everyone else first second last next problem problems issue
    issues experience best worst little outside inside end side front middle half rest whole good bad top bottom
    """
)
FEWEST = 2  # sentences with a word; and this share of them
FEWEST_SHARE = 0.002
SHORTEST = 3  # letters
NOUN_SHARE = 0.15  # of a word's uses that must look like a noun's
DIRECT_SHARE = 0.05  # and stand directly behind a determiner, which a verb does not ("the waiter came and")
COMPOUND_SHARE = 0.5  # or that many look like a noun's: "the front desk"
ENGLISH_SHARE = 0.02  # of all words that are determiners; with fewer, nothing is known about nouns


class CountedWords(NamedTuple):
    """Every word of the sentences, in order, by its number in ``words``."""

    words: list[str]
    ids: Integers  # (n_tokens,)
    sentences: Integers  # (n_tokens,) the number of the sentence
    counts: Integers  # (n_words,) sentences in which a word occurs


def count_words(texts: Sequence[str]) -> CountedWords:
    """The words of the texts, in lower case.

    A word never spans a space, so each distinct stretch between spaces is split into its words once.
    """
    stretches = [stretch for text in texts for stretch in (*text.lower().split(), END)]
    number_of: defaultdict[str, int] = defaultdict()
    number_of.default_factory = number_of.__len__
    numbers = np.fromiter(map(number_of.__getitem__, stretches), np.int64, len(stretches))
    id_of: defaultdict[str, int] = defaultdict()
    id_of.default_factory = id_of.__len__
    known = Sentences.from_ids([[id_of[word] for word in TOKEN.findall(stretch)] for stretch in number_of])
    ids = known.take(numbers).ids
    ends = ids == id_of[END]
    sentences = np.cumsum(ends) - ends
    counts = np.bincount(distinct(sentences * len(id_of) + ids) % len(id_of), minlength=len(id_of))
    return CountedWords(list(id_of), ids, sentences, counts)


def distinct(numbers: Integers) -> Integers:
    """Each number once, sorted; for millions of them faster than `np.unique`, which hashes."""
    ordered = np.sort(numbers)
    return ordered[np.diff(ordered, prepend=-1) > 0]


def find_nouns(counted: CountedWords, n_sentences: int) -> Integers:
    """The numbers of words that occur often enough and are used as nouns, the most frequent first.

    A use looks like a noun's where a function word or a sign follows, and a determiner stands before it, or before the
    word before it ("the waiter was", "a great meal."). In other languages every word counts that is long enough.
    """
    words, ids = counted.words, counted.ids
    closes = _are(words, FUNCTION_WORDS) | np.array([not word[0].isalpha() for word in words])
    determines, excludes = _are(words, DETERMINERS), _are(words, NOT_BEFORE_NOUNS)
    before, before_that, after = np.roll(ids, 1), np.roll(ids, 2), np.roll(ids, -1)
    direct = closes[after] & determines[before]
    indirect = closes[after] & determines[before_that] & ~closes[before] & ~excludes[before]
    uses = np.bincount(ids, minlength=len(words)) + 1
    noun_share = np.bincount(ids[direct | indirect], minlength=len(words)) / uses
    direct_share = np.bincount(ids[direct], minlength=len(words)) / uses
    named = ~closes & ~_are(words, GENERAL_NOUNS) & np.array([len(word) >= SHORTEST for word in words])
    kept = named & (counted.counts >= max(FEWEST, FEWEST_SHARE * n_sentences))
    if determines[ids].mean() >= ENGLISH_SHARE:
        kept &= (noun_share >= NOUN_SHARE) & ((direct_share >= DIRECT_SHARE) | (noun_share >= COMPOUND_SHARE))
    numbers = np.flatnonzero(kept)
    return numbers[np.argsort(-counted.counts[numbers], kind="stable")]


def _are(words: Sequence[str], of: frozenset[str]) -> Bools:
    return np.array([word in of for word in words], dtype=bool)
