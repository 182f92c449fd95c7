"""All methods by name."""

from awatt.models.base import FewShotModel
from awatt.models.graph import Graph
from awatt.models.imp import Imp
from awatt.models.matching import Matching
from awatt.models.proto_awatt import ProtoAwatt
from awatt.models.proto_hatt import ProtoHatt
from awatt.models.prototypical import Prototypical
from awatt.models.relation import Relation

MODELS: dict[str, type[FewShotModel]] = {
    "matching": Matching,
    "prototypical": Prototypical,
    "relation": Relation,
    "graph": Graph,
    "imp": Imp,
    "proto-hatt": ProtoHatt,
    "proto-awatt": ProtoAwatt,
}
