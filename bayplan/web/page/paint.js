// Paint: draws the tiles on a canvas. Only visible tiles are drawn, so thousands of nodes cost little.

// Tiles with a strip show their pods in it.
const SHEET = { width: 232, height: 138, gap: 10, strip: 14 };
const CARD = { width: 172, height: 66, gap: 6, strip: 8 };
const SIZES = [SHEET, CARD, { width: 112, height: 50, gap: 5, strip: 6 }, { width: 58, height: 34, gap: 4 },
  ...[28, 22, 18, 15, 12, 10, 8].map((side) => ({ width: side, height: side, gap: side > 14 ? 3 : 2 })), { width: 6, height: 6, gap: 1 }];
const SHEET_LINES = 4;
// From empty to full, with most of the difference near the end, where it matters. They differ in lightness, so they work
// with colour blindness. A full node has a colour of its own.
const STOPS = [0, 25, 50, 75, 90, 99, 100];
const RAMPS = {
  light: ["#e8eef4", "#c9dfee", "#9cc6e2", "#5fa3d0", "#2b78b4", "#10467e", "#31103f"],
  dark: ["#232e39", "#1f4260", "#26618a", "#3488ae", "#5fb3c2", "#a9d8c0", "#fbe88a"],
};

function hexToRgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** The relative luminance of a colour. */
function lightness(rgb) {
  const [r, g, b] = rgb.map((value) => (value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** 101 colours, one for each percent, each with the colour of text on it. */
function makeRamp(colours) {
  const rgb = colours.map(hexToRgb);
  const ramp = [];
  for (let p = 0; p <= 100; p += 1) {
    const i = Math.min(STOPS.findLastIndex((stop) => stop <= p), STOPS.length - 2);
    const place = (p - STOPS[i]) / (STOPS[i + 1] - STOPS[i]);
    const mix = rgb[i].map((from, c) => Math.round(from + (rgb[i + 1][c] - from) * place));
    // The ink with the higher contrast, as WCAG counts it: the two are equal at this lightness.
    ramp.push({ fill: `rgb(${mix.join(",")})`, ink: lightness(mix) > 0.179 ? "#000000" : "#ffffff" });
  }
  return ramp;
}

/** Draws tiles; Tiles has their layout and behaviour. */
class Painter {
  constructor(app, box = $("tiles"), canvas = $("canvas")) {
    this.app = app;
    this.box = box;
    this.canvas = canvas;
    this.context = this.canvas.getContext("2d");
    this.resource = FULLEST;
    /** Where pods were drawn: left, top, right, bottom, pod. */
    this.podPlaces = [];
    this.focus = NONE;
    this.hovered = NONE;
    this.selected = NONE;
    /** Highlighted nodes, the others fade; null: no highlight. */
    this.marked = null;
    /** Nodes that differ from those of another run. */
    this.framed = new Set();
    /** Moves of pods: from a node, to a node, and how many. */
    this.arrows = [];
    /** The names of nodes that a question adds. */
    this.added = [];
    /** Groups of nodes, each with its position. */
    this.blocks = [];
    this.draw = perFrame(() => this.drawNow());
  }

  get model() {
    return this.app.model;
  }

  get data() {
    return this.app.data;
  }

  setTheme(name) {
    this.ramp = makeRamp(RAMPS[name]);
    const style = getComputedStyle(document.documentElement);
    const colour = (variable) => style.getPropertyValue(variable).trim();
    this.bar = colour("--c0");
    this.colours = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => colour(`--c${i}`));
    this.ink = { raised: colour("--raised"), sunk: colour("--sunk"), text: colour("--ink"), soft: colour("--soft"), line: colour("--line"), focus: colour("--focus"), page: colour("--page"), warn: colour("--warn"), taint: colour("--taint") };
    this.font = getComputedStyle(document.body).fontFamily;
    this.draw();
  }

  /** The position of a tile, from the top left of the content. */
  placeOf(block, i) {
    const { size } = this;
    return {
      x: block.x + (i % block.columns) * (size.width + size.gap),
      y: block.y + block.heading + Math.floor(i / block.columns) * (size.height + size.gap),
    };
  }

  middleOf(node) {
    const found = this.indexOf ? this.find(node) : null;
    if (!found || !found.block) return null;
    const { x, y } = this.placeOf(found.block, found.i);
    return { x: x + this.size.width / 2, y: y + this.size.height / 2 };
  }

  /** Shows moves of pods as arrows; the other nodes fade. */
  setArrows(moves) {
    const had = this.arrows.length > 0;
    this.arrows = joinMoves(moves);
    if (this.arrows.length) this.marked = new Set(moves.flat().filter((node) => node !== NONE));
    else if (had) this.marked = null;
    this.draw();
  }

  find(node) {
    if (node <= FIRST_NEW) return { block: this.blocks.find((block) => block.isNew), i: FIRST_NEW - node };
    const at = this.indexOf.get(node);
    if (at === undefined) return null;
    const block = this.blocks.find((b) => at >= b.first && at < b.first + b.nodes.length);
    return { block, i: at - block.first };
  }

  drawNow() {
    const { box, canvas, context } = this;
    if (!this.ramp) return;
    const ratio = window.devicePixelRatio || 1;
    const width = box.clientWidth, height = box.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.translate(0, -box.scrollTop);
    this.drawBlocks(box.scrollTop, box.scrollTop + height);
    for (const node of this.framed) this.drawRing(node, this.ink.focus, 2);
    for (const [from, to, number] of this.arrows) {
      const ends = [from, to].map((node) => this.middleOf(node));
      const edge = (other) => other && { x: width - 4, y: other.y - this.size.height / 2 };
      if (from === NONE) ends[0] = edge(ends[1]);
      if (to === NONE) ends[1] = edge(ends[0]);
      if (ends[0] && ends[1]) drawArrow(context, ...ends, number, this.ink.focus);
    }
    this.drawRing(this.selected, this.ink.text, 2);
    if (this.hovered !== NONE) this.drawRing(this.hovered, this.ink.text, 1);
    if (document.activeElement === box) this.drawRing(this.focus, this.ink.focus, 3);
  }

  drawBlocks(top, bottom) {
    this.podPlaces = [];
    for (const block of this.blocks) {
      if (block.y + block.high < top || block.y > bottom) continue;
      if (block.heading) this.drawHeading(block);
      this.drawBlock(block, top, bottom);
    }
  }

  /** All tiles on a canvas of their own, twice as fine as on the screen. */
  picture() {
    const canvas = h("canvas", { width: 2 * this.box.clientWidth, height: 2 * (this.total + 2 * MARGIN) });
    const shown = this.context;
    this.context = canvas.getContext("2d");
    this.context.scale(2, 2);
    this.context.fillStyle = this.ink.page;
    this.context.fillRect(0, 0, canvas.width, canvas.height);
    this.drawBlocks(0, Infinity);
    this.context = shown;
    this.drawNow();
    return canvas;
  }

  drawHeading(block) {
    const { context } = this;
    if (block.isNew) {
      context.textBaseline = "middle";
      context.font = `600 12px ${this.font}`;
      context.fillStyle = this.ink.text;
      context.fillText(tr("New nodes, if they were added"), block.x, block.y + 9);
      return;
    }
    const name = block.value === null ? tr("without {label}", { label: this.groupBy }) : block.value || tr("(empty)");
    let sum = 0, count = 0;
    for (const node of block.nodes) {
      const share = this.model.share(node, this.resource);
      if (!Number.isNaN(share)) {
        sum += share;
        count += 1;
      }
    }
    const rest = `${COUNT.format(block.nodes.length)} · ${count ? percent(sum / count) : tr("none")}`;
    context.textBaseline = "middle";
    context.font = `12px ${this.font}`;
    const restWide = context.measureText(rest).width;
    context.font = `600 12px ${this.font}`;
    const shown = this.cut(name, block.wide - restWide - 10);
    context.fillStyle = this.ink.text;
    context.fillText(shown, block.x, block.y + 9);
    const nameWide = context.measureText(shown).width;
    context.font = `12px ${this.font}`;
    context.fillStyle = this.ink.soft;
    context.fillText(rest, block.x + nameWide + 8, block.y + 9);
  }

  drawBlock(block, top, bottom) {
    const { size } = this;
    const rise = size.height + size.gap;
    const from = Math.max(0, Math.floor((top - block.y - block.heading) / rise)) * block.columns;
    const to = bottom === Infinity ? block.nodes.length : Math.min(block.nodes.length, Math.ceil((bottom - block.y - block.heading) / rise) * block.columns);
    for (let i = from; i < to; i += 1) {
      const { x, y } = this.placeOf(block, i);
      this.drawTile(block.nodes[i], x, y);
    }
  }

  /** A node that a question adds: its outline, and its name where there is room. */
  drawNewTile(node, x, y) {
    const { context, size } = this;
    context.strokeStyle = this.ink.focus;
    context.lineWidth = 1.5;
    context.setLineDash(size.width > 20 ? [5, 3] : []);
    context.strokeRect(x + 1, y + 1, size.width - 2, size.height - 2);
    context.setLineDash([]);
    if (size.width < 60 || size.height < 14) return;
    context.textBaseline = "middle";
    context.font = `11px ${this.font}`;
    context.fillStyle = this.ink.text;
    context.fillText(this.cut(this.data.shortName(this.added[FIRST_NEW - node]), size.width - 12), x + 6, y + Math.min(12, size.height / 2));
  }

  drawTile(node, x, y) {
    const { context, size, model } = this;
    if (node <= FIRST_NEW) {
      this.drawNewTile(node, x, y);
      return;
    }
    const share = model.share(node, this.resource);
    const faded = this.marked !== null && !this.marked.has(node);
    context.globalAlpha = faded ? 0.16 : 1;
    if (size === SHEET) {
      this.drawSheet(node, share, x, y);
      context.globalAlpha = 1;
      return;
    }
    let ink = this.ink.soft;
    if (Number.isNaN(share)) {
      context.strokeStyle = this.ink.line;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, y + 0.5, size.width - 1, size.height - 1);
    } else {
      const colour = this.colourOf(share);
      context.fillStyle = colour.fill;
      context.fillRect(x, y, size.width, size.height);
      ink = colour.ink;
      if (share === 1 && size.height >= 12) this.drawFull(x, y, ink);
      if (share > 1) {
        context.fillStyle = this.ink.warn;
        const thick = Math.max(1, Math.min(3, Math.round(size.height * 0.14)));
        context.fillRect(x, y + size.height - thick, size.width, thick);
      }
    }
    if (this.data.rows.taints[model.row[node]].length) this.drawTainted(x, y);
    if (this.data.rows.flags[model.row[node]]) this.drawClosed(x, y, ink);
    if (size.strip) this.drawPods(node, x, y + size.height - size.strip);
    if (size.width >= 58) this.drawWords(node, share, x, y, ink);
    context.globalAlpha = 1;
  }

  /** A large tile: the node's name on its colour, and below it a bar for each resource. */
  drawSheet(node, share, x, y) {
    const { context, size, data, model } = this;
    const head = 30;
    const colour = Number.isNaN(share) ? null : this.colourOf(share);
    context.fillStyle = this.ink.raised;
    context.fillRect(x, y, size.width, size.height);
    context.fillStyle = colour ? colour.fill : this.ink.sunk;
    context.fillRect(x, y, size.width, head);
    context.strokeStyle = this.ink.line;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, size.width - 1, size.height - 1);
    const ink = colour ? colour.ink : this.ink.soft;
    const flags = data.rows.flags[model.row[node]];
    const figure = Number.isNaN(share) ? tr("has none") : percent(share);
    const inset = flags ? 14 : 0;
    context.textBaseline = "middle";
    context.fillStyle = ink;
    context.font = `600 12px ${this.font}`;
    const wide = context.measureText(figure).width;
    context.fillText(figure, x + size.width - wide - 10 - inset, y + head / 2 + 1);
    context.fillText(this.cut(data.nodeName(node), size.width - wide - 32 - inset), x + 10, y + head / 2 + 1);
    if (data.rows.taints[model.row[node]].length) this.drawTainted(x, y);
    if (flags) this.drawClosed(x, y, ink);
    this.drawPods(node, x, y + size.height - size.strip);
    this.sheetResources(node).forEach((resource, i) => this.drawLine(node, resource, x + 10, y + head + 14 + i * 19));
  }

  /** The colour of a share. Only what is full has the last colour: percents are rounded down. */
  colourOf(share) {
    return this.ramp[share >= 1 ? 100 : Math.max(0, Math.min(99, Math.floor(share * 100 + 1e-9)))];
  }

  /** A full node has a mark in its lower right corner. */
  drawFull(x, y, ink) {
    const { context, size } = this;
    const side = Math.max(3, Math.min(6, Math.round(size.height * 0.25)));
    context.fillStyle = ink;
    context.fillRect(x + size.width - side - 2, y + size.height - side - 2 - (size.strip || 0), side, side);
  }

  /** A tainted node has a wedge in its upper left corner. */
  drawTainted(x, y) {
    const { context, size } = this;
    const side = Math.min(10, Math.max(3, size.height * 0.4));
    context.fillStyle = this.ink.taint;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + side, y);
    context.lineTo(x, y + side);
    context.fill();
  }

  /** The pods of a node side by side, each as wide as its share of the node, largest first. */
  drawPods(node, x, y) {
    const { context, size, model, data } = this;
    const pods = model.podsByNode.get(node) || [];
    context.fillStyle = this.ink.sunk;
    context.fillRect(x, y, size.width, size.strip);
    const resource = this.resource === FULLEST ? model.fullest(node) : this.resource;
    const all = data.allocatable(model.row[node], resource);
    const shares = pods.map((pod) => [pod, all > 0 ? data.requested(model.kind[pod], resource) / all : 0]).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    const total = shares.reduce((sum, [, share]) => sum + share, 0);
    const scale = size.width / Math.max(1, total);
    let left = x;
    for (const [pod, share] of shares) {
      const wide = share * scale;
      if (wide < 0.5) break;
      context.fillStyle = this.podColour(pod);
      context.fillRect(left, y, Math.max(0.5, wide - (wide > 3 ? 1 : 0)), size.strip);
      this.podPlaces.push([left, y, left + wide, y + size.strip, pod]);
      left += wide;
    }
  }

  podColour(pod) {
    const [, , priority, , , , workload] = this.data.kinds[this.model.kind[pod]];
    if (this.podsBy === "priority") return this.ramp[priority <= 0 ? 25 : Math.min(99, 40 + Math.round(Math.log10(priority + 1) * 6))].fill;
    if (this.podsBy === "group") {
      const group = this.data.groupOf.get(pod);
      return group === undefined ? this.ink.line : this.colours[group % this.colours.length];
    }
    return this.colours[workload % this.colours.length];
  }

  /** The pod drawn at a screen position; NONE: none. */
  podAt(event) {
    const area = this.box.getBoundingClientRect();
    const x = event.clientX - area.left, y = event.clientY - area.top + this.box.scrollTop;
    const found = this.podPlaces.find(([left, top, right, bottom]) => x >= left && x < right && y >= top && y < bottom);
    return found ? found[4] : NONE;
  }

  /** The resources that fit on a large tile: the selected one, and the node's first ones. */
  sheetResources(node) {
    const row = this.model.row[node];
    const has = this.data.resources.map((_, i) => i).filter((i) => this.data.allocatable(row, i) > 0);
    const isDisk = (i) => this.data.resources[i] === "ephemeral-storage";
    const shown = has.sort((a, b) => isDisk(a) - isDisk(b) || a - b).slice(0, SHEET_LINES);
    if (this.resource !== FULLEST && has.includes(this.resource) && !shown.includes(this.resource)) shown[shown.length - 1] = this.resource;
    return shown;
  }

  drawLine(node, resource, x, y) {
    const { context, size, data, model } = this;
    const name = data.resources[resource];
    const all = data.allocatable(model.row[node], resource), used = model.used[resource][node];
    const words = `${amount(used, name)} / ${amount(all, name)}`;
    const right = x + size.width - 20;
    context.font = `${resource === this.resource ? "600 " : ""}11px ${this.font}`;
    context.fillStyle = this.ink.soft;
    context.fillText(this.cut(resourceName(name), 52), x, y);
    context.font = `11px ${this.font}`;
    context.fillText(words, right - context.measureText(words).width, y);
    const left = x + 58, long = 62;
    context.fillStyle = this.ink.line;
    context.fillRect(left, y - 3, long, 5);
    context.fillStyle = used > all ? this.ink.warn : this.bar;
    context.fillRect(left, y - 3, Math.round(long * Math.min(1, used / all)), 5);
  }

  /** A cordoned or unready node has a cut corner. */
  drawClosed(x, y, ink) {
    const { context, size } = this;
    const side = Math.min(12, Math.max(5, size.height * 0.45));
    context.fillStyle = this.ink.page;
    context.beginPath();
    context.moveTo(x + size.width - side, y);
    context.lineTo(x + size.width, y);
    context.lineTo(x + size.width, y + side);
    context.fill();
    if (size.height < 15) return;
    context.strokeStyle = ink;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x + size.width - side, y);
    context.lineTo(x + size.width, y + side);
    context.stroke();
  }

  drawWords(node, share, x, y, ink) {
    const { context, size } = this;
    const figure = Number.isNaN(share) ? "–" : percent(share);
    context.fillStyle = ink;
    context.textBaseline = "alphabetic";
    if (size.width < 100) {
      context.font = `600 12px ${this.font}`;
      const wide = context.measureText(figure).width;
      context.fillText(figure, x + (size.width - wide) / 2, y + size.height / 2 + 4);
      return;
    }
    context.font = `600 12px ${this.font}`;
    context.fillText(this.cut(this.data.nodeName(node), size.width - 26), x + 9, y + (size === CARD ? 21 : 18));
    context.font = `12px ${this.font}`;
    const pods = this.model.podCount(node);
    const words = size === CARD ? `${figure}  ·  ${plural(pods, "pod")}` : figure;
    context.fillText(words, x + 9, y + (size === CARD ? 41 : 34));
  }

  drawRing(node, colour, width) {
    const found = this.indexOf ? this.find(node) : null;
    if (!found) return;
    const { context, size } = this;
    const { x, y } = this.placeOf(found.block, found.i);
    context.strokeStyle = this.ink.page;
    context.lineWidth = width + 2;
    context.strokeRect(x - 1, y - 1, size.width + 2, size.height + 2);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.strokeRect(x - 1, y - 1, size.width + 2, size.height + 2);
  }

  cut(text, width) {
    const { context } = this;
    if (context.measureText(text).width <= width) return text;
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
      else high = middle - 1;
    }
    return low > 0 ? `${text.slice(0, low)}…` : "";
  }
}
