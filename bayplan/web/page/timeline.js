// Timeline: the slider, the play button, and going from change to change.

const FINE = 10000;
const PLAY_S = 24;
const SPEEDS = [0.25, 0.5, 1, 2, 4];

class Timeline {
  constructor(app) {
    this.app = app;
    this.isPlaying = false;
    this.speed = 1;
    this.place = 1;
    /** A live page shows the newest moment until the slider is moved. */
    this.isFollowing = true;
    this.make();
  }

  /** Whether time passed in the run; otherwise the slider moves change by change. */
  get isTimed() {
    return this.app.data.isLive || this.app.data.time > 0;
  }

  /** The number of slider positions. */
  get fine() {
    return this.isTimed ? FINE : Math.max(1, this.app.model.last);
  }

  get end() {
    return Math.max(this.app.data.time, 1e-9);
  }

  make() {
    const step = (by, words, sign) => h("button", { type: "button", class: "step", title: words, "aria-label": words, onclick: () => this.stepBy(by) }, sign);
    this.playButton = h("button", { type: "button", class: "play", id: "play", onclick: () => this.toggle() }, tr("Play"));
    this.slider = h("input", { type: "range", id: "slider", min: 0, max: this.fine, step: this.isTimed ? 10 : 1, "aria-label": tr("Moment of the run"), oninput: () => this.onSlide() });
    this.label = h("output", { class: "moment", id: "moment", for: "slider" });
    this.strip = new Strip(this.app, this);
    this.speedSelect = h("select", { id: "speed", "aria-label": tr("Speed"), onchange: () => { this.speed = Number(this.speedSelect.value); } },
      SPEEDS.map((speed) => h("option", { value: speed, selected: speed === 1 }, `${speed}×`)));
    this.liveButton = h("button", { type: "button", class: "now", id: "now", hidden: !this.app.data.isLive, onclick: () => this.follow() }, tr("Live"));
    fill($("time"), step(-1, tr("Previous change"), "‹"), this.playButton, step(1, tr("Next change"), "›"),
      h("div", { class: "tracks" }, this.strip.types.box, h("div", { class: "track" }, this.strip.canvas, this.strip.tip, this.slider)), this.label, this.speedSelect, this.liveButton);
    $("time").hidden = !this.app.data.isLive && this.app.model.last === 0;
  }

  words(seconds) {
    const { data } = this.app;
    if (data.isLive) return clockTime(new Date(data.started.getTime() + seconds * 1000));
    return data.time > 0 ? elapsed(seconds) : "";
  }

  /** The moment at a slider position, 0 to 1. */
  momentOf(place) {
    const { model } = this.app;
    if (!this.isTimed) return Math.round(place * model.last);
    if (place <= 0) return 0;
    return model.momentAt(place * this.end + 1e-9);
  }

  /** The slider position of a moment. */
  placeOf(moment) {
    const { model, data } = this.app;
    if (!this.isTimed) return model.last ? moment / model.last : 1;
    return moment > 0 ? Math.min(1, data.events.t[moment - 1] / this.end) : 0;
  }

  /** The moment as an address names it: nothing at the end, a time where time passes, else a number of changes. */
  field() {
    const { data, model } = this.app;
    if (this.isFollowing || this.place >= 1) return {};
    if (!this.isTimed) return { at: String(model.at) };
    const seconds = this.place * this.end;
    return { t: data.isLive ? new Date(data.started.getTime() + seconds * 1000).toISOString() : String(Math.round(seconds * 1000) / 1000) };
  }

  /** Goes to the moment that an address names. */
  readField(time, at) {
    const { data, model } = this.app;
    this.isPlaying = false;
    const seconds = data.isLive ? (Date.parse(time) - data.started.getTime()) / 1000 : Number(time);
    this.isFollowing = !(time && Number.isFinite(seconds)) && !at;
    if (this.isFollowing) this.go(1, model.last);
    else if (at) this.go(this.placeOf(Number(at) || 0), Number(at) || 0);
    else this.go(seconds / this.end);
  }

  go(place, moment = this.momentOf(place)) {
    this.place = Math.max(0, Math.min(1, place));
    this.app.model.seek(moment);
    this.app.compare.seek(this.place, this.place * this.end);
    this.draw();
    this.app.refresh();
    if (!this.isPlaying && !this.isFollowing) this.app.address.write(false);
  }

  stepBy(by) {
    this.stop();
    this.isFollowing = false;
    const { model, data } = this.app;
    let moment = model.at + by;
    if (this.isTimed) {
      const { t } = data.events;
      // Changes of one moment are one step.
      if (by > 0) moment = model.at < model.last ? model.momentAt(t[model.at]) : model.last;
      else moment = model.at > 0 ? lowerBound(t, t[model.at - 1]) : 0;
    }
    this.go(this.placeOf(moment), Math.max(0, Math.min(model.last, moment)));
  }

  /** Goes to a moment. */
  goTo(moment) {
    if (moment === this.app.model.at) return;
    this.isPlaying = this.isFollowing = false;
    this.go(this.placeOf(moment), moment);
  }

  /** Goes to the change nearest to a slider position, if there is one within `reach`, and lists the changes. */
  goToChange(place, reach) {
    const { model, lists, address } = this.app;
    this.isPlaying = this.isFollowing = false;
    const at = this.momentOf(place);
    const near = [at, Math.min(model.last, at + 1)].map((moment) => [moment, this.placeOf(moment)])
      .sort((a, b) => Math.abs(a[1] - place) - Math.abs(b[1] - place))[0];
    if (Math.abs(near[1] - place) > reach) this.go(place);
    else this.go(near[1], this.isTimed ? this.momentOf(near[1]) : near[0]);
    lists.show("log");
    address.write();
  }

  onSlide() {
    const value = Number(this.slider.value);
    this.isPlaying = false;
    this.isFollowing = value === this.fine;
    this.go(value / this.fine);
  }

  toggle() {
    if (this.isPlaying) {
      this.stop();
      return;
    }
    this.isFollowing = false;
    if (this.place >= 1) this.go(0);
    this.isPlaying = true;
    this.last = performance.now();
    this.draw();
    requestAnimationFrame((now) => this.playOn(now));
  }

  stop() {
    this.isPlaying = false;
    this.draw();
    this.app.address.write(false);
  }

  playOn(now) {
    if (!this.isPlaying) return;
    const passed = Math.min(0.1, (now - this.last) / 1000);
    this.last = now;
    this.go(this.place + (passed * this.speed) / PLAY_S);
    if (this.place >= 1) {
      this.isFollowing = this.app.data.isLive;
      this.stop();
    } else requestAnimationFrame((next) => this.playOn(next));
  }

  follow() {
    this.stop();
    this.isFollowing = true;
    this.go(1, this.app.model.last);
  }

  /** Handles new data of a live page. */
  grew() {
    $("time").hidden = false;
    if (this.isFollowing) this.go(1, this.app.model.last);
    else {
      this.place = this.placeOf(this.app.model.at);
      this.draw();
    }
    this.strip.draw();
  }

  draw() {
    const { model } = this.app;
    this.slider.value = Math.round(this.place * this.fine);
    const words = this.isTimed ? this.words(this.place * this.end) : tr("{n} of {m} changes", { n: count(model.at), m: count(model.last) });
    this.label.textContent = words;
    this.slider.setAttribute("aria-valuetext", words);
    this.playButton.textContent = this.isPlaying ? tr("Pause") : tr("Play");
    this.playButton.setAttribute("aria-pressed", this.isPlaying);
    this.liveButton.setAttribute("aria-pressed", this.isFollowing);
  }
}

function lowerBound(times, value) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
