// Data: received pods and nodes, by number. Append-only.

class Data {
  constructor(tale) {
    this.isLive = tale.isLive;
    this.sources = tale.sources || [];
    this.release = tale.release || "";
    /** What the server of a live page takes besides requests for data. */
    this.can = tale.can || { ask: false, edit: false, use: false };
    this.started = new Date(tale.started);
    this.texts = [];
    this.resources = [];
    this.nodes = [];
    this.kinds = [];
    this.rows = { node: [], labels: [], taints: [], allocatable: [], flags: [] };
    this.pods = { namespace: [], name: [], kind: [] };
    /** By the number of a message: reason, nodes, reason, nodes, ... */
    this.refusals = new Map();
    /** Of each node row, the allocatable amounts by resource. */
    this.dense = [];
    this.suffix = "";
    this.whyKeys = [];
    this.events = { t: [], what: [], which: [], value: [] };
    this.time = 0;
    this.accounts = tale.accounts || [];
    this.accountOf = new Map(Object.entries(tale.accountOf || {}).map(([pod, n]) => [Number(pod), n]));
    this.preemptedFor = new Map(Object.entries(tale.preemptedFor || {}).map(([pod, who]) => [Number(pod), who]));
    this.groups = tale.groups || [];
    this.attempts = new Map();
    /** Figures over time that the run recorded, such as cost: times, and the value from each on. */
    this.series = tale.series || {};
    /** By pod number: the measured use by resource. */
    this.use = new Map(Object.entries(tale.use || {}).map(([pod, amounts]) => [Number(pod), amounts]));
    /** Why a live page has no measured use. */
    this.useProblem = "";
    this.extend(tale);
    const told = tale.attempts || { pod: [] };
    told.pod.forEach((pod, i) => this.attempts.set(pod, {
      number: told.number[i], score: told.score[i], feasible: told.feasible[i], evaluated: told.evaluated[i],
    }));
  }

  /** Appends new data; returns the number of new events. */
  extend(tale) {
    appendAll(this.texts, tale.texts);
    appendAll(this.resources, tale.resources);
    appendAll(this.nodes, tale.nodes);
    appendAll(this.kinds, tale.kinds);
    for (const [name, column] of Object.entries(tale.rows)) appendAll(this.rows[name], column);
    for (const [text, reasons] of tale.refusals) this.refusals.set(text, reasons);
    if (tale.resources.length) nameResources(this.resources);
    if (tale.nodes.length) this.suffix = commonSuffix(this.nodes);
    for (const [name, column] of Object.entries(tale.pods)) appendAll(this.pods[name], column);
    for (const name of ["t", "what", "which", "value"]) appendAll(this.events[name], tale.events[name]);
    this.time = Math.max(tale.time, this.time);
    if (tale.groups) this.groups = tale.groups;
    return tale.events.t.length;
  }

  /** Takes the measured use by namespace/name; pods that are not known yet get theirs with the next answer. */
  measure(answer) {
    this.useProblem = answer.problem || "";
    this.use = new Map();
    for (let pod = 0; pod < this.pods.name.length; pod += 1) {
      const amounts = answer.use[`${this.namespace(pod)}/${this.podName(pod)}`];
      if (amounts) this.use.set(pod, amounts);
    }
  }

  /** Lengths of all lists, sent to the server to get the rest. */
  known() {
    return {
      texts: this.texts.length, resources: this.resources.length, nodes: this.nodes.length,
      kinds: this.kinds.length, rows: this.rows.node.length, refusals: this.refusals.size, pods: this.pods.name.length,
    };
  }

  /** The number of the pod group of each pod that has one. */
  get groupOf() {
    if (this.groupsAt !== this.groups) {
      this.groupsAt = this.groups;
      this.byPod = new Map(this.groups.flatMap((group, i) => group.pods.map((pod) => [pod, i])));
    }
    return this.byPod;
  }

  /** A node's name without what most names end with. */
  nodeName(node) {
    return this.shortName(this.nodes[node]);
  }

  shortName(name) {
    return this.suffix && name.endsWith(this.suffix) ? name.slice(0, -this.suffix.length) : name;
  }

  /** The reasons in a message; the message itself where it has none. */
  reasons(text) {
    const refusals = this.refusals.get(text);
    if (!refusals) return this.texts[text] ? [this.texts[text]] : [];
    return refusals.filter((_, i) => i % 2 === 0).map((reason) => this.texts[reason]);
  }

  /** Equal for messages with the same reasons, regardless of their nodes. */
  whyKey(text) {
    if (this.whyKeys[text] === undefined) {
      const refusals = this.refusals.get(text);
      this.whyKeys[text] = refusals ? refusals.filter((_, i) => i % 2 === 0).sort((a, b) => a - b).join() : `text ${text}`;
    }
    return this.whyKeys[text];
  }

  podName(pod) {
    return this.pods.name[pod];
  }

  namespace(pod) {
    return this.texts[this.pods.namespace[pod]];
  }

  podKey(pod) {
    return `${this.namespace(pod)}/${this.pods.name[pod]}`;
  }

  /** The attributes of a pod class. */
  kind(number) {
    const [requests, labels, priority, owner, scheduler, selector, workload] = this.kinds[number];
    return {
      requests: this.amounts(requests), labels: this.pairs(labels), priority,
      owner: this.texts[owner], scheduler: this.texts[scheduler], selector: this.pairs(selector), workload: this.texts[workload],
    };
  }

  /** The amount of a resource that pods of a class request; each is one of the pods. */
  requested(kind, resource) {
    if (this.resources[resource] === PODS) return 1;
    const flat = this.kinds[kind][0];
    for (let i = 0; i < flat.length; i += 2) if (flat[i] === resource) return flat[i + 1];
    return 0;
  }

  /** The extended resources that pods of a class request: name, amount, name, amount, ... */
  devices(kind) {
    const flat = this.kinds[kind][0], found = [];
    for (let i = 0; i < flat.length; i += 2) if (this.resources[flat[i]].includes("/")) found.push(this.resources[flat[i]], flat[i + 1]);
    return found;
  }

  labels(row) {
    return this.pairs(this.rows.labels[row]);
  }

  label(row, key) {
    const flat = this.rows.labels[row];
    for (let i = 0; i < flat.length; i += 2) {
      if (this.texts[flat[i]] === key) return this.texts[flat[i + 1]];
    }
    return null;
  }

  taints(row) {
    return this.rows.taints[row].map((text) => this.texts[text]);
  }

  allocatable(row, resource) {
    return this.amountsOf(row)[resource] || 0;
  }

  /** The allocatable amounts of a node row, by resource. */
  amountsOf(row) {
    if (!this.dense[row]) {
      const amounts = this.dense[row] = new Array(this.resources.length).fill(0);
      for (let i = 0, flat = this.rows.allocatable[row]; i < flat.length; i += 2) amounts[flat[i]] = flat[i + 1];
    }
    return this.dense[row];
  }

  pairs(flat) {
    const pairs = [];
    for (let i = 0; i < flat.length; i += 2) pairs.push([this.texts[flat[i]], this.texts[flat[i + 1]]]);
    return pairs;
  }

  amounts(flat) {
    const amounts = [];
    for (let i = 0; i < flat.length; i += 2) amounts.push([this.resources[flat[i]], flat[i + 1]]);
    return amounts;
  }
}

function appendAll(list, more) {
  for (const item of more) list.push(item);
}
