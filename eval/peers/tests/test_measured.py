import os
import sys
import tempfile
import unittest
from pathlib import Path

from comparison.measured import CommandFailed, measure

MEBI = 1 << 20


class Measured(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_python(self, code: str, seconds_max: float = 60):
        return measure([sys.executable, "-c", code], dict(os.environ), self.folder, self.folder / "log", seconds_max)

    def test_memory_bytes_and_time_are_those_of_the_command(self):
        code = "import time\nopen('out', 'wb').write(bytes(50 << 20))\nopen('out', 'rb').read()\ntime.sleep(0.5)"
        cost = self.run_python(code)
        self.assertTrue(50 * MEBI <= cost.written_bytes < 51 * MEBI, cost)
        self.assertTrue(50 * MEBI <= cost.read_bytes < 60 * MEBI, cost)
        self.assertGreater(cost.memory_bytes, 50 * MEBI)
        self.assertGreater(cost.wall_seconds, 0.5)
        self.assertLess(cost.processor_seconds, cost.wall_seconds + 1)

    def test_processes_below_it_are_counted_even_when_nobody_waits_for_them(self):
        child = "import time\nheld = b'x' * (60 << 20)\nopen('out-%d', 'wb').write(held)\ntime.sleep(1.5)"
        code = f"import subprocess, sys\nfor at in range(2): subprocess.Popen([sys.executable, '-c', {child!r} % at])"
        cost = self.run_python(code + "\nimport time; time.sleep(1)")
        self.assertGreaterEqual(cost.written_bytes, 120 * MEBI)
        # The processes run at the same time, so their memory adds up.
        self.assertGreater(cost.memory_bytes, 120 * MEBI)
        self.assertLess(cost.memory_bytes, 400 * MEBI)

    def test_memory_is_not_that_of_whoever_measures(self):
        held = b"x" * (300 << 20)
        cost = self.run_python("pass")
        self.assertEqual(len(held), 300 * MEBI)
        self.assertLess(cost.memory_bytes, 100 * MEBI)

    def test_a_failure_says_what_was_printed(self):
        with self.assertRaisesRegex(CommandFailed, "(?s)code 3.*no such pages"):
            self.run_python("import sys; print('no such pages', file=sys.stderr); sys.exit(3)")

    def test_what_takes_too_long_is_stopped(self):
        with self.assertRaisesRegex(CommandFailed, "took more than 1 s"):
            self.run_python("import time; time.sleep(60)", 1)


if __name__ == "__main__":
    unittest.main()
