// Tiles: the nodes as coloured tiles: layout, mouse and keyboard.

const HEADING = 26;
const HEADING_WIDTH = 168;
const MOST_COLUMNS = 6;
const BLOCK_GAP = 20;
const MARGIN = 16;

class Tiles extends Painter {
  constructor(app) {
    super(app);
    this.groupBy = "";
    this.sortBy = "name";
    /** What colours the pods on large tiles: workload or priority. */
    this.podsBy = "workload";
    this.order = [];
    this.layoutKey = "";
    this.relayout = perFrame(() => this.update(true));
    this.listen();
  }

  listen() {
    const { box } = this;
    box.addEventListener("scroll", this.draw, { passive: true });
    box.addEventListener("keydown", (event) => this.onKey(event));
    box.addEventListener("focus", () => this.onFocus());
    box.addEventListener("blur", this.draw);
    box.addEventListener("mousemove", (event) => this.onMove(event));
    box.addEventListener("mouseleave", () => this.hover(NONE));
    box.addEventListener("click", (event) => {
      const node = this.nodeAt(event);
      const pod = node === NONE ? NONE : this.podAt(event);
      if (pod !== NONE) this.app.openPod(pod);
      else if (node !== NONE) {
        this.focus = node;
        this.app.openNode(node);
      }
    });
    new ResizeObserver(this.relayout).observe(box);
  }

  /** Updates after a change of the moment or of the selection. */
  update(force = false) {
    const sort = this.sortBy === "use" ? this.model.version : 0;
    const key = [this.model.nodesVersion, this.groupBy, this.sortBy, this.resource, sort].join();
    if (force || key !== this.layoutKey) {
      this.layoutKey = key;
      this.layout();
    }
    this.describe();
    this.draw();
  }

  groups() {
    const groups = new Map();
    for (const node of this.model.liveNodes()) {
      const value = this.groupBy ? this.data.label(this.model.row[node], this.groupBy) : "";
      if (!groups.has(value)) groups.set(value, []);
      groups.get(value).push(node);
    }
    const names = this.data.nodes;
    const shares = this.sortBy === "use" ? new Map() : null;
    const order = (a, b) => (shares ? shares.get(b) - shares.get(a) : 0) || byName(names[a], names[b]);
    for (const nodes of groups.values()) {
      if (shares) for (const node of nodes) shares.set(node, this.model.share(node, this.resource) || 0);
      nodes.sort(order);
    }
    // Nodes without the label come last.
    const listed = [...groups].sort((a, b) => (a[0] === null) - (b[0] === null) || byName(a[0], b[0]));
    if (this.added.length) listed.push([null, this.added.map((_, i) => FIRST_NEW - i)]);
    return listed;
  }

  layout() {
    const groups = this.groups();
    const width = Math.max(120, this.box.clientWidth - 2 * MARGIN);
    const height = Math.max(120, this.box.clientHeight - 2 * MARGIN);
    this.fit(groups, width, height);
    this.order = this.blocks.flatMap((block) => (block.isNew ? [] : block.nodes));
    this.indexOf = new Map(this.order.map((node, i) => [node, i]));
    $("spacer").style.height = `${this.total + 2 * MARGIN}px`;
    $("pods-by-label").hidden = !this.size.strip; // small tiles have no room for pods
    $("no-nodes").hidden = this.order.length > 0;
    if (!this.indexOf.has(this.focus)) this.focus = this.order.length ? this.order[0] : NONE;
  }

  /** Picks the largest tiles with which everything is visible, with as few columns of groups as possible. */
  fit(groups, width, height) {
    for (const size of SIZES) {
      this.size = size;
      for (let columns = 1; columns <= Math.min(MOST_COLUMNS, groups.length || 1); columns += 1) {
        const wide = Math.floor((width - (columns - 1) * BLOCK_GAP) / columns);
        if (columns > 1 && wide < Math.max(HEADING_WIDTH, 2 * size.width)) break;
        if (this.place(groups, size, width, wide) <= height) return;
      }
    }
    this.size = SIZES[SIZES.length - 2];
    this.place(groups, this.size, width, width);
  }

  /** Lays out the groups, each at most `broad`, in rows; returns the total height. */
  place(groups, size, width, broad) {
    const pitch = size.width + size.gap, rise = size.height + size.gap;
    const most = Math.max(1, Math.floor((broad + size.gap) / pitch));
    let x = 0, y = 0, tall = 0, first = 0;
    this.blocks = [];
    for (const [value, nodes] of groups) {
      const isNew = nodes[0] <= FIRST_NEW;
      const heading = this.groupBy || isNew ? HEADING : 0;
      const columns = Math.min(most, nodes.length);
      const wide = Math.min(broad, Math.max(columns * pitch - size.gap, heading ? HEADING_WIDTH : 0));
      if (x > 0 && x + wide > width) {
        x = 0;
        y += tall + BLOCK_GAP;
        tall = 0;
      }
      const fits = Math.max(columns, Math.min(most, Math.floor((wide + size.gap) / pitch)));
      const high = heading + Math.ceil(nodes.length / fits) * rise - size.gap;
      this.blocks.push({ value, nodes, first, columns: fits, x: x + MARGIN, y: y + MARGIN, wide, high, heading, isNew });
      first += nodes.length;
      x += wide + BLOCK_GAP;
      tall = Math.max(tall, high);
    }
    this.total = y + tall;
    return this.total;
  }

