// A virtual machine on disk, with the sessions of its programs: all that is needed to let it go on, on this host or another one.
//
//   FOLDER/machine         as QEMU's `migrate` writes it
//   FOLDER/ID/             each session's snapshot; of one that shares memory with the machine its pinned memory too (host-arena)
//   FOLDER/sessions.json   written last: {"version": 2, "machine": NAME, "memory": {"bytes", "xxh3"} of FOLDER/machine, if that
//   is there,
//                          "sessions": [{"session", "name", "program", "pid"}]}; of one that shares memory with the machine also
//                          its place there: guest, slot, claim, fileBytes
#pragma once

#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/vgpuctl/machine.h"

namespace vgpu::ctl {

class MachineFolder {
 public:
  explicit MachineFolder(const std::string& path);  // of the current folder, if it is not absolute

  // Throws kj::Exception if it is there.
  void make() const;
  void remove() const noexcept;
  // The machine is saved, and what is in `sessions` is suspended to snapshotOf() each. Returns when all of that is on disk.
  void complete(const std::string& machine, const std::vector<MachineSession>& sessions) const;
  // What complete() has been given. Throws kj::Exception if there is no such folder, or not all of it.
  std::vector<MachineSession> sessions() const;
  // Reads the machine's memory. Throws kj::Exception that names the check, unless it is what was saved.
  void verifyMemory() const;

  const std::string& path() const { return folder; }
  std::string snapshotOf(const std::string& session) const { return folder + "/" + session; }
  // Where QEMU is to write the machine to, or read it from, as `migrate` and `migrate-incoming` take it.
  std::string writing(MachineMonitor& monitor) const;
  std::string reading(MachineMonitor& monitor) const;

 private:
  nlohmann::json list() const;
  [[noreturn]] void isDamaged(const std::exception& error) const;

  const std::string folder;
};

}  // namespace vgpu::ctl
