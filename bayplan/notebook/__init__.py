"""Notebook: questions about a cluster for notebooks and scripts, with answers as objects, frames and plots.

Contents: `Cluster`, the commands' questions as functions (`questions.py`), and plots. Imports: answers, sweeps, sim,
scheduler, config, cluster, api. Never: results that differ from the commands', or printing. Callers: the package's
public names, `from bayplan import Cluster, simulate, explain, compare`.
"""
