@0xb1f2d0c47a9e6d31;
# The control plane: opening, suspending, resuming and inspecting sessions. CUDA calls never go through it but through the ring
# (docs/ring.md).
#
# Two protocols, because the program is not ours:
#  - vgpud, vgpuctl, vgpu-worker and other daemons speak Cap'n Proto RPC (interfaces Node and Worker).
#  - An application process and vgpud exchange plain messages (ToNode, ToSession) with file descriptors beside them.
#    A library inside somebody's program must not bring an event loop that takes signals and ignores SIGPIPE for the
#    whole process, as KJ's does.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("vgpu::control");

const version :UInt32 = 24;
# A peer of another version is refused, with a message that names the versions.
const mostFiles :UInt32 = 1024;
# The most files that a program gives its workers at a time (ToNode.give).

# ---------------------------------------------------------------- application ⇄ vgpud, on DIR/session.sock

struct ToNode {
  # All messages of the application. The first message of a connection is `open`.
  union {
    open @0 :Open;
    gateClosed @1 :GateClosed;   # answer to ToSession.closeGate, and to `stay` if the session has stayed
    refused @2 :Text;            # the last request cannot be met, for this reason. The session goes on as before the request.
    moved @3 :Void;              # to the daemon that the session was suspended by or moved from: another daemon owns the session now,
                                 # including its state directory. If a connection ends without this, the program has ended.
    renew @4 :Void;              # a fault has ended a device for the worker's process: asks for a new worker, with everything else
                                 # unchanged. Answered by suspended and reattach, or by renewalFailed
    accepted @5 :UInt64;         # answer to `opened` after a reattach: the number of the handover (docs/ring.md), which the worker claims
                                 # when it begins. Until then, the program can withdraw by closing the connection
    apart @6 :Void;              # answer to `approach`: the program shares no host memory any more
    parked @7 :Void;             # answer to `park`, and the last message: the program uses nothing of the node any more
    rewritten @8 :Void;          # answer to `rewrite`
    give @9 :Data;               # a file whose memory the session's workers are to map, by a name of 16 bytes, with the descriptor. Not
                                 # answered: the frame that names it follows. At most mostFiles at a time
    takeBack @10 :Data;          # that file is not needed any more
  }
}

struct Open {
  # When it answers `reattach`, it carries three descriptors: the segment (ring, slots, staging) and the host arena, which the program was
  # given before, and the session's state directory, which the daemon verifies and never opens by a path that the program sends. A segment
  # that is a piece of a file begins at its descriptor's position. The relay of a virtual machine's program sends one descriptor: the
  # segment that the worker is to use, a piece of that machine's memory (docs/virtual-machines.md).
  version @0 :UInt32;
  pid @1 :Int32;
  name @2 :Text;           # the argument of `vgpuctl run --name`, or the program's file name
  program @3 :Text;        # the executable's path
  session @4 :Text;        # empty for a new session; its id when the program answers `reattach`
  relayed @5 :Bool;        # opened by a relay (docs/remote.md): the program is elsewhere, and shares no memory with the worker
  place @6 :GuestPlace;    # for the relay of a virtual machine's program
  visible @7 :Text;        # for a new session: the program's CUDA_VISIBLE_DEVICES; null if it is not set, so that the program sees all
                           # devices
  files @8 :UInt32;        # when it answers `reattach`: the number of `give` messages that follow at once
}

struct GuestPlace {
  # The part of a virtual machine's memory that belongs to a session (vgpu/wire/guest-file.h).
  guest @0 :Text;          # the name in `vgpud --guest`; empty: none
  slot @1 :UInt32;
  claim @2 :UInt64;
  fileBytes @3 :UInt64;
}

struct GateClosed {
  position @0 :UInt64;     # no frame has been reserved at or beyond it; every frame before it is published
}

