"""Access: who sends a request, and what they may do.

What lives here: users and their tokens, impersonation, the RBAC authorizer and the roles that every
cluster has. What may enter: the store, the clock. What must not happen: HTTP (that is `web/`), a
decision that depends on anything but the request and stored objects. Who calls it: `web/`.
"""

from .authenticator import Authenticator, Impersonation
from .authorizer import (
    ANONYMOUS,
    AccessDecision,
    AccessQuestion,
    AllowAll,
    Authorizer,
    ClusterUser,
    forbidden_error,
)
from .rbac import RbacAuthorizer

__all__ = [
    "ANONYMOUS",
    "AccessDecision",
    "AccessQuestion",
    "AllowAll",
    "Authenticator",
    "Authorizer",
    "ClusterUser",
    "Impersonation",
    "RbacAuthorizer",
    "forbidden_error",
]
