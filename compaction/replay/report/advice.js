// The recommendation: its sentence, the money a month, the lines to paste, the reasons.

function volume() { return Math.max(1, Math.floor(Number(byId("volume").value)) || data.calls_per_month); }

function showAdvice(data) {
  const { headline, rule, names, lead, python, command } = data.recommended;
  const reasons = [...(rule ? [rule] : []), ...data.recommended.reasons];
  byId("headline").textContent = headline;
  byId("reasons").append(...reasons.map((text) => make("li", { text })));
  byId("reasons").parentElement.hidden = !reasons.length;
  byId("deploy").hidden = !lead;
  byId("volume").value = data.calls_per_month;
  if (!lead) return;
  byId("trial").hidden = names.length > 0;
  byId("trial").textContent = `In these sessions, ${lead} is the cheapest strategy that keeps at least ${percent(data.minimum_recall)} of the needed facts:`;
  const verb = names.length ? "Use" : "Try";
  if (python) byId("lines").append(snippet(`${verb} ${lead} in Python`, python));
  if (command) byId("lines").append(snippet(`${verb} ${lead} on the command line`, command));
  byId("volume").addEventListener("input", () => { showMoney(data); showFigures(data); });
  showMoney(data);
}

function showMoney(data) {
  const [each, whole] = [data.recommended.lead, "none"].map((name) => data.summaries.find((one) => one.name === name));
  const priced = each.dollars_per_call !== null;
  byId("volume").parentElement.hidden = !priced;
  if (!priced) {
    byId("money").textContent = `The prices of ${data.model} are not known, so there are no dollars; costs are in input tokens.`;
    return;
  }
  const saved = volume() * (whole.dollars_per_call - each.dollars_per_call);
  const share = percent(Math.abs(saved) / (volume() * whole.dollars_per_call || 1));
  byId("money").replaceChildren(make("strong", { text: `${dollars(Math.abs(saved))} ${saved < 0 ? "more" : "saved"} a month` }),
    `${share} ${saved < 0 ? "more" : "less"} than sending everything: ${each.name} costs ${dollars(volume() * each.dollars_per_call)} for input, ` +
    `sending everything costs ${dollars(volume() * whole.dollars_per_call)}.`);
  const refused = whole.over ? ` Sending everything is a reference only: ${count(whole.over)} of its ${count(data.calls)} requests exceed the window.` : "";
  byId("money-basis").textContent = `Prices of ${data.model} of ${data.prices}, for the mix of all replayed sessions: each call counts, ` +
    `so this share differs from the cost in the table, where each session that exceeds the window counts once. ` +
    `Answers cost the same with every strategy and are not included.${refused}`;
}

function snippet(title, text) {
  const button = make("button", { type: "button", text: "Copy", "aria-label": `Copy: ${title}`, onclick: async () => {
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch { button.textContent = "Selected"; }
  } });
  const code = make("pre", { tabindex: "0", role: "region", "aria-label": title, text });
  return make("div", { class: "snippet" }, make("div", { class: "snippet-head" }, make("h3", { text: title }), button), code);
}
