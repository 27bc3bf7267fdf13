// The files of a snapshot: made all or not at all, read with their sizes and checksums compared.
//
// Names are fixed and looked up in the directory's descriptor without following links, so neither a manifest nor
// whoever may write next to us leads anywhere else. Private to their owner: directory 0700, files 0600.
#pragma once

#include <string>

namespace vgpu::snapshot {

constexpr const char* manifestFile = "manifest.json";
constexpr const char* unfinishedManifest = "manifest.json.new";
constexpr const char* replacingManifest = "manifest.json.written";  // of a snapshot that was in memory
constexpr const char* objectsFile = "objects";
constexpr const char* chunksFile = "chunks";
constexpr const char* pendingCallsFile = "pending-calls";
constexpr const char* outputFile = "output";
constexpr const char* processFolder = "process";     // of a program's process (process-part.h)
constexpr const char* processList = "process.json";  // in it
constexpr const char* sessionsFolder = "sessions";   // of other sessions of the same tree of processes
constexpr const char* dataFiles[] = {objectsFile, chunksFile, pendingCallsFile, outputFile};

// One file is written by one thread at a time, at 2 to 7 GB/s; a pack for each thread that writes reaches the memory's own speed.
constexpr unsigned mostPacks = 16;
unsigned packsHere();  // on this machine
std::string packFile(unsigned number);  // "pack-07"
bool isPackFile(const std::string& name);

}  // namespace vgpu::snapshot
