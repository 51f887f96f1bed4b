"""Prints how well the kinds of sentences are recognized, by kind and language; or trains the model.

python -m benchmarks.statements --train     # needs scikit-learn; writes the model of the package, 45 seconds
python -m benchmarks.statements             # the report
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from compaction.summarizers.extractive.classifier import MODEL, Classifier

from .examples import UNSEEN, examples, judging, wordings
from .report import report


def main(arguments: Sequence[str] | None = None) -> None:
    """Train if asked to, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true", help="train the model first, and write it")
    options = parser.parse_args(arguments)
    if options.train:
        from .training import train

        MODEL.write_bytes(train([*examples(), *wordings(), *wordings()]))
        print(f"{MODEL.stat().st_size:,} bytes\n")
    print(report(Classifier(MODEL.read_bytes()), [*judging()], [*judging(UNSEEN)]))


if __name__ == "__main__":
    main()
