"""How FewAsp is built from Yelp_aspect files (the paper's section on datasets).

A file has tab-separated rows ``review id, sentence, aspect, polarity``, one for each (sentence, aspect). Sentences are
grouped by aspect, 100 aspects are split 64/16/20, and each group is sampled: sentences with one aspect make
FewAsp(single), with several FewAsp(multi), of any kind FewAsp (in the proportion of ``mixture``). Official files are
taken as they are, and ``provenance.json`` says of each split whether it is official or rebuilt.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path

import numpy as np

from awatt.data.fewasp import DATASETS, SPLITS, Instance, read_fewasp, read_json, write_fewasp
from awatt.data.mixture import Labels, Mixture, Sentence, shares
from awatt.errors import AwattError, DataError
from awatt.files import make_folder

SPLIT_SIZES = {"train": 64, "val": 16, "test": 20}

_KINDS: dict[str, Callable[[int], bool]] = {
    "FewAsp(single)": lambda aspects: aspects == 1,
    "FewAsp(multi)": lambda aspects: aspects > 1,
    "FewAsp": lambda aspects: True,
}


def read_yelp_aspect(folder: Path) -> Labels:
    """Every different sentence of the folder's ``*.txt`` files, as tokens, with its aspects in lower case."""
    paths = sorted(folder.glob("*.txt"))
    if not paths:
        raise AwattError(f"{folder} holds no .txt file. It needs Yelp_aspect files, such as restaurant.txt.")
    labels: Labels = {}
    for path in paths:
        for sentence, aspect in _rows(path):
            labels.setdefault(tuple(sentence.split()), set()).add(aspect.lower())
    return labels


def _rows(path: Path) -> Iterator[tuple[str, str]]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                text = line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                place = error.start + 1
                raise DataError(f"byte {place} is not UTF-8. Save the file as UTF-8.", path, number) from None
            row = text.split("\t")
            if len(row) != 4 or not row[1].strip() or not row[2].strip():
                raise DataError(
                    f"found {text[:60]!r}, needs four cells with tabs between: review id, sentence, aspect, "
                    "polarity. Fix or remove the line.",
                    path,
                    number,
                )
            yield row[1], row[2].strip()


def build(
    yelp: Path, fewasp: Path | None, out: Path, seed: int = 5, overwrite: bool = False
) -> dict[str, dict[str, object]]:
    """Write the three datasets below ``out`` and return their provenance, ``{dataset: {split: ...}}``."""
    if out.exists():
        make_folder(out)
    for existing in (out / dataset for dataset in DATASETS if (out / dataset).exists()):
        if not overwrite:
            raise AwattError(f"{existing}: already exists. Use --overwrite to build it anew, or choose another --out.")
    labels = read_yelp_aspect(yelp)
    official = _official_files(fewasp) if fewasp else {}
    categories = _split_categories(fewasp, labels, seed)
    sentences: dict[str, set[Sentence]] = {split: set() for split in SPLITS}  # of every dataset's file
    for (_, split), path in official.items():
        sentences[split] |= _sentences(path)
    single_train = official.get(("FewAsp(single)", "train"))
    extra = read_fewasp(single_train) if single_train else {}
    pool = _pool(labels, extra)
    mixture = Mixture(labels, *(official.get((dataset, "val")) for dataset in ("FewAsp", "FewAsp(single)")))
    provenance: dict[str, dict[str, object]] = {dataset: dict.fromkeys(SPLITS) for dataset in DATASETS}
    make_folder(out)
    # Train comes last, when every val and test sentence is known.
    for split, (dataset, wanted) in product(("test", "val", "train"), DATASETS.items()):
        target = out / dataset / f"{split}.json"
        source = official.get((dataset, split))
        if source:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            entry: dict[str, object] = {"source": "official"}
        else:
            # A test sentence must not be seen in training: a sentence of one split stands in no other.
            barred = set().union(*(found for other, found in sentences.items() if other != split))
            usable = {tokens: found for tokens, found in pool.items() if tokens not in barred}
            groups = _group(usable, categories[split], _KINDS[dataset])
            if dataset == "FewAsp":
                single = _sentences(out / "FewAsp(single)" / f"{split}.json")  # DATASETS names it first
                groups = {
                    category: mixture.in_proportion(
                        category, instances, pool, single, _generator(seed, split, category)
                    )
                    for category, instances in groups.items()
                }
            write_fewasp(target, _sample(groups, wanted, f"{seed}/{dataset}/{split}"))
            sentences[split] |= _sentences(target)
            entry = {
                "source": "rebuilt",
                "seed": seed,
                "from": "Yelp_aspect" + (" + single train" if extra else ""),
            }
        single = _sentences(out / "FewAsp(single)" / f"{split}.json")
        provenance[dataset][split] = entry | _counts(target, wanted) | shares(read_fewasp(target), pool, single)
    for dataset, splits in provenance.items():
        text = json.dumps({"dataset": dataset, "splits": splits}, indent=1)
        (out / dataset / "provenance.json").write_text(text + "\n", "utf-8")
    return provenance