struct ToSession {
  union {
    opened @0 :Opened;       # a new session has a worker, which consumes. After a reattach: the session is restored, and no worker consumes
                             # yet; answer `accepted`, and keep the gate closed until openGate
    refused @1 :Text;        # there is no session, for this reason: CUDA calls return an error
    closeGate @2 :Void;      # answer gateClosed when every call has entered the ring and the object list is committed
    openGate @3 :Void;       # the suspend has failed: go on. After `accepted`: the worker consumes
    suspended @4 :Text;      # the snapshot's directory. Wait for `reattach` on `reattach.sock` in the state directory
    suspendedInMemory @9 :Text;  # the same, but the snapshot is in the daemon's memory: if the daemon ends before it sends `suspended` too,
                                 # the session is lost
    lost @5 :Text;           # the worker is gone, for this reason: every call returns an error from now on
    renewalFailed @7 :Text;  # there is no new worker, for this reason; the old one goes on if the gate is opened
    reattach @6 :Text;       # first message of a daemon that has found the program: the session id. Answer with `open`
    moving @10 :Void;        # the gate is closed, and another daemon may offer a worker, as after `suspended`; this daemon keeps the
                             # session unchanged until the program sends `moved`
    stay @11 :Void;          # after `moving`: no other daemon may take the session any more. Answered by gateClosed, or by moved
    approach @12 :Approach;  # the session is to move to another host. If the program has a relay, this is for the relay, which does not
                             # answer; otherwise for the program, which shares no host memory from then on and answers `apart`, or `refused`
    working @8 :Void;        # sent every few seconds during a restore: a program gives up a daemon that is silent for long
    park @13 :Void;          # after `suspended`: close the connection, the socket and the state directory, so that the process can be
                             # saved, and wait in memory for another daemon (vgpu/control/parked-program.h). Answered by parked, or refused
    rewrite @14 :Void;       # after `moving` or `suspended`, to the relay in the virtual machine of the program: write every page of the
                             # session's memory again, unchanged, so that the machine's migration sends what the host has written. Answered
                             # by rewritten
    tellObjects @16 :Void;   # to the program's relay: the node needs the current object list. Not answered
    left @15 :Void;          # to the relay on this host of a program in a virtual machine: the machine has moved and another daemon has the
                             # session, or the session is saved on disk with the machine. Answered by moved, and the relay ends
  }
  invalidDevice @17 :Bool;   # with `refused`: the program gets CUDA_ERROR_INVALID_DEVICE; otherwise CUDA_ERROR_NO_DEVICE
}

struct Approach {
  # The program's relay (or the daemon, for a program without one) starts another relay, which connects to `node` and shows the token; after
  # `moving`, the daemon there treats that relay as the program (docs/migration.md). Empty if sent to a program.
  node @0 :Text;
  token @1 :Data;
}

struct Opened {
  # For a new session it carries two descriptors: the segment and the host arena, memfds sealed against resizing, which the worker has made
  # and registered with the driver. Without descriptors if the program answered `reattach`.
  session @0 :Text;
  directory @1 :Text;      # the session's state directory, which contains the object list (empty on a reattach)
}

# ---------------------------------------------------------------- vgpuctl and daemons ⇄ vgpud, on DIR/vgpud.sock

