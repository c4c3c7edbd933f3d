"""Engine: decides where a pod goes, from one array per class of pods that follows the changes of the table.

May import `runtime` (which runs plugins) and what is below it. The scheduler calls `Engine.decide`; read `engine.py`
first. The words:

- reference: the plugins, called one after the other over all rows (`runtime`); decides for some pods (`Reason`)
- class: pods that no plugin with a cached answer can tell apart
- outline: a spec without its amounts (`PodSpec.outline`); what plugins declare is cached by it unless they read one
- plan: which plugins take part for a class, and how (`ClassPlan`); specs of an outline differ in its rules only
- settled: a PreFilter or PreScore whose result the spec determines, so that it is not called
- rule: a plugin's arithmetic as data for the kernel, on amounts of a row or on counts per domain (`DomainRules`)
- live: a plugin whose answer depends on more than the row; called for every pod, or replaced by its rules
- view: a value per row for a class (`ClassView`)
- value: the sum of the scores of plugins with cached answers; negative: a refusal, with the place of the filter
- node part: the share of the values that depends on node objects alone; many views have the same (`NodePart`)
- raw score: a score before it is normalised over the feasible nodes; rows of equal raw scores of node objects are a
  raw group, which is present while one of them is feasible
- marks: the columns by which live plugins tell rows apart for a class; those without effect on it are quiet (`Marks`)
- group: feasible rows of equal marks and equal raw scores; all of them where no live plugin has an effect
- points: what the rows of a group get in addition to their values; a total is `values[row] + points[group of the row]`
- stamp: whatever cached answers depend on besides their key (`stamped_cache`)
"""

from .engine import Decision, Engine
from .reasons import Reason

__all__ = ["Decision", "Engine", "Reason"]
