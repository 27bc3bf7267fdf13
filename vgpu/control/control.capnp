@0xb1f2d0c47a9e6d31;
# The control plane: who may open, suspend, resume and look at sessions. The calls of CUDA itself never come this way:
# they go through the ring (docs/ring.md).
#
# Two wires, because the program is not ours:
#  - vgpud, vgpuctl, vgpu-worker and other daemons speak Cap'n Proto RPC (interfaces Node and Worker).
#  - An application process and vgpud exchange plain messages (ToNode, ToSession) with file descriptors beside them.
#    A library inside somebody's program must not bring an event loop that takes signals and ignores SIGPIPE for the
#    whole process, as KJ's does.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("vgpu::control");

const version :UInt32 = 24;
# A peer of another version is refused by name.
const mostFiles :UInt32 = 1024;
# That a program gives its workers at a time (ToNode.give).

# ---------------------------------------------------------------- application ⇄ vgpud, on DIR/session.sock

struct ToNode {
  # Every message of the application. The first one of a connection is `open`.
  union {
    open @0 :Open;
    gateClosed @1 :GateClosed;   # answer to ToSession.closeGate, and to `stay` if the session has stayed
    refused @2 :Text;            # the last request cannot be met; why. The session goes on as before it.
    moved @3 :Void;              # to the daemon it was suspended or moved from: another one owns the session now,
                                 # its state directory included. A connection that ends without this is a program's end.
    renew @4 :Void;              # a fault has ended a device for the worker's process: a new worker, with all else as it is.
                                 # Answered by suspended and reattach, or by renewalFailed
    accepted @5 :UInt64;         # answer to `opened` after a reattach: the number of the handover (docs/ring.md), which the
                                 # worker claims as it begins. Until it has, the program can withdraw by hanging up
    apart @6 :Void;              # answer to `approach`: the program shares no host memory any more
    parked @7 :Void;             # answer to `park`, and the last message: it has nothing of the node's any more
    rewritten @8 :Void;          # answer to `rewrite`
    give @9 :Data;               # a file whose memory the session's workers are to map, by a name of 16 bytes; the file is beside it.
                                 # Not answered: the frame that names it follows. At most mostFiles at a time
    takeBack @10 :Data;          # that one is not needed any more
  }
}

struct Open {
  # When it answers `reattach`, with three descriptors beside it: the segment (ring, slots, staging) and the host arena, which it
  # was given before, and the session's state directory, which the daemon checks and never looks up by a name of the program's.
  # A segment that is a piece of a file begins at its descriptor's position. The relay of a virtual machine's program opens with one
  # descriptor: the segment that the worker is to use, a piece of that machine's memory (docs/virtual-machines.md).
  version @0 :UInt32;
  pid @1 :Int32;
  name @2 :Text;           # what `vgpuctl run --name` gave, or the program's file name
  program @3 :Text;        # the executable's path
  session @4 :Text;        # empty for a new session; its id when the program answers `reattach`
  relayed @5 :Bool;        # by a relay (docs/remote.md): the program is elsewhere, and shares no memory with the worker
  place @6 :GuestPlace;    # of the relay of a virtual machine's program
  visible @7 :Text;        # of a new session: what the program's CUDA_VISIBLE_DEVICES says; null: it has none, and sees all devices
  files @8 :UInt32;        # when it answers `reattach`: so many messages `give` follow at once
}

struct GuestPlace {
  # Which part of a virtual machine's memory a session has (vgpu/wire/guest-file.h).
  guest @0 :Text;          # as `vgpud --guest` names it; empty: none
  slot @1 :UInt32;
  claim @2 :UInt64;
  fileBytes @3 :UInt64;
}

struct GateClosed {
  position @0 :UInt64;     # no frame has been reserved at or past it; every frame before it is published
}

