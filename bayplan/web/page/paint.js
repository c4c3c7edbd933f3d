// Paint: draws the tiles on a canvas. Only visible tiles are drawn, so thousands of nodes cost little.

const SHEET = { width: 232, height: 116, gap: 10 };
const CARD = { width: 172, height: 58, gap: 6 };
const SIZES = [SHEET, CARD, { width: 112, height: 44, gap: 5 }, { width: 58, height: 34, gap: 4 },
  ...[28, 22, 18, 15, 12, 10, 8].map((side) => ({ width: side, height: side, gap: side > 14 ? 3 : 2 })), { width: 6, height: 6, gap: 1 }];
const SHEET_LINES = 4;
// From empty to full. They differ in lightness, so they work with colour blindness.
const RAMPS = {
  light: ["#e6edf4", "#bcd7ea", "#86b9dc", "#4a93c6", "#1f6aa5", "#0c3f74"],
  dark: ["#25303b", "#1f4767", "#2a6c95", "#4698b8", "#86c5cb", "#e4f0c4"],
};

function hexToRgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** 101 colours, one for each percent, each with the colour of text on it. */
function makeRamp(stops) {
  const rgb = stops.map(hexToRgb);
  const ramp = [];
  for (let p = 0; p <= 100; p += 1) {
    const place = (p / 100) * (rgb.length - 1);
    const i = Math.min(Math.floor(place), rgb.length - 2);
    const mix = rgb[i].map((from, c) => Math.round(from + (rgb[i + 1][c] - from) * (place - i)));
    const light = (0.299 * mix[0] + 0.587 * mix[1] + 0.114 * mix[2]) / 255;
    ramp.push({ fill: `rgb(${mix.join(",")})`, ink: light > 0.56 ? "#10202f" : "#ffffff" });
  }
  return ramp;
}

/** Draws tiles; Tiles has their layout and behaviour. */
class Painter {
  constructor(app) {
    this.app = app;
    this.box = $("tiles");
    this.canvas = $("canvas");
    this.context = this.canvas.getContext("2d");
    this.resource = 0;
    this.focus = NONE;
    this.hovered = NONE;
    this.selected = NONE;
    /** Highlighted nodes, the others fade; null: no highlight. */
    this.marked = null;
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
    this.ink = { raised: colour("--raised"), sunk: colour("--sunk"), text: colour("--ink"), soft: colour("--soft"), line: colour("--line"), focus: colour("--focus"), page: colour("--page"), warn: colour("--warn") };
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

  find(node) {
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
    const top = box.scrollTop, bottom = top + height;
    for (const block of this.blocks) {
      if (block.y + block.high < top || block.y > bottom) continue;
      if (block.heading) this.drawHeading(block);
      this.drawBlock(block, top, bottom);
    }
    this.drawRing(this.selected, this.ink.text, 2);
    if (this.hovered !== NONE) this.drawRing(this.hovered, this.ink.text, 1);
    if (document.activeElement === box) this.drawRing(this.focus, this.ink.focus, 3);
  }

  drawHeading(block) {
    const { context } = this;
    const name = block.value === null ? `without ${this.groupBy}` : block.value || "(empty)";
    let sum = 0, count = 0;
    for (const node of block.nodes) {
      const share = this.model.share(node, this.resource);
      if (!Number.isNaN(share)) {
        sum += share;
        count += 1;
      }
    }
    const rest = `${COUNT.format(block.nodes.length)} · ${count ? percent(sum / count) : "none"}`;
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
    const to = Math.min(block.nodes.length, Math.ceil((bottom - block.y - block.heading) / rise) * block.columns);
    for (let i = from; i < to; i += 1) {
      const { x, y } = this.placeOf(block, i);
      this.drawTile(block.nodes[i], x, y);
    }
  }

  drawTile(node, x, y) {
    const { context, size, model } = this;
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
      const colour = this.ramp[Math.max(0, Math.min(100, Math.round(share * 100)))];
      context.fillStyle = colour.fill;
      context.fillRect(x, y, size.width, size.height);
      ink = colour.ink;
      if (share > 1) {
        context.fillStyle = this.ink.warn;
        const thick = Math.max(1, Math.min(3, Math.round(size.height * 0.14)));
        context.fillRect(x, y + size.height - thick, size.width, thick);
      }
    }
    if (this.data.rows.flags[model.row[node]]) this.drawClosed(x, y, ink);
    if (size.width >= 58) this.drawWords(node, share, x, y, ink);
    context.globalAlpha = 1;
  }

  /** A large tile: the node's name on its colour, and below it a bar for each resource. */
  drawSheet(node, share, x, y) {
    const { context, size, data, model } = this;
    const head = 30;
    const colour = Number.isNaN(share) ? null : this.ramp[Math.max(0, Math.min(100, Math.round(share * 100)))];
    context.fillStyle = this.ink.raised;
    context.fillRect(x, y, size.width, size.height);
    context.fillStyle = colour ? colour.fill : this.ink.sunk;
    context.fillRect(x, y, size.width, head);
    context.strokeStyle = this.ink.line;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, size.width - 1, size.height - 1);
    const ink = colour ? colour.ink : this.ink.soft;
    const flags = data.rows.flags[model.row[node]];
    const figure = Number.isNaN(share) ? "has none" : percent(share);
    const inset = flags ? 14 : 0;
    context.textBaseline = "middle";
    context.fillStyle = ink;
    context.font = `600 12px ${this.font}`;
    const wide = context.measureText(figure).width;
    context.fillText(figure, x + size.width - wide - 10 - inset, y + head / 2 + 1);
    context.fillText(this.cut(data.nodes[node], size.width - wide - 32 - inset), x + 10, y + head / 2 + 1);
    if (flags) this.drawClosed(x, y, ink);
    this.sheetResources(node).forEach((resource, i) => this.drawLine(node, resource, x + 10, y + head + 14 + i * 19));
  }

  /** The resources that fit on a large tile: the selected one, and the node's first ones. */
  sheetResources(node) {
    const row = this.model.row[node];
    const has = this.data.resources.map((_, i) => i).filter((i) => this.data.allocatable(row, i) > 0);
    const isDisk = (i) => this.data.resources[i] === "ephemeral-storage";
    const shown = has.sort((a, b) => isDisk(a) - isDisk(b) || a - b).slice(0, SHEET_LINES);
    if (has.includes(this.resource) && !shown.includes(this.resource)) shown[shown.length - 1] = this.resource;
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
    context.fillText(this.cut(shortName(name), 52), x, y);
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
    context.fillText(this.cut(this.data.nodes[node], size.width - 26), x + 9, y + (size === CARD ? 21 : 18));
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
