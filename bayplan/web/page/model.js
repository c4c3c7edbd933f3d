// Model: the state of the cluster at one moment, and moving to another.
// A moment is the number of changes that have happened; the first state is moment 0.

const GONE = 0, ACTIVE = 1, BACKOFF = 2, UNSCHEDULABLE = 3, GATED = 4, HELD = 5, RUNNING = 6, TERMINATING = 7, FINISHED = 8;
const KIND = 10, NODE = 20, NODE_GONE = 21;
const STATE_WORDS = ["gone", "active", "backoff", "unschedulable", "gated", "held", "running", "terminating", "finished"];
const NONE = -1;
const PODS = "pods";
/** Stands for the resource of which a node has the highest share requested. */
const FULLEST = -2;
const KEYFRAME_EVERY = 4000;

function isWaiting(state) {
  return state >= ACTIVE && state <= HELD;
}

function isOnNode(state) {
  return state === RUNNING || state === TERMINATING;
}

class Model {
  constructor(data, base) {
    this.data = data;
    this.podsResource = data.resources.indexOf(PODS);
    this.at = 0;
    this.version = 0;
    /** Changes whenever a node is added, changed or deleted. */
    this.nodesVersion = 0;
    this.keyframes = [];
    this.load(base);
    this.keyframes.push(this.keyframe());
  }

  load(base) {
    this.state = base.state.slice();
    this.node = base.node.slice();
    this.text = base.text.slice();
    this.kind = base.kind.slice();
    this.row = base.row.slice();
    this.grow();
    this.addUp();
    this.version += 1;
    this.nodesVersion += 1;
  }

  /** Grows the arrays for new pods and nodes. */
  grow() {
    const { pods, nodes } = this.data;
    for (let pod = this.state.length; pod < pods.name.length; pod += 1) {
      this.state.push(GONE);
      this.node.push(NONE);
      this.text.push(0);
      this.kind.push(pods.kind[pod]);
    }
    while (this.row.length < nodes.length) this.row.push(NONE);
    if (!this.used) return;
    while (this.used.length < this.data.resources.length) this.used.push(new Array(nodes.length).fill(0));
    for (const column of this.used) while (column.length < nodes.length) column.push(0);
  }

  /** Recomputes the usage of nodes, and the number of pods per state. */
  addUp() {
    this.used = this.data.resources.map(() => new Array(this.data.nodes.length).fill(0));
    this.counts = new Array(STATE_WORDS.length).fill(0);
    for (let pod = 0; pod < this.state.length; pod += 1) {
      this.counts[this.state[pod]] += 1;
      if (isOnNode(this.state[pod])) this.take(pod, 1);
    }
  }

  take(pod, sign) {
    const node = this.node[pod];
    if (node === NONE) return;
    const flat = this.data.kinds[this.kind[pod]][0];
    for (let i = 0; i < flat.length; i += 2) this.used[flat[i]][node] += sign * flat[i + 1];
    this.used[this.podsResource][node] += sign;
  }

  keyframe() {
    return {
      at: this.at, state: this.state.slice(), node: this.node.slice(), text: this.text.slice(),
      kind: this.kind.slice(), row: this.row.slice(),
    };
  }

  get last() {
    return this.data.events.t.length;
  }

  /** Moves to the moment after `at` changes. */
  seek(at) {
    at = Math.max(0, Math.min(at, this.last));
    if (at === this.at) return;
    if (at < this.at || at - this.at > KEYFRAME_EVERY) {
      const known = this.keyframes.filter((frame) => frame.at <= at).pop();
      if (at < this.at || known.at > this.at) {
        this.load(known);
        this.at = known.at;
      }
    }
    while (this.at < at) this.step();
    this.version += 1;
  }

  step() {
    const { what, which, value } = this.data.events;
    this.apply(what[this.at], which[this.at], value[this.at]);
    this.at += 1;
    const newest = this.keyframes[this.keyframes.length - 1];
    if (this.at - newest.at >= KEYFRAME_EVERY) this.keyframes.push(this.keyframe());
  }

  apply(what, which, value) {
    if (what === NODE) {
      this.row[this.data.rows.node[which]] = which;
      this.nodesVersion += 1;
    } else if (what === NODE_GONE) {
      this.row[which] = NONE;
      this.nodesVersion += 1;
    } else if (what === KIND) {
      const counts = isOnNode(this.state[which]);
      if (counts) this.take(which, -1);
      this.kind[which] = value;
      if (counts) this.take(which, 1);
    } else {
      this.applyPod(what, which, value);
    }
  }

