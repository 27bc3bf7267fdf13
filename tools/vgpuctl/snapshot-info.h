// The manifest of a snapshot, printed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "vgpu/snapshot/manifest.h"

namespace vgpu::ctl {

// A snapshot's name in its store; of one of another session in it, that of the snapshot around it.
std::string nameOf(const std::string& directory);

// Local time, of seconds since 1970; the seconds themselves if there is no such time.
std::string timeText(int64_t seconds);

// Nothing if it cannot be read.
std::optional<snapshot::Header> headerOf(const std::string& directory);

// Where the chunks of a snapshot are: on disk, in the memory of a daemon, which is there as long as the daemon holds the
// directory's lock, or lost.
const char* placeOf(const std::string& directory, const snapshot::Header& header);

// How far the writing is of one that is in memory, or of those of other sessions in it, which are written first, for a person:
// ", being written: 1.0 GiB of 4.0 GiB, 2.0 GiB a second, 2 s left". Empty, or null, if nobody writes it.
std::string writingOf(const std::string& directory);
nlohmann::json writingJson(const std::string& directory);

// Reads the files that its manifest has the sums of, and compares them: all but packs and images of processes. Throws
// kj::Exception that names the file and the check.
void verifyFiles(const std::string& directory);

// Prints the manifest in `directory`. Its own checksum is checked, the files beside it are not. Returns the exit code.
int inspectSnapshot(const std::string& directory, bool json);

}  // namespace vgpu::ctl
