"""Shared by the programs here: the pause point of tests/programs/program.h, and output that is the same in every flavour."""
import hashlib
import os
import sys
import time


def since_start():
    """Seconds since this process began, to a hundredth."""
    with open("/proc/self/stat") as file:
        began = int(file.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began


def pause_point():
    """Does nothing unless VGPU_PAUSE_FILE names a path P: then writes the process id to P.reached, and waits until P.go exists."""
    path = os.environ.get("VGPU_PAUSE_FILE")
    if path is None:
        return
    with open(path + ".reached.tmp", "w") as file:
        file.write(f"{os.getpid()}\n")
    os.rename(path + ".reached.tmp", path + ".reached")
    limit = time.monotonic() + int(os.environ.get("VGPU_TIME_LIMIT", "120"))
    while not os.path.exists(path + ".go"):
        if time.monotonic() > limit:
            sys.exit(f"pause point: {path}.go did not appear")
        time.sleep(0.002)


def show(name, array):
    """Prints shape, type and a digest of all bytes of a host array."""
    print(f"{name} {array.shape} {array.dtype} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}", flush=True)


def timed(name, seconds):
    """Prints a duration, on a line that tests/frameworks-on-gpu does not compare."""
    print(f"# {name} {seconds * 1e3:.3f} ms", flush=True)


def train(step, first, more, synchronize):
    """Runs `first` steps and prints their losses, the pause point, then times `more` steps together, and prints the last loss."""
    for number in range(first):
        print(f"loss {number} {step().item():.9g}", flush=True)
    pause_point()
    synchronize()
    begin = time.monotonic()
    for _ in range(more):
        loss = step()
    synchronize()
    timed("step", (time.monotonic() - begin) / more)
    print(f"loss {first + more} {loss.item():.9g}")