struct ToSession {
  union {
    opened @0 :Opened;       # a new session's worker is there and consumes. After a reattach: the session is restored, and
                             # nobody consumes; answer `accepted`, and keep the gate closed until openGate
    refused @1 :Text;        # no session, and why: an error for the program
    closeGate @2 :Void;      # answer gateClosed when every call has entered the ring and the object list is committed
    openGate @3 :Void;       # a suspend that failed: go on. After `accepted`: the worker consumes
    suspended @4 :Text;      # the snapshot's directory. Wait for `reattach` on `reattach.sock` in the state directory
    suspendedInMemory @9 :Text;  # the same, but the daemon's memory has the snapshot: if the daemon ends before it has sent
                             # `suspended` as well, the session is lost
    lost @5 :Text;           # the worker is gone, and why: every call answers with an error from now on
    renewalFailed @7 :Text;  # there is no new worker, and why; the old one goes on where the gate is opened
    reattach @6 :Text;       # first message of a daemon that found the program: its session id. Answer with `open`
    moving @10 :Void;        # the gate is closed, and another daemon may offer a worker, as after `suspended`; this one has the
                             # session as it was, until the program says `moved`
    stay @11 :Void;          # after `moving`: no other daemon may take it any more. Answered by gateClosed, or by moved
    approach @12 :Approach;  # the session is to move to another host. For the relay beside a program, if there is one, which does not
                             # answer; else for the program: it shares no host memory from then on, and answers `apart`, or `refused`
    working @8 :Void;        # while it restores, every few seconds: a daemon that says nothing for long is given up
    park @13 :Void;          # after `suspended`: let go of the connection, the socket and the state directory, so that the process can
                             # be saved, and wait in memory for another one (vgpu/control/parked-program.h). Answered by parked, or refused
    rewrite @14 :Void;       # after `moving` or `suspended`, to the relay of a virtual machine's program there: write every page of the session's memory
                             # again, unchanged, so that the machine's migration sends what the host has written. Answered by rewritten
    tellObjects @16 :Void;   # to the relay beside a program: the node needs the object list as it is now. Not answered
    left @15 :Void;          # to the relay of a virtual machine's program here: the machine has moved, and another daemon has the
                             # session, or it is on disk with it. Answered by moved, and that relay ends
  }
  invalidDevice @17 :Bool;   # with `refused`: the program gets CUDA_ERROR_INVALID_DEVICE, else CUDA_ERROR_NO_DEVICE
}

struct Approach {
  # The relay, or for a program without one the daemon, starts another relay, which connects with `node` and shows the token; after
  # `moving` that one is the program to the daemon there (docs/migration.md). Empty for a program.
  node @0 :Text;
  token @1 :Data;
}

struct Opened {
  # For a new session with two descriptors beside it: the segment and the host arena, memfds sealed against resizing, which
  # the worker has made and the driver knows already. Alone where the program answered `reattach`.
  session @0 :Text;
  directory @1 :Text;      # the session's state directory; the object list is kept there (empty on a reattach)
}

# ---------------------------------------------------------------- vgpuctl and daemons ⇄ vgpud, on DIR/vgpud.sock

