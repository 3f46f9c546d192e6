"""Stands between a daemon and a launched script: the script never outlives the daemon, nor the folder the script.

Run as a file, never as the module that ranks are. Descriptor 3 brings words from the daemon ("signal 2",
"stop"), and its end means that the daemon is gone; descriptor 4 takes words to it ("started PID",
"exited CODE SIGNAL").
"""

from __future__ import annotations

import ctypes
import os
import selectors
import shutil
import signal
import sys
import time

FROM_DAEMON = 3
TO_DAEMON = 4
#: A script that handles TERM may finish a write; all ranks must be gone within two seconds.
GRACE_SECONDS = 0.6
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def prctl(option: int, value: int) -> None:
    """Linux alone has it; elsewhere the daemon ends the group of a script whose keeper was killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def tell(words: str) -> None:
    try:
        os.write(TO_DAEMON, f"{words}\n".encode())
    except OSError:
        pass  # The daemon is gone; cleaning up goes on.


def start(command: list[str], folder: str) -> int:
    pid = os.fork()
    if pid > 0:
        return pid
    try:
        os.setsid()
        # What the keeper ignores would stay ignored in the script.
        for number in IGNORED:
            signal.signal(number, signal.SIG_DFL)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.close(FROM_DAEMON)
        os.close(TO_DAEMON)
        os.chdir(folder)
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def send(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


class Keeper:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.kill_at: float | None = None
        self.words = b""

    def stop(self) -> None:
        if self.kill_at is None:
            self.kill_at = time.monotonic() + GRACE_SECONDS
            send(self.pid, signal.SIGTERM)
            # A stopped process does not hear it otherwise.
            send(self.pid, signal.SIGCONT)

    def hear(self) -> bool:
        """False when the daemon will say no more."""
        try:
            chunk = os.read(FROM_DAEMON, 65536)
        except OSError:
            chunk = b""
        if chunk == b"":
            self.stop()
            return False
        *lines, self.words = (self.words + chunk).split(b"\n")
        for line in lines:
            word, _, value = line.decode(errors="replace").partition(" ")
            if word == "stop":
                self.stop()
            elif word == "signal" and value.isdigit():
                send(self.pid, int(value))
        return True

    def wait(self) -> int:
        """Until the script has ended; its status."""
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with selectors.DefaultSelector() as selector:
            selector.register(FROM_DAEMON, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            while True:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
                if ended == self.pid:
                    return status
                left = None if self.kill_at is None else max(0.0, self.kill_at - time.monotonic())
                if left == 0.0:
                    send(self.pid, signal.SIGKILL)
                    left = 0.2
                for key, _ in selector.select(left):
                    if key.fd == FROM_DAEMON and not self.hear():
                        selector.unregister(FROM_DAEMON)
                    elif key.fd == woken:
                        os.read(woken, 4096)


def end_the_rest(pid: int) -> None:
    """What the script started and left: its group, and on Linux also who has left that group."""
    send(pid, signal.SIGKILL)
    for _ in range(100):
        for child in children():
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
        except ChildProcessError:
            return


def children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def main(arguments: list[str]) -> int:
    folder, working, *command = arguments
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    pid = start(command, working)
    keeper = Keeper(pid)
    # Whoever stops the keeper stops the script.
    signal.signal(signal.SIGTERM, lambda *_: keeper.stop())
    tell(f"started {pid}")
    status = keeper.wait()
    end_the_rest(pid)
    shutil.rmtree(folder, ignore_errors=True)
    by_signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0
    tell(f"exited {code} {by_signal}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
