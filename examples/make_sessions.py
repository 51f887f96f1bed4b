"""Writes coding_sessions.jsonl: six sessions of a coding agent, made up from a few lists of words, the same in every run.

    python examples/make_sessions.py

Each session exceeds a window of 8,000 tokens, and its answers use names and numbers that were read many messages earlier, as
those of real sessions do. So `compaction replay` can tell strategies apart on them.
"""

import json
import random
from pathlib import Path

TARGET = Path(__file__).with_name("coding_sessions.jsonl")
PROJECTS = {
    "parcel-tracker": ("parcel", "route", "depot", "label", "scan", "customs"),
    "ticket-desk": ("ticket", "queue", "agent", "reply", "macro", "survey"),
    "farm-sensors": ("probe", "field", "valve", "battery", "rainfall", "pump"),
    "choir-planner": ("singer", "score", "concert", "venue", "rehearsal", "ledger"),
    "bike-share": ("dock", "bicycle", "ride", "tariff", "station", "repair"),
    "museum-shop": ("exhibit", "voucher", "basket", "stock", "invoice", "return"),
}
RULES = (
    "Do not add a dependency; the standard library is enough for all of this.",
    "Every function that you change gets a test before you change it.",
    "Never touch the files under migrations; they have run in production.",
    "Amounts are whole cents everywhere, never floats.",
    "Log lines are in English, and contain no names of customers.",
    "Ask me before you delete anything that a user could have written.",
)
VERBS = ("load", "merge", "check", "price", "store", "close", "split", "count")


def session(name: str, words: tuple[str, ...], number: int) -> dict:
    """Return one session: a task with rules, then modules that are read, tested and changed, and questions now and then."""
    chance = random.Random(number)
    rules = chance.sample(RULES, 3)
    task = f"Prepare release {number + 2}.{chance.randint(1, 9)} of {name}. Work through the modules one by one: " + ", ".join(
        words
    )
    messages = [
        {
            "role": "system",
            "content": f"You are a coding agent in the repository {name}. Read before you write, and test what you wrote.",
        },
        {"role": "user", "content": f"{task}. Three rules hold for everything:\n" + "\n".join(f"- {rule}" for rule in rules)},
    ]
    known = []  # the constants read so far: name, value, path
    for turn, word in enumerate(words * 2):
        path = f"src/{name.replace('-', '_')}/{word}_{VERBS[turn % len(VERBS)]}.py"
        source, constants = module(word, path, chance)
        say = f"Next is {path}." if not known else recall(chance, known)
        messages += call(say, "read_file", {"path": path}, source, chance)
        known += constants
        constant, value, _ = constants[0]
        report, failing = tests(word, path, chance)
        messages += call(
            f"I run the tests of {word} before I change {constant}.", "run", {"command": f"pytest tests/{word}"}, report, chance
        )
        edit = {"path": path, "old": f"{constant} = {value}", "new": f"{constant} = {value + 7}"}
        messages += call(
            f"{failing} fails because {constant} is {value}. {recall(chance, known)}",
            "edit_file",
            edit,
            f"edited {path}",
            chance,
        )
        if turn % 3 == 2:
            older = chance.choice(known)
            messages.append(
                {"role": "assistant", "content": f"{path} is done: {constant} is {value + 7} and {failing} passes."}
            )
            messages.append(
                {"role": "user", "content": f"Good. Was {older[0]} in {older[2]} right? Note it for the release, and go on."}
            )
            messages.append(
                {
                    "role": "assistant",
                    "content": f"{older[0]} was {older[1]} when I read {older[2]}; I note it for the release.",
                }
            )
            messages.append({"role": "user", "content": f"Thanks. Go on with the module after {word}."})
    messages.append({"role": "assistant", "content": f"All modules are done. {recall(chance, known)} {recall(chance, known)}"})
    return {"id": name, "messages": messages}


def module(word: str, path: str, chance: random.Random) -> tuple[str, list[tuple[str, int, str]]]:
    """Return the text of a module, and its constants."""
    constants = [(f"{word}_{each}_limit".upper(), chance.randint(1_000, 99_999), path) for each in chance.sample(VERBS, 3)]
    lines = [f'"""Everything about a {word}."""', "", *(f"{each} = {value}" for each, value, _ in constants)]
    for verb in chance.sample(VERBS, 6):
        limit = chance.choice(constants)[0]
        lines += [
            "",
            "",
            f"def {verb}_{word}(rows, *, limit={limit}):",
            f'    """Return the rows of a {word} that are below the limit."""',
        ]
        lines += [f"    found = [row for row in rows if row.{word}_id < limit]"]
        lines += [
            f"    if len(found) > {chance.randint(10, 99)}:",
            f"        raise ValueError('too many rows for {verb}_{word}')",
        ]
        lines += [f"    return sorted(found, key=lambda row: row.{verb}_date)"]
    return "\n".join(lines), constants


def tests(word: str, path: str, chance: random.Random) -> tuple[str, str]:
    """Return what pytest prints, and the name of the test that fails."""
    failing = f"test_{word}_{chance.choice(VERBS)}_{chance.randint(100, 999)}"
    lines = [f"tests/{word}/test_{verb}.py::test_{word}_{verb}_{chance.randint(100, 999)} PASSED" for verb in VERBS]
    lines += [
        f"tests/{word}/test_limits.py::{failing} FAILED",
        f"E   AssertionError: {path}:{chance.randint(20, 80)}: wrong limit",
    ]
    return "\n".join([*lines, f"1 failed, {len(VERBS)} passed in {chance.randint(1, 9)}.{chance.randint(10, 99)}s"]), failing


def recall(chance: random.Random, known: list[tuple[str, int, str]]) -> str:
    """Return a sentence that uses something that was read earlier."""
    name, value, path = chance.choice(known)
    return f"{name} in {path} is {value}, so the new value has to stay below it."


def call(text: str, tool: str, arguments: dict, result: str, chance: random.Random) -> list[dict]:
    """Return a call of a tool and its result."""
    id_ = f"call_{chance.getrandbits(48):012x}"
    asked = {"id": id_, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": text, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": id_, "content": result},
    ]


def main(target: Path = TARGET) -> None:
    """Write the sessions, one a line."""
    lines = [json.dumps(session(name, words, number)) for number, (name, words) in enumerate(PROJECTS.items())]
    target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
