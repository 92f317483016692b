"""Runs a command and measures what it and all processes below it take.

The command is started by a small process of its own, since the system counts the memory of whoever starts a program as the most
that the program had.
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
"""How often the memory of several processes is summed up."""


@dataclass
class Cost:
    """What a command took."""

    wall_seconds: float
    processor_seconds: float
    memory_bytes: int
    """The most memory: of one process what the system counted; of several also the greatest sum that was seen, in which what they
    share counts once."""
    read_bytes: int
    """What was read by system calls, from the system's cache or a disk. What is mapped into memory is not counted."""
    written_bytes: int
    """What was written by system calls."""
    disk_read_bytes: int
    disk_written_bytes: int


class CommandFailed(Exception):
    """A command ended with another code than 0, or took too long; the message has the end of what it printed."""


def measure(command: list[str], environment: dict[str, str], folder: Path, log: Path, seconds_max: float) -> Cost:
    """Runs the command in the folder, in a session of its own, and writes what it prints to the log.

    Its time ends when the command does. Processes that the command leaves behind are waited for, and what they took is counted.
    After `seconds_max` the command's session is killed.
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
    """The same in this process, which must have no other children."""
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
            # What has ended stays a zombie, whose counters can still be read.
            pid = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid
            now = time.monotonic() - began
            counters.update(_counters(pid))
            _, status, usage = os.wait4(pid, 0)
            processor += usage.ru_utime + usage.ru_stime
            resident = max(resident, usage.ru_maxrss * 1024)
            if pid == child.pid:
                wall, child.returncode = now, os.waitstatus_to_exitcode(status)
    except ChildProcessError:
        # Nothing is left.
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
    """Makes this process the parent of what processes below it leave behind."""
    PR_SET_CHILD_SUBREAPER = 36
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "processes that a command leaves behind cannot be counted")


def _session(leader: int) -> list[int]:
    """The processes of a session."""
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
    """A process's memory, in which a page that n processes share counts as 1/n; 0 if it has just ended."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def _counters(pid: int) -> dict[str, int]:
    """The counters of a process and of those below it that it waited for."""
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
