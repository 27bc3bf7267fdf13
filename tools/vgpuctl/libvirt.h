// A virtual machine that libvirt moves, or saves to disk and restores, and the sessions of its programs. libvirt has a monitor of
// its own, and tells nobody else what it does with a machine but when it is asked.
//
// Of the main thread, whose event loop is the node client's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/vgpuctl/machine.h"

namespace vgpu::ctl {

// What libvirt does with a machine now, as `virsh domjobinfo` calls it: "Outgoing migration", "Save", "Snapshot", …, or "None".
// Nothing if there is no virsh, or libvirt does not reply to it.
std::optional<std::string> findLibvirtJob(NodeClient& client, const std::string& machine);
// Whether it is libvirt that has stopped the machine, to save or to move it, and not somebody who has paused it.
bool isStoppedByLibvirt(NodeClient& client, const std::string& machine);
constexpr const char* migrationJob = "Outgoing migration";
constexpr const char* saveJob = "Save";

// Where the sessions of a machine are that libvirt has saved, in the folder that the list of machines names.
std::string savedFolder(const std::string& parent, const std::string& machine);
// Those of an earlier save: the machine has been saved without sessions.
void forgetSaved(const std::string& parent, const std::string& machine);

// A machine that libvirt saves, which runs again, and is slow (Machine::slow): its sessions are suspended to options.target's
// folder, and it is stopped again. Returns when libvirt has ended its QEMU. Throws kj::Exception if it is not saved: everything
// goes on.
void saveByLibvirt(NodeClient& client, Machine& machine, const MachineOptions& options, const std::vector<MachineSession>& found);
// A machine that libvirt is to restore. Calls `isReady` when its sessions have their places, then waits until libvirt has loaded
// the machine and lets it go on, and resumes them. Throws kj::Exception; before `isReady`, if they cannot come here.
void restoreByLibvirt(NodeClient& client, const MachineOptions& options, void (*isReady)());

}  // namespace vgpu::ctl
