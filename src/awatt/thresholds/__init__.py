"""Thresholds: which of the scored aspects a query is given."""

from awatt.thresholds.base import Scored, Threshold
from awatt.thresholds.kernel_regression import KernelRegression
from awatt.thresholds.mean_std import MeanStd
from awatt.thresholds.policy import Policy
from awatt.thresholds.static import Static

THRESHOLDS: dict[str, type[Threshold]] = {
    "static": Static,
    "policy": Policy,
    "kernel-regression": KernelRegression,
    "mean-std": MeanStd,
}

__all__ = ["THRESHOLDS", "Scored", "Threshold"]
