#include "intercept/runtime/message.h"

#include <unistd.h>

#include <cerrno>
#include <string>

namespace vgpu::runtime {

void say(std::initializer_list<std::string_view> pieces) {
  int before = errno;
  std::string line = "vgpu: ";
  for (std::string_view piece : pieces) line += piece;
  line += '\n';
  // Errors are ignored: if the program closed or filled standard error, there is nowhere else to report.
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  errno = before;
}

}  // namespace vgpu::runtime
