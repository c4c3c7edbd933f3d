"""Simulated: an API server in memory, on virtual time, that is reached as over a network.

For deterministic tests of clients: the client's own HTTP runs over in-memory connections of a `NetworkLoop`, requests
take virtual time, and faults are injected by a seed. `network` has the loop and its connections, `store` the objects
and their versions, `api` what the requests do, `server` the HTTP and the faults. It serves what a scheduler asks for,
and validates little.
"""

from .api import SimulatedApi
from .network import NetworkLoop
from .server import SimulatedServer
from .store import VersionedStore

__all__ = ["NetworkLoop", "SimulatedApi", "SimulatedServer", "VersionedStore"]
