// Fault points: named places of the control plane at which a test kills or stops the process, so that every step of run, suspend and resume
// can be interrupted on purpose.
//
//   VGPU_FAULT_POINT=NAME[:ACTION[:COUNT]]   acts when a process reaches NAME for the COUNTth time (1 by default): `kill` (SIGKILL, the
//                                            default), `stop` (SIGSTOP), or `hit` (go on)
//   VGPU_FAULT_LOG=FILE                      every process appends a line "NAME PROCESS PID ACTION" for each point that it
//                                            reaches, before it acts; ACTION is `hit` if no other action is set for it
//
// All processes read the same environment; each point belongs to one kind of process. `vgpud --list-fault-points` prints the
// table. Points are in the daemon, the worker's control, vgpuctl and the program's control thread, never on the path of a CUDA
// call. If neither variable is set, a point costs one relaxed load. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <string_view>

namespace vgpu {

struct FaultPoint {
  std::string_view name;
  std::string_view process;  // program, vgpud, vgpu-worker or vgpuctl
  std::string_view when;
};

inline constexpr FaultPoint faultPoints[] = {
    {"run.session-opening", "vgpud", "a program has asked for a session; no worker has been taken"},
    {"run.worker-attached", "vgpud", "the worker executes calls; the program has not been told"},
    {"suspend.asked", "vgpuctl", "the request is on its way"},
    {"suspend.gate-asked", "vgpud", "the program has been asked to close its gate"},
    {"program.gate-closing", "program", "before the gate is closed"},
    {"program.gate-closed", "program", "the gate is closed and the object list committed; the daemon has not been told"},
    {"suspend.gate-closed", "vgpud", "the program has said that its gate is closed"},
    {"suspend.quiesced", "vgpu-worker", "the worker consumes nothing and the GPU is idle"},
    {"suspend.saving", "vgpu-worker", "a piece of device memory has been read; hit once for each piece"},
    {"suspend.pinned", "vgpu-worker",
     "to pinned memory: chunks are in it; the daemon has not been told which. Hit once for images and once for state"},
    {"suspend.packs-synced", "vgpu-worker", "to the store: all chunks are on disk; the store's index does not have them"},
    {"suspend.chunks-indexed", "vgpu-worker", "to the store: its index has the new chunks; there is no manifest yet"},
    {"suspend.manifest-written", "vgpu-worker", "the manifest is complete, but not renamed to its name yet"},
    {"suspend.manifest-named", "vgpu-worker", "the snapshot is complete; the daemon has not been told"},
    {"suspend.saved", "vgpud", "the daemon knows of the snapshot; the program has not been told"},
    {"suspend.program-told", "vgpud", "the program has been told that it is suspended; its worker still exists"},
    {"suspend.worker-released", "vgpud", "the worker has released the session, or has ended and is reaped"},
    {"resume.asked", "vgpuctl", "the request is on its way"},
    {"resume.met", "vgpud", "the daemon has found the program and asked for its session"},
    {"program.reattach-accepted", "program", "a daemon has connected to this program, which has not answered"},
    {"resume.opened", "vgpud", "the program has handed over its memory"},
    {"resume.memory-attached", "vgpu-worker", "the new worker has the program's memory and nothing else"},
    {"resume.recipes-replayed", "vgpu-worker", "the objects exist, but not their bytes"},
    {"resume.bytes-restored", "vgpu-worker", "the session is rebuilt; nothing of the program's memory has been changed"},
    {"resume.restored", "vgpud", "the worker has restored the session; the program has not been told"},
    {"resume.daemon-committed", "vgpud", "the daemon has offered the restored session to the program"},
    {"resume.program-committed", "program", "the program has accepted it; the daemon has not been told"},
    {"resume.accepted", "vgpud", "the daemon knows that the program has accepted; the worker has not been told"},
    {"resume.proceeded", "vgpu-worker", "the worker has claimed the session, which cannot be undone; the daemon has not been told"},
    {"resume.gate-opened", "vgpud", "the program has been told to open its gate"},
    {"write.writing", "vgpu-worker",
     "in the background: a piece of a snapshot in memory is being written; hit once for each piece"},
    {"write.manifest-written", "vgpu-worker", "the snapshot is on disk, but its new manifest is not renamed to its name yet"},
    {"write.manifest-named", "vgpu-worker", "the snapshot is on disk; the daemon has not been told"},
    {"write.done", "vgpud", "the daemon knows that it is on disk; the program has not been told"},
    {"snapshot.asked", "vgpuctl", "the request is on its way"},
    {"snapshot.rounds-done", "vgpu-worker",
     "of a program that goes on: its memory was copied while it ran; the daemon has not been told"},
    {"snapshot.gate-closed", "vgpud", "the program has said that its gate is closed; its worker still executes calls"},
    {"snapshot.captured", "vgpu-worker", "the memory changed since then is captured; the worker is still quiesced"},
    {"snapshot.released", "vgpud", "the program goes on; the captured memory is not on disk"},
    {"snapshot.finished", "vgpud", "the snapshot is complete; the caller has not been told"},
    {"migrate.asked", "vgpuctl", "the request is on its way"},
    {"migrate.prepared", "vgpud", "the target has a worker that accepts memory; nothing has been sent"},
    {"migrate.sent-ahead", "vgpud", "memory has been sent while the program ran; it has not been asked to close its gate"},
    {"migrate.captured", "vgpud", "all of the session is at the target; the program has not been told"},
    {"migrate.moving", "vgpud", "the program may connect to the target, which has not been asked to take over"},
    {"migrate.arriving", "vgpud", "the target has been asked to take over"},
    {"migrate.moved", "vgpud", "the target has the session; its old worker is still there"},
    {"machine.restoring", "vgpud", "the target has been asked to restore a session whose virtual machine is migrating"},
    {"machine.ready", "vgpud",
     "the target has restored it, and the program has been told; the machine has not rewritten its memory there"},
    {"machine.held", "vgpuctl", "all programs of the machine are held; it may stop from here on"},
    {"machine.handing-over", "vgpuctl", "the machine is stopped, but its migration has not been completed"},
    {"machine.moved", "vgpuctl", "the machine is at its target; no session has been told"},
    {"machine.suspended", "vgpuctl", "all sessions of a machine are suspended; it has not been saved"},
    {"machine.saved", "vgpuctl", "the machine is on disk; its sessions are still known to the node"},
    {"machine.restored", "vgpuctl", "the sessions of a machine that is restored have workers; the machine has not been loaded"},
    {"process.suspended", "vgpuctl", "all sessions of the tree are suspended; no program has been asked to disconnect from the node"},
    {"process.letting-go", "program", "it has released everything of the node; the daemon has not been told"},
    {"process.parked", "vgpuctl", "the programs are parked, and there is no image of their processes"},
    {"process.saved", "vgpuctl", "there is an image of the processes, which are stopped; the manifest does not name it yet"},
    {"process.named", "vgpuctl", "the snapshot has the processes, which have not been ended"},
    {"process.restored", "vgpuctl", "the processes exist again, stopped; no daemon has been told"},
    {"process.cloned", "vgpuctl", "the processes of a copy exist, stopped; no daemon has been told"},
    {"native.begun", "vgpuctl", "of a native program: the folder lists the processes to hold; the driver holds none yet"},
    {"native.taken", "vgpuctl", "the driver has saved the GPU memory of a process; hit once for each"},
    {"native.saved", "vgpuctl", "there is an image of the processes, which are stopped; no list names it yet"},
    {"native.named", "vgpuctl", "the snapshot is complete; its processes have not been ended"},
    {"native.ended", "vgpuctl", "they have ended, but the folder still says that they are held"},
    {"verify.compared", "vgpuctl", "the chunks of a snapshot are intact; hit once for each snapshot"},
    {"rm.unnamed", "vgpuctl", "the snapshot's manifest is removed; all its other files still exist"},
    {"export.written", "vgpuctl", "the archive is complete, but not renamed to its name yet"},
    {"import.read", "vgpuctl", "all of the archive is in packs and files; the store's index does not have them yet"},
    {"gc.index-written", "vgpuctl", "chunks that no snapshot needs are removed from the store's index; their bytes still exist"},
};

// The name of a fault point, checked against the table at compile time.
class FaultPointName {
 public:
  consteval FaultPointName(const char* text) : index(find(text)) {}
  const size_t index;

 private:
  static consteval size_t find(std::string_view text) {
    for (size_t i = 0; i < std::size(faultPoints); ++i)
      if (faultPoints[i].name == text) return i;
    throw "no fault point has this name";
  }
};

extern std::atomic<bool> faultPointsOn;
void hitFaultPoint(FaultPointName point);

inline void faultPoint(FaultPointName point) {
  if (faultPointsOn.load(std::memory_order_relaxed)) hitFaultPoint(point);
}

}  // namespace vgpu
