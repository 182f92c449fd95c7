"""All methods by name."""

from awatt.models.base import FewShotModel
from awatt.models.graph import Graph
from awatt.models.graph_network import GraphNetwork
from awatt.models.imp import Imp
from awatt.models.matching import Matching
from awatt.models.proto_awatt import ProtoAwatt
from awatt.models.proto_hatt import ProtoHatt
from awatt.models.prototypical import Prototypical
from awatt.models.relation import Relation, RelationSoftmax

MODELS: dict[str, type[FewShotModel]] = {
    "matching": Matching,
    "prototypical": Prototypical,
    "relation": Relation,
    "graph": GraphNetwork,
    "imp": Imp,
    "proto-hatt": ProtoHatt,
    "proto-awatt": ProtoAwatt,
    "relation-softmax": RelationSoftmax,
    "graph-shared": Graph,
}
