// A virtual machine that libvirt moves, or saves to disk and restores, and the sessions of its programs. libvirt uses its own monitor, and
// tells others what it does with a machine only when asked.
//
// Used by the main thread, whose event loop is the node client's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/vgpuctl/machine.h"

namespace vgpu::ctl {

// libvirt's current operation on the machine, as `virsh domjobinfo` calls it: "Outgoing migration", "Save", "Snapshot", …, or "None".
// Nothing if there is no virsh, or libvirt does not reply to it.
std::optional<std::string> findLibvirtJob(NodeClient& client, const std::string& machine);
// Whether libvirt has stopped the machine in order to save or move it; false if somebody has paused it.
bool isStoppedByLibvirt(NodeClient& client, const std::string& machine);
constexpr const char* migrationJob = "Outgoing migration";
constexpr const char* saveJob = "Save";

// The folder with the sessions of a machine that libvirt has saved, below the folder in the list of machines.
std::string savedFolder(const std::string& parent, const std::string& machine);
// Removes the sessions of an earlier save: the machine has now been saved without sessions.
void forgetSaved(const std::string& parent, const std::string& machine);

// For a machine that libvirt is saving, that was continued, and whose migration is slowed down (Machine::slow): suspends its sessions to
// options.target's folder, and stops the machine again. Returns when libvirt has ended its QEMU. Throws kj::Exception if the machine is not
// saved: everything goes on then.
void saveByLibvirt(NodeClient& client, Machine& machine, const MachineOptions& options, const std::vector<MachineSession>& found);
// For a machine that libvirt is to restore: calls `isReady` when its sessions have their places, then waits until libvirt has loaded and
// continued the machine, and resumes the sessions. Throws kj::Exception; before `isReady` if they cannot come here.
void restoreByLibvirt(NodeClient& client, const MachineOptions& options, void (*isReady)());

}  // namespace vgpu::ctl
