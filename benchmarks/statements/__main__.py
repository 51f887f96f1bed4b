"""Prints how well the kinds of sentences are recognized, by kind and language; or trains the model.

python -m benchmarks.statements --train     # needs scikit-learn; writes the model of the package, 75 seconds of processor time
python -m benchmarks.statements             # the report
python -m benchmarks.statements "Call me at six."   # the probable kinds of sentences
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from compaction.summarizers.extractive.classifier import MODEL, PER_MILLE, Classifier

from .examples import UNSEEN, examples, judging, wordings
from .report import report


def main(arguments: Sequence[str] | None = None) -> None:
    """Train if asked to, and print the report, or the kinds of sentences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true", help="train the model first, and write it")
    parser.add_argument("sentences", nargs="*", help="print the probable kinds of these instead of the report")
    options = parser.parse_args(arguments)
    if options.train:
        from .training import train

        MODEL.write_bytes(train([*examples(), *wordings(), *wordings()]))
        print(f"{MODEL.stat().st_size:,} bytes\n")
    model = Classifier(MODEL.read_bytes())
    for sentence in options.sentences:
        print(f"{sentence}  ({probable_kinds(model, sentence)})")
    if not options.sentences:
        print(report(model, [*judging()], [*judging(UNSEEN)]))


def probable_kinds(model: Classifier, sentence: str) -> str:
    """Return the three most probable kinds of a sentence, with their probabilities."""
    kinds = sorted(model.probabilities(sentence).items(), key=lambda each: -each[1])[:3]
    return ", ".join(f"{kind} {share / PER_MILLE:.2f}" for kind, share in kinds)


if __name__ == "__main__":
    main()
