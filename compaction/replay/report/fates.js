// The fate of each message at a given call, from the moves and actions of a run, in their order.

const FATES = ["kept", "cleared", "collapsed", "summarized", "dropped", "offloaded", "later"];
const FATE_OF = { drop: "dropped", summarize: "summarized", collapse: "collapsed", rewrite: "cleared", replace: "summarized" };

function fatesAt(conversation, run, call) {
  const total = conversation.messages.length;
  const upTo = conversation.calls.length ? conversation.calls[call] : total;
  const fates = new Array(total), actions = new Array(total).fill(-1);
  for (let at = 0; at < total; at += 1) fates[at] = at < upTo ? "kept" : "later";
  run.actions.some(([place, , kind, , ordinals], number) => {
    if (place > call) return true;
    for (const at of ordinals) actions[at] = kind === "restore" ? -1 : number;
    return false;
  });
  run.moves.some(([place, left, back]) => {
    if (place > call) return true;
    for (const at of left) fates[at] = "left";
    for (const at of back) fates[at] = "kept";
    return false;
  });
  for (let at = 0; at < upTo; at += 1) if (fates[at] === "left") fates[at] = fateOf(run.actions[actions[at]]);
  return { fates, actions };
}

function fateOf(action) {
  if (action === undefined) return "dropped";
  return action[1] === "Offload" || action[1] === "Lossless" ? "offloaded" : FATE_OF[action[2]] || "dropped";
}

// The marks of each recorded answer: its call, the facts missing from it, whether its prefix broke, why it would fail.
function marksOf(conversation, run) {
  const marks = new Map();
  conversation.calls.forEach((ordinal, call) => marks.set(ordinal, { call, missing: [], broke: null, failing: "" }));
  for (const [call, facts] of run.missing) marks.get(conversation.calls[call]).missing = facts;
  for (const [call, ...broke] of run.breaks) marks.get(conversation.calls[call]).broke = broke;
  for (const [call, why] of run.failing) marks.get(conversation.calls[call]).failing = why;
  return marks;
}
