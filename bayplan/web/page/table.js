// Table: nodes or pods in rows, sorted by any column. Only visible rows are elements.

const ROW_HEIGHT = 30;

class Table {
  constructor(app) {
    this.app = app;
    this.sortBy = "";
    this.isDescending = false;
    this.rows = [];
    this.list = new LongList($("table-rows"), ROW_HEIGHT, (row) => this.makeRow(row), (row) => this.open(row), $("table"));
  }

  /** The columns of the chosen table: name, title, what is shown, what is sorted by, and whether it is a number. */
  get columns() {
    return this.app.view === "pods" ? podColumns(this.app) : nodeColumns(this.app);
  }

  update(force = false) {
    const { app } = this;
    if (app.view === "picture") return;
    const key = [app.model.version, app.model.at, app.view, app.filter.key, this.sortBy, this.isDescending].join();
    if (key === this.key && !force) return;
    this.key = key;
    this.shown = this.columns;
    this.rows = this.sorted(app.view === "pods" ? podRows(app) : [...app.model.liveNodes()]);
    const wide = this.shown.map((column) => column.width).join(" ");
    $("table-head").style.gridTemplateColumns = wide;
    const least = this.shown.reduce((sum, column) => sum + parseInt(column.width.match(/\d+/)[0], 10), 0);
    $("table-head").style.minWidth = $("table-rows").style.minWidth = `${least}px`;
    $("table-rows").style.setProperty("--columns", wide);
    $("table").setAttribute("aria-rowcount", this.rows.length + 1);
    $("table").setAttribute("aria-label", app.view === "pods" ? tr("Pods: arrow keys move, Enter opens") : tr("Nodes: arrow keys move, Enter opens"));
    this.drawHead();
    this.list.show(this.rows);
  }

  sorted(rows) {
    const column = this.shown.find(({ name }) => name === this.sortBy) || this.shown[0];
    const keys = new Map(rows.map((row) => [row, column.value(row)]));
    const order = column.isNumber ? (a, b) => (keys.get(a) ?? -1) - (keys.get(b) ?? -1) : (a, b) => byName(keys.get(a), keys.get(b));
    return rows.sort((a, b) => (this.isDescending ? order(b, a) : order(a, b)) || a - b);
  }

  drawHead() {
    const held = [...$("table-head").children].findIndex((cell) => cell.contains(document.activeElement));
    fill($("table-head"), this.shown.map((column, i) => {
      const isSorted = column.name === (this.sortBy || this.shown[0].name);
      const sign = isSorted ? (this.isDescending ? " ▾" : " ▴") : "";
      return h("div", { role: "columnheader", "aria-sort": isSorted ? (this.isDescending ? "descending" : "ascending") : "none", class: column.isNumber ? "figure" : null },
        h("button", { type: "button", title: column.title, onclick: () => this.sort(column, i) }, column.title, h("span", { "aria-hidden": "true" }, sign)));
    }));
    if (held >= 0) $("table-head").children[held]?.querySelector("button").focus();
  }

  /** Sorts by a column; numbers begin with the highest, and a second time turns the order round. */
  sort(column) {
    const isSame = column.name === (this.sortBy || this.shown[0].name);
    this.isDescending = isSame ? !this.isDescending : Boolean(column.isNumber);
    this.sortBy = column.name;
    this.update(true);
    this.app.address.write();
  }

  makeRow(row) {
    return h("div", { class: "cells" }, this.shown.map((column) => h("div", { role: "gridcell", class: [column.isNumber ? "figure" : "", column.mood ? column.mood(row) : ""].join(" "), title: String(column.text(row)) }, column.text(row))));
  }

  open(row) {
    if (this.app.view === "pods") this.app.openPod(row);
    else this.app.openNode(row);
  }
}

