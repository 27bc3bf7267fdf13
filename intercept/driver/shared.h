// What several entries are: rows of vgpu/api/cuda.table name these functions, with the arguments that make the difference.
#pragma once

#include <cuda.h>

#include "intercept/session/entry.h"

namespace vgpu::client {}
