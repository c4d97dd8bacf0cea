// Draws the figures in the colours of the theme, sorts tables, toggles traces. No request is made.
(() => {
  // Where Plotly could not start, the numbers stay in place of the charts.
  if (!window.Plotly) return;
  const root = document.documentElement;
  root.classList.add("scripted");
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const charts = [...document.querySelectorAll(".chart")];
  const folds = [...document.querySelectorAll(".numbers")];
  const hidden = new WeakMap();
  let picked = null;
  // On paper charts are redrawn in light colours, two beside each other, and numbers unfold.
  const paper = matchMedia("print");
  const [PAGE, HALF] = [660, 322];
  const config = {
    displaylogo: false, responsive: true, scrollZoom: false, showTips: false,
    // Without a pointer that hovers, the buttons would cover the chart for good.
    displayModeBar: matchMedia("(hover: hover)").matches ? "hover" : false,
    modeBarButtons: [["toImage", "resetScale2d"]],
  };

  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function scale(name) {
    const blue = "#0077BB", orange = "#EE7733", middle = css("--panel");
    return name === "--scale-diverging"
      ? [[0, orange], [0.5, middle], [1, blue]]
      : [[0, middle], [1, blue]];
  }

  // Strings that start with -- are names of the theme's colours.
  function themed(value) {
    if (typeof value === "string" && value.startsWith("--"))
      return value.startsWith("--scale-") ? scale(value) : css(value);
    if (Array.isArray(value)) return value.map(themed);
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, themed(v)]));
    return value;
  }

  // Long names are cut; a pointer on the mark, and the table, show them whole.
  function named(axis, values, most) {
    const names = [...new Set(values.flat().filter((v) => typeof v === "string"))];
    if (!names.some((name) => name.length > most || /[<&]/.test(name))) return axis;
    const cut = (name) => (name.length > most ? name.slice(0, most - 6) + "…" + name.slice(-5) : name);
    const safe = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    const ticktext = names.map((name) => safe(cut(name)));
    return { ...axis, type: "category", tickmode: "array", tickvals: names, ticktext };
  }

  function layout(figure) {
    const narrow = window.innerWidth < 560;
    const axis = { gridcolor: css("--line"), linecolor: css("--line"), tickfont: { size: 12 } };
    const titled = (own, values) => ({
      ...axis, ...named(own, values, narrow ? 14 : 26),
      title: { ...own.title, font: { size: 12.5 } },
    });
    const own = themed(figure.layout);
    const width = paper.matches ? (figure.wide ? PAGE : HALF) : undefined;
    return {
      ...own, height: figure.height, autosize: !paper.matches, width,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: css("--text") },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 46, r: narrow ? 14 : 18, t: figure.layout.showlegend ? 64 : 14, b: 44 },
      xaxis: titled(own.xaxis, figure.data.map((t) => t.x ?? [])),
      yaxis: titled(own.yaxis, figure.data.map((t) => t.y ?? [])),
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--muted"), activecolor: css("--ink") },
      hoverlabel: { bgcolor: css("--panel"), bordercolor: css("--muted"), font: { color: css("--ink") } },
      dragmode: narrow ? false : "zoom", bargap: 0.28,
    };
  }

  function traces(chart, figure) {
    const off = hidden.get(chart.closest("section")) ?? new Set();
    return themed(figure.data)
      .map((t) => (off.has(t.meta) ? { ...t, visible: false } : t))
      .map((t) => (picked !== null && t.ids ? { ...t, selectedpoints: [t.ids.indexOf(picked)].filter((i) => i >= 0) } : t));
  }

  function draw(chart) {
    const figure = figures[chart.dataset.figure];
    return Plotly.react(chart, traces(chart, figure), layout(figure), config);
  }

  function legends() {
    for (const button of document.querySelectorAll(".legend button")) {
      const section = button.closest("section");
      if (!hidden.has(section)) hidden.set(section, new Set());
      const off = hidden.get(section), name = button.dataset.trace;
      if (button.getAttribute("aria-pressed") === "false") off.add(name);
      button.addEventListener("click", () => {
        off.has(name) ? off.delete(name) : off.add(name);
        button.setAttribute("aria-pressed", String(!off.has(name)));
        section.querySelectorAll(".chart").forEach(draw);
      });
    }
  }

  // A point has one number in all charts: picked in one, it is shown in each.
  function pickers() {
    const all = [...document.querySelectorAll(".picker")];
    const pick = (id) => {
      picked = id;
      for (const picker of all) {
        picker.querySelector("input").value = id;
        picker.querySelector("output").textContent = JSON.parse(picker.dataset.picks)[id];
        picker.closest("section").querySelectorAll(".chart").forEach(draw);
      }
    };
    for (const picker of all) {
      const input = picker.querySelector("input"), known = JSON.parse(picker.dataset.picks);
      input.addEventListener("input", () => { if (known[input.value]) pick(input.value); });
      for (const chart of picker.closest("section").querySelectorAll(".chart"))
        chart.on("plotly_click", (event) => { if (event.points[0].id) pick(event.points[0].id); });
    }
  }

  function sortable(table) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    heads.forEach((head, column) => {
      const key = (row) => {
        const value = row.cells[column].dataset.value;
        return value === undefined ? null : Number(value);
      };
      const numeric = [...body.rows].some((row) => key(row) !== null);
      head.firstElementChild.addEventListener("click", () => {
        const was = head.getAttribute("aria-sort");
        const down = was ? was === "ascending" : numeric;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sign = down ? -1 : 1;
        const text = (row) => row.cells[column].textContent;
        const order = (a, b) => {
          if (!numeric) return sign * text(a).localeCompare(text(b), undefined, { numeric: true });
          const [x, y] = [key(a), key(b)];
          // What is not known comes last, whichever way.
          return x === null || y === null ? (x === null) - (y === null) : sign * (x - y);
        };
        body.append(...[...body.rows].sort(order));
      });
    });
  }

  async function start() {
    folds.forEach((fold) => { fold.open = false; });
    document.querySelectorAll("table.sortable").forEach(sortable);
    legends();
    for (const chart of charts) {
      await draw(chart);
      // Let the page answer between charts.
      await new Promise((next) => setTimeout(next));
    }
    pickers();
    root.dataset.ready = "true";
  }

  const again = () => charts.forEach(draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  let unfolded = [];
  paper.addEventListener("change", () => {
    if (paper.matches) unfolded = folds.filter((fold) => fold.open);
    folds.forEach((fold) => { fold.open = paper.matches || unfolded.includes(fold); });
    again();
  });
  start();
})();
