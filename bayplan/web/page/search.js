// Search: pods, nodes and labels by any part of their names. Matches are highlighted among the tiles.

const MOST_FOUND = 8;

class Search {
  constructor(app) {
    this.app = app;
    this.input = $("query");
    this.box = $("found");
    this.found = [];
    this.active = 0;
    this.input.addEventListener("input", perFrame(() => this.search()));
    this.input.addEventListener("focus", () => this.search());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    this.box.addEventListener("mousedown", (event) => event.preventDefault());
    document.addEventListener("click", (event) => {
      if (!$("search").contains(event.target)) this.hide();
    });
  }

  /** Sets the words without showing what they find; the tiles that match are highlighted. */
  set(text) {
    if (this.input.value.trim() === text) return;
    this.input.value = text;
    this.search();
    this.hide();
  }

  search() {
    this.app.address.write(false);
    const words = this.input.value.trim().toLowerCase();
    this.active = 0;
    if (!words) {
      this.clear();
      return;
    }
    const { data, model } = this.app;
    const marked = new Set();
    const nodes = [], pods = [];
    let nodeCount = 0, podCount = 0;
    for (const node of model.liveNodes()) {
      if (!data.nodes[node].toLowerCase().includes(words)) continue;
      marked.add(node);
      nodeCount += 1;
      if (nodes.length < MOST_FOUND) nodes.push({ node });
    }
    for (let pod = 0; pod < model.state.length; pod += 1) {
      if (model.state[pod] === GONE || !data.podKey(pod).toLowerCase().includes(words)) continue;
      podCount += 1;
      if (pods.length < MOST_FOUND) pods.push({ pod });
      if (model.node[pod] !== NONE) marked.add(model.node[pod]);
    }
    const labels = this.findLabels(words);
    for (const label of labels) for (const node of label.nodes) marked.add(node);
    this.app.tiles.mark(marked);
    this.show([[tr("Nodes"), nodes, nodeCount], [tr("Pods"), pods, podCount], [tr("Labels"), labels.slice(0, MOST_FOUND), labels.length]]);
  }

  /** Node labels whose key=value contains `words`, with their nodes. */
  findLabels(words) {
    const { data, model } = this.app;
    const found = new Map();
    const judged = new Map();
    for (const node of model.liveNodes()) {
      const flat = data.rows.labels[model.row[node]];
      for (let i = 0; i < flat.length; i += 2) {
        const pair = flat[i] * 1e7 + flat[i + 1];
        if (!judged.has(pair)) {
          const text = `${data.texts[flat[i]]}=${data.texts[flat[i + 1]]}`;
          judged.set(pair, text.toLowerCase().includes(words) ? text : null);
        }
        const text = judged.get(pair);
        if (text === null) continue;
        if (!found.has(text)) found.set(text, { label: text, nodes: [] });
        found.get(text).nodes.push(node);
      }
    }
    return [...found.values()].sort((a, b) => b.nodes.length - a.nodes.length || byName(a.label, b.label));
  }

  show(groups) {
    this.found = groups.flatMap(([, items]) => items);
    let at = 0;
    const parts = [];
    for (const [title, items, all] of groups) {
      if (!items.length) continue;
      parts.push(h("div", { class: "title", role: "presentation" }, all > items.length ? `${title} · ${tr("{n} of {m}", { n: items.length, m: count(all) })}` : title));
      for (const item of items) parts.push(this.option(item, at++));
    }
    if (!parts.length) parts.push(h("div", { class: "nothing" }, tr("No name contains this.")));
    fill(this.box, parts);
    this.box.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.drawActive();
    say(this.found.length ? plural(this.found.length, "result") : tr("nothing found"));
  }

  option(item, at) {
    const { data, model } = this.app;
    let name, rest;
    if ("node" in item) [name, rest] = [data.nodeName(item.node), this.app.tiles.words(item.node)];
    else if ("pod" in item) [name, rest] = [data.podName(item.pod), `${data.namespace(item.pod)} · ${tr(STATE_WORDS[model.state[item.pod]])}`];
    else [name, rest] = [item.label, plural(item.nodes.length, "node")];
    return h("div", { role: "option", id: `found-${at}`, class: "option", onclick: () => this.choose(at) },
      h("span", { class: "name" }, name), h("span", { class: "rest" }, rest));
  }

  drawActive() {
    this.box.querySelectorAll(".option").forEach((option, i) => {
      option.setAttribute("aria-selected", i === this.active);
      if (i === this.active) option.scrollIntoView({ block: "nearest" });
    });
    if (this.found.length) this.input.setAttribute("aria-activedescendant", `found-${this.active}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.found.length && !this.box.hidden) {
      this.active = (this.active + step + this.found.length) % this.found.length;
      this.drawActive();
      event.preventDefault();
    } else if (event.key === "Enter" && this.found.length && !this.box.hidden) {
      this.choose(this.active);
      event.preventDefault();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (this.input.value) {
        this.input.value = "";
        this.clear();
      } else this.input.blur();
    }
  }

  choose(at) {
    const item = this.found[at];
    this.hide();
    if ("node" in item) this.app.openNode(item.node);
    else if ("pod" in item) this.app.openPod(item.pod);
    else {
      this.input.value = item.label;
      this.app.tiles.mark(new Set(item.nodes));
      $("tiles").focus();
      return;
    }
    this.app.tiles.mark(null);
  }

  hide() {
    this.box.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  clear() {
    this.hide();
    this.found = [];
    this.app.tiles.mark(null);
  }
}
