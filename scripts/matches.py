"""What the scripts that measure networks share: their help, how they end, the programs, a match by `selfplay pit`, its result in words."""

import argparse
import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path


def run(main):
    """Runs `main` and exits with its result. SIGTERM and Ctrl-C exit with 143 and 130."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)


def parser(text):
    """A parser of arguments whose help is a script's own text."""
    description, _, rest = text.partition("\n\n")
    return argparse.ArgumentParser(description=description, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter)


def programs(parser, binaries, *names):
    """Complains of programs that are not there."""
    for name in names:
        if not (binaries / name).is_file():
            parser.error(f"{binaries / name} is not there: `cargo build --release` builds it in target/release")


def pairs(text):
    """The games of a match, for `argparse`."""
    games = int(text)
    if games < 2 or games % 2:
        raise argparse.ArgumentTypeError("games come in pairs: an even number of 2 or more")
    return games


def player(name, evaluations=None):
    """A player, such as a network's file, as an argument of `selfplay pit`."""
    limit = "" if evaluations is None else f" evaluations={evaluations}"
    return shlex.quote(str(name)) + limit


def play(binaries, a, b, folder, *options):
    """The result of a match as `selfplay pit --json` prints it. A match that was stopped is resumed, one that is over is not played again."""
    command = [binaries / "selfplay", "pit", "--a", a, "--b", b, "--json", "--resume=or-begin", "--out", folder]
    played = subprocess.run([*map(str, [*command, *options])], stdout=subprocess.PIPE, text=True)
    if played.returncode != 0:
        sys.exit(f"{Path(sys.argv[0]).name}: {a} against {b}: the match failed")
    return json.loads(played.stdout)


def in_words(result):
    """Elo of a with its 95% interval."""
    return "{elo:+.0f} [{elo_low:+.0f}, {elo_high:+.0f}]".format(**result)