  applyPod(state, pod, value) {
    if (isOnNode(this.state[pod])) this.take(pod, -1);
    this.counts[this.state[pod]] -= 1;
    this.counts[state] += 1;
    this.state[pod] = state;
    if (isWaiting(state) || state === GONE) {
      this.text[pod] = value;
      this.node[pod] = NONE;
    } else {
      this.text[pod] = 0;
      this.node[pod] = value;
    }
    if (isOnNode(state)) this.take(pod, 1);
  }

  /** The moment after the last change that happened by `seconds`. */
  momentAt(seconds) {
    const times = this.data.events.t;
    let low = 0, high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= seconds) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  get waitingCount() {
    return this.counts[ACTIVE] + this.counts[BACKOFF] + this.counts[UNSCHEDULABLE] + this.counts[GATED] + this.counts[HELD];
  }

  get onNodes() {
    return this.counts[RUNNING] + this.counts[TERMINATING];
  }

  /** The number of pods preempted so far. */
  get preempted() {
    if (!this.preemptions) {
      this.preemptions = [];
      const { what, which } = this.data.events;
      what.forEach((state, at) => {
        if (state === GONE && this.data.preemptedFor.has(which[at])) this.preemptions.push(at);
      });
    }
    return this.preemptions.filter((at) => at < this.at).length;
  }

  isThere(node) {
    return this.row[node] !== NONE;
  }

  /** The numbers of the nodes that are there; not to be changed. */
  liveNodes() {
    if (this.liveAt !== this.nodesVersion) {
      this.liveAt = this.nodesVersion;
      this.live = [];
      for (let node = 0; node < this.row.length; node += 1) if (this.row[node] !== NONE) this.live.push(node);
    }
    return this.live;
  }

  /** The requested share of a resource on a node: 0 to 1 and beyond; NaN without the resource. */
  share(node, resource) {
    if (resource === FULLEST) return this.highestShares[node];
    const all = this.data.allocatable(this.row[node], resource);
    return all > 0 ? this.used[resource][node] / all : NaN;
  }

  /** The resource of which the highest share is requested; of equal ones the first. */
  fullest(node) {
    const row = this.row[node];
    let found = 0, highest = -1;
    for (let resource = 0; resource < this.used.length; resource += 1) {
      const all = this.data.allocatable(row, resource);
      if (all > 0 && this.used[resource][node] / all > highest) {
        highest = this.used[resource][node] / all;
        found = resource;
      }
    }
    return found;
  }

  /** The share of the fullest resource, by node. */
  get highestShares() {
    if (this.highestAt !== this.version) {
      this.highestAt = this.version;
      this.highest = new Float64Array(this.row.length).fill(NaN);
      for (let node = 0; node < this.row.length; node += 1) {
        if (this.row[node] === NONE) continue;
        const amounts = this.data.amountsOf(this.row[node]);
        let highest = -1;
        for (let resource = 0; resource < this.used.length; resource += 1) {
          if (amounts[resource] > 0) highest = Math.max(highest, this.used[resource][node] / amounts[resource]);
        }
        if (highest >= 0) this.highest[node] = highest;
      }
    }
    return this.highest;
  }

  /** The requested and the allocatable amount of a resource on all nodes. */
  totals(resource) {
    if (this.totalsAt !== this.nodesVersion) {
      this.totalsAt = this.nodesVersion;
      this.allTotals = [];
    }
    const live = this.liveNodes();
    if (this.allTotals[resource] === undefined) {
      this.allTotals[resource] = live.reduce((sum, node) => sum + this.data.allocatable(this.row[node], resource), 0);
    }
    const column = this.used[resource];
    let used = 0;
    for (const node of live) used += column[node];
    return [used, this.allTotals[resource]];
  }

  /** The pods on each node at this moment, in the order of their numbers. */
  get podsByNode() {
    if (this.byNodeAt !== this.version) {
      this.byNodeAt = this.version;
      this.byNode = new Map();
      for (let pod = 0; pod < this.state.length; pod += 1) {
        if (!isOnNode(this.state[pod])) continue;
        if (!this.byNode.has(this.node[pod])) this.byNode.set(this.node[pod], []);
        this.byNode.get(this.node[pod]).push(pod);
      }
    }
    return this.byNode;
  }

  /** The pod with a `namespace/name`: the one that is there, or else the last that was. */
  podNamed(key) {
    let found = NONE;
    for (let pod = 0; pod < this.state.length; pod += 1) {
      if (this.data.podKey(pod) !== key) continue;
      if (this.state[pod] !== GONE) return pod;
      found = pod;
    }
    return found;
  }

  podsOn(node) {
    const pods = [];
    for (let pod = 0; pod < this.state.length; pod += 1) {
      if (this.node[pod] === node && isOnNode(this.state[pod])) pods.push(pod);
    }
    return pods;
  }

  podCount(node) {
    return this.used[this.podsResource][node];
  }

  message(pod) {
    return this.data.texts[this.text[pod]];
  }
}
