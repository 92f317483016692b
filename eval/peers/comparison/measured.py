"""Runs a command and measures the costs of the command and of all processes below it.

The system counts the memory of the process that starts a program towards the program's peak. A small process of its own therefore
starts the command.
"""

import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.2
"""Seconds between two sums of the memory of several processes."""


@dataclass
class Cost:
    """Costs of a command."""

    wall_seconds: float
    processor_seconds: float
    memory_bytes: int
    """Peak memory. The peak of one process is what the system counted. With several processes it is also the largest sampled sum,
    in which shared memory counts once."""
    read_bytes: int
    """Bytes that system calls read, from the system's cache or a disk. Reads of files mapped into memory do not count."""
    written_bytes: int
    """Bytes that system calls wrote."""
    disk_read_bytes: int
    disk_written_bytes: int


class CommandFailed(Exception):
    """Error of a command that ended with another code than 0, or took too long. The message has the end of its output."""


def measure(command: list[str], environment: dict[str, str], folder: Path, log: Path, seconds_max: float) -> Cost:
    """Runs the command in the folder, in a session of its own, and writes its output to the log.

    The measured time ends with the command. Processes that the command leaves behind are waited for, and their costs count. After
    `seconds_max` the command's session is killed.
    """
    asked = [command, environment, str(folder), str(log), seconds_max]
    package = str(Path(__file__).resolve().parent.parent)
    starter = subprocess.run(
        [sys.executable, "-m", "comparison.measured"],
        env=os.environ | {"PYTHONPATH": package},
        input=json.dumps(asked),
        capture_output=True,
        text=True,
    )
    if starter.returncode != 0:
        raise CommandFailed(starter.stderr.strip())
    return Cost(**json.loads(starter.stdout))


def _measure(command: list[str], environment: dict[str, str], folder: Path, log: Path, seconds_max: float) -> Cost:
    """Like `measure`, but in this process, which must have no other children."""
    _adopt()
    with log.open("wb") as out:
        began = time.monotonic()
        child = subprocess.Popen(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    ended, greatest = threading.Event(), [0]
    late = False

    def watch() -> None:
        nonlocal late
        while not ended.wait(SAMPLE_SECONDS):
            pids = _session(child.pid)
            if len(pids) > 1:
                greatest[0] = max(greatest[0], sum(map(_proportional_bytes, pids)))
            if time.monotonic() - began > seconds_max and not late:
                late = True
                os.killpg(child.pid, 9)

    watcher = threading.Thread(target=watch)
    watcher.start()
    wall, processor, resident, counters = 0.0, 0.0, 0, Counter()
    try:
        while True:
            # A process that has ended stays a zombie, whose counters can still be read.
            pid = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid
            now = time.monotonic() - began
            counters.update(_counters(pid))
            _, status, usage = os.wait4(pid, 0)
            processor += usage.ru_utime + usage.ru_stime
            resident = max(resident, usage.ru_maxrss * 1024)
            if pid == child.pid:
                wall, child.returncode = now, os.waitstatus_to_exitcode(status)
    except ChildProcessError:
        # No process of the session is left.
        ended.set()
        watcher.join()
    if child.returncode != 0:
        tail = log.read_text(errors="replace")[-2_000:]
        why = f"took more than {seconds_max:.0f} s" if late else f"ended with code {child.returncode}"
        raise CommandFailed(f"{' '.join(command)} {why}:\n{tail}")
    return Cost(
        wall_seconds=wall,
        processor_seconds=processor,
        memory_bytes=max(resident, greatest[0]),
        read_bytes=counters["rchar"],
        written_bytes=counters["wchar"],
        disk_read_bytes=counters["read_bytes"],
        disk_written_bytes=counters["write_bytes"],
    )


def _adopt() -> None:
    """Makes this process the parent of orphans of the processes below it."""
    PR_SET_CHILD_SUBREAPER = 36
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "processes that a command leaves behind cannot be counted")


def _session(leader: int) -> list[int]:
    """Returns the processes of a session."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                if os.getsid(int(entry.name)) == leader:
                    found.append(int(entry.name))
            except ProcessLookupError:
                pass
    return found


def _proportional_bytes(pid: int) -> int:
    """Returns the memory of a process, in which a page that n processes share counts as 1/n. 0 if the process has just ended."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def _counters(pid: int) -> dict[str, int]:
    """Returns the counters of a process and of the processes below it that it waited for."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return {name: int(number) for name, number in (line.split(": ") for line in lines)}


def _main() -> int:
    command, environment, folder, log, seconds_max = json.load(sys.stdin)
    try:
        cost = _measure(command, environment, Path(folder), Path(log), seconds_max)
    except CommandFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    print(json.dumps(asdict(cost)))
    return 0


if __name__ == "__main__":
    sys.exit(_main())
