// The playground: a client of the Chat API, as any other, with its conversation in the page.
// What happens beside it is read from the page of the conversation, which the server makes.

const $ = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

const form = $("#ask");
const said = $("#said");
const steps = $("#steps-live");
const messages = [];
let running = null; // what stops the request that runs

const element = (name, className, text = "") => {
  const e = document.createElement(name);
  e.className = className;
  e.textContent = text;
  return e;
};

// The tools that are chosen, as a request names them; undefined for all of them.
const tools = () => {
  const servers = all("[data-server]", form);
  let whole = true;
  const chosen = [];
  for (const server of servers) {
    const own = all("[data-of]", form).filter((box) => box.dataset.of === server.dataset.server);
    const names = own.filter((box) => box.checked).map((box) => box.value);
    if (!server.checked || (own.length && !names.length)) {
      whole = false;
      continue;
    }
    const one = { type: "mcp", server_label: server.dataset.server };
    if (names.length < own.length) {
      whole = false;
      one.allowed_tools = names;
    }
    chosen.push(one);
  }
  return whole ? undefined : chosen;
};

const request = (history) => {
  const body = { model: form.elements.model.value, stream: true, messages: history };
  const chosen = tools();
  if (chosen?.length) body.tools = chosen;
  else if (chosen) body.tool_choice = "none";
  return body;
};

// Text for a shell: in single quotes, which hold everything but themselves.
const shell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
const written = () => {
  const text = form.elements.message.value || form.elements.message.placeholder;
  const body = request([...messages, { role: "user", content: text }]);
  const key = form.dataset.keys === undefined ? "" : ' \\\n  -H "Authorization: Bearer $DRAGOMAN_API_KEY"';
  $("#curl").textContent = `curl -N ${form.dataset.base}/v1/chat/completions \\\n  -H 'Content-Type: application/json'${key} \\\n  -d ${shell(JSON.stringify(body, null, 2))}`;
  const servers = (body.tools ?? []).map((tool) => ` --server ${shell(tool.server_label)}`).join("");
  const chat = `dragoman chat --model ${shell(body.model)}${servers}`;
  // What begins with a dash would be taken for a flag.
  $("#cli").textContent = text.startsWith("-") ? `printf %s ${shell(text)} | ${chat} -` : `${chat} ${shell(text)}`;
};

// What the server keeps of the conversation is put beside it, step by step; steps that are
// open stay as they are.
const trace = async (id) => {
  const answer = await fetch(`/console/live/of/${encodeURIComponent(id)}`);
  if (!answer.ok) return false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const kept = $("#steps-all", page);
  if (!kept) return false;
  let group = all("[data-request]", steps).find((e) => e.dataset.request === id);
  if (!group) {
    if ($(".empty", steps)) steps.replaceChildren();
    group = element("div", "steps");
    group.dataset.request = id;
    steps.append(group);
  }
  const have = [...group.children];
  [...kept.children].forEach((step, n) => {
    const fresh = document.importNode(step, true);
    if (!have[n]) group.append(fresh);
    else if (!have[n].open && !have[n].contains(document.activeElement) && !have[n].isEqualNode(fresh)) have[n].replaceWith(fresh);
  });
  return true;
};

// The events of a stream, as they come (WHATWG HTML §9.2): that of an API which is passed on
// as it is ends its lines as that API does, and may have no space behind a colon.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const whole = rest.split(/(?:\r\n|\n|\r(?!\n)){2}/); // each line in its own way
    rest = whole.pop();
    for (const event of whole) {
      const data = event.split(/\r\n|\n|\r/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).replace(/^ /, "")).join("\n");
      if (data && data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

const failed = (error) => new Error(error?.message ?? "The answer could not be read.");

const ask = async (text) => {
  messages.push({ role: "user", content: text });
  const body = request(messages);
  $("#said-nothing")?.remove();
  said.append(element("p", "turn user", text));
  const answer = element("p", "turn model");
  answer.setAttribute("aria-busy", "true");
  said.append(answer);
  const control = new AbortController();
  running = control;
  $("#stop").hidden = false;
  $("#send").disabled = true;
  let id = "";
  let watching = 0;
  try {
    const reply = await fetch("/console/playground", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal: control.signal });
    id = reply.headers.get("X-Dragoman-Request") ?? "";
    if (id) watching = setInterval(() => trace(id).catch(() => {}), 700);
    if (reply.status === 401) {
      $("#over").hidden = false;
      throw new Error($("#over").textContent);
    }
    if (!reply.ok) throw failed((await reply.json().catch(() => ({}))).error);
    for await (const chunk of events(reply.body)) {
      if (chunk.error) throw failed(chunk.error);
      const delta = chunk.choices?.[0]?.delta;
      answer.append(delta?.content ?? "", delta?.refusal ?? "");
    }
    messages.push({ role: "assistant", content: answer.textContent });
  } catch (error) {
    messages.pop(); // it can be asked again
    if (!answer.textContent) answer.remove();
    said.append(control.signal.aborted ? element("p", "about", form.dataset.stopped) : element("p", "error", error.message));
  } finally {
    clearInterval(watching);
    answer.removeAttribute("aria-busy");
    running = null;
    $("#stop").hidden = true;
    $("#send").disabled = false;
    if (id) {
      await trace(id).catch(() => {});
      setTimeout(() => trace(id).catch(() => {}), 500); // its last step may be told a moment later
    }
    written();
  }
};

if (form) {
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    const text = form.elements.message.value.trim();
    if (!text || running) return;
    form.elements.message.value = "";
    ask(text);
  });
  form.elements.message.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
      e.preventDefault();
      form.requestSubmit();
    }
  });
  form.addEventListener("input", () => {
    written();
    const at = new URL(location.href);
    at.searchParams.set("model", form.elements.model.value);
    history.replaceState(null, "", at);
  });
  $("#stop").addEventListener("click", () => running?.abort());
  $("#again").addEventListener("click", () => {
    running?.abort();
    location.href = location.pathname + location.search;
  });
  written();
}