interface Node {
  hello @0 (version :UInt32) -> (version :UInt32, runDirectory :Text, devices :List(Device), pid :Int32, daemon :Text,
                                  isEnding :Bool);
  # `daemon`: a name of this process, unique across all hosts. `isEnding`: it accepts no more sessions.
  list @1 () -> (sessions :List(SessionInfo), before :Launches);   # before: launches by workers that have ended
  suspend @2 (session :Text, directory :Text, progress :Progress, timeoutSeconds :UInt32, memory :Memory, tree :List(SessionFolder),
              withMachine :Bool)
    -> (report :Report, others :List(SuspendedWith));
  # If the gate cannot be closed or the GPU is not idle within the timeout (0: 60 s), the program goes on. All sessions that share with this
  # one (docs/ipc.md) are suspended with it, or none: to sessions/ID below the directory. `tree`: suspends exactly these sessions, and
  # refuses if another session shares with one of them. `session` must be an id then, and one of them.
  # `withMachine`: for a session in a virtual machine's memory, whose machine is saved next: the snapshot then includes this host's part of
  # the session's pinned memory, and the machine is told that the session is suspended.
  resume @3 (directory :Text, progress :Progress, devices :List(UInt32), others :List(Text), copies :List(Int32))
    -> (session :SessionInfo, report :Report, others :List(SessionInfo));
  # `devices`: this node's device for each device of the session. Empty: the one with the same number. `others`: directories of sessions
  # that are resumed together with this one; all resume or none. `copies`: for each session, this one first, a parked process that is a copy
  # of the snapshot's program and gets a new session. Empty: resumes the original programs.
  workers @4 () -> (workers :List(WorkerInfo));
  snapshot @5 (session :Text, directory :Text, progress :Progress, timeoutSeconds :UInt32) -> (report :Report);
  # The program goes on, also during the writing of the snapshot.
  explain @6 (session :Text) -> (obstacles :List(Obstacle), deviceBytes :UInt64);
  # What would refuse or delay a suspend of the session at present.
  migrate @7 (session :Text, target :Text, progress :Progress, downtimeSeconds :Float64, timeoutSeconds :UInt32)
    -> (session :SessionInfo, report :Report);
  # Moves the session to the node `target` while its program runs (docs/migration.md). After any failure it runs here as before.
  receive @8 (session :SessionInfo, devices :List(Device), snapshotVersion :UInt32, isElsewhere :Bool)
    -> (arrival :Arrival, token :Data);
  # Called by the node that a session comes from: prepares a worker for the session, or rejects with the reason. The session's memory
  # arrives in streams on DIR/streams.sock, each of which begins with the token. `isElsewhere`: the calling node is on another host, and the
  # program's relay will connect to this node.
  park @9 (session :Text) -> ();
  # For a suspended session: the program releases everything that it uses of this node, and the node forgets the session. `resume` finds a
  # parked program by its pid. If the program is in a virtual machine, the node only forgets the session, because the machine has been
  # saved.
  depart @10 (session :Text, target :Text, progress :Progress, downtimeSeconds :Float64, timeoutSeconds :UInt32)
    -> (departure :Departure);
  # A migration whose steps the caller controls. Rejects, with the reason, if the target does not accept the session.
  pauseGuest @11 (guest :Text) -> (pause :GuestPause);
  # For a virtual machine that is about to move: programs in it that ask for a session from now on wait. Resolves when all earlier requests
  # for sessions have been answered.
}

interface GuestPause {
  # As long as a client holds it, programs of that machine that ask for a session wait; afterwards they get one here.
  moved @0 ();
  # The machine runs elsewhere: the waiting programs get no session here, and ask there.
}

interface Departure {
  # A session that is to go to another node, and runs here until `leave`. Dropping the capability cancels the departure; no other operation
  # on the session begins before.
  advance @0 ();
  # Sends what the target lacks, in rounds, until sending the rest takes less than the downtime.
  leave @1 () -> (session :SessionInfo, report :Report);
  # The remaining steps of Node.migrate. After any failure the session runs here as before, and the departure is over.
  hold @2 ();
  # For a session in a virtual machine's memory, before the machine stops: holds the program, sends the rest, makes the target restore the
  # session and the machine write the session's memory again. From then on this host writes nothing to that memory. Call leave() when the
  # machine is at the target.
  stay @3 ();
  # While leave() waits for the machine at the target: the machine runs here again.
  watch @4 ();
  # After hold(): rejects when the target cannot take the session any more. Otherwise never returns.
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
  # A session on its way to this node. Dropping the capability cancels the arrival.
  begin @0 ();
  # After the streams have been connected: the worker takes memory from them.
  complete @1 (directory :Text, progress :Progress) -> (session :SessionInfo, report :Report);
  # Takes the session over from the snapshot in `directory`, whose memory has been sent ahead; if that is empty, from what put() has sent.
  put @2 (file :Text, offset :UInt64, bytes :Data) -> stream;
  # A piece of a file of the snapshot, sent from another host; without a name, of the host arena.
  restore @3 (progress :Progress, directory :Text) -> ();
  # For a session in the memory of a virtual machine that has not arrived: does everything of complete() that is possible before. Restores
  # the snapshot in `directory` if one is named: neither memory nor files were sent then.
  watch @4 ();
  # After restore(): rejects when the session cannot be taken over any more. Otherwise does not return before complete() has.
}

