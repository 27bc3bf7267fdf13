"""One round of the kill campaign: two nodes, one program, one kill, and the checks afterwards (described in kill-campaign).

A Round owns its directory and every process that it starts; all of them have its directory in their environment, so rounds run
side by side. Once end() has returned, none of them runs.
"""
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time

VICTIMS = ("program", "vgpu-worker", "vgpud", "vgpuctl")
WRITE_POINTS = ("write.writing", "write.manifest-written", "write.manifest-named", "write.done")
MEMORY_POINTS = ("suspend.pinned", *WRITE_POINTS)
SNAPSHOT_POINTS = ("snapshot.asked", "snapshot.rounds-done", "snapshot.gate-closed", "snapshot.captured", "snapshot.released",
                   "snapshot.finished")
MIGRATE_POINTS = ("migrate.asked", "migrate.prepared", "migrate.sent-ahead", "migrate.captured", "migrate.moving", "migrate.arriving",
                  "migrate.moved")
KEEPING_POINTS = ("verify.compared", "export.written", "import.read", "rm.unnamed", "gc.index-written")
STORE_POINTS = (*SNAPSHOT_POINTS, *KEEPING_POINTS, "suspend.packs-synced", "suspend.chunks-indexed")


class Failure(Exception):
    pass


def wait_until(condition, what, limit):
    """`what` says what is awaited, or is a function that returns it."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise Failure(what() if callable(what) else f"not within {limit} s: {what}")
        time.sleep(0.01)


def children(process, name):
    """Process ids of the children of a process that are called `name`."""
    found = []
    try:
        with open(f"/proc/{process}/task/{process}/children") as listed:
            for child in listed.read().split():
                with open(f"/proc/{child}/comm") as comm:
                    if comm.read().strip() == name:
                        found.append(int(child))
    except OSError:
        pass  # it has ended
    return found


@functools.lru_cache
def idle_descriptors(tree):
    """How many file descriptors an idle daemon has open."""
    entry = Round(tree, "idle", 0, "none", "vgpud")
    try:
        entry.start_node("a")
        time.sleep(0.5)  # until it has scanned its run directory; a count taken too early is too high, and hides leaks
        return entry.count_descriptors("a")
    finally:
        entry.end()
        entry.remove()


class Round:
    limit = int(os.environ.get("VGPU_TIME_LIMIT", 60))  # seconds for each step on a busy machine
    program_arguments = ()
    reattach_limit = 15  # seconds for a vgpud to start and to resume on a busy machine

    def __init__(self, tree, number, seed, point=None, victim=None):
        """Kills at fault point `point`, in the process `victim` that reaches it; without a point at a random moment."""
        self.tree, self.number, self.point = tree, number, point
        self.random = random.Random(f"{seed}/{number}")
        self.victim = victim or self.random.choice(VICTIMS)
        # A snapshot in memory is resumed by its own node; the fault points of a resume are set on node b only and do not apply.
        self.in_memory = point in MEMORY_POINTS or (point is None and self.random.random() < 0.25)
        self.is_written = point in WRITE_POINTS or (point is None and self.in_memory and self.random.random() < 0.5)
        self.makes_snapshots = point in SNAPSHOT_POINTS or (point is None and self.random.random() < 0.25)
        self.in_store = self.in_memory or self.makes_snapshots or point in STORE_POINTS or self.random.random() < 0.5
        # In a migration the target reaches the fault points of a resume too.
        self.migrates = point in MIGRATE_POINTS or (point is None and not self.in_memory and self.random.random() < 0.25)
        self.delay = None if point else self.random.uniform(0, 0.8)
        self.keeps_suspended = self.in_memory and self.random.random() < 0.5
        self.directory = tempfile.mkdtemp(prefix="vgpu-", dir="/tmp")
        self.program, self.client = None, None
        self.daemons, self.logs = {}, []
        self.struck = False  # set by kill_at_random
        self.moves, self.hits_before, self.refused = 0, 0, None
        self.environment = dict(os.environ, VGPU_TEST_RUN=self.directory, XDG_CACHE_HOME=self.path("cache"),
                                VGPU_FAULT_LOG=self.path("faults"), VGPU_REATTACH_LIMIT=str(self.reattach_limit),
                                VGPU_STORE=self.path("store"))
        for name in ("VGPU_NODE", "XDG_RUNTIME_DIR", "VGPU_FAULT_POINT"):
            self.environment.pop(name, None)

    def __str__(self):
        return f"round {self.number}, " + (f"kill at {self.point}" if self.point else f"{self.victim} at {self.delay:.2f} s")

    def path(self, name):
        return os.path.join(self.directory, name)

    # ------------------------------------------------------------------------------------------------ processes
    def start(self, name, command, fault=False):
        """Starts a command with its output in NAME.log; with the round's fault point where `fault`."""
        environment = dict(self.environment)
        if fault:
            count = self.random.choice((1, 2)) if self.point == "suspend.saving" else 1
            environment["VGPU_FAULT_POINT"] = f"{self.point}:kill:{count}"
        if name == "program":
            environment["LD_PRELOAD"] = os.environ.get("VGPU_PROGRAM_PRELOAD", "")
        log = self.path(name + ".log")
        self.logs.append(log)
        with open(log, "ab") as output:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment,
                                    start_new_session=True)

    def start_node(self, name, fault=False):
        log = self.path(name + ".log")
        start = os.path.getsize(log) if os.path.exists(log) else 0
        process = self.start(name, [f"{self.tree}/bin/vgpud", "--run-dir", self.path(name), "--device", "emulated",
                                    "--recycle", "1",  # so that waiting workers have ended before descriptors are counted
                                    *(("--pinned", "16MiB") if self.in_memory else ()),
                                    *(("--keep-suspended",) if self.keeps_suspended else ())], fault)
        self.daemons[name] = process

        def ready():
            with open(log, "rb") as text:
                text.seek(start)
                return b"vgpud: ready" in text.read() or process.poll() is not None

        wait_until(ready, f"node {name} is ready", self.limit)

    def count_descriptors(self, name):
        try:
            return len(os.listdir(f"/proc/{self.daemons[name].pid}/fd"))
        except FileNotFoundError:
            return 0

    def command(self, node, *arguments):
        return [f"{self.tree}/bin/vgpuctl", "--node", f"unix:{self.path(node)}/vgpud.sock", *arguments]

    def ctl(self, node, *arguments, name="ctl", fault=False):
        self.client = self.start(name, self.command(node, *arguments), fault)
        try:
            return self.client.wait(self.limit)
        except subprocess.TimeoutExpired:
            raise Failure(f"vgpuctl {' '.join(arguments)} did not end within {self.limit} s")
        finally:
            self.client = None

    def runs(self, node):
        """Whether the node reports its only session as running."""
        answer = subprocess.run(self.command(node, "ps", "--json"), capture_output=True, text=True, env=self.environment,
                                timeout=self.limit)
        return answer.returncode == 0 and any(session["state"] == "running" for session in json.loads(answer.stdout))

    def computes(self):
        with open(self.path("program.log"), "rb") as text:
            return b"steady: begins" in text.read()

    def processes(self):
        """Process ids of all processes of this round."""
        mark = f"VGPU_TEST_RUN={self.directory}".encode()
        found = []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    if entry.isdigit() and mark in environ.read().split(b"\0"):
                        found.append(int(entry))
            except OSError:
                pass  # no process, or it has ended
        return found

    # ------------------------------------------------------------------------------------------------ the kill
    def victims(self):
        daemons = [process.pid for process in self.daemons.values() if process.poll() is None]
        client = self.client
        return {"vgpud": daemons,
                "vgpu-worker": [worker for daemon in daemons for worker in children(daemon, "vgpu-worker")],
                "program": children(self.program.pid, "steady"),
                "vgpuctl": [client.pid] if client and client.poll() is None else []}[self.victim]

    def kill_at_random(self, ended):
        ended.wait(self.delay)
        while not ended.is_set():
            victims = self.victims()
            if victims:
                try:
                    os.kill(self.random.choice(victims), signal.SIGKILL)
                except ProcessLookupError:
                    continue
                self.struck = True
                return
            ended.wait(self.random.uniform(0, 0.02))  # a client exists most of the time, and so does a worker

    def hits(self):
        """Fault points that were reached, in order: point, process, pid, action."""
        try:
            with open(self.path("faults")) as lines:
                return [line.split() for line in lines]
        except FileNotFoundError:
            return []

    def has_killed(self):
        return self.struck or any(hit[3] == "kill" for hit in self.hits())

    # ------------------------------------------------------------------------------------------------ a round
    def run(self):
        """The outcome. Raises Failure."""
        ended = threading.Event()
        killer = threading.Thread(target=self.kill_at_random, args=(ended,))
        try:
            self.start_node("a", self.is_fault_of("vgpud", "run.", "suspend.", "write.", "snapshot.", "migrate.") or
                            self.is_fault_of("vgpu-worker", "suspend.", "write.", "snapshot."))
            self.start_node("b", self.is_fault_of("vgpud", "resume.", "migrate.arriving") or self.is_fault_of("vgpu-worker", "resume."))
            self.program = self.start("program",
                                      self.command("a", "run", "--", f"{self.tree}/tests/programs/steady", self.path("go"),
                                                   *self.program_arguments), self.is_fault_of("program"))
            if not self.point:
                killer.start()
            wait_until(lambda: self.program.poll() is not None or self.daemons["a"].poll() is not None or
                       (self.computes() if self.point else self.runs("a")), "the program runs", self.limit)
            self.move()
            ended.set()
            if not self.point:
                killer.join()
            if self.point in WRITE_POINTS:
                wait_until(self.has_killed, f"somebody comes to {self.point}", self.limit)
            if not self.has_killed():
                raise Failure(f"{self.refused} failed, and nothing was killed" if self.refused else
                              f"nobody came to {self.point}")
            self.settle()
            self.before_judgement()
            outcome = self.judge()
            self.require_clean()
            return outcome
        finally:
            ended.set()
            self.end()

    def before_judgement(self):
        """A hook in which check-campaign causes its defect."""

    def end(self):
        """Kills whatever is left of this round."""
        for process in self.processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    def is_fault_of(self, process, *prefixes):
        return self.point is not None and self.victim == process and self.point.startswith(prefixes or "")

    def snapshot(self, move):
        return self.path(f"store/snapshots/{move}" if self.in_store else f"snapshot-{move}")

    def move(self):
        """Suspends the program on one node and resumes it on the other: to a fault point once, at random until the kill."""
        here, there = "a", "a" if self.in_memory else "b"
        if self.in_store:
            self.ctl("a", "snapshots", "ls")  # creates the store
        end = time.monotonic() + self.limit
        while self.program.poll() is None:
            time.sleep(self.random.uniform(0, 0.05))
            self.moves += 1
            self.hits_before = len(self.hits())
            target = (("--background", "--name", str(self.moves)) if self.is_written else
                      ("--to", "memory", "--name", str(self.moves)) if self.in_memory else ("--to", self.snapshot(self.moves)))
            live = ((here, ("snapshot", "steady", "--name", f"live-{self.moves}")),) if self.makes_snapshots else ()
            steps = (*live, (here, ("suspend", "steady", *target)),
                     (there, ("resume", self.snapshot(self.moves))))
            if self.migrates:
                steps = ((here, ("migrate", "steady", "--to", self.path(there))),)
            for node, (verb, *arguments) in steps:
                if self.ctl(node, verb, *arguments, name=verb, fault=self.is_fault_of("vgpuctl", verb)) != 0:
                    self.refused = verb
                    return
            here, there = there, here
            if self.in_store:
                self.keep_store()
            if self.point or self.struck:
                return
            if time.monotonic() > end:
                raise Failure(f"no {self.victim} was found to be killed")

    def keep_store(self):
        """What a person does with a store. The last snapshot, which is not needed any more, becomes a file, comes back under another
        name, and that is removed."""
        name, archive = str(self.moves), self.path(f"archive-{self.moves}")
        work = [("verify",), ("export", name, archive), ("import", archive, "imported"), ("rm", "--force", "imported")]
        for verb, *arguments in (work if self.point in KEEPING_POINTS else []) + [("gc",)]:
            if self.ctl("a", "snapshots", verb, *arguments, name=verb, fault=self.is_fault_of("vgpuctl", verb + ".")) != 0:
                return

    def settle(self):
        """Brings back what was killed around the program, resumes what is suspended, and lets the program end. Node a resumes,
        because b's workers may each be killed at the round's fault point."""
        with open(self.path("go"), "w"):
            pass
        if self.victim == "vgpud":  # its program may see the end of vgpud before this script does
            wait_until(lambda: any(process.poll() is not None for process in self.daemons.values()), "a killed vgpud ends",
                       self.limit)
        end = time.monotonic() + self.limit
        while True:
            for name, process in list(self.daemons.items()):
                if process.poll() is not None:
                    self.start_node(name)
            if self.program.poll() is not None:
                return
            if time.monotonic() > end:
                raise Failure("the program neither ends nor can be resumed")
            if self.is_complete(self.moves) and not self.runs("a") and not self.runs("b"):
                self.ctl("a", "resume", self.snapshot(self.moves), name="resume-again")
            time.sleep(0.02)

    # ------------------------------------------------------------------------------------------------ what must be true
    def is_complete(self, move):
        return os.path.exists(os.path.join(self.snapshot(move), "manifest.json"))

    def judge(self):
        code = self.program.returncode
        with open(self.path("program.log"), errors="replace") as text:
            said = text.read()
        if "steady: wrong" in said:
            raise Failure("the program computed something else")
        if code == 0 and "steady: ok" in said:
            return "right"
        if self.victim == "program" and code == 128 + signal.SIGKILL:  # vgpuctl run passes on this exit code
            return "killed"
        # A snapshot counts from the moment when its manifest is renamed into place until a daemon offers the program its new worker.
        since = {hit[0] for hit in self.hits()[self.hits_before:]}
        is_lost = self.in_memory and self.victim == "vgpud"  # with the memory that held it
        if self.is_complete(self.moves) and not is_lost and "resume.daemon-committed" not in since:
            raise Failure(f"the program ended with code {code}, and its snapshot was complete")
        if self.victim in ("vgpud", "vgpu-worker") and code > 0 and "vgpu: " in said:
            return "lost"
        if self.victim == "vgpud" and code == 1 and said.startswith("vgpuctl: ") and said.count("\n") == 1:
            return "lost"  # vgpud was killed before the program was started; vgpuctl run reports only that
        raise Failure(f"the program ended with code {code}")

    def require_clean(self):
        for name, process in self.daemons.items():
            if process.poll() is not None:
                raise Failure(f"node {name} ended by itself with code {process.returncode}")
            idle = idle_descriptors(self.tree) + (1 if self.in_memory else 0)  # the memory's descriptor
            wait_until(lambda: self.count_descriptors(name) <= idle, f"node {name} has no more than {idle} descriptors open",
                       self.limit)
        # While the daemons run: it is they who remove what a program leaves.
        wait_until(lambda: not self.left_files(), lambda: "files are left: " + ", ".join(self.left_files()), self.limit)
        for name, process in self.daemons.items():
            process.terminate()
            try:
                code = process.wait(self.limit)
            except subprocess.TimeoutExpired:
                raise Failure(f"node {name} does not end when it is told to")
            if code != 0:
                raise Failure(f"node {name} ended with code {code}")
        if self.in_store:
            self.require_sound_store()
        wait_until(lambda: not self.processes(), "no process is left", self.limit)
        if self.left_files():
            raise Failure("files are left: " + ", ".join(self.left_files()))

    def require_sound_store(self):
        """Every complete snapshot can be resumed, and nothing remains of incomplete or removed snapshots."""
        def do(*arguments):
            if self.ctl("a", "snapshots", *arguments, name="store") != 0:
                raise Failure(f"vgpuctl snapshots {' '.join(arguments)} fails")

        if self.in_memory:
            do("gc")  # removes incomplete snapshots, which verify would report
        do("verify")
        do("gc")
        for name in self.complete_in_store():
            do("rm", "--force", name)
        do("gc")
        left = os.listdir(self.path("store/packs")) + os.listdir(self.path("store/snapshots"))
        if left:
            raise Failure("the store has kept what nobody needs: " + ", ".join(left))

    def complete_in_store(self):
        folder = self.path("store/snapshots")
        return [name for name in os.listdir(folder) if os.path.exists(os.path.join(folder, name, "manifest.json"))]

    def left_files(self):
        left = [entry.path for name in self.daemons for folder in ("", "sessions", "arrived/sessions", "renewals")
                for entry in os.scandir(os.path.join(self.path(name), folder))
                if folder or entry.name not in ("lock", "vgpud.sock", "session.sock", "streams.sock", "sessions", "arrived", "renewals")]
        return sorted(left + [self.snapshot(move) for move in range(1, self.moves + 1) if not self.is_tidy(move)])

    def is_tidy(self, move):
        """A snapshot is complete or not there; a daemon that is killed leaves one that says of itself that it is neither, and that
        the next suspend into that directory removes (docs/snapshot.md)."""
        folder = self.snapshot(move)
        return (not os.path.exists(folder) or self.is_complete(move) or
                self.victim == "vgpud" and (os.path.exists(os.path.join(folder, "manifest.json.new")) or not os.listdir(folder)))

    def explain(self):
        for log in dict.fromkeys([*self.logs, self.path("faults")]):
            if os.path.exists(log) and os.path.getsize(log):
                with open(log, errors="replace") as text:
                    print(f"--- {os.path.basename(log)}\n{text.read()[-3000:].rstrip()}")
