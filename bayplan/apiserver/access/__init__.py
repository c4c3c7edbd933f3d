"""Access: authentication of requests, and the permissions of their users.

Contents: users and their tokens, impersonation, the RBAC authorizer and the roles that every
cluster has. Imports: the store, the clock. Never: HTTP (that is `web/`), a
decision that depends on anything but the request and stored objects. Callers: `web/`.
"""
