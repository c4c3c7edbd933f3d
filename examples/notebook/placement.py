# %% [markdown]
# # Where do my pods go, and would another policy be better?
# Each `# %%` is a cell: editors and Jupyter (with jupytext) open this file as a notebook; `python placement.py` runs it
# from top to bottom. It needs `pip install 'bayplan[notebook]'`.

# %%
from pathlib import Path

from bayplan import Cluster, capacity, compare, explain, plot, simulate, what_if
from bayplan.answers.what_if import Drain
from bayplan.framework import MAX_SCORE, NODE_OBJECT, ScorePlugin

examples = Path(__file__).resolve().parent.parent
cluster = Cluster.read(examples / "cluster.yaml", examples / "workload.yaml")
print(cluster)

# %% [markdown]
# ## A run
# Pods that have no node are scheduled, exactly as kube-scheduler would.

# %%
report = simulate(cluster)
pods = report.to_frame().fillna({"node": "-"})
print(pods[["namespace", "pod", "node", "score"]].to_string())

# %%
print(pods.groupby("node").size())

# %%
plot(report)

# %% [markdown]
# ## Why is one still waiting?

# %%
waiting = report.pending[0].pod.key
why = explain(cluster, waiting)
print(f"{waiting}: {why.message}")
print(why.to_frame()[["node", "refused_by", "reason"]].to_string())


# %% [markdown]
# ## A policy of my own
# Ten lines of Python; nothing to compile, and nothing to deploy to try it.


# %%
class PreferZone(ScorePlugin):
    name = "PreferZone"
    scope = NODE_OBJECT

    def score_rows(self, state, pod, table, rows):
        return table.labels.equal("topology.kubernetes.io/zone", "north-a", rows) * MAX_SCORE


mine = simulate(cluster, plugins=[PreferZone]).to_frame().fillna({"node": "-"})
moved = pods.merge(mine, on=["namespace", "pod"], suffixes=("", " with PreferZone"))
print(
    moved[moved["node"] != moved["node with PreferZone"]][["pod", "node", "node with PreferZone"]]
)

# %% [markdown]
# ## Which configuration is better?

# %%
packed = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "cpu", "weight": 1}],
                        }
                    },
                }
            ]
        }
    ],
}
comparison = compare(cluster, {"as it comes": None, "packed": packed}, seeds=5)
print(comparison.to_frame().round(3))

# %%
plot(comparison)

# %% [markdown]
# ## What if a node goes, and how much still fits?

# As with kubectl, a pod without a controller stops a drain unless it is forced.

# %%
print(what_if(cluster, Drain(("worker-a1",))))
print(what_if(cluster, Drain(("worker-a1",), force=True)).to_frame().to_string())

# %%
web = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {
        "containers": [{"name": "web", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]
    },
}
room = capacity(cluster, web)
print(f"{room.fits} more pods of half a cpu fit; {room.bottleneck or 'nothing'} runs out first")
