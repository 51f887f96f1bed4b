// The transcript: a list of rows of equal height, of which only the visible ones are in the page, and a panel with the original.

const ROW = 28;
const SPARE = 8;

class Transcript {
  constructor(list, detail, onCall) {
    this.list = list;
    this.detail = detail;
    this.onCall = onCall;
    this.spacer = make("div", { role: "presentation" });
    list.append(this.spacer);
    this.rows = new Map();
    this.chosen = 0;
    list.addEventListener("scroll", () => this.draw());
    list.addEventListener("keydown", (event) => this.onKey(event));
    detail.addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(); });
  }

  show(conversation, run, call) {
    Object.assign(this, { conversation, run, ...fatesAt(conversation, run, call), marks: marksOf(conversation, run) });
    const total = conversation.messages.length;
    this.spacer.style.height = `${total * ROW}px`;
    this.chosen = Math.min(this.chosen, Math.max(0, total - 1));
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.draw();
    if (!this.detail.hidden) this.open();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.list.scrollTop / ROW) - SPARE);
    const last = Math.min(this.conversation.messages.length, Math.ceil((this.list.scrollTop + this.list.clientHeight) / ROW) + SPARE);
    for (const [at, row] of this.rows) {
      if (at < first || at >= last) {
        row.remove();
        this.rows.delete(at);
      }
    }
    for (let at = first; at < last; at += 1) {
      if (this.rows.has(at)) continue;
      const row = this.row(at);
      this.rows.set(at, row);
      this.list.append(row);
    }
    this.mark();
  }

  row(at) {
    const [role, name, text] = this.conversation.messages[at];
    const fate = this.fates[at];
    const gone = !["kept", "later"].includes(fate);
    const action = this.run.actions[this.actions[at]];
    const shown = gone && ["cleared", "collapsed"].includes(fate) && action && action[5] ? action[5] : text;
    const row = make("div", { class: `row ${fate}${gone ? " gone" : ""}`, role: "option", id: `message-${at}`,
      "aria-selected": "false", "aria-posinset": at + 1, "aria-setsize": this.conversation.messages.length, onclick: () => { this.choose(at); this.open(); } },
      make("span", { class: "at", text: at }), make("span", { class: "role", text: name || role }),
      make("span", { class: `fate ${fate}`, text: fate }),
      make("span", { class: "says", text: shown.slice(0, 300).replace(/\s+/g, " ") || "(empty)" }));
    const mark = this.marks.get(at);
    if (mark?.failing) row.append(make("span", { class: "mark", text: "would fail", title: mark.failing }));
    if (mark?.missing.length) row.append(make("span", { class: "mark missing", text: `${mark.missing.length} missing` }));
    if (mark?.broke) row.append(make("span", { class: "mark broke", text: "cache broke", title: mark.broke[2] }));
    row.style.top = `${at * ROW}px`;
    return row;
  }

  mark() {
    for (const [at, row] of this.rows) row.setAttribute("aria-selected", String(at === this.chosen));
    const row = this.rows.get(this.chosen);
    if (row) this.list.setAttribute("aria-activedescendant", row.id);
    else this.list.removeAttribute("aria-activedescendant");
  }

  choose(at) {
    this.chosen = Math.max(0, Math.min(at, this.conversation.messages.length - 1));
    const top = this.chosen * ROW, seen = this.list.scrollTop, height = this.list.clientHeight;
    if (top < seen) this.list.scrollTop = top;
    else if (top + ROW > seen + height) this.list.scrollTop = top + ROW - height;
    this.draw();
    if (!this.detail.hidden) this.open();
  }

  onKey(event) {
    const page = Math.floor(this.list.clientHeight / ROW) - 1;
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.choose(this.chosen + moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") { this.open(); this.detail.focus(); }
    else if (event.key === "Escape") this.close();
    else if (event.key === "n") this.seek(1);
    else if (event.key === "p") this.seek(-1);
    else return;
    event.preventDefault();
  }

  // Go to the next or the previous call with a missing fact.
  seek(step) {
    for (let at = this.chosen + step; at >= 0 && at < this.conversation.messages.length; at += step) {
      if (this.marks.get(at)?.missing.length) return this.choose(at);
    }
    return undefined;
  }

  close() {
    this.detail.hidden = true;
    byId("transcript").classList.remove("open");
    this.list.focus();
  }

  open() {
    const at = this.chosen;
    const [role, name, text] = this.conversation.messages[at];
    const action = this.run.actions[this.actions[at]];
    const parts = [make("button", { text: "Close", onclick: () => this.close() }),
      make("h3", { text: `Message ${at}, ${name ? `${role} (${name})` : role}: ${this.fates[at]}` })];
    parts.push(...this.callParts(at));
    if (action && !["kept", "later"].includes(this.fates[at])) {
      parts.push(make("p", { text: `${action[1]} at call ${action[0] + 1}: ${action[3] || action[2]}` }));
      if (action[5]) parts.push(make("h3", { text: "Replaced by" }), make("pre", { text: action[5] }));
    }
    parts.push(make("h3", { text: "Original" }), make("pre", { class: "original", text: text || "(empty)" }));
    const focused = this.detail.contains(document.activeElement);
    this.detail.replaceChildren(...parts);
    this.detail.hidden = false;
    this.detail.scrollTop = 0;
    if (focused) this.detail.focus();
    byId("transcript").classList.add("open");
  }

  callParts(at) {
    const mark = this.marks.get(at);
    if (!mark) return [];
    const facts = this.conversation.needs[mark.call];
    const parts = [make("p", { text: `The answer to call ${mark.call + 1}, which needed ${facts.length} older fact${facts.length === 1 ? "" : "s"}.` }),
      make("button", { text: "Show this call's request", onclick: () => this.onCall(mark.call) })];
    if (mark.failing) parts.push(make("p", { text: `The request would fail: ${mark.failing}.` }));
    if (mark.broke) parts.push(make("p", { text: `The cached prefix broke at message ${mark.broke[1]}: ${mark.broke[2]}; ${count(mark.broke[0])} tokens were lost.` }));
    if (mark.missing.length) {
      const items = mark.missing.slice(0, 200).map((place) => {
        const [kind, fact, last, age] = facts[place];
        return make("li", {}, make("strong", { text: fact }), ` (${kind}), last seen ${age} messages before `,
          make("button", { text: `Go to ${last}`, onclick: () => this.choose(last) }));
      });
      parts.push(make("h3", { text: "Needed facts missing from the request" }), make("ul", { class: "facts" }, ...items));
    }
    return parts;
  }
}
