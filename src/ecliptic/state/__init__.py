"""State: what a model carries from call to call, apart from its parameters."""

from ecliptic.state._index import StateIndex
from ecliptic.state._make import delete_init_state, make_with_state
from ecliptic.state._state import State

__all__ = ["State", "StateIndex", "delete_init_state", "make_with_state"]
