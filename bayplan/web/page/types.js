// Types: the nodes by instance type over the run, stacked, above the strip. Only where their numbers change.

const MOST_TYPES = 8;

class TypeStrip {
  constructor(app, strip) {
    this.app = app;
    this.strip = strip;
    this.keys = h("div", { class: "type-keys", id: "type-keys" });
    this.canvas = h("canvas", { class: "types", id: "types", role: "img" });
    this.box = h("div", { class: "types-box", hidden: true }, this.keys, this.canvas);
  }

  /** The types with the most nodes first, the rest as one, each with its numbers; none where nothing changes. */
  static stack(types) {
    const most = new Map();
    for (const moment of types) for (const [name, nodes] of moment) most.set(name, Math.max(nodes, most.get(name) || 0));
    const changes = [...most].some(([name, nodes]) => types.some((moment) => (moment.get(name) || 0) !== nodes));
    if (!changes || [...most.keys()].every((name) => name === "")) return [];
    const names = [...most].filter(([, nodes]) => nodes > 0).sort((a, b) => b[1] - a[1] || byName(a[0], b[0])).map(([name]) => name);
    const own = names.length > MOST_TYPES ? names.slice(0, MOST_TYPES - 1) : names;
    const rest = names.slice(own.length);
    const layers = own.map((name) => ({ name: name || tr("without a type"), nodes: types.map((moment) => moment.get(name) || 0) }));
    if (rest.length) layers.push({ name: tr("{n} other types", { n: count(rest.length) }), nodes: types.map((moment) => rest.reduce((sum, name) => sum + (moment.get(name) || 0), 0)) });
    return layers;
  }

  draw(series, colour) {
    const layers = this.layers = TypeStrip.stack(series.types);
    this.box.hidden = !layers.length;
    if (!layers.length) return;
    const high = Math.max(...series.nodes);
    fill(this.keys, h("span", {}, tr("Nodes by type, at most {n}", { n: count(high) })),
      layers.map(({ name, nodes }, i) => h("span", { class: "type-key" }, h("i", { class: `swatch c${i}` }), `${name} ${count(nodes.at(-1))}`)));
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const wide = canvas.clientWidth, tall = canvas.clientHeight;
    canvas.width = wide * ratio;
    canvas.height = tall * ratio;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const size = series.nodes.length;
    const x = (i) => STRIP_MARGIN + (i / Math.max(1, size - 1)) * (wide - 2 * STRIP_MARGIN);
    const y = (nodes) => tall - (nodes / Math.max(1, high)) * (tall - 2);
    let below = new Array(size).fill(0);
    layers.forEach(({ nodes }, n) => {
      const above = nodes.map((number, i) => below[i] + number);
      context.beginPath();
      // Steps: a number holds until the next moment.
      above.forEach((sum, i) => { context.lineTo(x(i), y(i ? above[i - 1] : sum)); context.lineTo(x(i), y(sum)); });
      for (let i = size - 1; i >= 0; i -= 1) { context.lineTo(x(i), y(below[i])); context.lineTo(x(i), y(i ? below[i - 1] : below[i])); }
      context.fillStyle = colour(`--c${n}`);
      context.fill();
      below = above;
    });
    const ends = layers.map(({ name, nodes }) => `${name} ${count(nodes.at(-1))}`).join(", ");
    canvas.setAttribute("aria-label", tr("Nodes by type over the run, at the end: {types}", { types: ends }));
  }

  /** The numbers at one place of the strip. */
  words(i) {
    return (this.layers || []).filter(({ nodes }) => nodes[i]).map(({ name, nodes }) => `${name} ${count(nodes[i])}`);
  }
}
