"""What the scripts that measure networks share: a match by `selfplay pit`, and its result in words."""

import json
import subprocess
import sys
from pathlib import Path


def play(binaries, a, b, folder, *options):
    """The result of a match as `selfplay pit --json` prints it. A match that was stopped goes on, one that is over is not played again."""
    command = [binaries / "selfplay", "pit", "--a", a, "--b", b, "--json", "--resume=or-begin", "--out", folder]
    played = subprocess.run([*map(str, [*command, *options])], stdout=subprocess.PIPE, text=True)
    if played.returncode != 0:
        sys.exit(f"{Path(sys.argv[0]).name}: {a} against {b}: the match failed")
    return json.loads(played.stdout)


def in_words(result):
    """Elo of a with its 95% interval."""
    return "{elo:+.0f} [{elo_low:+.0f}, {elo_high:+.0f}]".format(**result)
