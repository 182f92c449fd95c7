"""Table 1 and two footnotes: statistics of the datasets, kept in a JSON file so that the table needs no data."""

from __future__ import annotations

import json
from pathlib import Path

from awatt.data.fewasp import read_json
from awatt.data.sampler import EpisodeShape
from awatt.data.stats import dataset_stats
from awatt.files import write_text
from awatt.reproduce.formats import Table
from awatt.reproduce.published import MULTI_LABEL_QUERIES, SECOND_COMMON_ASPECT, STATISTICS

EPISODES = 10_000  # as in the paper's footnotes
_HEADER = (
    "dataset",
    "classes",
    "quoted classes",
    "instances per class",
    "quoted per class",
    "instances",
    "quoted instances",
    "train / val / test",
    "queries with several labels",
    "classes with a second common aspect",
)


def statistics_path(results: Path) -> Path:
    """Path of the statistics."""
    return results / "table-statistics.json"


def measure_statistics(data: Path, results: Path) -> None:
    """Compute the statistics of the three datasets and save them."""
    found = {name: dataset_stats(data / name, EPISODES, EpisodeShape(), seed=5) for name in STATISTICS}
    results.mkdir(parents=True, exist_ok=True)
    write_text(statistics_path(results), json.dumps(found, indent=1) + "\n")


def statistics_table(title: str, results: Path) -> Table:
    """Table 1, one row per dataset; empty if the statistics are not computed yet."""
    path = statistics_path(results)
    if not path.exists():
        return Table(title, _HEADER, ())
    counted = read_json(path)
    assert isinstance(counted, dict)  # as written above
    rows = []
    for name, found in counted.items():
        splits = found["splits"]
        sources = (found["provenance"] or {"splits": {}})["splits"]
        fewest = min(split["instances_a_class_min"] for split in splits.values())
        most = max(split["instances_a_class_max"] for split in splits.values())
        several, second = (
            " / ".join(f"{100 * split[share]:.2f} %" for split in splits.values())
            for share in ("multi_label_query_share", "second_common_aspect_share")
        )
        classes, each, instances = STATISTICS[name]
        rows.append(
            (
                name,
                str(sum(split["classes"] for split in splits.values())),
                str(classes),
                str(most) if fewest == most else f"{fewest} to {most}",
                str(each),
                str(sum(split["instances"] for split in splits.values())),
                str(instances),
                " / ".join(sources.get(split, {}).get("source", "unknown") for split in splits),
                several,
                second,
            )
        )
    notes = (
        "Columns named 'quoted' are the paper's numbers (Hu et al. 2021).",
        f"The last two columns: train / val / test, from {EPISODES:,} sampled 5-way 5-shot episodes each. The paper's "
        f"footnotes say {100 * MULTI_LABEL_QUERIES:.1f} % and less than {100 * SECOND_COMMON_ASPECT:.3f} % for FewAsp.",
    )
    return Table(title, _HEADER, tuple(rows), notes)
