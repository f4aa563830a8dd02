"""Movements between the layers: each takes the layers at one instant and returns what they become.

Nothing is deleted by any of them: what leaves one layer is in another. The service and the folder
build `Layers`, call the same functions, and write what `plan` says.
"""

from app.layers.movements.consolidate import consolidate
from app.layers.movements.demote import demote
from app.layers.movements.heartbeat import heartbeat
from app.layers.movements.merge import merge
from app.layers.movements.promote import promote, promote_found
from app.layers.movements.state import Action, Layers, Moved, Plan, Step, plan
from app.layers.movements.trim import trim

__all__ = [
    "Action",
    "Layers",
    "Moved",
    "Plan",
    "Step",
    "consolidate",
    "demote",
    "heartbeat",
    "merge",
    "plan",
    "promote",
    "promote_found",
    "trim",
]
