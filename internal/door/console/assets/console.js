// The script of the console. Pages work without it, but for keys, numbers that come by
// themselves, the form of a call, images, and the playground, which has a file of its own. Text of others is only ever set as text.

const $ = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Signing in: the secret stands behind the # of the address, which goes nowhere. At another
// page that is a place on it, to which whoever has signed in comes.
const signIn = $("#sign-in");
if (signIn && location.pathname.endsWith("/sign-in")) {
  const show = () => {
    const secret = location.hash.slice(1);
    if (!secret) return;
    history.replaceState(null, "", location.pathname + location.search);
    signIn.elements.secret.value = secret;
    signIn.requestSubmit();
  };
  show();
  addEventListener("hashchange", show); // the address was pasted where this page is open
} else if (signIn) {
  signIn.elements.next.value += location.hash;
}

// Times are written for the reader's place.
const clock = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "short", timeStyle: "medium" });
for (const time of all("time[datetime]")) {
  const at = new Date(time.dateTime);
  if (!Number.isNaN(at.getTime())) {
    time.title = time.textContent;
    time.textContent = clock.format(at);
  }
}
const countdown = () => {
  for (const b of all("[data-until]")) {
    const left = Math.max(0, Math.round((new Date(b.dataset.until) - Date.now()) / 1000));
    b.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  }
};
if ($("[data-until]")) {
  countdown();
  setInterval(countdown, 1000);
}

