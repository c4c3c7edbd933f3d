// Series: figures of the whole cluster over time, at some moments of the run.

const TYPE_LABEL = "node.kubernetes.io/instance-type";

/** Pending pods (the most since the last moment), the requested share of a resource, nodes, and nodes by type, at each of `moments`. */
function seriesAt({ data, model, tiles }, moments) {
  const base = model.keyframes[0];
  const replay = new Totals(data, base);
  const series = { pending: [], share: [], nodes: [], types: [] };
  let at = 0;
  for (const until of moments) {
    let highest = replay.waiting;
    for (; at < until; at += 1) {
      replay.apply(data.events.what[at], data.events.which[at], data.events.value[at]);
      highest = Math.max(highest, replay.waiting);
    }
    series.pending.push(series.pending.length ? highest : replay.waiting);
    series.share.push(replay.share(tiles.resource));
    series.nodes.push(replay.nodes);
    series.types.push(new Map(replay.types));
  }
  return series;
}

/** Sums over all pods and nodes, kept up to date change by change. */
class Totals {
  constructor(data, base) {
    this.data = data;
    this.states = base.state.slice();
    this.kinds = base.kind.slice();
    this.rows = base.row.slice();
    this.used = data.resources.map(() => 0);
    this.all = data.resources.map(() => 0);
    this.waiting = 0;
    this.nodes = 0;
    /** The number of nodes by type; those without one are of the type "". */
    this.types = new Map();
    this.typeOf = [];
    this.pods = data.resources.indexOf(PODS);
    this.states.forEach((state, pod) => this.count(pod, state, 1));
    this.rows.forEach((row) => this.countNode(row, 1));
  }

  count(pod, state, sign) {
    if (isWaiting(state)) this.waiting += sign;
    if (!isOnNode(state)) return;
    const flat = this.data.kinds[this.kinds[pod]][0];
    for (let i = 0; i < flat.length; i += 2) this.used[flat[i]] += sign * flat[i + 1];
    this.used[this.pods] += sign;
  }

  countNode(row, sign) {
    if (row === NONE || row === undefined) return;
    this.nodes += sign;
    if (this.typeOf[row] === undefined) this.typeOf[row] = this.data.label(row, TYPE_LABEL) || "";
    this.types.set(this.typeOf[row], (this.types.get(this.typeOf[row]) || 0) + sign);
    const flat = this.data.rows.allocatable[row];
    for (let i = 0; i < flat.length; i += 2) this.all[flat[i]] += sign * flat[i + 1];
  }

  apply(what, which, value) {
    if (what === NODE || what === NODE_GONE) {
      const node = what === NODE ? this.data.rows.node[which] : which;
      this.countNode(this.rows[node], -1);
      this.rows[node] = what === NODE ? which : NONE;
      this.countNode(this.rows[node], 1);
      return;
    }
    if (this.kinds[which] === undefined) this.kinds[which] = this.data.pods.kind[which];
    const state = this.states[which] || GONE;
    this.count(which, state, -1);
    if (what === KIND) this.kinds[which] = value;
    else this.states[which] = what;
    this.count(which, this.states[which] || GONE, 1);
  }

  /** The requested share of a resource of all nodes; with FULLEST, the highest of them. */
  share(resource) {
    const of = (i) => (this.all[i] > 0 ? this.used[i] / this.all[i] : 0);
    return resource === FULLEST ? Math.max(0, ...this.all.map((_, i) => of(i))) : of(resource);
  }
}

/** A series that the run recorded (times, and the value from each on), at the given seconds; null without one. */
function recordedAt(recorded, seconds) {
  if (!recorded || !recorded.t.length) return null;
  return seconds.map((second) => {
    const at = lowerBound(recorded.t, second + 1e-9) - 1;
    return at < 0 ? 0 : recorded.value[at];
  });
}