def _sentences(path: Path) -> set[Sentence]:
    return {instance.tokens for instances in read_fewasp(path).values() for instance in instances}


def _official_files(fewasp: Path) -> dict[tuple[str, str], Path]:
    files = {(dataset, split): fewasp / dataset / f"{split}.json" for dataset in DATASETS for split in SPLITS}
    found = {key: path for key, path in files.items() if path.is_file()}
    if not found:
        raise AwattError(
            f"{fewasp} holds none of FewAsp's files. It needs folders named {', '.join(DATASETS)} "
            "with train.json, val.json or test.json. Leave --fewasp out to build everything from Yelp_aspect."
        )
    return found


def _split_categories(fewasp: Path | None, labels: Labels, seed: int) -> dict[str, list[str]]:
    """The official 64/16/20 split of ``separate.json``; without official files, a seeded one of the most frequent."""
    if fewasp:
        content = read_json(fewasp / "separate.json")
        names = {"train": "train", "val": "validation", "test": "test"}
        if not isinstance(content, dict) or not all(isinstance(content.get(name), list) for name in names.values()):
            raise DataError(
                f"needs a dict with the lists {', '.join(names.values())}. Download the file again.",
                fewasp / "separate.json",
            )
        return {split: [str(category) for category in content[name]] for split, name in names.items()}
    counts = Counter(aspect for found in labels.values() for aspect in found)
    needed = sum(SPLIT_SIZES.values())
    if len(counts) < needed:
        raise AwattError(f"the Yelp_aspect files name {len(counts)} aspects, but the split needs {needed}.")
    # By count, then by name: equal counts must not depend on the order of the files.
    frequent = sorted(counts, key=lambda aspect: (-counts[aspect], aspect))[:needed]
    order = iter(np.random.default_rng(seed).permutation(sorted(frequent)).tolist())
    return {split: [next(order) for _ in range(size)] for split, size in SPLIT_SIZES.items()}


def _pool(labels: Labels, extra: Mapping[str, Iterable[Instance]]) -> Labels:
    """Yelp_aspect's sentences and those of the single-aspect train file, with all their aspects."""
    pool = {tokens: set(found) for tokens, found in labels.items()}
    for category, instances in extra.items():
        for instance in instances:
            pool.setdefault(instance.tokens, set()).update(instance.aspects, {category})
    return pool


def _group(pool: Labels, categories: list[str], kind: Callable[[int], bool]) -> dict[str, list[Instance]]:
    """The instances of each category, labels limited to these categories. The kind looks at all the aspects."""
    groups: dict[str, list[Instance]] = {category: [] for category in categories}
    for tokens, found in pool.items():
        if kind(len(found)):
            aspects = tuple(category for category in categories if category in found)
            for category in aspects:
                groups[category].append(Instance(tokens, aspects))
    return groups


def _sample(groups: Mapping[str, list[Instance]], wanted: int, seed: str) -> dict[str, list[Instance]]:
    """All instances per category, up to ``wanted``; a category's draw depends on its own name only."""
    chosen = {}
    for category, instances in groups.items():
        random = _generator(seed, category)
        chosen[category] = [instances[place] for place in random.permutation(len(instances))[:wanted]]
    return chosen


def _generator(*seed: object) -> np.random.Generator:
    digest = hashlib.sha256("/".join(map(str, seed)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


def _counts(path: Path, wanted: int) -> dict[str, object]:
    groups = read_fewasp(path)
    sizes = [len(instances) for instances in groups.values()]
    return {
        "categories": len(sizes),
        "instances": sum(sizes),
        "fewest_per_category": min(sizes),
        "categories_below_paper": sum(size < wanted for size in sizes),
    }
