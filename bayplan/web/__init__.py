"""Web: a cluster and its scheduler over HTTP or in a file.

Lives here: the data of the page (`history.py`, read it first; `accounts.py`), the report file
(`page_file.py`), the live page (`live.py`), the page itself (`page/`: plain HTML, CSS and
JavaScript that `assembly.py` joins); and the server of a running scheduler (`route_server.py`),
with TLS (`tls.py`), access control (`access.py`, which also guards the questions of the page;
`delegated.py`), and its routes with health checks (`scheduler_routes.py`). Modules are
imported directly: a report file needs no aiohttp, and the server of a scheduler no page. May enter:
scheduler, config, cluster, api, answers. Must not happen: a decision, a change of anything shown
(`up` passes in a function for that), or reading the scheduler's state from the server's thread:
that goes through awaitable callables, which the driver of the scheduler provides. Called by: `cli`.
"""
