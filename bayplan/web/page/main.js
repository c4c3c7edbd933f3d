// Main: connects the parts of the page.

const ZONE_LABELS = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region"];
const MOST_GROUPS = 200;

class App {
  constructor(tale) {
    this.data = new Data(tale);
    this.model = new Model(this.data, tale.base);
    this.model.seek(this.model.last);
    this.live = null;
    /** Choices that the reader made, as opposed to those that fit the data. */
    this.wasChosen = { resource: false, group: false };
    this.tiles = new Tiles(this);
    this.account = new Account(this);
    this.details = new Details(this);
    this.timeline = new Timeline(this);
    this.lists = new Lists(this);
    this.search = new Search(this);
    this.address = new Address(this);
    this.choose();
    this.setTheme(savedTheme());
    this.listen();
    this.timeline.draw();
    this.address.read();
    this.subtitle();
  }

  /** The chosen resource, as an address names it. */
  resourceField() {
    return this.data.resources[this.tiles.resource];
  }

  /** Sets the choices above the tiles as an address names them; an empty one is as at first. */
  setChoices(resource, group, sort) {
    const known = this.data.resources.indexOf(resource);
    this.wasChosen = { resource: known !== NONE, group: group !== "" };
    this.tiles.resource = Math.max(0, known);
    this.tiles.groupBy = group === "-" ? "" : group;
    this.tiles.sortBy = sort;
    $("sort").value = sort;
    this.choose();
  }

  refresh() {
    this.tiles.update();
    this.lists.update();
    this.details.update();
    this.figures();
  }

  /** Handles new data of a live page. */
  grew() {
    this.model.grow();
    this.timeline.grew();
    this.chooseAgain();
    this.figures();
  }

  subtitle() {
    const { sources, isLive } = this.data;
    const words = isLive ? "live" : sources.map((path) => path.split("/").pop()).join(", ");
    $("subtitle").textContent = words;
    $("subtitle").title = sources.join("\n");
    document.title = isLive ? "Bayplan, live" : words ? `Bayplan: ${words}` : "Bayplan";
  }

  figures() {
    const { model, data } = this;
    const live = model.liveNodes();
    const figures = [["Nodes", count(live.length), ""], ["Pods on nodes", count(model.onNodes), ""], ["Waiting", count(model.waitingCount), model.waitingCount ? "warn" : ""]];
    if (data.preemptedFor.size) figures.push(["Preempted", count(model.preempted), ""]);
    const { resource } = this.tiles;
    let used = 0, all = 0;
    for (const node of live) {
      used += model.used[resource][node];
      all += data.allocatable(model.row[node], resource);
    }
    figures.push([`${resourceName(data.resources[resource])} used`, all ? percent(used / all) : "–", ""]);
    fill($("figures"), figures.map(([name, value, mood]) => h("div", { class: mood }, h("dt", {}, name), h("dd", {}, value))));
  }

  /** The options of resource and group, from the nodes. */
  choose() {
    this.chosenAt = this.model.nodesVersion;
    const { data, model } = this;
    const offered = new Set();
    const values = new Map();
    for (const node of model.liveNodes()) {
      const row = model.row[node];
      for (let i = 0, flat = data.rows.allocatable[row]; i < flat.length; i += 2) if (flat[i + 1] > 0) offered.add(flat[i]);
      for (let i = 0, flat = data.rows.labels[row]; i < flat.length; i += 2) {
        if (!values.has(flat[i])) values.set(flat[i], new Set());
        values.get(flat[i]).add(flat[i + 1]);
      }
    }
    const resources = [...offered].sort((a, b) => a - b);
    if (!resources.includes(this.tiles.resource) && resources.length) [this.tiles.resource] = resources;
    fill($("resource"), resources.map((resource) => h("option", { value: resource, selected: resource === this.tiles.resource }, resourceName(data.resources[resource]))));
    const labels = [...values].filter(([, set]) => set.size <= MOST_GROUPS).map(([key]) => data.texts[key]).sort(byName);
    if (this.tiles.groupBy === "" && !this.wasChosen.group) this.tiles.groupBy = ZONE_LABELS.find((label) => labels.includes(label)) || "";
    if (this.tiles.groupBy && !labels.includes(this.tiles.groupBy)) labels.push(this.tiles.groupBy);
    fill($("group"), h("option", { value: "" }, "none"), labels.map((label) => h("option", { value: label, selected: label === this.tiles.groupBy }, labelName(label))));
    this.legend();
  }

