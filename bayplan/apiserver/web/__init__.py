"""Web: the API over HTTP.

What lives here: reading requests, answering them, lists and watches on the wire, discovery, tables, the OpenAPI
documents. What may enter: registry, store, schema. What must not happen: a rule about objects; those are in
registry. Who calls it: server.py.
"""
