"""A real cluster behind its API server.

What lives here: the connection (`credentials.py`, `connection.py`), the way in (`reflector.py`: list and watch;
`snapshot.py` and `following.py` for those who only look), the way out (`sender.py`, `posting.py`, `events.py`), the
lease (`leader.py`), and questions about who may see what (`reviews.py`), all of it asyncio; and `cluster.py`, which the
scheduler reads and writes on its own thread. What may enter: api, framework, the cluster's object index. What must not
happen: a decision, or a change of what the scheduler reads outside of the scheduler's thread. Who calls it: the
scheduler's driver for Kubernetes, and the command.
"""