interface Node {
  hello @0 (version :UInt32) -> (version :UInt32, runDirectory :Text, devices :List(Device), pid :Int32, daemon :Text,
                                  isEnding :Bool);
  # `daemon`: a name of this process that no other one has, on any host. `isEnding`: it takes no more sessions.
  list @1 () -> (sessions :List(SessionInfo), before :Launches);   # before: of workers that have ended
  suspend @2 (session :Text, directory :Text, progress :Progress, timeoutSeconds :UInt32, memory :Memory, tree :List(SessionFolder),
              withMachine :Bool)
    -> (report :Report, others :List(SuspendedWith));
  # The program goes on where its gate cannot be closed or its GPU is not idle within the timeout (0: 60 s). All sessions that share
  # with it (docs/ipc.md) are suspended with it, or none: to sessions/ID below the directory. `tree`: these are, and another one
  # that shares with one of them refuses. It is named by id then, and is one of them.
  # `withMachine`: of a session in a virtual machine's memory, whose machine is saved next: the snapshot gets what this host has of its
  # pinned memory too, and the machine knows that it is suspended.
  resume @3 (directory :Text, progress :Progress, devices :List(UInt32), others :List(Text), copies :List(Int32))
    -> (session :SessionInfo, report :Report, others :List(SessionInfo));
  # `devices`: those of this node, by device of the session. Empty: each the one of its number. `others`: directories of sessions
  # that go on together with this one, or none does. `copies`: of each, this one first, a parked process that is a copy of the
  # snapshot's program, and gets a session of its own. Empty: the programs themselves.
  workers @4 () -> (workers :List(WorkerInfo));
  snapshot @5 (session :Text, directory :Text, progress :Progress, timeoutSeconds :UInt32) -> (report :Report);
  # The program goes on, also while the snapshot is being written.
  explain @6 (session :Text) -> (obstacles :List(Obstacle), deviceBytes :UInt64);
  # What would refuse or delay a suspend of the session now.
  migrate @7 (session :Text, target :Text, progress :Progress, downtimeSeconds :Float64, timeoutSeconds :UInt32)
    -> (session :SessionInfo, report :Report);
  # Moves the session to the node `target` while its program runs (docs/migration.md). After any failure it runs here as before.
  receive @8 (session :SessionInfo, devices :List(Device), snapshotVersion :UInt32, isElsewhere :Bool)
    -> (arrival :Arrival, token :Data);
  # Called by the node that a session comes from: prepares a worker for it, or rejects, saying why it cannot come here. Streams of
  # its memory come to DIR/streams.sock, each with the token first. `isElsewhere`: that node is on another host, and the relay
  # beside the program comes there too.
  park @9 (session :Text) -> ();
  # Of a suspended session: its program lets go of all that it has of this node, which forgets the session. `resume` finds a parked
  # program by its pid. One in a virtual machine's memory is forgotten alone: its machine has been saved.
  depart @10 (session :Text, target :Text, progress :Progress, downtimeSeconds :Float64, timeoutSeconds :UInt32)
    -> (departure :Departure);
  # A migration of which the caller takes one step after the other. Rejects, saying why, if the target does not take the session.
  pauseGuest @11 (guest :Text) -> (pause :GuestPause);
  # Of a virtual machine that is about to move: its programs that ask for a session from now on wait. Resolves when those that have asked
  # before have one, or none.
}

interface GuestPause {
  # As long as a client has it, programs of that machine that ask for a session wait; then they get one here.
  moved @0 ();
  # The machine runs elsewhere: they get none here, and ask there.
}

interface Departure {
  # A session that is to go to another node, and runs here until `leave`. Letting go of it gives it up; no other operation on the session
  # begins until then.
  advance @0 ();
  # Sends what the target does not have, in rounds, until the rest takes less than the downtime.
  leave @1 () -> (session :SessionInfo, report :Report);
  # The rest of Node.migrate. After any failure the session runs here as before, and the departure is over.
  hold @2 ();
  # Of a session in a virtual machine's memory, before the machine stops: holds the program, sends the rest, has the target restore
  # it, and has the machine write the session's memory again. From then on nothing of this host writes there. leave() follows when
  # the machine is at the target.
  stay @3 ();
  # While leave() waits for the machine at the target: it runs here again.
  watch @4 ();
  # After hold(): rejects when the target cannot take the session any more. Else it does not end.
}

struct SessionFolder {
  session @0 :Text;         # id
  directory @1 :Text;       # of its snapshot
}

struct SuspendedWith {
  session @0 :SessionInfo;
  report @1 :Report;
}