function nodeColumns({ model, data, tiles }) {
  const resources = offeredResources(model, data);
  const flags = (node) => data.rows.flags[model.row[node]];
  const state = (node) => [flags(node) & 1 ? tr("cordoned") : "", flags(node) & 2 ? tr("not ready") : ""].filter(Boolean).join(", ") || tr("ready");
  const taints = (node) => data.taints(model.row[node]).join(", ");
  const columns = [textColumn("node", "Node", (node) => data.nodes[node], "minmax(140px, 2fr)", (node) => data.nodeName(node))];
  columns.push(textColumn("state", "State", state, "90px"));
  if (tiles.groupBy) columns.push(textColumn("group", labelName(tiles.groupBy), (node) => data.label(model.row[node], tiles.groupBy) ?? "", "minmax(90px, 1fr)"));
  for (const resource of resources) {
    const name = data.resources[resource];
    const share = (node) => model.share(node, resource);
    columns.push({
      name, title: tr("{resource} requested", { resource: resourceName(name) }), isNumber: true, width: "minmax(156px, 1fr)",
      value: (node) => (Number.isNaN(share(node)) ? null : share(node)),
      text: (node) => (Number.isNaN(share(node)) ? "–" : `${percent(share(node))} · ${amount(model.used[resource][node], name)} / ${amount(data.allocatable(model.row[node], resource), name)}`),
      mood: (node) => (share(node) >= 1 ? "warn" : ""),
      raw: (node) => ({ [`${name} requested`]: model.used[resource][node], [`${name} allocatable`]: data.allocatable(model.row[node], resource) }),
    });
  }
  columns.push(textColumn("taints", "Taints", taints, "minmax(120px, 2fr)"));
  return columns;
}

function podColumns({ model, data }) {
  const kind = (pod) => data.kinds[model.kind[pod]];
  const asked = (pod, resource) => data.requested(model.kind[pod], resource);
  const node = (pod) => (model.node[pod] === NONE ? "" : data.nodes[model.node[pod]]);
  const columns = [
    textColumn("namespace", "Namespace", (pod) => data.namespace(pod), "minmax(104px, 1fr)"),
    textColumn("pod", "Pod", (pod) => data.podName(pod), "minmax(190px, 3fr)"),
    textColumn("workload", "Workload", (pod) => data.texts[kind(pod)[6]], "minmax(100px, 1.5fr)", (pod) => data.texts[kind(pod)[6]].split("/").pop()),
    textColumn("state", "State", (pod) => tr(STATE_WORDS[model.state[pod]]), "104px"),
    textColumn("node", "Node", node, "minmax(100px, 1.5fr)", (pod) => (model.node[pod] === NONE ? "" : data.nodeName(model.node[pod]))),
    { name: "priority", title: tr("Priority"), isNumber: true, width: "76px", value: (pod) => kind(pod)[2], text: (pod) => count(kind(pod)[2]) },
  ];
  for (const resource of offeredResources(model, data)) {
    const name = data.resources[resource];
    if (name === PODS || !data.kinds.some((_, kind) => data.requested(kind, resource))) continue;
    columns.push({
      name, title: resourceName(name), isNumber: true, width: "minmax(72px, 0.6fr)",
      value: (pod) => asked(pod, resource), text: (pod) => (asked(pod, resource) ? amount(asked(pod, resource), name) : "–"),
    });
  }
  columns.push(textColumn("reason", "Reason", (pod) => (isWaiting(model.state[pod]) ? reasonWords(data, model.text[pod]) : ""), "minmax(120px, 2fr)"));
  return columns;
}

function textColumn(name, title, value, width, text = value) {
  return { name, title: tr(title), value, text, width };
}

function podRows({ model, filter }) {
  const rows = [];
  for (let pod = 0; pod < model.state.length; pod += 1) if (model.state[pod] !== GONE && filter.matches(pod)) rows.push(pod);
  return rows;
}

/** The resources of which some node has any. */
function offeredResources(model, data) {
  const live = model.liveNodes();
  return data.resources.map((_, i) => i).filter((i) => live.some((node) => data.allocatable(model.row[node], i) > 0));
}
