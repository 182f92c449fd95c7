"""A straightforward implementation of Proto-AWATT, as a baseline for the speed of ours.

It pads sentences to the longest of the episode, uses torch's own convolution, the d x d attention matrix from a linear
layer, dense Adam on the whole embedding table and scikit-learn's metrics, and encodes every episode anew. It shares
weights and episodes with ours, so that scores can be compared one by one.

    python benchmarks/plain.py --data "datasets/FewAsp(single)"
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import f1_score, roc_auc_score
from torch import Tensor, nn

from awatt.data.corpus import Corpus, load_corpus
from awatt.data.episode import Episode
from awatt.data.sampler import EpisodeSampler, EpisodeShape
from awatt.research.runs import RunConfig, RunFolder, TrainingConfig
from awatt.research.scoring import measure_system, score_episodes
from awatt.research.system import System, SystemConfig
from awatt.research.training import Trainer
from awatt.thresholds.default import default_threshold


class PlainProtoAwatt(nn.Module):
    """Proto-AWATT on padded sentences, with the weights of ``system``."""

    def __init__(self, system: System) -> None:
        super().__init__()
        source = dict(system.named_parameters())
        table, kernel = source["encoder.table.weight"], source["encoder.convolution.kernel"]
        width, hidden = table.shape[1], system.encoder.dim
        self.tokenizer, self.max_length = system.encoder.tokenizer, system.encoder.max_length
        self.embedding = nn.Embedding.from_pretrained(table.detach().clone(), freeze=False)
        self.convolution = nn.Conv1d(width, hidden, 3, padding=1)
        self.convolution.weight.data = kernel.detach().view(width, 3, hidden).permute(2, 0, 1).contiguous()
        self.convolution.bias.data = source["encoder.convolution.bias"].detach().clone()
        self.matrix = nn.Linear(source["model.weight"].shape[1], hidden)
        self.matrix.weight.data = source["model.weight"].detach().clone()
        self.matrix.bias.data = source["model.bias"].detach().clone()

    def encode(self, sentences: list[list[int]]) -> tuple[Tensor, Tensor]:
        """Token vectors (n_sentences, length, hidden) and the mask, padded to the longest sentence."""
        length = max(map(len, sentences))
        ids = torch.tensor([row + [0] * (length - len(row)) for row in sentences])
        mask = torch.tensor([[1.0] * len(row) + [0.0] * (length - len(row)) for row in sentences])
        embedded = self.embedding(ids) * mask[..., None]
        return self.convolution(embedded.transpose(1, 2)).transpose(1, 2), mask

    def forward(self, support: list[list[int]], query: list[list[int]], n_way: int) -> Tensor:
        """The ranking of the classes. (n_query, n_way)"""
        tokens, mask = self.encode(support)
        tokens, mask = tokens.view(n_way, -1, *tokens.shape[1:]), mask.view(n_way, -1, mask.shape[-1])
        common = (tokens * mask[..., None]).sum((1, 2)) / mask.sum((1, 2))[:, None]
        repeated = common[..., None].expand(-1, -1, self.matrix.in_features)
        attention = torch.tanh(tokens @ self.matrix(repeated)[:, None]) @ common[:, None, :, None]
        weights = attention[..., 0].masked_fill(mask == 0, -1e9).softmax(-1)
        prototypes = (weights[..., None] * tokens).sum(2).mean(1)
        tokens, mask = self.encode(query)
        attention = torch.tanh(tokens) @ prototypes.T
        weights = attention.masked_fill(mask[..., None] == 0, -1e9).softmax(1)
        represented = weights.transpose(1, 2) @ tokens
        return (-((represented - prototypes) ** 2).sum(-1)).softmax(-1)


class Plain:
    """Training and evaluation loop: one episode after the other."""

    def __init__(self, system: System, corpus: Corpus) -> None:
        self.model = PlainProtoAwatt(system)
        self.ids = [
            encoding.ids[: self.model.max_length] for encoding in self.model.tokenizer.encode_batch(corpus.sentences)
        ]

    def rank(self, episode: Episode) -> Tensor:
        support = [self.ids[sentence] for sentence in episode.support.reshape(-1)]
        return self.model(support, [self.ids[sentence] for sentence in episode.query], len(episode.aspects))

    def train(self, batches: list[Episode]) -> None:
        optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        for batch in batches:
            losses = []
            for episode in (batch[number] for number in range(len(batch))):
                targets = torch.from_numpy(episode.targets).float()
                losses.append(F.mse_loss(self.rank(episode), targets / targets.sum(-1, keepdim=True)))
            optimizer.zero_grad()
            torch.stack(losses).mean().backward()
            optimizer.step()

    @torch.no_grad()
    def evaluate(self, episodes: Episode) -> tuple[float, float]:
        auc, f1 = [], []
        for episode in (episodes[number] for number in range(len(episodes))):
            ranking = self.rank(episode).numpy()
            auc.append(roc_auc_score(episode.targets, ranking, average="macro"))
            chosen = ranking >= default_threshold(ranking.shape[1])
            f1.append(f1_score(episode.targets, chosen, average="macro", zero_division=0))
        return float(np.mean(auc)), float(np.mean(f1))


def compare(data: Path, shape: EpisodeShape, episodes: int, out: Path) -> dict[str, float]:
    """Episodes per second of both implementations in the same run, and the largest difference of their scores."""
    config = SystemConfig.from_mapping(
        {"method": "proto-awatt", "encoder": "glove-cnn", "threshold": "static", "n_way": shape.n_way}
    )
    corpus, held_out = load_corpus(data, "train"), load_corpus(data, "val")
    torch.manual_seed(5)
    system = System.create(config, [*corpus.sentences, *held_out.sentences])
    schedule = TrainingConfig(episodes_per_epoch=episodes)
    trainer = Trainer(RunConfig(config, shape, schedule), system, corpus, held_out, RunFolder(out))
    sampler, step = EpisodeSampler(corpus, shape, 5), schedule.episodes_per_step
    plain = Plain(system, held_out)
    validation = EpisodeSampler(held_out, shape, 5).batch(0, episodes)

    ours = torch.cat([scored.probabilities for scored in score_episodes(system, held_out, shape, 20, 5)])
    with torch.no_grad():
        theirs = torch.stack([plain.rank(validation[number]) for number in range(20)])
    found = {"largest_difference": float((ours - theirs).abs().max())}

    start = time.perf_counter()
    plain.evaluate(validation)
    middle = time.perf_counter()
    measure_system(system, score_episodes(system, held_out, shape, episodes, 5))
    found["evaluation_plain"] = episodes / (middle - start)
    found["evaluation_ours"] = episodes / (time.perf_counter() - middle)

    plain = Plain(system, corpus)
    batches = [sampler.batch(first, step) for first in range(0, episodes, step)]
    start = time.perf_counter()
    plain.train(batches)
    middle = time.perf_counter()
    trainer.train_epoch(trainer.optimizers(), lambda step: None)
    found["training_plain"] = episodes / (middle - start)
    found["training_ours"] = episodes / (time.perf_counter() - middle)
    for name in ("training", "evaluation"):
        found[f"{name}_times_faster"] = found[f"{name}_ours"] / found[f"{name}_plain"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=200)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for n_way, n_shot in ((5, 5), (10, 10)):
        found = compare(arguments.data, EpisodeShape(n_way, n_shot), arguments.episodes, Path("unused"))
        print(json.dumps({"setting": f"{n_way}x{n_shot}", **found}, indent=1))


if __name__ == "__main__":
    main()
