"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const state = { facts: null, weights: {}, context: {}, last: null, asked: 0, key: null, traces: {} };

  function element(name, options = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(options)) {
      if (key === "class") made.className = value;
      else if (key in made) made[key] = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  async function ask(path, body) {
    const headers = state.key ? { Authorization: `Bearer ${state.key}` } : {};
    const options = { headers };
    if (body !== undefined) {
      options.method = "POST";
      options.body = JSON.stringify(body);
      headers["Content-Type"] = "application/json";
    }
    const answer = await fetch(path, options);
    const found = await answer.json();
    if (answer.status === 401) byId("keyform").hidden = false;
    if (!answer.ok) throw new Error(found.error);
    return found;
  }

  const digits = (value, count = 4) => (value === null || value === undefined ? "–" : value.toFixed(count));
  const short = (value) => (value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3));

  function rows(id, list) {
    const body = byId(id).tBodies[0];
    body.replaceChildren(...list.map(({ cells, kind }) => {
      const row = element("tr", kind ? { class: kind } : {});
      for (const cell of cells) row.append(cell instanceof Node ? cell : element("td", {}, String(cell)));
      return row;
    }));
  }
  const number = (text) => element("td", { class: "number" }, text);

  function showModel(facts) {
    byId("title").textContent = `${facts.name}, version ${facts.version}`;
    byId("subtitle").textContent =
      `${facts.method}: ${facts.objectives.length} objectives` + (facts.auc_sum === null ? "." : `, AUC-sum ${digits(facts.auc_sum)} at publication.`);
    rows("objectives", facts.objectives.map((o) => ({ cells: [
      o.name, o.score, number(String(o.weight)), number(`${(100 * o.prevalence).toPrecision(3)} %`),
      number(`${(100 * o.effective_weight).toFixed(1)} %`), number(digits(o.auc)),
    ] })));
    byId("history").hidden = facts.history.length === 0;
    rows("versions", facts.history.map((v) => ({ kind: v.state === "current" ? "current" : "", cells: [
      v.version, v.state, v.created.replace("T", " ").replace("+00:00", " UTC"), v.method, number(digits(v.auc_sum)), v.window,
      element("td", { class: "note" }, v.note),
    ] })));
  }

  function setWeight(name, value) {
    state.weights[name] = value;
    const slider = byId(`weight-${name}`);
    slider.value = value;
    byId(`value-${name}`).textContent = String(value);
  }

  function showControls(facts) {
    byId("sliders").replaceChildren(...facts.objectives.map((o) => {
      const slider = element("input", { type: "range", id: `weight-${o.name}`, min: 0, max: Math.max(10, o.weight), step: 0.1 });
      slider.disabled = !facts.reweightable;
      slider.addEventListener("input", () => { setWeight(o.name, Number(slider.value)); rank(); });
      return element("div", { class: "field" }, element("label", { htmlFor: slider.id }, o.name), slider, element("output", { id: `value-${o.name}`, for: slider.id }));
    }));
    if (!facts.reweightable) byId("sliders").append(element("p", { class: "muted" }, `${facts.method} cannot change weights after the fit.`));
    const reset = ["as fitted", Object.fromEntries(facts.objectives.map((o) => [o.name, o.weight]))];
    const choices = facts.reweightable ? [reset, ...Object.entries(facts.points)] : [];
    byId("points").replaceChildren(...choices.map(([name, weights]) => {
      const button = element("button", { type: "button", class: "plain" }, name);
      button.addEventListener("click", () => {
        for (const o of facts.objectives) setWeight(o.name, weights[o.name] ?? o.weight);
        rank();
      });
      return button;
    }));
    for (const o of facts.objectives) setWeight(o.name, o.weight);
    byId("contexts").replaceChildren(...facts.context.map(contextField));
    if (!facts.context.length) byId("contexts").append(element("p", { class: "muted" }, "The model has no context."));
    byId("legend").replaceChildren(...(facts.probabilities ? facts.objectives.map((o, m) => element("span", {}, element("i", { class: `k${m % 8}` }), o.name)) : []));
  }

  function contextField(feature) {
    const id = `context-${feature.name}`;
    let input;
    if (feature.kind === "number") {
      input = element("input", { type: "number", id, step: "any", placeholder: "unknown" });
      input.addEventListener("input", () => { state.context[feature.name] = input.value === "" ? null : Number(input.value); rank(); });
      state.context[feature.name] = null;
    } else {
      input = element("select", { id }, element("option", { value: "-1" }, "unknown"), ...feature.values.map((v, n) => element("option", { value: String(n) }, String(v))));
      input.addEventListener("change", () => { state.context[feature.name] = feature.values[Number(input.value)] ?? null; rank(); });
      input.value = feature.values.length ? "0" : "-1";
      state.context[feature.name] = feature.values[0] ?? null;
    }
    return element("div", { class: "field" }, element("label", { htmlFor: id }, feature.name), input);
  }

  function generate() {
    const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
    const scores = {}, chance = { probability: 1, percent: 100 };
    for (const o of state.facts.objectives) {
      const centre = Math.log(o.prevalence / (1 - o.prevalence));
      const value = (logit) => (o.scale in chance ? chance[o.scale] / (1 + Math.exp(-logit)) : logit);
      scores[o.score] = Array.from({ length: 12 }, () => Number(value(centre + normal()).toPrecision(3)));
    }
    const lines = Object.entries(scores).map(([name, list]) => `  ${JSON.stringify(name)}: ${JSON.stringify(list).replaceAll(",", ", ")}`);
    byId("input").value = `{\n${lines.join(",\n")}\n}`;
  }

  function complain(text) {
    byId("message").textContent = text;
    byId("message").hidden = text === "";
  }

  async function rank() {
    const asked = ++state.asked;
    let scores;
    try {
      scores = JSON.parse(byId("input").value);
    } catch (error) {
      complain(`The candidates are not JSON: ${error.message}.`);
      return;
    }
    if (scores === null || typeof scores !== "object" || Array.isArray(scores)) {
      complain('The candidates must be an object with a list of numbers for each score, such as {"p_buy": [0.1, 0.2]}.');
      return;
    }
    const fitted = { scores, context: state.context, k: 100 };
    const body = { ...fitted, shares: state.facts.probabilities };
    if (state.facts.reweightable) body.weights = state.weights;
    try {
      const found = await ask("v1/rank", { requests: state.facts.reweightable ? [body, fitted] : [body] });
      if (asked !== state.asked) return; // A newer question is on its way.
      complain("");
      showRanking(found.version, ...found.results.map((result) => result.ranked));
    } catch (error) {
      if (asked === state.asked) complain(error.message);
    }
  }

  function shareBar(shares) {
    const parts = Object.entries(shares ?? {});
    const words = parts.map(([name, share]) => `${name} ${Math.round(100 * share)} %`).join(", ");
    const bar = element("div", { class: "bar", role: "img", "aria-label": words || "not known", title: words });
    parts.forEach(([, share], m) => {
      const piece = element("span", { class: `k${m % 8}` });
      piece.style.width = `${100 * share}%`;
      bar.append(piece);
    });
    return element("td", {}, bar);
  }

  // How many places a candidate gained over the ranking with the weights as fitted.
  function move(places) {
    const count = Math.abs(places), words = `${places > 0 ? "up" : "down"} ${count} ${count === 1 ? "place" : "places"} from the weights as fitted`;
    if (!places) return "";
    return element("span", { class: places > 0 ? "up" : "down", title: words, role: "img", "aria-label": words }, `${places > 0 ? "▲" : "▼"}\u2009${count}`);
  }

  function showRanking(version, ranked, fitted = ranked) {
    const before = new Map(fitted.map((row, place) => [row.index, place]));
    rows("ranking", ranked.map((row, place) => ({ cells: [
      place + 1, element("td", {}, String(row.index + 1), move((before.get(row.index) ?? place) - place)),
      number(row.fused.toPrecision(5)), shareBar(row.shares),
    ] })));
    byId("ranking").dataset.order = ranked.map((row) => row.index + 1).join(" ");
    byId("ranking").dataset.asked = state.asked;
    const moved = ranked.filter((row, place) => before.get(row.index) !== place).length;
    const others = moved ? `${moved} of ${ranked.length} stand elsewhere than with the weights as fitted.` : "";
    byId("order").textContent = ranked.length ? `Best: candidate ${ranked[0].index + 1}, by version ${version}. ${others}` : "";
  }

  // The upper end, in seconds, of the bucket that holds a quantile; infinite above all of them.
  function quantile(counts, ends, share) {
    const total = counts.reduce((a, b) => a + b, 0);
    let seen = 0;
    for (let n = 0; n < ends.length; n += 1) {
      seen += counts[n];
      if (total && seen >= share * total) return ends[n];
    }
    return total ? Infinity : null;
  }

  function latency(seconds, ends) {
    if (seconds === null) return "–";
    return seconds < Infinity ? `≤ ${1000 * seconds} ms` : `> ${1000 * ends[ends.length - 1]} ms`;
  }

  // A line of the last two minutes behind a card's number.
  function trace(name, value) {
    const kept = (state.traces[name] = [...(state.traces[name] ?? []), value].slice(-60));
    const most = Math.max(...kept, 1e-9);
    const step = 59 / Math.max(kept.length - 1, 1);
    const points = kept.map((v, n) => `${(n * step).toFixed(2)},${(15 - (14 * v) / most).toFixed(2)}`).join(" ");
    byId(`trace-${name}`).setAttribute("points", points);
  }

  function showStatus(now) {
    const before = state.last, at = performance.now();
    state.last = { at, now };
    byId("workers").textContent = now.workers;
    byId("failed").textContent = Object.values(now.errors).reduce((a, b) => a + b, 0);
    byId("failed").title = Object.entries(now.errors).map(([status, count]) => `${status}: ${count}`).join(", ");
    if (before) {
      const seconds = (at - before.at) / 1000;
      for (const [name, field] of [["rate", "requests"], ["candidates", "candidates"]]) {
        const rate = Math.max(now[field] - before.now[field], 0) / seconds;
        byId(name).textContent = short(rate);
        trace(name, rate);
      }
    }
    // Of the requests since the last look; where there were none, what was shown stays.
    const recent = now.latency.map((count, n) => count - (before ? before.now.latency[n] : 0));
    if (!before || recent.some((count) => count > 0)) {
      for (const [name, share] of [["p50", 0.5], ["p99", 0.99]]) {
        const seconds = quantile(recent, now.bucket_ends, share);
        byId(name).textContent = latency(seconds, now.bucket_ends);
        if (seconds !== null) trace(name, Math.min(seconds, 2 * now.bucket_ends[now.bucket_ends.length - 1]));
      }
    }
    showDrift(now.drift);
  }

  function showDrift(drift) {
    const alarm = byId("alarm");
    alarm.hidden = !(drift && drift.command);
    if (drift && drift.command) alarm.textContent = `An upstream model was replaced: ${drift.replaced.join(", ")}. Recalibrate with: ${drift.command}`;
    if (!drift) {
      byId("drift").replaceChildren(element("p", { class: "muted" }, "Drift of the scores is shown once enough rows were scored."));
      return;
    }
    const body = element("tbody", {}, ...drift.columns.map((c) => element("tr", {},
      element("td", {}, c.column), number(`${c.offset >= 0 ? "+" : ""}${c.offset.toFixed(2)}`), number(`× ${c.scale.toFixed(2)}`), element("td", {}, c.verdict))));
    const head = element("thead", {}, element("tr", {}, ...["score", "median moved, in sd", "spread", "verdict"].map((text, n) => element("th", { scope: "col", class: n === 1 || n === 2 ? "number" : "" }, text))));
    byId("drift").replaceChildren(element("h3", {}, "Drift of the scores since the fit"), element("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Drift" }, element("table", {}, head, body)), element("p", { class: "muted" }, `${drift.rows.toLocaleString("en")} rows. ${drift.evidence.join(" ")}`));
  }

  async function refresh() {
    try {
      const now = await ask("v1/status");
      showStatus(now);
      if (now.version !== state.facts.version) {
        state.facts = await ask("v1/model");
        showModel(state.facts);
        rank();
      }
    } catch (error) {
      byId("subtitle").textContent = `The service does not answer: ${error.message}`;
    }
  }

  async function start() {
    try {
      state.facts = await ask("v1/model");
    } catch (error) {
      byId("subtitle").textContent = error.message;
      return;
    }
    byId("keyform").hidden = true;
    showModel(state.facts);
    showControls(state.facts);
    generate();
    await rank();
    await refresh();
    if (!state.timer) state.timer = setInterval(refresh, 2000);
    document.documentElement.dataset.ready = "true";
  }

  byId("keyform").addEventListener("submit", (event) => { event.preventDefault(); state.key = byId("key").value; start(); });
  byId("rank").addEventListener("click", rank);
  byId("input").addEventListener("input", rank);
  byId("generate").addEventListener("click", () => { generate(); rank(); });
  start();
})();
