// Address: what is shown, in the fragment of the address, so that links and the Back button work.
// A fragment is never sent to a server.

const WRITE_MS = 200;

class Address {
  constructor(app) {
    this.app = app;
    this.isReading = false;
    window.addEventListener("popstate", () => this.read());
  }

  /** The fields that differ from what a page shows at first. */
  fields() {
    const { app } = this;
    const { data, details, tiles, lists, timeline, search } = app;
    return {
      pod: details.pod !== NONE ? data.podKey(details.pod) : "",
      node: details.node !== NONE ? data.nodes[details.node] : "",
      resource: app.choices.resourceField,
      group: app.choices.groupField,
      view: app.view === "picture" ? "" : app.view,
      order: app.view === "picture" || !app.table.sortBy ? "" : (app.table.isDescending ? "-" : "") + app.table.sortBy,
      podsBy: tiles.podsBy === "workload" ? "" : tiles.podsBy,
      ns: app.filter.namespace,
      label: app.filter.label,
      reason: app.filter.reason,
      sort: tiles.sortBy === "name" ? "" : tiles.sortBy,
      list: lists.tab === "waiting" ? "" : lists.tab,
      state: lists.only === NONE ? "" : STATE_WORDS[lists.only],
      q: search.input.value.trim(),
      ...timeline.field(),
    };
  }

  /** Changes the address to what is shown; a step is an entry of its own for the Back button. */
  write(isStep = true) {
    if (this.isReading) return;
    clearTimeout(this.timer);
    if (!isStep) { // a slider moves often, and browsers limit how often an address changes
      this.timer = setTimeout(() => this.put("replaceState"), WRITE_MS);
      return;
    }
    this.put("pushState");
  }

  put(how) {
    const parameters = new URLSearchParams(Object.entries(this.fields()).filter(([, value]) => value !== ""));
    // These are readable in an address, and mean nothing in a fragment.
    const lang = new URLSearchParams(location.hash.slice(1)).get("lang");
    if (lang) parameters.set("lang", lang);
    const fragment = parameters.toString().replace(/%2F/g, "/").replace(/%3A/g, ":");
    if (fragment === location.hash.slice(1)) return;
    history[how](null, "", fragment ? `#${fragment}` : location.pathname + location.search);
  }

  /** Shows what the address says. */
  read() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const field = (name) => asked.get(name) || "";
    const { app } = this;
    this.isReading = true;
    const missing = [];
    app.choices.set(field("resource"), field("group"), field("sort"), field("podsBy"));
    app.choices.setView(field("view"), field("order"));
    app.filter.set(field("ns"), field("label"), field("reason"));
    app.lists.choose(field("list") || "waiting", STATE_WORDS.indexOf(field("state")));
    app.search.set(field("q"));
    app.timeline.readField(field("t"), field("at"));
    app.refresh();
    if (asked.has("pod")) {
      const pod = app.model.podNamed(field("pod"));
      if (pod === NONE) missing.push(field("pod"));
      else app.details.openPod(pod);
    } else if (asked.has("node")) {
      const node = app.data.nodes.indexOf(field("node"));
      if (node === NONE) missing.push(field("node"));
      else app.details.openNode(node);
    }
    if (missing.length || !(asked.has("pod") || asked.has("node"))) app.details.close();
    if (missing.length) say(tr("{name} is not here.", { name: missing[0] }));
    this.isReading = false;
  }

  async copy(button) {
    clearTimeout(this.timer);
    this.put("replaceState");
    const isCopied = await copyText(location.href);
    button.textContent = isCopied ? tr("Copied") : tr("Not copied");
    say(button.textContent);
    setTimeout(() => { button.textContent = tr("Copy link"); }, 2000);
  }
}

/** Puts text on the clipboard; false when the browser refuses. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { class: "unseen", "aria-hidden": "true" });
    document.body.append(area);
    area.value = text;
    area.select();
    const isCopied = document.execCommand("copy"); // where the newer way is not allowed
    area.remove();
    return isCopied;
  }
}