struct Obstacle {
  refuses @0 :Bool;         # a suspend would be refused; else it takes longer
  object @1 :Text;          # "module 0x65", "kernel spin(int)"
  why @2 :Text;
}

struct WorkerInfo {
  pid @0 :Int32;
  session @1 :Text;         # empty if the worker waits for one
  hostBytes @2 :UInt64;     # its share of resident memory: shared pages count proportionally
  gpuBytes @3 :UInt64;      # on all its devices, including contexts
  gpuKnown @4 :Bool;        # whether the driver reports gpuBytes (NVML)
  used @5 :Bool;            # for a waiting worker: it has served a program before
}

struct Device {
  ordinal @0 :UInt32;
  name @1 :Text;
  uuid @2 :Text;
  memoryBytes @3 :UInt64;
  readsHostMemory @4 :Bool;   # CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS: kernels can access all memory of the worker's process
  freeBytes @5 :UInt64;       # at present, from NVML or else as a worker last reported; memoryBytes if that worker has no context on the
                              # device
}

enum Memory {
  # Which chunks of a suspend go to the daemon's pinned memory, as far as there is room.
  none @0;
  only @1;    # all chunks, which stay there until the session is resumed
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
  snapshot @8 :Text;        # the directory to which it was suspended
  openedSeconds @9 :Int64;  # Unix time
  images @10 :Images;       # loaded by its present worker; not counting those from a snapshot
  launches @11 :Launches;   # by its present worker
  relayed @12 :Bool;        # its program is elsewhere (docs/remote.md), so it can move to another host
  sharesWith @13 :List(Text);   # for Worker.save: ids of the sessions that are suspended with it because they share with it
  place @14 :GuestPlace;        # if its program is in a virtual machine, and shares memory with this host
}

struct Launches {
  # Kernel launches: all, and those that were made by graphs (docs/folding.md).
  all @0 :UInt64;
  folded @1 :UInt64;
}

struct Images {
  # Module images: sent by the program, and found in the node's image store.
  sent @0 :UInt64;
  sentBytes @1 :UInt64;
  found @2 :UInt64;
  foundBytes @3 :UInt64;
}

interface Progress {
  # Progress of long operations; `total` may grow.
  report @0 (phase :Text, doneBytes :UInt64, totalBytes :UInt64) -> stream;
}

struct Report {
  seconds @0 :Float64;
  gateSeconds @1 :Float64;   # the part of it during which the program was stopped at its gate before the worker was quiesced
  deviceBytes @2 :UInt64;    # device memory that the session owns
  storedBytes @3 :UInt64;    # bytes written to, or read from, disk
  objects @4 :UInt64;
  pendingCalls @5 :UInt64;     # frames in the snapshot that were not consumed
  memoryBytes @6 :UInt64;      # of chunks in pinned memory; for a suspend, of chunks that are only there
  rounds @7 :UInt32;           # for a snapshot of a program that goes on: how often changes were copied while it ran,
  roundBytes @8 :UInt64;       # how many bytes that were,
  heldBytes @9 :UInt64;        # and how many were copied while the program was held, for gateSeconds
  copiedBytes @10 :UInt64;     # of chunks that had to be copied: not all zeros, and not known by their digests
  phases @11 :List(PhaseTime);  # the parts of `seconds`, in order
  twinBytes @12 :UInt64;       # for a resume: copied from the GPU memory of another session of the same snapshot
  aheadObjects @13 :UInt64;    # for a migration: objects that the target had made before the program was held
}

