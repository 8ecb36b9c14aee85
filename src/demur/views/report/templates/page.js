"use strict";
// The page's behaviour. What it shows was escaped by the program that wrote it; here, text only
// ever becomes text, save for the details of a run, which are whole elements made by that program.
(() => {
  const PAGE = 50; // rows on a page
  const MOST_SHOWN = 500; // signs of a text in the table, which shows three lines of it
  const root = document.documentElement;
  root.classList.add("has-script");
  const find = (id) => document.getElementById(id);
  const read = (id) => JSON.parse(find(id).textContent);
  const element = (name, text = "", type = "") => {
    const made = document.createElement(name);
    made.textContent = text;
    if (type) made.className = type;
    return made;
  };
  const percent = (share) => (share === null ? "–" : `${(share * 100).toFixed(1)} %`);
  const count = (number) => number.toLocaleString("en");

  const runs = read("data");
  const total = runs.id.length;
  const sections = [...document.querySelectorAll(".evaluator")];
  const sliders = sections.map((_, at) => slider(at));
  let shown = 0; // the evaluator

  // --- The table ---------------------------------------------------------------------------------

  const LABELS = { true: "hallucinated", false: "not hallucinated" };
  const value = (key, at) => {
    if (key === "score") return runs.scores[shown]?.[at] ?? null;
    return key === "label" ? (LABELS[runs.label[at]] ?? null) : runs[key][at];
  };
  const words = ["answer", "question", "id", "model", "name"]; // what is searched
  const texts = new Array(total);
  const heads = [...document.querySelectorAll("#rows thead button")];
  let order = sections.length ? "score" : "time";
  let rising = order === "score"; // the worst first, or the newest
  let chosen = [];
  let page = 0;

  function fits() {
    const query = find("query").value.toLowerCase().trim();
    const asked = (id) => find(id)?.value ?? "";
    const names = ["verdict", "outcome", "finding", "label", "side"];
    const [verdict, outcome, finding, label, side] = names.map(asked);
    const labels = { yes: true, no: false, "-": null };
    return (at) => {
      if (verdict && runs.verdict[at] !== verdict) return false;
      if (outcome && runs.outcome[at] !== outcome) return false;
      if (finding && runs.findings[shown]?.[at] !== finding) return false;
      if (label && runs.label[at] !== labels[label]) return false;
      if (side) {
        const score = value("score", at);
        const passes = score >= sliders[shown].threshold();
        if (score === null || passes !== (side === "passes")) return false;
      }
      if (!query) return true;
      texts[at] ??= words.map((word) => runs[word][at] ?? "").join("\n").toLowerCase();
      return texts[at].includes(query);
    };
  }

  function choose() {
    const fit = fits();
    chosen = [];
    for (let at = 0; at < total; at++) if (fit(at)) chosen.push(at);
    const keys = new Map(chosen.map((at) => {
      const key = value(order, at);
      return [at, typeof key === "string" ? key.toLowerCase() : key];
    }));
    const way = rising ? 1 : -1;
    chosen.sort((a, b) => {
      const [one, other] = [keys.get(a), keys.get(b)];
      if (one === other) return b - a; // the newer first
      if (one === null || other === null) return one === null ? 1 : -1; // what there is first
      return one < other ? -way : way;
    });
    page = 0;
    show();
  }

  function show() {
    const pages = Math.max(1, Math.ceil(chosen.length / PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    const rows = chosen.slice(page * PAGE, (page + 1) * PAGE).map(row);
    document.querySelector("#rows tbody").replaceChildren(...rows);
    for (const head of heads) {
      const way = head.dataset.key === order ? (rising ? "ascending" : "descending") : "none";
      head.closest("th").setAttribute("aria-sort", way);
    }
    const [first, last] = [page * PAGE + 1, Math.min((page + 1) * PAGE, chosen.length)];
    const some = chosen.length === total ? "" : `${count(chosen.length)} of `;
    const told = `${some}${count(total)} runs, ${count(first)} to ${count(last)} shown`;
    find("shown").textContent = chosen.length ? told : "No run matches.";
    find("page").textContent = `Page ${count(page + 1)} of ${count(pages)}`;
    find("back").disabled = page === 0;
    find("forth").disabled = page === pages - 1;
  }

  function row(at) {
    const made = element("tr");
    made.setAttribute("role", "row");
    made.dataset.run = at;
    for (const head of heads) {
      const key = head.dataset.key;
      const found = value(key, at);
      const cell = element("td", "", key);
      cell.setAttribute("role", "cell");
      cell.dataset.head = head.textContent;
      if (key === "question") {
        const link = element("a", (found ?? "(no question)").slice(0, MOST_SHOWN));
        link.href = address(at);
        cell.append(link);
      } else if (found === null) cell.append(element("span", "–", "none"));
      else if (key === "time") cell.append(element("time", moment(found)));
      else if (key === "score") cell.textContent = score(found);
      else if (key === "verdict")
        cell.append(element("span", found.replaceAll("_", " "), `word ${found}`));
      else if (key === "label")
        cell.append(element("span", found, `word ${found.split(" ")[0]}`));
      else if (key === "outcome") cell.append(element("span", found.replaceAll("_", " ")));
      else cell.append(element("span", String(found).slice(0, MOST_SHOWN)));
      made.append(cell);
    }
    return made;
  }
  const score = (number) => {
    const size = Math.abs(number);
    return size && (size < 0.001 || size >= 1e5) ? number.toPrecision(3) : number.toFixed(3);
  };
  const moment = (time) => new Date(time).toISOString().slice(0, 19).replace("T", "\n");

  for (const head of heads) {
    head.addEventListener("click", () => {
      rising = order === head.dataset.key ? !rising : true;
      order = head.dataset.key;
      choose();
    });
  }
  const turn = (pages) => {
    page += pages;
    show();
    find("answers").scrollIntoView();
  };
  find("back").addEventListener("click", () => turn(-1));
  find("forth").addEventListener("click", () => turn(1));
  const filters = document.querySelector(".filters");
  filters.addEventListener("input", choose);
  filters.addEventListener("submit", (event) => event.preventDefault());
  find("rows").addEventListener("click", (event) => {
    const at = event.target.closest("tbody tr")?.dataset.run;
    const link = event.target.closest("a");
    if (at !== undefined && !link && getSelection().isCollapsed) location.hash = address(at);
  });

  // --- Thresholds --------------------------------------------------------------------------------

  function slider(at) {
    if (!find(`points-${at}`)) return { threshold: () => -Infinity };
    const points = read(`points-${at}`);
    const [range, number] = [find(`range-${at}`), find(`number-${at}`)];
    const figures = sections[at].querySelectorAll("[data-figure]");
    const chart = find(`chart-${at}-scores`);
    const line = chart.querySelector(".chosen_marks line");
    const [low, high] = JSON.parse(chart.dataset.across);
    const threshold = () => points.thresholds[range.value];
    const tell = () => {
      const point = Number(range.value);
      const [least, passed] = [points.shown[point], points.passed[point]];
      const rate = passed / points.total;
      for (const one of figures) {
        const name = one.dataset.figure;
        const found = name === "pass_rate" ? rate : points[name][point];
        one.textContent = name === "f1" && found !== null ? found.toFixed(2) : percent(found);
      }
      range.setAttribute("aria-valuetext", `${least}: ${percent(rate)} pass`);
      const said = `${count(passed)} of ${count(points.total)} answers pass a threshold of ${least}`;
      find(`told-${at}`).textContent = `${said}.`;
      // Halves, since the range itself may be more than a number can hold.
      const place = (threshold() / 2 - low / 2) / (high / 2 - low / 2);
      const within = Math.min(Math.max(place, 0), 1) || 0;
      line.setAttribute("transform", `translate(${within * chart.dataset.width},0)`);
    };
    const changed = () => {
      tell();
      if (find("side").value) choose();
    };
    const same = () => (number.value = points.shown[range.value]);
    range.addEventListener("input", () => {
      same();
      changed();
    });
    number.addEventListener("change", () => {
      if (number.value === "") return same(); // nothing, or no number
      const first = points.thresholds.findIndex((one) => one >= Number(number.value));
      range.value = first < 0 ? points.thresholds.length - 1 : first;
      changed();
    });
    same();
    return { threshold, tell };
  }

  find("evaluator")?.addEventListener("change", (event) => {
    shown = Number(event.target.value);
    for (const [at, section] of sections.entries()) section.hidden = at !== shown;
    choose();
  });

  // --- One run -----------------------------------------------------------------------------------

  const panel = find("panel");
  const places = new Map(runs.id.map((id, at) => [id, at]));
  let open = -1;
  let kept = {};

  function address(at) {
    return `#run-${encodeURIComponent(runs.id[at])}`;
  }

  // Which run the address asks for; undefined for one that is not here, null for none.
  function asked() {
    if (!location.hash.startsWith("#run-")) return null;
    try {
      return places.get(decodeURIComponent(location.hash.slice("#run-".length)));
    } catch {} // no text at all
  }

  async function details(at) {
    const packs = [...document.querySelectorAll("script[data-first]")];
    const pack = packs.findLast((one) => one.dataset.first <= at);
    if (kept.pack !== pack) kept = { pack, texts: unpacked(pack.textContent) };
    return (await kept.texts)[at - pack.dataset.first];
  }

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  }

  async function follow() {
    const at = asked();
    if (at === null) {
      // A place in what is open, whose address stays the run's, or elsewhere.
      if (panel.open && find("panel-body").querySelector(":target"))
        history.replaceState(null, "", address(open));
      else {
        open = -1;
        panel.close();
      }
    } else if (at === undefined) {
      open = -1;
      present("No such run", notice("The address asks for a run that is not in this report."));
    } else if (at !== open) {
      open = at;
      let body = "";
      try {
        body = await details(at);
      } catch (error) {
        body = notice(
          `The details of this run cannot be unpacked (${error.message}). The file has to be ` +
            "whole, and the browser one of 2023 or later."
        );
      }
      if (open === at) present(runs.question[at] ?? "A run without a question", body);
    }
  }

  const notice = (text) => element("p", text, "notice").outerHTML;

  function present(head, body) {
    find("panel-head").textContent = head.slice(0, MOST_SHOWN);
    find("panel-body").innerHTML = body;
    const place = chosen.indexOf(open);
    find("previous").disabled = place <= 0;
    find("next").disabled = place < 0 || place === chosen.length - 1;
    const stepping = panel.open && document.activeElement?.matches("#panel header :enabled");
    if (!panel.open) panel.showModal();
    panel.scrollTop = 0;
    if (!stepping) find("panel-head").focus();
  }

  const step = (by) => location.replace(address(chosen[chosen.indexOf(open) + by]));
  find("previous").addEventListener("click", () => step(-1));
  find("next").addEventListener("click", () => step(1));
  // At once, not when the dialog says that it was closed: another run may be asked for by then.
  const forget = () => {
    open = -1;
    if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  };
  const close = () => {
    forget();
    panel.close();
  };
  find("close").addEventListener("click", close);
  panel.addEventListener("cancel", forget); // by Escape
  panel.addEventListener("mousedown", (event) => {
    const beside = event.clientX < panel.getBoundingClientRect().left;
    if (beside && event.detail === 1) close(); // the second click of two is still the row's
  });
  addEventListener("hashchange", follow);

  for (const [at, section] of sections.entries()) section.hidden = at !== shown;
  choose();
  for (const one of sliders) one.tell?.();
  addEventListener("DOMContentLoaded", follow); // the details come after this script
})();
