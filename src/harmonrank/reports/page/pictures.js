// Draws every chart of a page as an image, and leaves the images in place of the page.
(async () => {
  const root = document.documentElement;
  while (root.dataset.ready !== "true") await new Promise((next) => setTimeout(next, 50));
  const pictures = {};
  for (const chart of document.querySelectorAll(".chart")) {
    const wide = chart.closest(".wide"), named = chart.data.filter((t) => t.name);
    const part = chart.closest("section").querySelector("h2").textContent;
    const title = chart.closest("figure").querySelector("figcaption").textContent;
    const caption = [part, title].filter(Boolean).join(": ");
    const data = chart.data.map((t) => ({ ...t, showlegend: Boolean(t.name) }));
    const size = { width: wide ? 1000 : 640, height: chart.layout.height + 80 };
    const layout = {
      ...chart.layout, ...size, autosize: false, paper_bgcolor: "#ffffff",
      title: { text: caption, x: 0.02, font: { size: 16 } },
      showlegend: named.length > 1,
      legend: {
        orientation: "h", traceorder: "normal", yref: "container", y: 0.01, yanchor: "bottom", x: 0,
      },
      margin: { ...chart.layout.margin, t: 50, b: 80 },
    };
    const options = { format: "$format", scale: "$format" === "svg" ? 1 : 2, ...size };
    const image = (await Plotly.toImage({ data, layout }, options)).split(/,(.*)/s)[1];
    pictures[chart.dataset.figure] = options.format === "svg" ? btoa(unescape(image)) : image;
  }
  const answer = document.createElement("pre");
  answer.id = "pictures";
  answer.textContent = JSON.stringify(pictures);
  document.body.replaceChildren(answer);
})();
