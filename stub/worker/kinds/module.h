// Variables of modules as a snapshot keeps them.
#pragma once

#include <vector>

#include "stub/worker/execution.h"
#include "vgpu/objects/state-table.h"

namespace vgpu::stub {

ModuleVariable variableOf(const Row& row);

}  // namespace vgpu::stub