struct PhaseTime {
  name @0 :Text;
  seconds @1 :Float64;
}

# ---------------------------------------------------------------- vgpud → vgpu-worker, on an inherited socket

interface Descriptor {
  # A file descriptor as a capability: the message that carries the capability passes the descriptor.
}

interface PinnedRoom {
  # What one operation holds of the daemon's pinned memory, which the worker has mapped. Lists are arrays in raw memory layout
  # (vgpu/store/pinned-place.h); `key` is the key of the digests. Everything held is released when the operation ends, in either process.
  place @0 (key :Data, names :Data, makesRoom :Bool) -> (places :Data);
  # The places of these chunks. makesRoom: allocates room for those that are missing, as far as there is any.
  name @1 (key :Data, names :Data, offsets :Data);
  # Names the chunks that the caller has written into its room.
}

interface SpareMemory {
  free @0 () -> (freed :Bool);
  # Frees GPU memory that a suspended session still occupies (vgpud --keep-suspended). Returns false if there is none.
}

struct SharedObject {
  # An object that one session gives to others of its user, by an unguessable name of 16 bytes (docs/ipc.md).
  kind @0 :UInt32;            # the object's kind, by its number in vgpu/api/cuda.table
  device @1 :Data;            # the UUID of the GPU that owns it
  bytes @2 :UInt64;           # size of all parts together
  offset @3 :UInt64;          # offset in the parts of the object that was given,
  size @4 :UInt64;            # and its size
  content @5 :Data;           # content that is sent instead of descriptors
  parts @6 :List(UInt64);     # size of the memory behind each descriptor
}

interface Exchange {
  # Objects that a session's worker gives to workers of other sessions of the same user, and takes from them.
  publish @0 (name :Data, object :SharedObject) -> (isNew :Bool);   # false: the name is taken
  addPart @1 (name :Data, part :Descriptor);
  withdraw @2 (name :Data);
  find @3 (name :Data) -> (isFound :Bool, object :SharedObject);
  # Finds an object of another running session.
  open @4 (name :Data) -> (isFound :Bool, parts :UInt32);
  # Until close(), or the session's end, the two sessions are suspended together.
  part @5 (name :Data, index :UInt32) -> (part :Descriptor);
  close @6 (name :Data);
  file @7 (name :Data) -> (isFound :Bool, file :Descriptor);
  # A file that the session's own program has given.
}

interface LiveSnapshot {
  # A snapshot of a session that goes on (checkpoint/live-snapshot.h). Dropping the capability cancels it.
  capture @0 (objects :Text, session :SessionInfo, reattach :Text, progress :Progress, room :PinnedRoom) -> ();
  # After Worker.quiesce: captures what has changed since. `room`: for data that fits nowhere else; it must not change until `finish`.
  finish @1 (progress :Progress) -> (report :Report);
  # After Worker.proceed: writes the data. The snapshot exists when this returns.
}

interface MigrationSource {
  # A session that goes to another worker (migrate/pre-copy-source.h). Dropping the capability cancels that.
  capture @0 (session :SessionInfo, reattach :Text, progress :Progress) -> (report :Report);
  # After Worker.quiesce: sends what has changed, and writes everything else. The target then has the complete session.
  advance @1 (downtimeSeconds :Float64, progress :Progress) -> ();
  # Before capture(), while the session runs: further rounds, as in Worker.sendAhead.
}

