"""All thresholds by name."""

from awatt.thresholds.acceptance import Acceptance
from awatt.thresholds.base import Threshold
from awatt.thresholds.kernel_regression import KernelRegression
from awatt.thresholds.mean_std import MeanStd
from awatt.thresholds.policy import Policy
from awatt.thresholds.radius import Radius
from awatt.thresholds.static import Static

THRESHOLDS: dict[str, type[Threshold]] = {
    "static": Static,
    "policy": Policy,
    "kernel-regression": KernelRegression,
    "mean-std": MeanStd,
    "radius": Radius,
    "acceptance": Acceptance,
}
