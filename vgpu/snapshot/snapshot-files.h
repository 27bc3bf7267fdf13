// The files of a snapshot: all are made or none; sizes and checksums are verified on reading.
//
// Names are fixed and resolved relative to the directory's descriptor without following links, so neither a manifest nor another process
// that may write in the directory can redirect them. Private to their owner: directory 0700, files 0600.
#pragma once

#include <string>

namespace vgpu::snapshot {

constexpr const char* manifestFile = "manifest.json";
constexpr const char* unfinishedManifest = "manifest.json.new";
constexpr const char* replacingManifest = "manifest.json.written";  // replaces the manifest of a snapshot that was in memory
constexpr const char* objectsFile = "objects";
constexpr const char* chunksFile = "chunks";
constexpr const char* pendingCallsFile = "pending-calls";
constexpr const char* outputFile = "output";
constexpr const char* processFolder = "process";     // folder of the program's process (process-part.h)
constexpr const char* processList = "process.json";  // in that folder
constexpr const char* sessionsFolder = "sessions";   // folder of the other sessions of the same process tree
constexpr const char* dataFiles[] = {objectsFile, chunksFile, pendingCallsFile, outputFile};

// One thread writes one file at 2 to 7 GB/s; one pack per writing thread reaches the bandwidth of the memory.
constexpr unsigned mostPacks = 16;
unsigned packsHere();  // for this machine
std::string packFile(unsigned number);  // "pack-07"
bool isPackFile(const std::string& name);

}  // namespace vgpu::snapshot
