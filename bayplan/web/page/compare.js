// Compare: two runs of the same workload side by side, and the pods that land elsewhere.

class Compare {
  constructor(app, tale) {
    this.app = app;
    this.isOn = Boolean(tale.comparison);
    /** Pods of the first run that have another node in the other one. */
    this.differences = [];
    if (!this.isOn) return;
    const { name, others, measures } = tale.comparison;
    this.name = name;
    this.measures = measures;
    this.runs = others.map((other) => {
      const data = new Data(other);
      return { name: other.name, data, model: new Model(data, other.base) };
    });
    document.body.classList.add("comparing");
    $("mirror").hidden = $("runs").hidden = false;
    fill($("other-run"), this.runs.map((run, i) => h("option", { value: i }, run.name)));
    $("other-run").addEventListener("change", (event) => {
      this.choose(Number(event.target.value));
      app.refresh(true);
    });
    $("measures").addEventListener("click", () => this.openMeasures());
    $("first-run").textContent = name;
    this.choose(0);
  }

  choose(number) {
    this.run = this.runs[number];
    if (this.mirror) Object.assign(this.mirror, { app: this.run });
    else this.mirror = new Mirror(this.run, this.app.tiles);
    this.pods = new Map(this.run.data.pods.name.map((_, pod) => [this.run.data.podKey(pod), pod]));
  }

  setTheme(name) {
    if (this.isOn) this.mirror.setTheme(name);
  }

  /** Goes to the same time in the other run; where no time passes, to the same share of its changes. */
  seek(place, seconds) {
    if (!this.isOn) return;
    const { model } = this.run;
    const isEnd = place >= 1;
    model.seek(isEnd ? model.last : this.app.timeline.isTimed ? model.momentAt(seconds + 1e-9) : Math.round(place * model.last));
  }

  /** Compares the runs at this moment, and frames the nodes that have other pods. */
  update() {
    if (!this.isOn) return;
    const { model, data, tiles } = this.app;
    const other = this.run;
    this.differences = [];
    const here = new Set(), there = new Set();
    for (let pod = 0; pod < model.state.length; pod += 1) {
      const same = this.pods.get(data.podKey(pod));
      const nodes = [isOnNode(model.state[pod]) ? model.node[pod] : NONE, same !== undefined && isOnNode(other.model.state[same]) ? other.model.node[same] : NONE];
      const names = [nodes[0] === NONE ? "" : data.nodes[nodes[0]], nodes[1] === NONE ? "" : other.data.nodes[nodes[1]]];
      if (names[0] === names[1]) continue;
      this.differences.push({ pod, names });
      here.add(nodes[0]);
      there.add(nodes[1]);
    }
    const numbers = new Map(data.nodes.map((name, node) => [name, node]));
    for (const node of there) if (node !== NONE) here.add(numbers.get(other.data.nodes[node]));
    tiles.framed = here;
    this.mirror.update();
    this.mirror.framed = new Set([...here].map((node) => (node === NONE || node === undefined ? NONE : this.mirror.toHere(node))));
    const words = (run) => tr("{n} pods on nodes, {m} waiting", { n: count(run.model.onNodes), m: count(run.model.waitingCount) });
    $("first-figures").textContent = words(this.app);
    $("other-figures").textContent = words(this.run);
    tiles.draw();
    this.mirror.draw();
  }

  /** Where a pod is in both runs. */
  words(names) {
    const where = (name) => (name ? this.app.data.shortName(name) : tr("no node"));
    return `${where(names[0])} → ${where(names[1])}`;
  }

  openMeasures() {
    const names = [this.name, ...this.runs.map((run) => run.name)];
    const number = (value) => (typeof value === "number" ? COUNT.format(Math.round(value * 1000) / 1000) : value ?? "–");
    this.app.details.openPanel(tr("Comparison"), tr("Measures"), [h("table", { class: "measures" },
      h("thead", {}, h("tr", {}, [tr("Metric"), ...names].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, this.measures.map((row) => h("tr", {}, h("th", { scope: "row" }, row.metric),
        names.map((name) => h("td", { class: row.better === name ? "figure best" : "figure" }, number(row[name])))))))]);
  }
}
