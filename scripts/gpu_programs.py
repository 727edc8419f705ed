"""How `scripts/gpu_check` runs programs: with a limit, with everything that they say kept, and watched while they play."""

import http.client
import os
import re
import shlex
import signal
import subprocess
import threading
import time

# Of what a program says, so much goes into the report; all of it stays in the step's folder.
KEPT_BYTES = 32_768
# A program that is asked to stop gets so many seconds.
NOTICE = 15


class Program:
    """A program that runs in a session of its own. Its command, output, errors and end lie in the step's folder."""

    def __init__(self, folder, label, command, environment, limit):
        self.folder, self.label, self.command = folder, label, [str(part) for part in command]
        self.begun, self.limit, self.was_stopped, self.seconds = time.monotonic(), limit, None, None
        self.file("command").write_text(shlex.join(self.command) + "\n")
        with self.file("stdout").open("w") as output, self.file("stderr").open("w") as errors:
            self.process = subprocess.Popen(
                self.command, stdout=output, stderr=errors, stdin=subprocess.DEVNULL, env=environment, cwd=folder,
                start_new_session=True)

    def file(self, what):
        return self.folder / f"{self.label}.{what}"

    def runs(self):
        return self.process.poll() is None

    def wait(self):
        """Waits for its end, at most until its limit; then stops it."""
        try:
            self.process.wait(max(0.1, self.begun + self.limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.stop(f"stopped at its limit of {self.limit:.0f} s")
        return self.ended()

    def stop(self, why="stopped when it had done enough"):
        """Asks it to stop, as Ctrl-C does, and kills it if it doesn't."""
        if self.runs():
            self.interrupt(why)
            try:
                self.process.wait(NOTICE)
            except subprocess.TimeoutExpired:
                self.was_stopped = f"{why}; killed, since it did not end within {NOTICE} s"
                self.signal(signal.SIGKILL)
                self.process.wait()
        return self.ended()

    def interrupt(self, why):
        """Asks it to stop, and does not wait."""
        self.was_stopped = why
        self.signal(signal.SIGINT)

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def ended(self):
        if self.seconds is None:
            self.seconds = round(time.monotonic() - self.begun, 2)
            if not self.is_well():
                # A loop that was killed may have left its generator.
                self.signal(signal.SIGKILL)
        self.file("exit").write_text(f"{self.ending()}\n")
        return self

    def ending(self):
        """The exit code, or the name of the signal."""
        code = self.process.poll()
        return "it runs" if code is None else code if code >= 0 else signal.Signals(-code).name

    def is_well(self):
        return self.ending() in ((0, 75) if self.was_stopped else (0,))

    def stdout(self):
        return self.file("stdout").read_text(errors="replace")

    def stderr(self):
        return self.file("stderr").read_text(errors="replace")

    def last_error(self):
        """The line that says what went wrong, or the last one."""
        lines = [line.strip() for line in self.stderr().splitlines() if line.strip() and "[W" not in line and not line.startswith("nullgpu:")]
        # An exception of C++ that nothing has caught is told in lines that begin with `what()`, and a trace of the stack follows.
        errors = [line for line in lines if line.startswith(("error:", "what():")) or "panicked at" in line]
        return (errors or lines or ["it said nothing"])[-1]

    def described(self):
        return {
            "command": shlex.join(self.command), "ending": self.ending(), "stopped": self.was_stopped, "seconds": self.seconds,
            "stdout": self.stdout()[-KEPT_BYTES:], "stderr": self.stderr()[-KEPT_BYTES:],
        }


class Watch(threading.Thread):
    """Asks a generator's metrics five times a second: (seconds since its start, evaluations, network, resident MiB)."""

    def __init__(self, program):
        super().__init__(daemon=True)
        self.program, self.samples = program, []
        self.start()

    def run(self):
        port = None
        while self.program.runs():
            port = port or self.port()
            sample = self.ask(port) if port else None
            if sample:
                self.samples.append(sample)
            time.sleep(0.1 if port is None else 0.2)

    def port(self):
        found = re.search(r"metrics: http://127\.0\.0\.1:(\d+)/", self.program.stderr())
        return int(found.group(1)) if found else None

    def ask(self, port):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/metrics")
            page = connection.getresponse().read().decode()
            connection.close()
        except (OSError, http.client.HTTPException):
            return None
        number = lambda name: float((re.search(rf"^{name} (\S+)", page, re.M) or ["", "nan"])[1])
        network = re.search(r'^tusker_info\{.*?network="([^"]*)"', page, re.M)
        now = time.monotonic() - self.program.begun
        return now, number("tusker_evaluations_total"), network[1] if network else "", number("tusker_resident_memory_bytes") / 2**20

    def wait_for(self, condition, limit):
        """The first sample for which it holds, or None after so many seconds or if the program ends before."""
        end, looked = time.monotonic() + limit, 0
        while time.monotonic() < end:
            for sample in self.samples[looked:]:
                looked += 1
                if condition(sample):
                    return sample
            if not self.program.runs():
                return None
            time.sleep(0.05)
        return None

    def rate(self, begin, end=float("inf")):
        """Evaluations a second between two moments."""
        found = [sample for sample in self.samples if begin <= sample[0] <= end]
        if len(found) < 2 or found[-1][0] <= found[0][0]:
            return None
        return (found[-1][1] - found[0][1]) / (found[-1][0] - found[0][0])

    def longest_gap(self, begin, end):
        """The longest time between two moments in which no evaluation was counted, in seconds."""
        moved = [begin]
        found = [sample for sample in self.samples if begin <= sample[0] <= end]
        for before, after in zip(found, found[1:]):
            if after[1] > before[1]:
                moved.append(after[0])
        return max((after - before for before, after in zip(moved, [*moved[1:], end])), default=None)

    def memory(self):
        """Resident MiB by seconds since the start."""
        return [(sample[0], sample[3]) for sample in self.samples if sample[3] == sample[3]]
