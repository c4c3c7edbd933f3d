"""Web: the API over HTTP.

Contents: reading requests, answering them, lists and watches on the wire, discovery, tables, the OpenAPI
documents. Imports: registry, store, schema. Never: a rule about objects; those are in
registry. Callers: server.py.
"""
