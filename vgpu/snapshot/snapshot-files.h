// The files of a snapshot: made all or not at all, read with their sizes and checksums compared.
//
// Names are fixed and looked up in the directory's descriptor without following links, so neither a manifest nor
// whoever may write next to us leads anywhere else. Private to their owner: directory 0700, files 0600.
#pragma once

namespace vgpu::snapshot {

constexpr const char* manifestFile = "manifest.json";
constexpr const char* unfinishedManifest = "manifest.json.new";
constexpr const char* objectsFile = "objects";
constexpr const char* blobsFile = "blobs";
constexpr const char* bytesFile = "bytes";
constexpr const char* pendingCallsFile = "pending-calls";
constexpr const char* outputFile = "output";
constexpr const char* dataFiles[] = {objectsFile, blobsFile, bytesFile, pendingCallsFile, outputFile};

}  // namespace vgpu::snapshot