interface Arrival {
  # A session on its way to this node. Letting go of it gives it up.
  begin @0 ();
  # After the streams have come: the worker takes memory from them.
  complete @1 (directory :Text, progress :Progress) -> (session :SessionInfo, report :Report);
  # Takes the session over from the snapshot in `directory`, of which the memory has come ahead; empty: from what was put.
  put @2 (file :Text, offset :UInt64, bytes :Data) -> stream;
  # A piece of a file of the snapshot, from another host; without a name, of the host arena.
  restore @3 (progress :Progress, directory :Text) -> ();
  # Of a session in a virtual machine's memory, which is not here yet: all of complete() that can be done before it is. From the snapshot in
  # `directory`, if that is named: neither memory nor files have come then.
  watch @4 ();
  # After restore(): rejects when the session cannot be taken over any more. Else it does not end before complete() has.
}

struct Obstacle {
  refuses @0 :Bool;         # it would be refused; else it takes longer
  object @1 :Text;          # "module 0x65", "kernel spin(int)"
  why @2 :Text;
}

struct WorkerInfo {
  pid @0 :Int32;
  session @1 :Text;         # empty while it waits for one
  hostBytes @2 :UInt64;     # its share of resident memory: what is shared counts in parts
  gpuBytes @3 :UInt64;      # of all its devices, contexts included
  gpuKnown @4 :Bool;        # whether the driver tells (NVML)
  used @5 :Bool;            # while it waits: it has served a program before
}

struct Device {
  ordinal @0 :UInt32;
  name @1 :Text;
  uuid @2 :Text;
  memoryBytes @3 :UInt64;
  readsHostMemory @4 :Bool;   # CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS: kernels reach all memory of the worker's process
  freeBytes @5 :UInt64;       # now, as NVML says, else as a worker last said; memoryBytes if that one has no context on it
}

enum Memory {
  # What of a suspend goes to the daemon's pinned memory, as far as there is room.
  none @0;
  only @1;    # all chunks, and they stay there until the session is resumed
  first @2;   # all chunks; the daemon writes them to the snapshot's store afterwards
}

enum State { running @0; suspending @1; suspended @2; resuming @3; lost @4; }

struct SessionInfo {
  id @0 :Text;
  name @1 :Text;
  pid @2 :Int32;
  state @3 :State;
  device @4 :Text;          # "emulated 0", "cuda 0"; empty while suspended
  program @5 :Text;
  directory @6 :Text;       # state directory; the object list is in it
  workerPid @7 :Int32;      # 0 while suspended
  snapshot @8 :Text;        # where it was suspended to
  openedSeconds @9 :Int64;  # Unix time
  images @10 :Images;       # that came to its present worker; none from a snapshot
  launches @11 :Launches;   # by its present worker
  relayed @12 :Bool;        # its program is elsewhere (docs/remote.md): so it can move to another host
  sharesWith @13 :List(Text);   # of Worker.save: ids of the sessions that are suspended with it because they share with it
  place @14 :GuestPlace;        # if its program is in a virtual machine, and shares memory with this host
}

struct Launches {
  # Of kernels: all, and those that were launched in graphs (docs/folding.md).
  all @0 :UInt64;
  folded @1 :UInt64;
}

struct Images {
  # Module images: those that the program sent, and those that the node's image store had.
  sent @0 :UInt64;
  sentBytes @1 :UInt64;
  found @2 :UInt64;
  foundBytes @3 :UInt64;
}

interface Progress {
  # Long work tells how far it is; `total` may grow.
  report @0 (phase :Text, doneBytes :UInt64, totalBytes :UInt64) -> stream;
}

struct Report {
  seconds @0 :Float64;
  gateSeconds @1 :Float64;   # of which: the program was stopped at its gate before the worker was quiet
  deviceBytes @2 :UInt64;    # device memory the session owns
  storedBytes @3 :UInt64;    # what went to, or came from, disk
  objects @4 :UInt64;
  pendingCalls @5 :UInt64;     # frames that travelled unconsumed
  memoryBytes @6 :UInt64;      # of chunks that are in pinned memory, and of a suspend nowhere else
  rounds @7 :UInt32;           # of a snapshot whose program goes on: how often changes were copied while it ran,
  roundBytes @8 :UInt64;       # how much that was,
  heldBytes @9 :UInt64;        # and what was copied while the program was held, for gateSeconds
  copiedBytes @10 :UInt64;     # whose bytes were copied: of chunks that are no zeros, and that were not known by their digests
  phases @11 :List(PhaseTime);  # what `seconds` went to, in order
  twinBytes @12 :UInt64;       # of a resume: that were copied from the GPU memory of a session of the same snapshot
  aheadObjects @13 :UInt64;    # of a migration: that the target had made before the program was held
}

