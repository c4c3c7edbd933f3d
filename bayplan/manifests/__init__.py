"""Manifests: files, folders, dumps and standard input to objects, with the place of each for errors.

May enter: `api`, `cluster.objects`, `config`. Must not happen: a simulation or a decision. Called by: `sim`, `answers`,
`planning`, `sweeps`, `notebook` and the commands that read files.
"""
