"""What to compare, as plain data that another process can build a system from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thinleaf.measuring.systems import System


@dataclass(frozen=True)
class Entry:
    """One line of the table.

    Attributes
    ----------
    name : str
    estimator : str or None
        The class, if it is one of ours.
    parameters : mapping
        Of the estimator, as JSON holds them; an estimator in it as
        :func:`~thinleaf.estimators._base.storable.described` has it.
    peer : tuple of str and int, optional
        Which system of which library, if it is none of ours: a key of
        :data:`~thinleaf.measuring.peers.PEERS` and a number.
    """

    name: str
    estimator: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    peer: tuple[str, int] | None = None

    @classmethod
    def of_model(cls, name: str, model: Any) -> Entry:
        """Return the entry of an estimator of this library that is not fitted.

        Raises
        ------
        ValueError
            If a parameter is no plain value.
        """
        from thinleaf.estimators._base.storable import plain_parameters

        return cls(name, type(model).__name__, plain_parameters(model))

    @classmethod
    def of_peer(cls, name: str) -> list[Entry]:
        """Return the entries of a library: one or two.

        Raises
        ------
        ValueError
            If the library is not known.
        """
        from thinleaf.measuring.peers import PEERS

        if name not in PEERS:
            raise ValueError(f"unknown peer {name!r}: there are {', '.join(PEERS)}")
        systems = PEERS[name]()
        return [cls(system.name, peer=(name, i)) for i, system in enumerate(systems)]

    def system(self) -> System:
        """Return the system, not fitted."""
        from thinleaf import estimators
        from thinleaf.estimators._base.storable import build
        from thinleaf.measuring.peers import PEERS
        from thinleaf.measuring.systems import Ours

        if self.peer is not None:
            library, number = self.peer
            return PEERS[library]()[number]
        if self.estimator not in estimators.__all__:
            raise ValueError(f"unknown estimator {self.estimator!r}")
        parameters = {
            name: build(value) if isinstance(value, dict) and "estimator" in value else value
            for name, value in self.parameters.items()
        }
        return Ours(self.name, getattr(estimators, self.estimator)(**parameters))
