#include "stub/driver/driver.h"

#include "vgpu/base/fail.h"
#include "vgpu/base/uuid-text.h"

namespace vgpu::stub {

std::string nameOf(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown CUDA error";
  return std::string(name) + " (" + std::to_string(result) + ")";
}

std::string uuidText(const CUuuid& uuid) { return UuidText(uuid.bytes).text; }

void require(const Driver& driver, CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  fail(std::string(what) + ": " + nameOf(driver, result));
}

const char* lacksCode(CUresult result) {
  switch (result) {
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return ": the module has neither machine code nor PTX for this GPU. Resume the program on a GPU for which it has, such as the one "
             "where it was suspended";
    default:
      return "";
  }
}

bool isSticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN: return true;
    default: return false;
  }
}

}  // namespace vgpu::stub