interface Worker {
  hello @0 (spare :SpareMemory) -> (devices :List(Device), driverVersion :Int32);
  # `spare`: asked for memory when a GPU has none left.
  attach @1 (exchange :Exchange, segment :Descriptor, devices :List(UInt32)) -> (segment :Descriptor, hostArena :Descriptor);
  # Begins a new session, on the memory that was prepared with the worker, or on `segment` and a new host arena, and starts consuming.
  # `devices`: the node's numbers of the session's devices. Empty: all, in their order.
  quiesce @2 (timeoutSeconds :UInt32, progress :Progress) -> (position :UInt64);
  # Stops between frames and waits for the GPU. Rejects, naming the running kernel, after the timeout, and at once if the caller gives up;
  # the worker then consumes nothing until `proceed`.
  proceed @3 (handover :UInt64) -> ();
  # Continues after a quiesce. After a restore, `handover` is the number that the program gave: claims the session, or rejects, having
  # changed nothing, if the program has withdrawn.
  save @4 (directory :Text, objects :Text, session :SessionInfo, reattach :Text, progress :Progress, target :Descriptor,
           room :PinnedRoom, pool :Text, owned :List(Data))
    -> (report :Report);
  # Writes a snapshot of a quiesced session into the files of `target`, a directory that the caller has prepared and locked, and that it
  # removes after an error; `directory` is for messages. With `room`, chunks go there, and the snapshot says that they are in `pool`.
  # `owned`: names of objects taken from sessions that have released them: this session's snapshot includes their bytes.
  restore @5 (directory :Text, segment :Descriptor, hostArena :Descriptor, progress :Progress, room :PinnedRoom,
             devices :List(UInt32), exchange :Exchange, memoryLater :Bool, twin :Descriptor)
    -> (report :Report);
  # Rebuilds a session from a snapshot in a fresh worker, to which the program's memory is attached. Changes nothing in that memory and
  # consumes nothing before `proceed`. `devices`: as in Node.resume. `memoryLater`: the segment's content is available only when `proceed`
  # is called, and is compared with the snapshot then. `twin`: the other end of a showMemory() socket; memory that the session there has of
  # this snapshot on the same GPUs is copied from there.
  recycle @6 ();
  # The program has ended: destroys everything that its session made, and prepares memory for the next session. Rejects, with the reason, if
  # the process is not like a new one afterwards; it is of no further use then.
  write @7 (directory :Text, room :PinnedRoom) -> (report :Report);
  # For a process without hello() and without a driver: writes the snapshot in memory that `room` holds to its store.
  beginSnapshot @8 (directory :Text, target :Descriptor, progress :Progress) -> (snapshot :LiveSnapshot);
  # While the session runs: copies its memory, in rounds.
  explain @9 () -> (obstacles :List(Obstacle), deviceBytes :UInt64);
  release @10 ();
  # After `save`: the program waits without this worker. Destroys everything that the session has made, which frees its GPUs, and releases
  # the program's memory. Then `recycle` prepares the process for another session.
  reclaim @11 (directory :Text, segment :Descriptor, hostArena :Descriptor, exchange :Exchange) -> (report :Report);
  # After `save`, instead of `restore`: the session goes on in the same worker, which still has everything. Rejects if the program's memory
  # is not the memory that the worker has, or is not at the snapshot's positions.
  sendAhead @12 (streams :List(Descriptor), directory :Text, objects :Text, target :Descriptor, downtimeSeconds :Float64,
                 progress :Progress) -> (source :MigrationSource);
  # While the session runs: sends its memory, in rounds, until sending the rest takes less than the downtime, and modules with their
  # recipes, as far as the object list in `objects` has them.
  takeAhead @13 (streams :List(Descriptor)) -> ();
  # For a fresh worker: receives and builds what another worker sends ahead, for the next `restore`.
  showMemory @14 (to :Descriptor) -> ();
  # While the session runs, or is restored: sends the descriptors of its device memory to another worker through the socket `to`, with a
  # ShownMemory for each, and closes `to`.
}

struct ShownMemory {
  # Sent between two workers with a descriptor: a driver object that is mapped in the session.
  gpu @0 :Int32;               # the node's number of the GPU
  address @1 :UInt64;
  bytes @2 :UInt64;
}
