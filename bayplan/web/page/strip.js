// Strip: the requested share, pending pods and cost over the whole run, above the slider. A click goes to a change.

const STRIP_MARGIN = 8;
const AXIS = 13;
const SNAP = 8;

class Strip {
  constructor(app, timeline) {
    this.app = app;
    this.timeline = timeline;
    this.canvas = h("canvas", { class: "strip", id: "strip", role: "img" });
    this.tip = h("div", { class: "tip strip-tip", role: "presentation", hidden: true });
    this.types = new TypeStrip(app, this);
    this.canvas.addEventListener("click", (event) => this.onClick(event));
    this.canvas.addEventListener("mousemove", (event) => this.onMove(event));
    this.canvas.addEventListener("mouseleave", () => { this.tip.hidden = true; });
    this.types.box.addEventListener("click", (event) => this.onClick(event));
    new ResizeObserver(perFrame(() => this.draw())).observe(this.canvas);
  }

  /** The smallest round number that is not less: of seconds, minutes and hours, or of changes. */
  static roundStep(least, isTime) {
    const power = 10 ** Math.floor(Math.log10(least));
    if (!isTime || least < 1) return Math.max(isTime ? 0 : 1, [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least));
    const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
    return steps.find((step) => step >= least) || Math.ceil(least / 86400) * 86400;
  }

  /** Computes the series for the width that there is. */
  compute(size) {
    const { timeline, app } = this;
    const places = Array.from({ length: size }, (_, i) => (size > 1 ? i / (size - 1) : 1));
    const series = seriesAt(app, places.map((place) => timeline.momentOf(place)));
    series.cost = recordedAt(app.data.series.cost, places.map((place) => place * timeline.end));
    return series;
  }

  draw() {
    const { canvas } = this;
    const wide = canvas.clientWidth, high = canvas.clientHeight;
    if (!wide || !this.app.tiles.ink) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = wide * ratio;
    canvas.height = high * ratio;
    this.size = Math.max(2, Math.min(400, Math.floor(wide / 2)));
    const series = this.series = this.compute(this.size);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const bottom = high - AXIS, long = wide - 2 * STRIP_MARGIN;
    const x = (i) => STRIP_MARGIN + (i / (this.size - 1)) * long;
    const most = Math.max(1, ...series.pending);
    const line = (values, highest) => {
      context.beginPath();
      values.forEach((value, i) => context.lineTo(x(i), bottom - (value / highest) * (bottom - 12)));
    };
    line(series.pending, most);
    context.lineTo(x(this.size - 1), bottom);
    context.lineTo(x(0), bottom);
    context.fillStyle = colour("--curve");
    context.fill();
    this.drawAxis(context, x, bottom, colour);
    context.lineWidth = 1.5;
    context.strokeStyle = colour("--c0");
    line(series.share, Math.max(1, ...series.share));
    context.stroke();
    if (series.cost) {
      context.strokeStyle = colour("--c1");
      line(series.cost, Math.max(1e-9, ...series.cost));
      context.stroke();
    }
    this.drawKeys(context, colour);
    this.types.draw(series, colour);
    canvas.setAttribute("aria-label", tr("Over the run: requested at most {share}, pending at most {pending}", { share: percent(Math.max(...series.share)), pending: plural(Math.max(...series.pending), "pod") }));
  }

  drawAxis(context, x, bottom, colour) {
    const { timeline, app } = this;
    context.strokeStyle = colour("--line");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x(0), bottom + 0.5);
    context.lineTo(x(this.size - 1), bottom + 0.5);
    context.stroke();
    context.fillStyle = colour("--soft");
    context.font = `10px ${app.tiles.font}`;
    context.textBaseline = "top";
    const end = timeline.isTimed ? timeline.end : Math.max(1, app.model.last);
    const step = Strip.roundStep(end / Math.max(2, Math.floor((x(this.size - 1) - x(0)) / 110)), timeline.isTimed);
    this.labels = [];
    let right = -Infinity;
    for (let value = 0; value <= end; value += step) {
      const at = x((value / end) * (this.size - 1));
      const words = timeline.isTimed ? timeline.words(value) : count(value);
      const wide = context.measureText(words).width;
      const left = Math.max(0, Math.min(at - wide / 2, this.canvas.clientWidth - wide));
      if (left < right + 6 || words === this.labels[this.labels.length - 1]) continue;
      context.fillRect(Math.round(at), bottom, 1, 3);
      context.fillText(words, left, bottom + 3);
      this.labels.push(words);
      right = left + wide;
    }
  }

  /** The meaning of the colours, with the highest values. */
  drawKeys(context, colour) {
    const { series, app } = this;
    const { resource } = app.tiles;
    const name = resource === FULLEST ? tr("fullest resource") : resourceName(app.data.resources[resource]);
    const keys = [["--c0", tr("{resource} requested, at most {share}", { resource: name, share: percent(Math.max(...series.share)) })], ["--curve", tr("pending, at most {n}", { n: count(Math.max(...series.pending)) })]];
    if (series.cost) keys.push(["--c1", tr("cost per hour, at most {n}", { n: COUNT.format(Math.round(100 * Math.max(...series.cost)) / 100) })]);
    let left = STRIP_MARGIN;
    context.textBaseline = "middle";
    for (const [key, words] of keys) {
      const room = this.canvas.clientWidth - left - 14;
      if (context.measureText(words).width > room && left > STRIP_MARGIN) break;
      context.fillStyle = colour(key);
      context.fillRect(left, 3, 10, 5);
      context.fillStyle = colour("--soft");
      context.fillText(Strip.cut(words, (text) => context.measureText(text).width <= room), left + 14, 6);
      left += 30 + context.measureText(words).width;
    }
  }

  /** The text, cut where it no longer fits. */
  static cut(words, fits) {
    let size = words.length;
    while (size > 1 && !fits(size < words.length ? `${words.slice(0, size)}…` : words)) size -= 1;
    return size < words.length ? `${words.slice(0, size)}…` : words;
  }

  /** The slider position below the mouse. */
  placeAt(event) {
    const area = this.canvas.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - area.left - STRIP_MARGIN) / Math.max(1, area.width - 2 * STRIP_MARGIN)));
  }

  onClick(event) {
    const place = this.placeAt(event);
    this.timeline.goToChange(place, SNAP / Math.max(1, this.canvas.clientWidth));
  }

  onMove(event) {
    const { series, timeline, tip } = this;
    if (!series) return;
    const i = Math.round(this.placeAt(event) * (this.size - 1));
    const place = i / (this.size - 1);
    const words = [tr("requested {share}", { share: percent(series.share[i]) }), tr("pending {n}", { n: count(series.pending[i]) }), plural(series.nodes[i], "node")];
    if (series.cost) words.push(tr("cost per hour {n}", { n: COUNT.format(series.cost[i]) }));
    words.push(...this.types.words(i));
    fill(tip, h("strong", {}, timeline.isTimed ? timeline.words(place * timeline.end) : plural(timeline.momentOf(place), "change")), h("span", {}, words.join(" · ")));
    tip.hidden = false;
    const left = Math.min(event.offsetX + 12, this.canvas.clientWidth - tip.offsetWidth - 8);
    tip.style.transform = `translate(${Math.max(0, left)}px, ${-tip.offsetHeight - 4}px)`;
  }
}
