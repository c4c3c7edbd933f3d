"""Web: what a running scheduler shows over HTTP: probes, metrics, its configuration, the page.

What lives here: the server (`server`), TLS (`tls`), who may see what (`access`, `delegated`), health checks (`health`),
and the routes of a scheduler (`scheduler_routes`). What may enter: scheduler, config, cluster, api. What must not
happen: a look at the scheduler's state from the server's thread; what is shown is asked for by awaitable callables that
whoever drives the scheduler provides. Who calls it: cli.
"""

from .access import Access, LocalAccess
from .delegated import ALWAYS_ALLOWED_PATHS, DelegatedAccess, Reviews
from .health import HealthCheck, health_routes, named_check
from .scheduler_routes import scheduler_routes
from .server import WebServer, is_loopback
from .tls import server_context

__all__ = [
    "ALWAYS_ALLOWED_PATHS",
    "Access",
    "DelegatedAccess",
    "HealthCheck",
    "LocalAccess",
    "Reviews",
    "WebServer",
    "health_routes",
    "is_loopback",
    "named_check",
    "scheduler_routes",
    "server_context",
]