struct PhaseTime {
  name @0 :Text;
  seconds @1 :Float64;
}

# ---------------------------------------------------------------- vgpud → vgpu-worker, on an inherited socket

interface Descriptor {
  # A file descriptor as a capability: the message carries it beside itself.
}

interface PinnedRoom {
  # What one operation holds of the daemon's pinned memory, which the worker has mapped. Lists are arrays as they lie in memory
  # (vgpu/store/pinned-place.h); `key`: of the digests. What is held is let go when the operation ends, in both processes.
  place @0 (key :Data, names :Data, makesRoom :Bool) -> (places :Data);
  # Where each of these chunks is. makesRoom: those that are not there get room, as far as there is any.
  name @1 (key :Data, names :Data, offsets :Data);
  # What the caller has put into room that it got.
}

interface SpareMemory {
  free @0 () -> (freed :Bool);
  # Frees GPU memory that a suspended session still has (vgpud --keep-suspended). False: there is none.
}

struct SharedObject {
  # What one session gives to others of its user, by a name of 16 bytes that nobody can guess (docs/ipc.md).
  kind @0 :UInt32;            # of object, as vgpu/api/cuda.table numbers them
  device @1 :Data;            # the UUID of the GPU that has it
  bytes @2 :UInt64;           # of its parts together
  offset @3 :UInt64;          # in them, of what was given,
  size @4 :UInt64;            # and its size
  content @5 :Data;           # what is given in place of descriptors
  parts @6 :List(UInt64);     # sizes of what is behind each descriptor
}

interface Exchange {
  # What a session's worker gives to workers of other sessions of the same user, and takes from them.
  publish @0 (name :Data, object :SharedObject) -> (isNew :Bool);   # false: the name is taken
  addPart @1 (name :Data, part :Descriptor);
  withdraw @2 (name :Data);
  find @3 (name :Data) -> (isFound :Bool, object :SharedObject);
  # Of another session that runs.
  open @4 (name :Data) -> (isFound :Bool, parts :UInt32);
  # Until close(), or the session's end, the two are suspended together.
  part @5 (name :Data, index :UInt32) -> (part :Descriptor);
  close @6 (name :Data);
  file @7 (name :Data) -> (isFound :Bool, file :Descriptor);
  # That the session's own program has given.
}

interface LiveSnapshot {
  # A snapshot of a session that goes on (checkpoint/live-snapshot.h). Letting go of it gives it up.
  capture @0 (objects :Text, session :SessionInfo, reattach :Text, progress :Progress, room :PinnedRoom) -> ();
  # After Worker.quiesce: takes what has changed since. `room`: for what has room nowhere else; it must stay as it is until `finish`.
  finish @1 (progress :Progress) -> (report :Report);
  # After Worker.proceed: writes it. There is a snapshot then.
}

interface MigrationSource {
  # A session that goes to another worker (migrate/pre-copy-source.h). Letting go of it gives it up.
  capture @0 (session :SessionInfo, reattach :Text, progress :Progress) -> (report :Report);
  # After Worker.quiesce: sends what has changed, and writes all else. The session is complete at the target then.
  advance @1 (downtimeSeconds :Float64, progress :Progress) -> ();
  # Before that, while the session runs: further rounds, as of Worker.sendAhead.
}

