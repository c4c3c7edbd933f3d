"""API server: an embedded cluster, within the process, that kubectl can talk to.

Contents: `store/` (objects as bytes, numbered changes, the journal), `schema/` (the fields of objects, patches,
OpenAPI), `registry/` (the rules), `access/` (users and what they may do), `web/` (HTTP), `control/` (controllers and
fake kubelets) and `server.py`, which combines them. Imports: api, framework, cluster.memory for rules it shares with
the simulator. Never: a decision about placement; listening beyond the loopback without a token. Callers: `bayplan
up`, and tests that need a cluster.
"""
