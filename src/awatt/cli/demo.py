"""``awatt demo``: the main job on the bundled sample."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    n_way: Annotated[int, typer.Option(min=1, help="Aspects of the episode.")] = 4,
    n_shot: Annotated[int, typer.Option(min=1, help="Examples an aspect.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Which episode to draw.")] = 5,
) -> None:
    """Draw an episode from the bundled sample and print it: examples of each aspect, and what is to be found."""
    from rich.console import Console

    from awatt.data.corpus import load_sample
    from awatt.data.sampler import EpisodeSampler, EpisodeShape

    corpus = load_sample()
    episode = EpisodeSampler(corpus, EpisodeShape(n_way, n_shot, 2, none_rate=0.2), seed).batch(0, 1)[0]
    console = Console(highlight=False)
    colours = ("cyan", "yellow", "magenta", "green", "blue", "red")
    styles = [colours[slot % len(colours)] for slot in range(n_way)]
    names = [corpus.aspects[aspect] for aspect in episode.aspects]
    console.print(f"{len(corpus.sentences)} sentences, {len(corpus.aspects)} aspects. One episode:\n")
    for name, style, support in zip(names, styles, episode.support, strict=True):
        console.print(f"[bold {style}]{name}[/]")
        for sentence in support:
            console.print(f"  {corpus.sentences[sentence]}", markup=False)
    console.print("\n[bold]To be found[/]")
    for sentence, target in zip(episode.query, episode.targets, strict=True):
        found = [f"[{style}]{name}[/]" for name, style, hit in zip(names, styles, target, strict=True) if hit]
        console.print(f"  {corpus.sentences[sentence]}", markup=False, end="  ")
        console.print(" ".join(found) or "[dim]none[/]")
