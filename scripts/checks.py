"""What the checks of whole runs share: commands, waiting, packages, a small run, the table of their steps, a clock that is wrong."""

import ctypes
import os
import signal
import subprocess
import time

# A few turns a game, so that a generation takes seconds.
SMALL_RUN = """
    network.blocks=1 network.channels=8 selfplay.evaluations=8 selfplay.max_turns=60 selfplay.games_in_flight=16
    selfplay.games_per_shard=10 selfplay.targets.min_visits=1 selfplay.targets.truncated_weight=1 train.batch_size=64
    train.checkpoint_steps=20 train.network_steps=100 train.pool_rows=10000 train.memory_mib=64 train.window_rows=20000
    loop.generations=1000000 loop.first_games=200 loop.games_per_generation=2000 loop.match_opponents=1 loop.match_games=4
    loop.match_evaluations=8 match.max_turns=60 loop.anchors=["material~evaluations=8"]
""".split()

# A library that stands between a program and the clock, and adds the seconds that the file CLOCK_SHIFT holds, as a number of eight bytes.
# libfaketime can't: its start asks for memory while mimalloc, the programs' allocator, starts and asks for the time. That ends every
# second start in a segmentation fault.
SHIFT = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long long *shift;
__attribute__((constructor)) static void start(void) {
    int file = open(getenv("CLOCK_SHIFT"), O_RDONLY);
    void *map = mmap(0, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) abort();
    close(file);
    shift = map;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *shift;
    return failed;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec read;
    if (clock_gettime(CLOCK_REALTIME, &read)) return -1;
    now->tv_sec = read.tv_sec, now->tv_usec = read.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *to) {
    struct timespec read;
    clock_gettime(CLOCK_REALTIME, &read);
    return to ? *to = read.tv_sec : read.tv_sec;
}
"""


class Failed(Exception):
    """Something is not as it must be."""


def call(*command, check=True, **more):
    """What a command prints; its failure is one of the check's."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if check and done.returncode:
        raise Failed(f"{' '.join(map(str, command))[:1000]}: exit status {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def wait(what, condition, seconds=120, pause=0.1):
    """What the condition returns, once it is true."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if found := condition():
            return found
        time.sleep(pause)
    raise Failed(f"{what}: not within {seconds} s")


def apt_install(*packages):
    """Installs packages of Debian, and no others than they need."""
    print(f"installing {', '.join(packages)}", flush=True)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    call("apt-get", "update", env=environment)
    call("apt-get", "install", "-y", "--no-install-recommends", *packages, env=environment)


def ends_with_this():
    """For `preexec_fn`: the program ends with this one."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def sets(*more, settings=SMALL_RUN):
    """The options of a small run. Of a key that is set twice, the last value holds."""
    return [part for setting in (*settings, *more) for part in ("--set", setting.replace("~", " "))]


class Steps:
    """The steps of a check, and whether each was well."""

    def __init__(self):
        self.rows = []

    def step(self, what, action, *arguments):
        """Carries out a step, prints its line, and returns whether it was well."""
        begun = time.monotonic()
        try:
            found, is_well = action(*arguments), True
        except (Failed, ValueError, KeyError, OSError, subprocess.SubprocessError) as failed:
            found, is_well = str(failed), False
        self.rows.append(is_well)
        print(f"{what:<40} {found:<72} {time.monotonic() - begun:4.0f} s  {'ok' if is_well else 'FAILED'}", flush=True)
        return is_well
