// Choices: the controls above the tiles: what they show, and the legend.

const ZONE_LABELS = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region"];
const MOST_GROUPS = 200;
const VIEWS = ["picture", "nodes", "pods"];

class Choices {
  constructor(app) {
    this.app = app;
    /** Choices that the reader made, as opposed to those that fit the data. */
    this.wasChosen = { resource: false, group: false };
    this.listen();
  }

  /** The chosen resource, as an address names it. */
  get resourceField() {
    return this.wasChosen.resource ? this.app.data.resources[this.app.tiles.resource] || "-" : "";
  }

  get groupField() {
    return this.wasChosen.group ? this.app.tiles.groupBy || "-" : "";
  }

  /** Sets the choices as an address names them; an empty one is as at first. */
  set(resource, group, sort, podsBy) {
    const { tiles, data } = this.app;
    const known = data.resources.indexOf(resource);
    this.wasChosen = { resource: known !== NONE, group: group !== "" };
    tiles.resource = known === NONE ? FULLEST : known;
    tiles.groupBy = group === "-" ? "" : group;
    tiles.sortBy = sort === "use" ? "use" : "name";
    tiles.podsBy = ["priority", "group"].includes(podsBy) ? podsBy : "workload";
    $("sort").value = tiles.sortBy;
    $("pods-by").value = tiles.podsBy;
    this.offer();
  }

  /** Fills the choices of resource and group from the nodes. */
  offer() {
    const { data, model, tiles } = this.app;
    this.offeredAt = model.nodesVersion;
    $("by-group").hidden = !data.groups.length;
    const values = new Map();
    for (const node of model.liveNodes()) {
      for (let i = 0, flat = data.rows.labels[model.row[node]]; i < flat.length; i += 2) {
        if (!values.has(flat[i])) values.set(flat[i], new Set());
        values.get(flat[i]).add(flat[i + 1]);
      }
    }
    const resources = offeredResources(model, data);
    if (tiles.resource !== FULLEST && !resources.includes(tiles.resource)) tiles.resource = FULLEST;
    const option = (value, words, isChosen, title) => h("option", { value, selected: isChosen, title }, words);
    fill($("resource"), option(FULLEST, tr("fullest resource"), tiles.resource === FULLEST),
      resources.map((resource) => option(resource, resourceName(data.resources[resource]), resource === tiles.resource, data.resources[resource])));
    const labels = [...values].filter(([, set]) => set.size <= MOST_GROUPS).map(([key]) => data.texts[key]).sort(byName);
    if (tiles.groupBy === "" && !this.wasChosen.group) tiles.groupBy = ZONE_LABELS.find((label) => labels.includes(label)) || "";
    if (tiles.groupBy && !labels.includes(tiles.groupBy)) labels.push(tiles.groupBy);
    fill($("group"), option("", tr("none"), tiles.groupBy === ""), labels.map((label) => option(label, labelName(label), label === tiles.groupBy)));
    this.legend();
  }

  offerAgain() {
    if (this.offeredAt !== this.app.model.nodesVersion) this.offer();
  }

  legend() {
    const { model, data, tiles } = this.app;
    let isOver = false, isFull = false, isClosed = false, isTainted = false, hasNone = false;
    for (const node of model.liveNodes()) {
      const share = model.share(node, tiles.resource);
      isOver = isOver || share > 1;
      isFull = isFull || share === 1;
      hasNone = hasNone || Number.isNaN(share);
      isClosed = isClosed || data.rows.flags[model.row[node]] > 0;
      isTainted = isTainted || data.rows.taints[model.row[node]].length > 0;
    }
    const sign = (is, name, words) => (is ? h("span", { class: "sign" }, h("span", { class: `swatch ${name}` }), tr(words)) : "");
    fill($("legend"),
      h("span", { class: "ends" }, "0%"), h("span", { class: "ramp", role: "img", "aria-label": tr("from empty to nearly full") }), h("span", { class: "ends" }, "99%"),
      sign(isFull, "all", "full"), sign(isOver, "over", "over 100%"), sign(hasNone, "none", "has none"),
      sign(isTainted, "tainted", "tainted"), sign(isClosed, "closed", "cordoned or not ready"),
      data.suffix ? h("span", { class: "sign" }, tr("Node names without {suffix}", { suffix: data.suffix })) : "");
  }

  listen() {
    const { app } = this;
    const on = (id, work) => $(id).addEventListener("change", (event) => {
      work(event.target.value);
      this.legend();
      app.refresh(true);
      app.timeline.strip.draw();
      app.address.write();
    });
    on("resource", (value) => {
      this.wasChosen.resource = true;
      app.tiles.resource = Number(value);
    });
    on("group", (value) => {
      this.wasChosen.group = true;
      app.tiles.groupBy = value;
    });
    on("sort", (value) => { app.tiles.sortBy = value; });
    on("pods-by", (value) => { app.tiles.podsBy = value; });
    radios($("view"), (value) => {
      this.setView(value, "");
      app.refresh(true);
      app.address.write();
    });
  }

  /** Shows the picture or one of the tables, sorted as an address names it. */
  setView(view, order) {
    const { app } = this;
    app.view = VIEWS.includes(view) ? view : "picture";
    app.table.sortBy = order.replace(/^-/, "");
    app.table.isDescending = order.startsWith("-");
    chooseRadio($("view"), app.view);
    const isPicture = app.view === "picture";
    $("tiles").hidden = !isPicture;
    $("table").hidden = isPicture;
    for (const part of document.querySelectorAll(".of-picture")) part.hidden = !isPicture;
    for (const id of ["runs", "mirror"]) $(id).hidden = !isPicture || !app.isComparing;
    for (const part of document.querySelectorAll(".of-table")) part.hidden = isPicture;
    for (const part of document.querySelectorAll(".of-nodes")) part.hidden = app.view === "pods";
  }
}
