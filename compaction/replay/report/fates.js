// What became of each message by a given call: from the moves and deeds of a run, in the order they happened.

const FATES = ["kept", "cleared", "collapsed", "summarized", "dropped", "offloaded", "later"];
const FATE_OF = { drop: "dropped", summarize: "summarized", collapse: "collapsed", rewrite: "cleared", replace: "summarized" };

function fatesAt(conversation, run, call) {
  const total = conversation.messages.length;
  const upTo = conversation.calls.length ? conversation.calls[call] : total;
  const fates = new Array(total), deeds = new Array(total).fill(-1);
  for (let at = 0; at < total; at += 1) fates[at] = at < upTo ? "kept" : "later";
  run.deeds.some(([place, , kind, , ordinals], number) => {
    if (place > call) return true;
    for (const at of ordinals) deeds[at] = kind === "restore" ? -1 : number;
    return false;
  });
  run.moves.some(([place, left, back]) => {
    if (place > call) return true;
    for (const at of left) fates[at] = "left";
    for (const at of back) fates[at] = "kept";
    return false;
  });
  for (let at = 0; at < upTo; at += 1) if (fates[at] === "left") fates[at] = fateOf(run.deeds[deeds[at]]);
  return { fates, deeds };
}

function fateOf(deed) {
  if (deed === undefined) return "dropped";
  return deed[1] === "Offload" || deed[1] === "Lossless" ? "offloaded" : FATE_OF[deed[2]] || "dropped";
}

// What stands at each recorded answer: the call it answers, what that call missed, whether its prefix broke.
function marksOf(conversation, run) {
  const marks = new Map();
  conversation.calls.forEach((ordinal, call) => marks.set(ordinal, { call, missing: [], broke: null, failing: "" }));
  for (const [call, facts] of run.missing) marks.get(conversation.calls[call]).missing = facts;
  for (const [call, ...broke] of run.breaks) marks.get(conversation.calls[call]).broke = broke;
  for (const [call, why] of run.failing) marks.get(conversation.calls[call]).failing = why;
  return marks;
}