interface Worker {
  hello @0 (spare :SpareMemory) -> (devices :List(Device), driverVersion :Int32);
  # `spare`: what the worker asks when a GPU has no memory left.
  attach @1 (exchange :Exchange, segment :Descriptor, devices :List(UInt32)) -> (segment :Descriptor, hostArena :Descriptor);
  # Begins a new session on the memory that was made ready with the worker, or on `segment` and a new host arena, and to consume.
  # `devices`: the node's that it has, by its own numbers. Empty: all, in their order.
  quiesce @2 (timeoutSeconds :UInt32, progress :Progress) -> (position :UInt64);
  # Stops between frames and waits for the GPU. Rejects, naming the kernel that runs, where that takes longer, and at once
  # where the caller gives up; the worker consumes nothing then until `proceed`.
  proceed @3 (handover :UInt64) -> ();
  # Goes on after a quiesce. After a restore with the number that the program gave: claims the session, and rejects, having
  # changed nothing, where the program has withdrawn.
  save @4 (directory :Text, objects :Text, session :SessionInfo, reattach :Text, progress :Progress, target :Descriptor,
           room :PinnedRoom, pool :Text, owned :List(Data))
    -> (report :Report);
  # Writes a snapshot of a quiesced session into the files of `target`, a directory that the caller has prepared and holds,
  # and removes in case of an error; its path is for messages. With `room`: chunks go there, and the snapshot says that they are in
  # `pool`. `owned`: names of what it has of sessions that have let go of it: this one saves their bytes.
  restore @5 (directory :Text, segment :Descriptor, hostArena :Descriptor, progress :Progress, room :PinnedRoom,
             devices :List(UInt32), exchange :Exchange, memoryLater :Bool, twin :Descriptor)
    -> (report :Report);
  # Rebuilds a session from a snapshot in a fresh worker, to which the program's memory is attached. Nothing of that memory
  # is changed and nothing consumed before `proceed`. `devices`: as of Node.resume. `memoryLater`: what the program has written into the
  # segment is there when `proceed` is called, and compared with the snapshot then. `twin`: the other end of showMemory()'s; what the
  # session there has of this snapshot on the same GPUs is copied from there.
  recycle @6 ();
  # The program has ended: destroys all that its session made and makes memory for another one ready. Rejects, saying why, if the
  # process is not like a new one then; it is of no further use.
  write @7 (directory :Text, room :PinnedRoom) -> (report :Report);
  # Of a process that was never greeted and has no driver: writes what `room` has of a snapshot in memory to its store.
  beginSnapshot @8 (directory :Text, target :Descriptor, progress :Progress) -> (snapshot :LiveSnapshot);
  # While the session runs: copies what it has, in rounds.
  explain @9 () -> (obstacles :List(Obstacle), deviceBytes :UInt64);
  release @10 ();
  # After `save`: the program waits without this worker. Destroys all that the session has made, so that its GPUs are free, and lets go of
  # the program's memory. `recycle` makes the process one for another session then.
  reclaim @11 (directory :Text, segment :Descriptor, hostArena :Descriptor, exchange :Exchange) -> (report :Report);
  # After `save`, in the place of `restore`: the session goes on in this very worker, which still has all of it. Rejects if the program's
  # memory is not the one that it has, or not at the snapshot's place.
  sendAhead @12 (streams :List(Descriptor), directory :Text, objects :Text, target :Descriptor, downtimeSeconds :Float64,
                 progress :Progress) -> (source :MigrationSource);
  # While the session runs: sends its memory, in rounds, until the rest takes less than the downtime, and modules and their recipes,
  # as far as the object list in `objects` has them.
  takeAhead @13 (streams :List(Descriptor)) -> ();
  # Of a fresh worker: takes, and makes, what another one sends ahead, for the next `restore`.
  showMemory @14 (to :Descriptor) -> ();
  # While the session runs, or is restored: sends the descriptors of its device memory to another worker, a ShownMemory each, and closes
  # `to`, a socket.
}

struct ShownMemory {
  # Between two workers, with a descriptor: an object of the driver's, mapped in the session.
  gpu @0 :Int32;               # of the node
  address @1 :UInt64;
  bytes @2 :UInt64;
}
