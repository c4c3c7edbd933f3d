// Filter: which pods the lists and the tables show: by namespace, label and reason.

class Filter {
  constructor(app) {
    this.app = app;
    this.namespace = "";
    this.label = "";
    this.reason = "";
    this.make();
  }

  get isOn() {
    return Boolean(this.namespace || this.label || this.reason);
  }

  get key() {
    return [this.namespace, this.label, this.reason].join("\n");
  }

  make() {
    const changed = () => {
      this.set($("filter-namespace").value, $("filter-label").value.trim(), $("filter-reason").value);
      this.offer(); // the choice still has the focus, and may be opened again
      this.app.refresh();
      this.app.address.write();
    };
    for (const name of ["namespace", "label", "reason"]) $(`filter-${name}`).addEventListener("change", changed);
    for (const name of ["namespace", "reason"]) $(`filter-${name}`).addEventListener("focus", () => this.offer());
    $("filter-clear").addEventListener("click", () => {
      this.set("", "", "");
      this.app.refresh();
      this.app.address.write();
      $("filter-namespace").focus();
    });
  }

  set(namespace, label, reason) {
    Object.assign(this, { namespace, label, reason });
    $("filter-label").value = label;
    this.judged = new Map();
    this.fill([], []);
  }

  /** Fills the choices from the pods that there are; that takes a while, so it is done when a choice is opened. */
  offer() {
    const { model, data } = this.app;
    const numbers = new Set(), texts = new Set();
    for (let pod = 0; pod < model.state.length; pod += 1) {
      if (model.state[pod] === GONE) continue;
      numbers.add(data.pods.namespace[pod]);
      if (isWaiting(model.state[pod])) texts.add(model.text[pod]);
    }
    this.fill([...numbers].map((number) => data.texts[number]), [...texts].flatMap((text) => data.reasons(text)));
  }

  /** Offers these values, and the chosen ones. */
  fill(spaces, reasons) {
    const distinct = (values, chosen) => [...new Set(chosen ? [...values, chosen] : values)].sort(byName);
    const options = (all, values, chosen) => [h("option", { value: "" }, all), ...values.map((value) => h("option", { value, selected: value === chosen }, value))];
    fill($("filter-namespace"), options(tr("All namespaces"), distinct(spaces, this.namespace), this.namespace));
    fill($("filter-reason"), options(tr("All reasons"), distinct(reasons, this.reason), this.reason));
    $("filter-clear").hidden = !this.isOn;
  }

  matches(pod) {
    const { model, data } = this.app;
    if (this.namespace && data.namespace(pod) !== this.namespace) return false;
    if (this.label && !this.hasLabel(model.kind[pod])) return false;
    return !this.reason || (isWaiting(model.state[pod]) && data.reasons(model.text[pod]).includes(this.reason));
  }

  /** Whether pods of a class have the label: `key=value`, or `key` for any value. */
  hasLabel(kind) {
    if (!this.judged.has(kind)) {
      const [key, value] = this.label.split(/=(.*)/);
      this.judged.set(kind, this.app.data.kind(kind).labels.some(([k, v]) => k === key && (value === undefined || v === value)));
    }
    return this.judged.get(kind);
  }
}
