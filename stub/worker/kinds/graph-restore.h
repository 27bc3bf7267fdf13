// What has been set of executable graphs since they were instantiated, as rows of a snapshot: graph, node, the frame's method with its
// fields, and the frame in hexadecimal. Another build's frame of other fields is no such row.
#pragma once

#include "stub/worker/kinds/kind.h"

namespace vgpu::stub {

bool isGraphRow(const Row& row, uint64_t devices);
Rows saveGraphs(SessionState& session);
void restoreGraphs(SessionState& session, const Rows& rows);

}  // namespace vgpu::stub
