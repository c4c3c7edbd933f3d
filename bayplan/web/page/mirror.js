// Mirror: the tiles of another run of the same workload beside those of the first, in the same places.

class Mirror extends Painter {
  /** `run` has the data and the model of the other run. */
  constructor(run, tiles) {
    super(run, $("mirror"), $("mirror-canvas"));
    this.tiles = tiles;
    const copy = (from, to) => () => { if (to.scrollTop !== from.scrollTop) to.scrollTop = from.scrollTop; };
    tiles.box.addEventListener("scroll", copy(tiles.box, this.box), { passive: true });
    this.box.addEventListener("scroll", () => {
      copy(this.box, tiles.box)();
      this.draw();
    }, { passive: true });
    this.box.addEventListener("click", (event) => tiles.box.dispatchEvent(new MouseEvent("click", { clientX: event.clientX - this.box.getBoundingClientRect().left + tiles.box.getBoundingClientRect().left, clientY: event.clientY })));
    new ResizeObserver(this.draw).observe(this.box);
  }

  /** Takes over the layout and the choices of the first run; its nodes have other numbers here. */
  update() {
    const { tiles, data } = this;
    const first = tiles.app.data;
    const numbers = new Map(data.nodes.map((name, node) => [name, node]));
    this.size = tiles.size;
    this.groupBy = tiles.groupBy;
    this.podsBy = tiles.podsBy;
    this.total = tiles.total;
    this.resource = tiles.resource === FULLEST ? FULLEST : data.resources.indexOf(first.resources[tiles.resource]);
    this.blocks = tiles.blocks.map((block) => ({ ...block, nodes: block.nodes.map((node) => numbers.get(first.nodes[node]) ?? NONE) }));
    this.order = this.blocks.flatMap((block) => block.nodes);
    this.indexOf = new Map(this.order.map((node, i) => [node, i]));
    this.toHere = (node) => (node === NONE ? NONE : numbers.get(first.nodes[node]) ?? NONE);
    this.selected = this.toHere(tiles.selected);
    $("mirror-spacer").style.height = $("spacer").style.height;
    this.draw();
  }

  drawTile(node, x, y) {
    if (node !== NONE && this.model.isThere(node)) super.drawTile(node, x, y);
  }
}
