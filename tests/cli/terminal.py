#!/usr/bin/env python3
"""Run a program in a terminal and talk with it.

    terminal.py PROGRAM ARGS... <<END
    see TEXT        wait until the program shows it, behind what was seen before
    type TEXT       and return
    keys TEXT       without return; C-c, C-d, C-r, UP and TAB are keys, the rest is typed as it is
    pause SECONDS
    make FILE       make an empty file, which others wait for
    unseen TEXT     the program has not shown it so far
    size COLUMNS    make the window that wide
    until TEXT N type QUERY / keys TEXT2    up to N times: type, pause for a part of the time that the query took
                    when it was last let through, keys; until the program shows TEXT
    exit CODE       wait for its end
    END

TERMINAL_SAVE names a file for all that the program wrote. Fails, and shows all that the
program wrote, when what is waited for does not come within a minute.
"""
import os, pty, re, select, signal, struct, sys, time, fcntl, termios

KEYS = {"C-c": b"\x03", "C-d": b"\x04", "C-r": b"\x12", "UP": b"\x1b[A", "C-a": b"\x01", "TAB": b"\t"}
WAIT = 60.0


class Terminal:
    def __init__(self, argv):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvp(argv[0], argv)
        self.resize(100)
        self.all = ""   # everything that it wrote, without escape sequences
        self.seen = 0   # of it
        self.raw = b""

    def resize(self, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def read(self, seconds):
        """Take what comes within the time; False at the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.raw += data
        text = self.raw.decode("utf-8", "replace")
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|\r", "", text)
        self.all = text
        return bool(data)

    def see(self, text, wait=WAIT):
        end = time.monotonic() + wait
        while True:
            at = self.all.find(text, self.seen)
            if at >= 0:
                self.seen = at + len(text)
                return True
            if time.monotonic() > end or not self.read(0.05):
                at = self.all.find(text, self.seen)
                if at >= 0:
                    self.seen = at + len(text)
                return at >= 0

    def write(self, data):
        os.write(self.fd, data)

    def exit(self):
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        return None


def keys(text):
    return KEYS.get(text, text.encode())


def main():
    t = Terminal(sys.argv[1:])

    def fail(line, why):
        print(f"{line}: {why}; the program wrote:\n{t.all}", file=sys.stderr)
        try:
            os.kill(t.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        sys.exit(1)

    for line in sys.stdin.read().splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "see":
            if not t.see(rest):
                fail(line, "it did not come")
        elif word == "type":
            t.write(rest.encode() + b"\r")
        elif word == "keys":
            t.write(keys(rest))
        elif word == "unseen":
            if rest in t.all:
                fail(line, "it came")
        elif word == "size":
            t.resize(int(rest))
        elif word == "pause":
            time.sleep(float(rest))
        elif word == "make":
            open(rest, "x").close()
        elif word == "until":
            text, n, typed, pressed = re.match(r"(.*) (\d+) type (.*) / keys (.*)", rest).groups()
            for i in range(int(n)):
                took = re.findall(r"matches in ([0-9.]+) (s|ms|us) ", t.all)
                t.see("gpuidx> ")
                t.write(typed.encode() + b"\r")
                if not i:
                    t.see("matches in ")
                    continue
                unit = {"s": 1, "ms": 1e-3, "us": 1e-6}[took[-1][1]]
                time.sleep(float(took[-1][0]) * unit * (0.5, 0.8, 0.2, 1, 0.05, 1.5, 3, 0)[i % 8])
                t.write(keys(pressed))
                if t.see(text, 3):
                    break
            else:
                fail(line, "it did not come")
        elif word == "exit":
            code = t.exit()
            if code != int(rest):
                fail(line, f"the exit code is {code}")
        elif word:
            fail(line, "there is no such step")
    if os.environ.get("TERMINAL_SAVE"):
        open(os.environ["TERMINAL_SAVE"], "w").write(t.all)


main()
