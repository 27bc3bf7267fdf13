// Shared by suspend, snapshot and resume: where snapshots are, and how an operation is reported.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/vgpuctl/new-snapshot.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::ctl {

struct SuspendOptions;

std::string absolute(const std::string& path);
// The directory for a new snapshot, and that of an existing one. Both throw kj::Exception, also if the store is damaged.
NewSnapshot targetOf(const SuspendOptions& options);
std::string sourceOf(const std::string& snapshot);

// The phases in order: names and seconds.
nlohmann::json phasesJson(control::Report::Reader report);
nlohmann::json reportJson(control::Report::Reader report);
// "32.0 KiB of device memory, 26.2 KiB on disk, …"
std::string summary(control::Report::Reader report);

}  // namespace vgpu::ctl
