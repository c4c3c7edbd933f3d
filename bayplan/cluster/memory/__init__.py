"""Memory: a cluster in memory with the behaviour of API server and controllers.

Contents: the store with its watch, the API server's processing of new objects (admission), the controllers that
create pods of workloads, those that create and bind volumes, the one that creates resource claims, and the kubelets
that end pods. Imports: api, framework. Never: I/O, or waiting: every effect is complete when the call returns, or
when a given timer fires. Callers: sim, cli, testing; the scheduler uses it as its lister and client.
"""
