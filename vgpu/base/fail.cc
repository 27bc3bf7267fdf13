#include "vgpu/base/fail.h"

#include <kj/exception.h>

namespace vgpu {

void fail(const std::string& message) {
  kj::throwFatalException(
      kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::heapString(message.data(), message.size())));
}

}  // namespace vgpu
