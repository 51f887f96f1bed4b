// The current selection, and the update of the page when it changes.

const MOST_LISTED = 300;
const data = JSON.parse(byId("overview").textContent);
const unpacked = new Map();
const transcript = new Transcript(byId("list"), byId("detail"), (call) => select({ call }));
const selected = { place: -1, strategy: "", call: 0 };

async function conversationAt(place) {
  if (!unpacked.has(place)) {
    const bytes = Uint8Array.from(atob(byId(`conversation-${place}`).textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    unpacked.clear();
    unpacked.set(place, JSON.parse(await new Response(stream).text()));
  }
  return unpacked.get(place);
}

async function select({ place = selected.place, strategy = selected.strategy, call = selected.call }) {
  const conversation = await conversationAt(place);
  const calls = conversation.calls.length;
  if (place !== selected.place) {
    call = Math.max(0, calls - 1);
    transcript.chosen = 0;
    byId("list").scrollTop = 0;
  }
  Object.assign(selected, { place, strategy, call: Math.max(0, Math.min(call, calls - 1)) });
  const run = conversation.runs[strategy];
  byId("call").max = Math.max(0, calls - 1);
  byId("call").value = selected.call;
  byId("call-number").textContent = calls ? `${selected.call + 1} of ${calls}` : "none";
  showSizes(data, conversation, strategy, selected.call, (picked) => select({ call: picked }));
  transcript.show(conversation, run, selected.call);
  const missing = run.missing.reduce((sum, [, facts]) => sum + facts.length, 0);
  byId("status").textContent = `${count(conversation.messages.length)} messages, ${count(calls)} calls; ${strategy}: ` +
    `${count(run.edited.length)} requests compacted, ${count(run.breaks.length)} prefixes broken, ${count(missing)} needed facts missing.` +
    (run.failures.length ? ` It raised ${run.failures.join("; ")}.` : "");
}

function fillConversations(wanted) {
  const found = data.conversations.map((each, place) => [each, place])
    .filter(([each]) => `${each.id} ${each.where}`.toLowerCase().includes(wanted.toLowerCase()))
    .sort(([one], [other]) => other.tokens - one.tokens).slice(0, MOST_LISTED);
  byId("conversation").replaceChildren(...found.map(([each, place]) => make("option", { value: place,
    text: `${each.id.slice(0, 60)} (${count(each.tokens)} tokens${each.exceeds ? "" : ", within the window"})` })));
  return found.length ? found[0][1] : -1;
}

function showSetting() {
  const short = data.conversations.length - data.exceeding;
  const sessions = (number) => `${count(number)} session${number === 1 ? "" : "s"}`;
  byId("setting").textContent = `${sessions(data.exceeding)} over a window of ${count(data.window)} tokens, with ` +
    `${count(data.calls)} model calls; ${sessions(short)} within it, not in the averages. Prices of ${data.model}, ${data.prices}; ` +
    `tokens counted by ${data.counter}.`;
  byId("notes").append(...data.notes.slice(0, 300).map((text) => make("li", { text })));
  if (!data.notes.length) byId("notes").append(make("li", { text: "None." }));
  byId("legend").append(...FATES.map((fate) => make("li", {}, make("span", { class: fate, text: fate }))));
}

function start() {
  showSetting();
  showAdvice(data);
  for (const part of document.querySelectorAll(".figures")) part.hidden = !data.summaries.length;
  if (data.summaries.length) {
    showFigures(data);
    showFrontier(data);
    showShares("ages", data, "ages", data.ages, "Needed facts kept, by the number of messages between a fact and its use", "messages, ");
    showShares("kinds", data, "kinds", ["url", "path", "id", "number", "identifier", "quoted"], "Needed facts kept, by kind of fact", "");
    showCauses(data);
  }
  byId("strategy").append(...data.candidates.map((name) => make("option", { value: name, text: name })));
  const strategy = data.recommended.lead || data.candidates.at(-1);
  byId("strategy").value = strategy;
  byId("filter-label").hidden = data.conversations.length < 20;
  byId("conversation").addEventListener("change", (event) => select({ place: Number(event.target.value) }));
  byId("strategy").addEventListener("change", (event) => select({ strategy: event.target.value }));
  byId("call").addEventListener("input", (event) => select({ call: Number(event.target.value) }));
  byId("filter").addEventListener("input", (event) => {
    const place = fillConversations(event.target.value);
    if (place >= 0) select({ place });
  });
  addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });
  const place = fillConversations("");
  if (place >= 0) select({ place, strategy }).then(() => drawn(byId("sizes"), () => select({})));
}

start();
