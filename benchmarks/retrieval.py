"""How well search finds the evidence of questions: recall, nDCG and MRR by category.

    python -m benchmarks.retrieval FILE.json          conversations and questions, as `playhead.testing.retrieval` says

Without a file, the LoCoMo dialogues beside the project are scored, where they are there.
"""

import argparse
import sys
from pathlib import Path

import msgspec

from playhead.search.find import MODES
from playhead.testing.retrieval import RECALL_AT, read, score

LOCOMO = Path(__file__).resolve().parents[2] / "shared" / "data" / "dialogues" / "locomo" / "locomo_part.json"


def main() -> int:
    """Print a table of scores in per cent, or the scores as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=LOCOMO, help="a JSON document; LoCoMo unless given")
    parser.add_argument("--mode", choices=MODES, default="auto")
    parser.add_argument("--json", action="store_true", help="one JSON object, shares from 0 to 1")
    arguments = parser.parse_args()
    try:
        found = score(read(arguments.file.read_bytes()), mode=arguments.mode)
    except (OSError, ValueError) as error:
        print(f"{arguments.file}: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        print(msgspec.json.encode(found).decode())
        return 0
    print(
        f"{'category':<14}{'questions':>10}" + "".join(f"{f'R@{k}':>7}" for k in RECALL_AT) + f"{'nDCG':>7}{'MRR':>7}"
    )
    for category, one in found.items():
        figures = [*one.recall.values(), one.ndcg, one.mrr]
        print(f"{category:<14}{one.question_count:>10}" + "".join(f"{100 * figure:>7.1f}" for figure in figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
