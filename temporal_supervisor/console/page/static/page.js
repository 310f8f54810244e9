// The page's own script: news of a run, forms in place, sortable tables, the trail of a figure.
// Everything works without it, too, with pages that are loaded anew.
"use strict";
(() => {
  const by = (id) => document.getElementById(id);
  const each = (root, what, act) => root.querySelectorAll(what).forEach(act);

  // Words for what was done, for everybody: a screen reader reads them, too.
  let silence = 0;
  const say = (words, bad, lasting) => {
    const said = by("said");
    said.textContent = words;
    said.classList.toggle("bad-news", Boolean(bad));
    clearTimeout(silence);
    if (!lasting) silence = setTimeout(() => { said.textContent = ""; }, bad ? 12000 : 6000);
  };

  // Times and numbers as the reader writes them.
  const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
  const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const ago = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
  const number = new Intl.NumberFormat();
  const spans = [["day", 86400], ["hour", 3600], ["minute", 60]];
  const lasted = (seconds) => {
    const whole = Math.max(0, Math.floor(seconds));
    const two = (part) => String(part).padStart(2, "0");
    if (whole < 60) return `${whole} s`;
    return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
  };
  const since = (moment) => {
    const seconds = (moment - Date.now()) / 1000;
    const [unit, size] = spans.find(([, most]) => Math.abs(seconds) >= most) || ["second", 1];
    return ago.format(Math.round(seconds / size), unit);
  };
  const local = (root) => {
    each(root, "time[datetime]", (time) => {
      const moment = new Date(time.dateTime);
      if (isNaN(moment) || "since" in time.dataset) return;
      time.title = day.format(moment);
      if ("clock" in time.dataset) time.textContent = clock.format(moment);
      else time.textContent = "ago" in time.dataset ? since(moment) : day.format(moment);
    });
    each(root, "data[value]", (data) => { data.textContent = number.format(Number(data.value)); });
  };
  const tick = () => each(document, "time[data-since]", (time) => {
    const end = time.dataset.until ? new Date(time.dataset.until) : Date.now();
    const words = lasted((end - new Date(time.dateTime)) / 1000);
    if (time.textContent !== words) time.textContent = words;
  });
  local(document);
  tick();
  setInterval(tick, 1000);

  // News of a run, as server-sent events: parts that changed, and new events.
  const keepOpen = (box, html) => {
    const open = new Set([...box.querySelectorAll("details[open][id]")].map((each) => each.id));
    const focus = box.contains(document.activeElement) ? document.activeElement.dataset.path : null;
    const top = box.scrollTop;
    const rows = new Map([...box.querySelectorAll("details.items[open]")].map((each) => [each.id, each.querySelector(".rows")]));
    box.innerHTML = html;
    each(box, "details[id]", (details) => {
      details.open = open.has(details.id);
      // these are asked for anew; until they come, the rows that were there are shown
      if (rows.has(details.id)) details.querySelector(".rows").replaceWith(rows.get(details.id));
    });
    box.scrollTop = top;
    if (focus) box.querySelector(`a[data-path="${CSS.escape(focus)}"]`)?.focus();
  };
  const replaced = (name, html) => {
    const old = by(name);
    if (!old) return false;
    if (old.localName !== "li") {
      keepOpen(old, html);
      local(old);
      return true;
    }
    const held = old.contains(document.activeElement);
    old.outerHTML = html;
    const now = by(name);
    local(now);
    if (held) now.querySelector("a")?.focus();
    return true;
  };

  // Folded items come when they are opened, and more of them when they are asked for.
  const part = async (place) => {
    const got = await fetch(place, { headers: { "X-Fragment": "1" } }).catch(() => null);
    return got && got.ok ? got.text() : null;
  };
  const shown = (box, html) => {
    box.innerHTML = html;
    local(box);
    tick();
  };
  const fill = async (items) => {
    const html = await part(`${items.dataset.items}&state=${by("only").value}`);
    if (html !== null) shown(items.querySelector(".rows"), html);
  };
  let filling = 0;
  const fillAll = () => {
    filling = 0;
    each(by("tree"), "details.items[open]", fill);
  };
  const followed = async (link, box) => {
    const html = await part(link.href);
    if (html === null) return;
    const more = document.createElement("div");
    shown(more, html);
    link.parentElement.remove();
    box.append(...more.children);
  };
  document.addEventListener("toggle", (event) => {
    const items = event.target;
    if (items.open && "items" in items.dataset) fill(items);
  }, true);
  document.addEventListener("click", (event) => {
    const more = event.target.closest(".rows a");
    if (!more || !more.closest("[data-items]") || more.dataset.path) return;
    event.preventDefault();
    followed(more, more.closest(".rows"));
  });
  const main = document.querySelector("[data-stream]");
  const filterEvents = () => {
    const words = by("words").value.toLowerCase();
    each(by("events"), "li", (line) => {
      line.classList.toggle("out", !line.textContent.toLowerCase().includes(words));
    });
  };
  // An event of a worker agent may be read late: each stands by its time, the newest first.
  const momentOf = (line) => line?.querySelector("time").dateTime;
  const placed = (list, line) => {
    const moment = new Date(momentOf(line));
    let below = list.firstElementChild;
    while (below && new Date(momentOf(below)) > moment) below = below.nextElementSibling;
    // one that is older than all is among the earlier ones, unless all are here
    if (below || by("older").hidden) list.insertBefore(line, below);
  };
  const takeLines = (lines) => {
    if (!lines.length) return;
    const list = by("events");
    const held = list.scrollTop;
    const before = list.scrollHeight;
    const news = document.createElement("ol");
    news.innerHTML = lines.join("");
    local(news);
    [...news.children].forEach((line) => placed(list, line));
    if (held) list.scrollTop = held + list.scrollHeight - before;
    while (list.children.length > 1000) list.lastElementChild.remove();
    if (by("words").value) filterEvents();
  };
  const olderThan = (version) => {
    const link = by("older").querySelector("a");
    link.search = `?before=${version}`;
    by("older").hidden = !version;
  };
  if (main) {
    by("older").querySelector("a").addEventListener("click", async (event) => {
      event.preventDefault();
      const html = await part(event.target.href);
      if (html === null) return;
      const earlier = document.createElement("div");
      shown(earlier, html);
      by("events").append(...earlier.querySelectorAll("li"));
      by("older").hidden = true;
      filterEvents();
    });
    const stream = new EventSource(main.dataset.stream);
    let version = "";
    stream.onopen = () => { by("link").hidden = true; };
    stream.onerror = () => { by("link").hidden = false; };
    stream.onmessage = (event) => {
      const news = JSON.parse(event.data);
      const epoch = event.lastEventId.split(".")[0];
      if (version && version !== epoch) by("events").replaceChildren();
      version = epoch;
      if (news.parts.tree !== undefined) replaced("tree", news.parts.tree);
      let isMissing = false;
      for (const [name, html] of Object.entries(news.parts)) {
        if (name !== "tree" && !replaced(name, html)) isMissing = true;
      }
      // a row that is not there may have come into the state that is shown
      if (isMissing && by("only").value && !filling) filling = setTimeout(fillAll, 2000);
      if (news.older_than !== undefined) olderThan(news.older_than);
      takeLines(news.lines);
      tick();
      if (!news.ended) return;
      stream.close();
      say("The run has ended: its answer comes.");
      setTimeout(() => location.reload(), 400);
    };
    by("words").addEventListener("input", filterEvents);
    by("only").addEventListener("change", () => {
      by("tree").dataset.only = by("only").value;
      const only = by("only").value;
      each(by("tree"), "details.items", (items) => {
        if (items.open) fill(items);
        else items.open = only !== "" && items.querySelector(`.counts .${only}`) !== null;
      });
    });
  }

  // New cards on the first page; one that is being filled in stays.
  const inbox = document.querySelector("[data-inbox]");
  const typing = () => inbox.contains(document.activeElement) || [...inbox.querySelectorAll("textarea,input:not([type=hidden])")].some((field) => field.value !== field.defaultValue);
  let decisions = 0;
  const look = async () => {
    if (document.hidden || typing()) return;
    const before = decisions;
    const got = await fetch(`/inbox?known=${inbox.dataset.inbox}`).catch(() => null);
    if (!got || got.status !== 200) return;
    const html = await got.text();
    // looked at after the last wait: whoever began to type meanwhile keeps the words
    // and cards that were asked for before a decision have what it was about once more
    if (typing() || before !== decisions) return;
    inbox.innerHTML = html;
    inbox.dataset.inbox = got.headers.get("x-inbox") || "";
    local(inbox);
    list();
  };
  // The list of runs below, now and then, and with each change above it.
  const list = async () => {
    if (document.hidden || by("runs").contains(document.activeElement)) return;
    const html = await part(location.href);
    if (html === null) return;
    const now = new DOMParser().parseFromString(html, "text/html").getElementById("runs");
    if (!now || by("runs").contains(document.activeElement)) return;
    by("runs").replaceChildren(...now.childNodes);
    local(by("runs"));
  };
  if (inbox) {
    setInterval(look, 3000);
    setInterval(list, 15000);
  }

  // The page of a subtask: where it stands once something was done about it.
  const lookAgain = async () => {
    const html = await part(location.href);
    const now = html && new DOMParser().parseFromString(html, "text/html").getElementById("stands");
    if (!now) return;
    by("stands").replaceChildren(...now.childNodes);
    local(by("stands"));
  };

  // Forms are sent in place, and their words said.
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!("live" in form.dataset)) return;
    event.preventDefault();
    const fields = new FormData(form, event.submitter);
    const simple = form.enctype === "multipart/form-data" ? fields : new URLSearchParams(fields);
    const buttons = [...form.querySelectorAll("button")];
    buttons.forEach((button) => { button.disabled = true; });
    say("It is being sent ...", false, true); // large files take their time
    try {
      const got = await fetch(form.action, { method: "POST", body: simple, headers: { "X-Fragment": "1" } });
      if ((got.headers.get("content-type") || "").includes("json")) {
        location.assign((await got.json()).place);
        return;
      }
      say((await got.text()).trim() || got.statusText, !got.ok);
      decisions += 1;
      const card = form.closest(".card");
      if (got.ok && card) card.remove();
      else if (got.ok) form.reset();
      if (got.ok) form.closest("details.action")?.removeAttribute("open");
      if (got.ok && by("stands")) setTimeout(lookAgain, 1000);
    } catch {
      say("The page's server does not answer: nothing was sent, or its reply was lost.", true);
    }
    buttons.forEach((button) => { button.disabled = false; });
  });
  document.addEventListener("click", (event) => {
    const fills = event.target.closest("[data-fill]");
    if (!fills) return;
    by(fills.dataset.fill).value = fills.value;
    by(fills.dataset.fill).focus();
  });

  // The ask form: dropped files, their sizes, what earlier runs took.
  const files = document.querySelector("input#files");
  if (files) {
    const drop = by("drop");
    // More than is taken is not sent at all: a server that ends an upload midway has no words for it.
    const mega = (bytes) => `${number.format(Math.ceil(bytes / 2 ** 20))} MB`;
    const tooMuch = (bytes) => {
      const large = [...files.files].find((file) => file.size > Number(files.dataset.mostOfOne));
      if (large) return `${large.name} has ${mega(large.size)}: at most ${mega(files.dataset.mostOfOne)} are taken.`;
      return bytes > Number(files.dataset.most) ? `At most ${mega(files.dataset.most)} are taken in all.` : "";
    };
    const told = () => {
      const bytes = [...files.files].reduce((sum, file) => sum + file.size, 0);
      const size = bytes < 2 ** 20 ? `${number.format(Math.ceil(bytes / 1024))} KB` : mega(bytes);
      const refused = tooMuch(bytes);
      const words = files.files.length ? `${files.files.length} chosen, ${size}. ${refused}` : "";
      by("chosen").textContent = words.trim();
      by("chosen").classList.toggle("bad", refused !== "");
      files.setCustomValidity(refused);
    };
    const over = (is) => (event) => { event.preventDefault(); drop.classList.toggle("over", is); };
    drop.addEventListener("dragover", over(true));
    drop.addEventListener("dragleave", over(false));
    drop.addEventListener("drop", (event) => {
      over(false)(event);
      if (event.dataTransfer.files.length) files.files = event.dataTransfer.files;
      told();
    });
    files.addEventListener("change", told);
    const estimate = async () => {
      if (!by("team").value && by("earlier")) return; // the team of the earlier run
      const hasFiles = files.files.length || by("folder")?.value || by("sample").value;
      const chosen = by("team").value || (hasFiles ? by("estimate").dataset.estimate : "");
      const got = await fetch(`/ask/estimate?team=${encodeURIComponent(chosen)}`).catch(() => null);
      if (got && got.ok) by("estimate").textContent = `${await got.text()} Nothing is spent before you ask.`;
    };
    const told_team = () => {
      const chosen = by("team").value;
      const said = chosen && document.querySelector(`dd[data-team="${CSS.escape(chosen)}"]`);
      by("team-said").replaceChildren(...(said ? said.cloneNode(true).childNodes : []));
    };
    by("team").addEventListener("change", estimate);
    by("team").addEventListener("change", told_team);
    told_team();
    files.addEventListener("change", estimate);
    by("folder")?.addEventListener("change", estimate);
    estimate();
    by("no-sample").addEventListener("click", () => {
      by("sample").value = "";
      by("sample-said").hidden = true;
    });
  }

  // Tables that can be sorted: numbers as numbers, then words; cells without anything come last.
  const inThousands = /^[-+]?\d{1,3}(,\d{3})+(\.\d+)?$/;
  const amount = (words) => {
    const bare = words.replace("\u2212", "-").replace(/^([-+]?)[$€£]\s?/, "$1").replace(/\s?%$/, "");
    return Number(inThousands.test(bare) ? bare.replaceAll(",", "") : bare);
  };
  const value = (row, at) => {
    const words = row.cells[at]?.textContent.trim() || "";
    const size = words === "" ? NaN : amount(words);
    return { words, size, rank: words === "" ? 2 : Number(isNaN(size)) };
  };
  const compare = (one, other, turn) => {
    if (one.rank !== other.rank) return one.rank === 2 || other.rank === 2 ? one.rank - other.rank : turn * (one.rank - other.rank);
    if (one.rank === 0) return turn * (one.size - other.size);
    return turn * one.words.localeCompare(other.words, undefined, { numeric: true });
  };
  const sort = (table, at, head) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    const rows = [...table.tBodies[0].rows];
    rows.sort((one, other) => compare(value(one, at), value(other, at), down ? -1 : 1));
    table.tBodies[0].append(...rows);
    each(table, "th[aria-sort]", (other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  };
  const sortable = (root) => each(root, "table.sorts", (table) => {
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, at, head));
    });
  });
  sortable(document);

  // A figure of the answer: its verdict, the query, the reading of the table, the cells.
  const trail = by("trail");
  const marked = (box, figure) => each(box, "td", (cell) => {
    const words = cell.textContent.trim();
    const same = words !== "" && (words === figure || figure.includes(words) || Number(words) === Number(figure.replace(/[^0-9.-]/g, "")));
    if (same && words.length > 1) cell.classList.add("hit");
  });
  const inText = (box, figure) => {
    const words = box.textContent;
    const parts = [];
    let from = 0;
    for (let at = words.indexOf(figure); figure && at >= 0; at = words.indexOf(figure, from)) {
      const mark = document.createElement("mark");
      mark.textContent = figure;
      parts.push(words.slice(from, at), mark);
      from = at + figure.length;
    }
    box.replaceChildren(...parts, words.slice(from));
  };
  const bare = (node) => {
    const copy = node.cloneNode(true);
    each(copy, "[id]", (inner) => inner.removeAttribute("id"));
    copy.removeAttribute("id");
    each(copy, "thead button", (button) => button.replaceWith(...button.childNodes));
    return copy;
  };
  const shownTrail = (row, figure) => {
    const box = by("trail-body");
    const [, where, verdict] = row.cells;
    const line = document.createElement("p");
    const bold = document.createElement("strong");
    bold.textContent = figure;
    line.append(bold, " ", ...bare(verdict).childNodes);
    const places = document.createElement("div");
    places.append(...bare(where).childNodes);
    box.replaceChildren(line, places);
    each(where, "li a[href^='#']", (link) => {
      const output = by(link.hash.slice(1));
      if (!output) return;
      const head = document.createElement("h3");
      head.textContent = link.textContent;
      box.append(head, bare(output));
    });
    marked(box, figure);
    each(box, "pre", (text) => inText(text, figure));
    trail.showModal();
    trail.scrollTop = 0;
  };
  if (trail) {
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a.claim, a.doubt");
      const row = link && by(link.hash.slice(1));
      if (!row || row.localName !== "tr") return;
      event.preventDefault();
      shownTrail(row, link.textContent);
    });
    trail.addEventListener("click", (event) => {
      const inside = event.target.closest("a[href^='#']");
      if (event.target === trail || event.target.closest("[data-close]") || inside) trail.close();
    });
  }
  // A link leads into what is folded.
  const unfold = () => {
    for (let at = by(location.hash.slice(1))?.parentElement; at; at = at.parentElement) if (at.localName === "details") at.open = true;
    if (location.hash.length > 1) by(location.hash.slice(1))?.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();
})();