  nodeAt(event) {
    const area = this.box.getBoundingClientRect();
    const x = event.clientX - area.left;
    const y = event.clientY - area.top + this.box.scrollTop;
    const { size } = this;
    for (const block of this.blocks) {
      if (block.isNew) continue;
      const column = Math.floor((x - block.x) / (size.width + size.gap));
      const line = Math.floor((y - block.y - block.heading) / (size.height + size.gap));
      if (column < 0 || column >= block.columns || line < 0 || y > block.y + block.high) continue;
      const i = line * block.columns + column;
      if (i < block.nodes.length) return block.nodes[i];
    }
    return NONE;
  }

  onMove(event) {
    const node = this.nodeAt(event);
    this.hover(node, node === NONE ? NONE : this.podAt(event));
    if (node === NONE) return;
    const tip = $("tip");
    const area = this.box.parentElement.getBoundingClientRect();
    const x = Math.min(event.clientX - area.left + 14, area.width - tip.offsetWidth - 8);
    const y = event.clientY - area.top + 18;
    const above = y + tip.offsetHeight > area.height - 8;
    tip.style.transform = `translate(${Math.max(8, x)}px, ${above ? y - tip.offsetHeight - 30 : y}px)`;
  }

  hover(node, pod = NONE) {
    this.box.style.cursor = node === NONE ? "default" : "pointer";
    if (node === this.hovered && pod === this.hoveredPod) return;
    this.hovered = node;
    this.hoveredPod = pod;
    const tip = $("tip");
    tip.hidden = node === NONE;
    if (node !== NONE) fill(tip, h("strong", {}, this.data.nodes[node]), h("span", {}, pod === NONE ? this.words(node) : this.data.podKey(pod)));
    this.draw();
  }

  words(node) {
    const { model, data } = this;
    const resource = this.resource === FULLEST ? model.fullest(node) : this.resource;
    const name = data.resources[resource];
    const all = data.allocatable(model.row[node], resource);
    const used = model.used[resource][node];
    const amounts = tr("{n} of {m}", { n: amount(used, name), m: amount(all, name) });
    const parts = [all > 0 ? `${resourceName(name)} ${percent(used / all)}, ${amounts}` : tr("no {resource}", { resource: resourceName(name) })];
    if (name !== PODS) parts.push(plural(model.podCount(node), "pod"));
    const flags = data.rows.flags[model.row[node]];
    if (flags & 1) parts.push(tr("cordoned"));
    if (flags & 2) parts.push(tr("not ready"));
    parts.push(...data.taints(model.row[node]));
    return parts.join(" · ");
  }

  describe() {
    const option = $("tile");
    if (this.focus === NONE || !this.model.isThere(this.focus)) {
      option.textContent = tr("no node");
      return;
    }
    option.textContent = `${this.data.nodes[this.focus]}, ${this.words(this.focus)}`;
    option.setAttribute("aria-setsize", this.order.length);
    option.setAttribute("aria-posinset", (this.indexOf.get(this.focus) ?? 0) + 1);
  }

  onFocus() {
    this.describe();
    this.draw();
  }

  onKey(event) {
    if (!this.order.length) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.app.openNode(this.focus);
      return;
    }
    const found = this.find(this.focus) || { block: this.blocks[0], i: 0 };
    const at = found.block.first + found.i;
    const columns = found.block.columns;
    const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -at, End: this.order.length };
    if (!(event.key in moves)) return;
    event.preventDefault();
    const to = Math.max(0, Math.min(this.order.length - 1, at + moves[event.key]));
    this.focus = this.order[to];
    this.reveal(this.focus);
    this.describe();
    this.draw();
  }

  reveal(node) {
    const found = this.find(node);
    if (!found) return;
    const { y } = this.placeOf(found.block, found.i);
    const { box, size } = this;
    if (y - 30 < box.scrollTop) box.scrollTop = y - 30 - HEADING;
    else if (y + size.height + 10 > box.scrollTop + box.clientHeight) {
      box.scrollTop = y + size.height + 10 - box.clientHeight;
    }
  }

  /** Also lays out the nodes that the question adds. */
  setArrows(moves, added = []) {
    const changes = added.length + this.added.length > 0;
    this.added = added;
    super.setArrows(moves);
    if (changes) this.relayout();
  }

  mark(nodes) {
    this.marked = nodes;
    this.draw();
  }

  select(node) {
    this.selected = node;
    if (node !== NONE) this.reveal(node);
    this.draw();
  }
}
