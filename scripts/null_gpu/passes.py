#!/usr/bin/env python3
"""Counts what a batch takes on the GPU, in the trace of a program that evaluates on the null GPU:

    NULLGPU_TRACE=FOLDER scripts/null_gpu/run target/release/selfplay generate … --device cuda
    scripts/null_gpu/passes.py FOLDER

A pass is what a thread does from behind one copy of answers to the next; answers are rows of 1288 bytes. Its tower goes from the
first 3x3 convolution to the last. Prints each kind of pass with how often it was seen, the one with the fewest launches last: which
of a network's forms is used for long is decided by times, which mean nothing here.
"""

import collections
import pathlib
import re
import sys

ANSWER_BYTES = 1288
COPY = re.compile(r"C device->pinned (\d+) ")
LAUNCH = re.compile(r"[LGX] ")
TOWER = re.compile(r"X .* conv \S+ \* \d+x\d+x3x3")


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    kinds = collections.Counter()
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.txt")):
        with path.open(errors="replace") as file:
            kinds.update(passes(line.partition(" ")[2] for line in file))
    if not kinds:
        sys.exit(f"passes.py: {sys.argv[1]}: no copy of answers is in its traces")
    for (launches, tower, copies, syncs), count in sorted(kinds.items(), reverse=True):
        print(f"{count} passes: launches {launches} tower {tower} outside {launches - tower} copies {copies} syncs {syncs}")


def passes(operations):
    """Of each pass of a thread: launches, those of the tower, copies, syncs."""
    launches, copies, syncs, first, last = 0, 0, 0, None, None
    begun = False
    for operation in operations:
        if LAUNCH.match(operation):
            launches += 1
            if TOWER.match(operation):
                first, last = first or launches, launches
        elif operation.startswith("S "):
            syncs += 1
        elif operation.startswith("C "):
            copies += 1
            copy = COPY.match(operation)
            if copy and int(copy.group(1)) % ANSWER_BYTES == 0:
                # What came before the first answers is the thread's beginning.
                if begun and first:
                    yield launches, last - first + 1, copies, syncs
                launches, copies, syncs, first, last = 0, 0, 0, None, None
                begun = True


if __name__ == "__main__":
    main()
