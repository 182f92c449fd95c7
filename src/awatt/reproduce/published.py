"""Numbers quoted from the paper: AUC, and macro-F1 in percent (Hu et al. 2021, acl-long.495)."""

from __future__ import annotations

SETTINGS = ((5, 5), (5, 10), (10, 5), (10, 10))

Quoted = tuple[float, float]


def _row(*values: float) -> dict[tuple[int, int], Quoted]:
    """From AUC and F1 of the four settings, in the paper's order."""
    return dict(zip(SETTINGS, zip(values[::2], values[1::2], strict=True), strict=True))


#: dataset -> method -> (n_way, n_shot) -> (AUC, F1): Tables 2, 3 and 4
MAIN: dict[str, dict[str, dict[tuple[int, int], Quoted]]] = {
    "FewAsp(single)": {
        "relation": _row(0.9331, 75.79, 0.9086, 72.02, 0.9181, 63.78, 0.9054, 61.15),
        "matching": _row(0.9705, 81.89, 0.9749, 84.62, 0.9630, 70.95, 0.9672, 73.28),
        "graph": _row(0.9654, 81.45, 0.9746, 85.04, 0.9545, 70.75, 0.9697, 77.84),
        "prototypical": _row(0.9649, 83.30, 0.9753, 86.29, 0.9597, 74.23, 0.9671, 76.83),
        "imp": _row(0.9665, 83.69, 0.9747, 86.14, 0.9600, 73.80, 0.9691, 77.09),
        "proto-hatt": _row(0.9645, 83.33, 0.9762, 86.71, 0.9571, 73.42, 0.9700, 77.65),
        "proto-awatt": _row(0.9756, 86.71, 0.9796, 88.54, 0.9701, 80.28, 0.9755, 82.97),
    },
    "FewAsp(multi)": {
        "relation": _row(0.8491, 58.38, 0.8621, 61.37, 0.8422, 43.71, 0.8472, 44.85),
        "matching": _row(0.8954, 65.70, 0.9138, 69.02, 0.8828, 50.86, 0.8994, 54.42),
        "graph": _row(0.8797, 59.25, 0.9045, 64.63, 0.8605, 45.42, 0.8844, 48.49),
        "prototypical": _row(0.8967, 67.88, 0.9160, 72.32, 0.8801, 52.72, 0.9068, 58.92),
        "imp": _row(0.9012, 68.86, 0.9229, 73.51, 0.8871, 53.96, 0.9110, 59.86),
        "proto-hatt": _row(0.9110, 69.15, 0.9303, 73.91, 0.9044, 55.34, 0.9238, 60.21),
        "proto-awatt": _row(0.9145, 71.72, 0.9389, 77.19, 0.8980, 58.89, 0.9234, 66.76),
    },
    "FewAsp": {
        "relation": _row(0.8556, 59.52, 0.8698, 62.78, 0.8494, 45.62, 0.8377, 44.70),
        "matching": _row(0.9076, 67.14, 0.9239, 70.09, 0.8844, 51.27, 0.8990, 54.61),
        "graph": _row(0.8948, 61.49, 0.9235, 69.89, 0.8735, 47.91, 0.9019, 56.06),
        "prototypical": _row(0.8888, 66.96, 0.9177, 73.27, 0.8735, 52.06, 0.9013, 59.03),
        "imp": _row(0.8995, 68.96, 0.9230, 74.13, 0.8850, 54.14, 0.9081, 59.84),
        "proto-hatt": _row(0.9154, 70.26, 0.9343, 75.24, 0.9063, 57.26, 0.9286, 61.51),
        "proto-awatt": _row(0.9335, 75.37, 0.9528, 80.16, 0.9206, 65.65, 0.9342, 69.70),
    },
}

#: variant -> dataset -> (AUC, F1) at 10-way 5-shot: Table 5 and the appendix
ABLATIONS: dict[str, dict[str, Quoted]] = {
    variant: dict(zip(("FewAsp(single)", "FewAsp(multi)", "FewAsp"), numbers, strict=True))
    for variant, numbers in {
        "full": ((0.9701, 80.28), (0.8980, 58.89), (0.9206, 65.65)),
        "w/o SA": ((0.9304, 63.63), (0.8854, 53.02), (0.8890, 54.34)),
        "w/o W": ((0.9703, 78.08), (0.8959, 57.42), (0.9128, 61.68)),
        "w/o QA": ((0.9541, 69.61), (0.8920, 51.51), (0.8886, 51.19)),
        "w/o DT": ((0.9689, 79.46), (0.8970, 59.40), (0.9161, 64.48)),
        "w/o DT w/ KR": ((0.9695, 79.41), (0.9006, 59.13), (0.9159, 64.06)),
        "w/o DT w/ MS": ((0.9681, 78.73), (0.8976, 59.01), (0.9163, 64.00)),
    }.items()
}

#: encoder -> method -> (AUC, F1) on FewAsp at 10-way 5-shot: Table 6
ENCODERS: dict[str, dict[str, Quoted]] = {
    encoder: dict(zip(("proto-hatt", "proto-awatt"), numbers, strict=True))
    for encoder, numbers in {
        "GloVe + CNN": ((0.9063, 57.26), (0.9206, 65.65)),
        "GloVe + LSTM": ((0.9137, 59.46), (0.9357, 66.86)),
        "BERT": ((0.8971, 57.33), (0.9459, 70.09)),
        "DistilBERT": ((0.9067, 59.57), (0.9451, 70.23)),
    }.items()
}

#: dataset -> classes, instances per class, instances: Table 1
STATISTICS: dict[str, tuple[int, int, int]] = {
    "FewAsp(single)": (100, 200, 20_000),
    "FewAsp(multi)": (100, 400, 40_000),
    "FewAsp": (100, 630, 63_000),
}

#: two footnotes on 10,000 5-way 5-shot episodes of FewAsp: share of queries with more than one label, and upper bound
#: of the share of classes whose examples have more than one aspect in common
MULTI_LABEL_QUERIES, SECOND_COMMON_ASPECT = 0.045, 0.00086
