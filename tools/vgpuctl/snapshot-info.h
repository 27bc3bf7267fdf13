// Prints the manifest of a snapshot.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "vgpu/snapshot/manifest.h"

namespace vgpu::ctl {

// A snapshot's name in its store; for the snapshot of another session inside it, the name of the enclosing snapshot.
std::string nameOf(const std::string& directory);

// Seconds since 1970 as local time; the plain number if they cannot be converted.
std::string timeText(int64_t seconds);

// Nothing if the header cannot be read.
std::optional<snapshot::Header> headerOf(const std::string& directory);

// Where the chunks of a snapshot are: on disk; in the memory of a daemon, as long as the daemon holds the lock of the directory; or lost.
const char* placeOf(const std::string& directory, const snapshot::Header& header);

// The progress of writing a snapshot in memory to disk, including those of other sessions in it, which are written first, as a message: ",
// being written: 1.0 GiB of 4.0 GiB, 2.0 GiB a second, 2 s left". Empty, or null, if nobody writes it.
std::string writingOf(const std::string& directory);
nlohmann::json writingJson(const std::string& directory);

// Reads the files whose sums are in the manifest (all except packs and process images), and verifies them. Throws kj::Exception that names
// the file and the failed check.
void verifyFiles(const std::string& directory);

// Prints the manifest in `directory`. Verifies its own checksum, but not the other files. Returns the exit code.
int inspectSnapshot(const std::string& directory, bool json);

}  // namespace vgpu::ctl