$("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }); // on a telephone

// A page that a form made is not asked for again, which would send the form again: its
// address leads to the page that the form is on.
const renew = () => (document.body.dataset.sent === undefined ? location.reload() : location.replace(location.pathname + location.search));

// Keys. None works while somebody writes.
const rows = () => all("[data-row], a.row").map((e) => e.closest("tr") ?? e);
let here = -1;
const mark = (at) => {
  const list = rows();
  list[here]?.classList.remove("here");
  here = at;
  list[here].classList.add("here");
};
const move = (by) => {
  const list = rows();
  if (!list.length) return;
  mark(Math.min(list.length - 1, Math.max(0, here + by)));
  ($("a.row", list[here]) ?? $("summary", list[here]) ?? list[here]).focus();
};
// Whoever comes to a row with Tab or with a click is at that one.
document.addEventListener("focusin", (e) => {
  const at = rows().findIndex((row) => row.contains(e.target));
  if (at >= 0) mark(at);
});
const keys = $("#keys");
$("#keys-open")?.addEventListener("click", () => keys.showModal());
let going = false;
document.addEventListener("keydown", (e) => {
  // A key that is held down moves on; whatever else it does, it does once: the page that
  // comes may show another call, which nobody has read.
  if (e.ctrlKey || e.metaKey || e.altKey || keys?.open || (e.repeat && e.key !== "j" && e.key !== "k")) return;
  if (e.target.closest("input, textarea, select")) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  if (going) {
    going = false;
    const to = $(`[data-go="${CSS.escape(e.key)}"]`);
    if (to) location.href = to.href;
    return;
  }
  const near = (selector) => $(selector, rows()[here] ?? (rows().length === 1 ? rows()[0] : document.createElement("p")));
  const does = {
    "/": () => ($("#search") ? $("#search").focus() : (location.href = "/console/tools")),
    j: () => move(1),
    k: () => move(-1),
    g: () => (going = true),
    "?": () => keys.showModal(),
    r: renew,
    "[": () => $('[data-key="["]')?.click(),
    "]": () => $('[data-key="]"]')?.click(),
    a: () => near("button.yes")?.click(),
    d: () => near("button.no")?.click(),
  }[e.key];
  if (does) {
    e.preventDefault();
    does();
  }
});

// What is new comes by itself: numbers, a sound, and a line that something is there to be
// shown. Nothing on the page moves.
const title = document.title;
let waited = 0;
const sound = () => {
  try {
    const audio = new AudioContext();
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    volume.gain.value = 0.05;
    tone.frequency.value = 660;
    tone.connect(volume).connect(audio.destination);
    tone.start();
    tone.stop(audio.currentTime + 0.15);
  } catch {
    // a browser that lets no page sound before it was clicked
  }
};
const address = document.body.dataset.events;
if (address) {
  let events;
  let later;
  let channel;
  let leading; // the request by which this page listens for all
  let turn; // what takes the one back that waits
  let leave; // ends it
  let last; // what was told last
  // What the reader wrote and nobody has is on this page alone: a message, arguments, a
  // reason, a conversation of the playground. It stays when the session ends, unless its
  // reader has signed out: somebody else may sit there next.
  let wrote = false;
  document.addEventListener("input", (e) => {
    wrote ||= e.target.matches("textarea") || e.target.form?.method === "post";
  });
  let leaving; // the channel by which pages hear of that
  let left = false;
  $("form.who").addEventListener("submit", () => leaving.postMessage(true));
  const over = $("#over");
  const news = (told) => {
    const { calls, held, live } = told;
    if (told.over) {
      last = undefined;
      if (!left && (wrote || $(".turn"))) over.hidden = false;
      else renew(); // to sign in again
      return;
    }
    if (told.who !== undefined && told.who !== document.body.dataset.who) {
      renew(); // somebody else has signed in
      return;
    }
    over.hidden = true;
    last = told;
    const waiting = calls + held;
    const badge = $("#inbox-count");
    if (badge) {
      badge.textContent = waiting;
      badge.hidden = waiting === 0;
    }
    document.title = waiting ? `(${waiting}) ${title}` : title;
    if (waiting > waited && document.hidden) sound();
    waited = waiting;
    const line = $("#news");
    if (line) line.hidden = String(live) === line.dataset.seq;
  };
  const tell = (told) => {
    channel.postMessage(told);
    news(told);
  };
  // A browser comes again by itself where a connection breaks, and never where somebody
  // answers with an error: a proxy while the gateway is restarted, or the gateway where
  // nobody is signed in any more.
  const again = () => {
    clearTimeout(later);
    later = setTimeout(async () => {
      const asked = new AbortController();
      const answer = await fetch(address, { signal: asked.signal }).catch(() => undefined);
      asked.abort();
      if (answer?.status === 401) tell({ over: true });
      else if (answer?.ok) listen();
      else again();
    }, 5000);
  };
  const listen = () => {
    events?.close();
    events = new EventSource(address);
    events.addEventListener("error", (e) => e.target === events && e.target.readyState === EventSource.CLOSED && again());
    events.addEventListener("message", (e) => tell(JSON.parse(e.data)));
    events.addEventListener("over", () => {
      events.close();
      tell({ over: true });
    });
  };
  const stop = () => {
    clearTimeout(later);
    events?.close();
    events = undefined;
  };
  // A browser has six connections for one host, and with one for each page that is open the
  // seventh page would wait for ever. So one of somebody's pages listens and tells the
  // others: the one that is looked at, since browsers let others sleep, or else the next in
  // turn. Where there are no locks, at plain http elsewhere than on this machine, each
  // listens for itself.
  const room = `${address} ${document.body.dataset.who}`;
  const lead = (how) => {
    const me = {};
    const held = () => {
      leading = me;
      listen();
      return new Promise((resolve) => (leave = resolve));
    };
    navigator.locks.request(room, how, held).catch(() => {
      if (leading !== me) return; // it never came to its turn
      leading = undefined; // another page is looked at
      stop();
      wait();
    });
  };
  const wait = () => {
    turn = new AbortController();
    lead({ signal: turn.signal });
    channel.postMessage({ ask: true });
  };
  const looked = () => {
    if (document.hidden) return;
    if (events && !over.hidden) listen(); // maybe its reader has signed in
    if (!navigator.locks || leading) return;
    turn?.abort();
    lead({ steal: true });
  };
  const come = () => {
    leaving = new BroadcastChannel(`sign-out ${document.body.dataset.who}`);
    leaving.addEventListener("message", () => (left = true));
    channel = new BroadcastChannel(room);
    channel.addEventListener("message", (e) => {
      if (!e.data.ask) news(e.data);
      else if (events && last) channel.postMessage(last);
      else if (events && !over.hidden) listen(); // somebody has signed in
    });
    if (!navigator.locks) listen();
    else if (document.hidden) wait();
    else looked();
  };
  come();
  document.addEventListener("visibilitychange", looked);
  // A browser keeps pages that were left, and their connections.
  addEventListener("pagehide", () => {
    stop();
    turn?.abort();
    leave?.();
    leading = undefined;
    leaving.close();
    channel.close();
  });
  addEventListener("pageshow", (e) => e.persisted && come());
}

// Images of results: shown after a click, from memory.
for (const button of all("button.image")) {
  button.addEventListener("click", () => {
    const bytes = Uint8Array.from(atob(button.dataset.image), (c) => c.charCodeAt(0));
    const img = document.createElement("img");
    img.className = "shown";
    img.alt = button.dataset.type;
    img.src = URL.createObjectURL(new Blob([bytes], { type: button.dataset.type }));
    button.replaceWith(img);
  });
}

// The form of a call and its JSON are kept in step. The JSON is what is sent.
const call = $("#call");
if (call && $(".fields", call)) {
  const json = $("#arguments");
  const fields = $(".fields", call);
  fields.hidden = false;
  const steps = (pointer) => pointer.split("/").slice(1).map((s) => s.replaceAll("~1", "/").replaceAll("~0", "~"));
  const own = (value, step) => typeof value === "object" && value !== null && Object.hasOwn(value, step);
  const get = (value, pointer) => steps(pointer).reduce((v, s) => (own(v, s) ? v[s] : undefined), value);
  const define = (to, name, value) => Object.defineProperty(to, name, { value, writable: true, enumerable: true, configurable: true });
  const put = (value, pointer, is) => {
    const path = steps(pointer);
    const last = path.pop();
    for (const step of path) {
      if (!own(value, step) || typeof value[step] !== "object" || value[step] === null) {
        if (is === undefined) return;
        define(value, step, {});
      }
      value = value[step];
    }
    if (is === undefined) delete value[last];
    else define(value, last, is);
  };
  const read = () => {
    try {
      const value = JSON.parse(json.value);
      return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
    } catch {
      return undefined;
    }
  };
  const shown = (input) => !input.closest("[data-of][hidden]");
  // What a number cannot hold is left to the JSON.
  const exact = (text) => !/\d{16}/.test(text.replace(/"(?:[^"\\]|\\.)*"/g, ""));
  const fill = () => {
    const value = read();
    $("#arguments-wrong").hidden = value !== undefined;
    if (value === undefined) return;
    fields.toggleAttribute("inert", !exact(json.value));
    for (const input of all("[data-at]", fields)) {
      const is = get(value, input.dataset.at);
      const plain = input.dataset.kind === "text" && typeof is === "string";
      const text = is === undefined ? "" : plain ? is : JSON.stringify(is);
      // Choices spell out what shows nothing, and are the same values.
      const choice = [...(input.options ?? [])].find((o) => o.value && JSON.stringify(JSON.parse(o.value)) === text);
      input.value = choice ? choice.value : text;
      input.setCustomValidity("");
    }
  };
  const write = (input) => {
    const value = read() ?? {};
    const text = input.value;
    let is = text;
    if (input.dataset.kind === "json") {
      try {
        is = text.trim() === "" ? undefined : JSON.parse(text);
        if (!exact(text)) throw new RangeError();
        input.setCustomValidity("");
      } catch {
        input.setCustomValidity("JSON");
        return;
      }
    } else if (text === "" && input.dataset.required === undefined) {
      is = undefined;
    }
    put(value, input.dataset.at, is);
    json.value = JSON.stringify(value, null, 2);
    $("#arguments-wrong").hidden = true;
  };
  fields.addEventListener("input", (e) => {
    if (e.target.dataset.at !== undefined && shown(e.target)) write(e.target);
  });
  fields.addEventListener("change", (e) => {
    if (e.target.dataset.branch === undefined) return;
    const union = e.target.closest("[data-union]");
    for (const part of [...union.children].filter((c) => c.dataset.of !== undefined)) part.hidden = part.dataset.of !== e.target.value;
    const value = read() ?? {};
    put(value, union.dataset.union, undefined);
    json.value = JSON.stringify(value, null, 2);
    fill();
  });
  json.addEventListener("input", fill);
  fill();
}
// What can be copied, and what only one page needs.
for (const button of all("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText($(`#${button.dataset.copy}`).textContent);
    button.classList.add("copied");
  });
}
if ($("#ask")) import("/console/assets/playground.js");
if (location.hash === "#answer") $("#answer")?.focus();
