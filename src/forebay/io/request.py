"""What the parser is asked for: every key of a record once, for whichever features are made of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from forebay.errors import PlanError
from forebay.io.features import DTYPES, Feature, FixedLenFeature, FixedLenSequenceFeature, RaggedFeature
from forebay.io.parsing import FeatureValues
from forebay.io.partitions import UniformRowLength

_PARTITION = RaggedFeature(np.int64)


class Request:
    """The keys of some features and of their partitions. Features of the same values share them."""

    def __init__(self, features: Mapping[str, Feature], sequence: bool = False) -> None:
        self._features = dict(features)
        self._sequence = sequence
        self.asked: list[tuple[str, Feature]] = []
        self._places: dict[str, int] = {}
        for name, feature in self._features.items():
            self._ask(_key(name, feature), feature)
        for feature in self._features.values():
            for key in _partition_keys(feature):
                self._ask(key, _PARTITION)
        self.partitioned = any(
            isinstance(feature, RaggedFeature) and feature.partitions for feature in self._features.values()
        )
        """Whether a feature of one record is more than one array."""
        self._made_of = [
            (name, feature, self._places[_key(name, feature)], [self._places[key] for key in _partition_keys(feature)])
            for name, feature in self._features.items()
        ]

    def _ask(self, key: str, feature: Feature) -> None:
        if key not in self._places:
            self._places[key] = len(self.asked)
            self.asked.append((key, feature))
            return
        known = self.asked[self._places[key]][1]
        if not (isinstance(known, RaggedFeature) and isinstance(feature, RaggedFeature) and known.type == feature.type):
            raise PlanError(
                f"feature {key!r} is wanted as {known!r} and as {feature!r}: only RaggedFeatures of one dtype and "
                "partitions can be made of the same values"
            )

    def wanted(self) -> list[tuple[bytes, int, int, bool, Any]]:
        """The keys as the kernel is told of them."""
        return [_wanted(key, feature, self._sequence) for key, feature in self.asked]

    def values(self, found: Sequence[FeatureValues]) -> dict[str, FeatureValues]:
        """The values of each feature, of those of all keys."""
        return {
            name: found[place].of(feature, [found[each] for each in partitions])
            for name, feature, place, partitions in self._made_of
        }


def _wanted(key: str, feature: Feature, sequence: bool) -> tuple[bytes, int, int, bool, Any]:
    if isinstance(feature, FixedLenFeature):
        return key.encode(), feature.type, feature.count, False, feature.missing()
    nothing: Any = [] if feature.type == 1 else np.empty(0, DTYPES[feature.type])
    if isinstance(feature, FixedLenSequenceFeature) and sequence:
        return key.encode(), feature.type, feature.count, True, nothing if feature.allow_missing else None
    return key.encode(), feature.type, -1, sequence, nothing


def _key(name: str, feature: Feature) -> str:
    return (feature.value_key if isinstance(feature, RaggedFeature) else None) or name


def _partition_keys(feature: Feature) -> list[str]:
    if not isinstance(feature, RaggedFeature):
        return []
    return [each.key for each in feature.partitions if not isinstance(each, UniformRowLength)]
