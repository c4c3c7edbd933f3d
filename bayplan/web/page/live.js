// Live: long-polls the page's own server for changes. The token is never part of a URL that is sent.

const RETRY_MS = 2000;
const USE_MS = 30000;

class Live {
  constructor(app, epoch) {
    this.app = app;
    this.epoch = epoch;
    this.isAsking = false;
  }

  static token() {
    const fields = new URLSearchParams(location.hash.slice(1));
    const given = fields.get("token");
    if (given) {
      sessionStorage.setItem("bayplan-token", given);
      fields.delete("token");
      const rest = fields.toString();
      history.replaceState(null, "", rest ? `#${rest}` : location.pathname);
    }
    return given || sessionStorage.getItem("bayplan-token") || "";
  }

  static async ask(path, query) {
    const parameters = new URLSearchParams(query);
    const token = Live.token();
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    const response = await fetch(`${path}?${parameters}`, { headers, cache: "no-store", credentials: "omit" });
    if (response.status === 401) throw new Error(tr("The token is missing or wrong. Open the address that the server printed, or add #token=… to this one."));
    if (response.status === 403) throw new Error(tr("You may not see this cluster. Another token can be given with #token=… in the address."));
    if (response.status === 503) throw new Error(tr("The cluster is not loaded yet; retrying."));
    if (!response.ok) throw new Error(tr("The server answered with {status}.", { status: response.status }));
    return response.json();
  }

  /** Sends a question or a change; raises an Error with what the server says. */
  static async post(path, body) {
    const token = Live.token();
    const headers = { "Content-Type": "application/json", "X-Bayplan-Page": "1", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    let response;
    try {
      response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), cache: "no-store", credentials: "omit" });
    } catch {
      throw new Error(tr("The server cannot be reached."));
    }
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.error || answer.message || tr("The server answered with {status}.", { status: response.status }));
    return answer;
  }

  /** Follows the server until the page is closed. */
  async follow() {
    for (;;) {
      try {
        const { data } = this.app;
        const tale = await Live.ask("changes", { epoch: this.epoch, events: this.told, ...data.known() });
        notice("");
        if (tale.epoch !== this.epoch) {
          location.reload();
          return;
        }
        this.told = tale.events.first + data.extend(tale);
        this.app.grew();
      } catch (error) {
        notice(error instanceof TypeError ? tr("The server cannot be reached; retrying.") : error.message);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** Asks for the measured use of pods until the page is closed. */
  async followUse() {
    for (;;) {
      try {
        this.app.data.measure(await Live.ask("use", {}));
        this.app.details.update(true);
      } catch (error) {
        this.app.data.useProblem = error.message;
      }
      await new Promise((resolve) => setTimeout(resolve, USE_MS));
    }
  }

  async judge(pod) {
    this.isAsking = true;
    try {
      return await Live.ask("pod", { namespace: this.app.data.namespace(pod), name: this.app.data.podName(pod) });
    } catch (error) {
      return { when: "now", error: error.message };
    } finally {
      this.isAsking = false;
    }
  }
}

function notice(text) {
  $("notice").hidden = !text;
  $("notice").textContent = text;
}
