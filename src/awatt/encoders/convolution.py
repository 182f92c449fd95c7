"""A convolution over packed sentences that uses each distinct token vector once."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from awatt.arrays import Integers
from awatt.errors import AwattError


class Convolution(nn.Module):
    """A linear map of the vectors in a window around each token (Eq. 1), with zeros beyond its sentence."""

    def __init__(self, width: int, hidden: int, window: int) -> None:
        super().__init__()
        if window < 1 or window % 2 == 0:
            raise AwattError(f"encoder.window is {window}, needs an odd number, so that the token is in the middle.")
        self.hidden, self.window = hidden, window
        # "All other parameters are initialized by sampling from a normal distribution N(0, 0.1)"
        self.kernel = nn.Parameter(torch.randn(width, window * hidden) * 0.1)
        self.bias = nn.Parameter(torch.randn(hidden) * 0.1)

    def forward(self, rows: Tensor, places: Integers, lengths: Integers) -> Tensor:
        """Token t has the vector ``rows[places[t]]``. (n_rows, width), (n_tokens,) -> (n_tokens, hidden)

        A convolution is linear, so each *distinct* row is multiplied by the kernel once, and each token sums the
        products of the rows around it. A batch repeats its words several times, and products take most of the time.
        """
        products = rows @ self.kernel  # (n_rows, window * hidden)
        # An extra row of zeros is used beyond the ends of a sentence.
        parts = F.pad(products, (0, 0, 0, 1)).view(-1, self.hidden)
        hidden: Tensor = self.bias
        for slot, there in enumerate(_neighbours(places, lengths, self.window, beyond=len(rows))):
            index = torch.from_numpy(there * self.window + slot).to(rows.device)
            hidden = hidden + parts.index_select(0, index)
        return hidden


def _neighbours(places: Integers, lengths: Integers, window: int, beyond: int) -> list[Integers]:
    """For each position of the window, the row of that neighbour of every token; ``beyond`` outside its sentence."""
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    shifted = []
    for offset in range(-(window // 2), window // 2 + 1):
        there = np.arange(len(places)) + offset
        inside = (there >= 0) & (there < len(places))
        there = np.where(inside, there, 0)
        shifted.append(np.where(inside & (sentence[there] == sentence), places[there], beyond))
    return shifted