  chooseAgain() {
    if (this.chosenAt !== this.model.nodesVersion) this.choose();
  }

  legend() {
    const over = this.model.liveNodes().some((node) => this.model.share(node, this.tiles.resource) > 1);
    const closed = this.model.liveNodes().some((node) => this.data.rows.flags[this.model.row[node]]);
    const none = this.model.liveNodes().some((node) => Number.isNaN(this.model.share(node, this.tiles.resource)));
    fill($("legend"),
      h("span", { class: "ends" }, "0%"), h("span", { class: "ramp", role: "img", "aria-label": "from empty to full" }), h("span", { class: "ends" }, "100%"),
      over ? h("span", { class: "sign" }, h("span", { class: "swatch over" }), "over 100%") : "",
      none ? h("span", { class: "sign" }, h("span", { class: "swatch none" }), "has none") : "",
      closed ? h("span", { class: "sign" }, h("span", { class: "swatch closed" }), "cordoned or not ready") : "");
  }

  openPod(pod) {
    this.details.openPod(pod);
  }

  openNode(node) {
    this.details.openNode(node);
  }

  listen() {
    $("resource").addEventListener("change", (event) => {
      this.wasChosen.resource = true;
      this.tiles.resource = Number(event.target.value);
      this.legend();
      this.refresh();
      this.address.write();
    });
    $("group").addEventListener("change", (event) => {
      this.wasChosen.group = true;
      this.tiles.groupBy = event.target.value;
      this.refresh();
      this.address.write();
    });
    $("sort").addEventListener("change", (event) => {
      this.tiles.sortBy = event.target.value;
      this.refresh();
      this.address.write();
    });
    document.addEventListener("keydown", (event) => this.onKey(event));
    $("copy-link").addEventListener("click", (event) => this.address.copy(event.currentTarget));
    for (const button of $("theme").children) button.addEventListener("click", () => this.setTheme(button.dataset.theme, true));
    $("theme").addEventListener("keydown", (event) => this.onThemeKey(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.setTheme(savedTheme()));
  }

  onKey(event) {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "range";
    if (event.key === "Escape") this.details.close();
    else if (event.key === "/" && !isTyping) {
      event.preventDefault();
      $("query").focus();
      $("query").select();
    }
  }

  onThemeKey(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const buttons = [...$("theme").children];
    const at = buttons.findIndex((button) => button.getAttribute("aria-checked") === "true");
    const next = buttons[(at + step + buttons.length) % buttons.length];
    this.setTheme(next.dataset.theme, true);
    next.focus();
  }

  setTheme(choice, isChosen = false) {
    const isDark = choice === "dark" || (choice === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    for (const button of $("theme").children) {
      const isIt = button.dataset.theme === choice;
      button.setAttribute("aria-checked", isIt);
      button.tabIndex = isIt ? 0 : -1;
    }
    if (isChosen) remember("bayplan-theme", choice);
    this.tiles.setTheme(isDark ? "dark" : "light");
    this.timeline.drawCurve();
  }
}

function savedTheme() {
  try {
    return localStorage.getItem("bayplan-theme") || "auto";
  } catch {
    return "auto";
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // A page from a file may have no storage.
  }
}

async function begin() {
  let tale = JSON.parse($("data").textContent);
  if (!tale.isLive) {
    window.bayplan = new App(tale);
    return;
  }
  for (;;) {
    try {
      tale = await Live.ask("state", {});
      break;
    } catch (error) {
      notice(error instanceof TypeError ? "The server cannot be reached; retrying." : error.message);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
  notice("");
  const app = new App(tale);
  app.live = new Live(app, tale.epoch);
  app.live.told = tale.events.first + tale.events.t.length;
  window.bayplan = app;
  app.live.follow();
}

begin();
