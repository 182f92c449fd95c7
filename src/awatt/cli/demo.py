"""``awatt demo``: the detector on the bundled sample."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from awatt.cli.options import ModelToFit

SENTENCES_SHOWN = 4  # per domain


def demo(
    model: ModelToFit = "fast",
    n_shot: Annotated[int, typer.Option(min=1, help="Examples per aspect.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Random seed that chooses the example sentences.")] = 5,
) -> None:
    """Learn from a few bundled examples and detect in the rest. Counts how many sentences are exactly right."""
    import numpy as np

    from awatt.cli.drawing import count_chart
    from awatt.detector.sample import detect_sample
    from awatt.detector.thresholds import f1
    from awatt.errors import plural

    began = time.perf_counter()
    results = detect_sample(n_shot, seed, model)
    seconds = time.perf_counter() - began
    for result in results:
        count = len(result.detections)
        parts = f"{plural(len(result.aspects), 'aspect')}, {plural(n_shot, 'example')} each"
        typer.echo(f"{result.domain}: {parts}, {plural(count, 'other sentence')}")
        for detection, truth in list(zip(result.detections, result.truth, strict=True))[:SENTENCES_SHOWN]:
            wanted = [aspect for aspect, mentioned in zip(result.aspects, truth, strict=True) if mentioned]
            note = "" if detection.aspects == wanted else f"  (a person says: {', '.join(wanted) or 'none'})"
            typer.echo(f"  {detection}{note}")
        counts = dict(zip(result.aspects, result.found.sum(0).tolist(), strict=True))
        for line in count_chart(counts, int((~result.found.any(1)).sum()), count):
            typer.echo(f"  {line}")
        typer.echo()
    right = sum(int((result.truth == result.found).all(1).sum()) for result in results)
    total = sum(len(result.detections) for result in results)
    truth = np.concatenate([result.truth.ravel() for result in results])
    found = np.concatenate([result.found.ravel() for result in results])
    typer.echo(f"{right} of {total} sentences exactly as a person labelled them, F1 {f1(truth, found):.2f}.")
    typer.echo(f"{seconds:.1f} s in total, including loading the model.", err=True)
