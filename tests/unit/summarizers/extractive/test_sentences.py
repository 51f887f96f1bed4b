"""Sentences end where people end them, not at abbreviations."""

from __future__ import annotations

import pytest

from compaction.summarizers.extractive.own_lines import lines_by_writer
from compaction.summarizers.extractive.sentences import sentences


@pytest.mark.parametrize(
    "text",
    [
        "Wir liefern an die Rosenstr. 5 in Ulm.|Bitte klingeln.",
        "Nimm z. B. die blaue Kiste.|Dann geh.",
        "Das Haus Nr. 12 ist frei.|Melde dich.",
        "Frag Dr. Meier.|Er weiß es.",
        "Am 3. Oktober ist zu.|Das gilt im 2. Stock.|Es sind 2.|Danke.",
        "Es sind ca. 30 Stück, d. h. zwei Kisten, usw. und so fort.|Danke.",
        "Lies Abb. 3, Kap. 4 und S. 12.|Gut.",
        "Mr. Smith met Prof. Jones, e.g. in Fig. 3.|They ate etc.|Nobody knows.",
        "I said no.|That is all.",
        "यह ठीक है।|फिर मत करो।",
        *('She said "stop."|Never touch prod.db.', "(See below.)|Never touch prod.db.", "**Never push.**|Ask me first."),
        *("Sie rief „Halt!“|Dann war es still.", "« Arrêtez ! »|Puis plus rien."),
    ],
)
def test_where_a_sentence_ends(text: str) -> None:
    """Not at an abbreviation or an ordinal; at marks of other scripts too, and behind what closes after the mark."""
    assert list(sentences(text.replace("|", " "))) == text.split("|")


def test_a_long_line_is_split_into_the_same_sentences() -> None:
    """The excerpt ends sentences where the digest does, and loses no character of them."""
    said = [f"Nimm z. B. Kiste {number}." if number % 2 else f'Ruf „Halt {number}!"' for number in range(30)]
    assert [line.text for line in lines_by_writer(" ".join(said))] == said
