#include "intercept/session/asymmetric-fence.h"

#include <kj/debug.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace vgpu::client {

namespace {
long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }
}  // namespace

// Registered when the library is loaded: once the process has several threads, registration takes milliseconds.
const bool AsymmetricFence::kernelHelps = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;

void AsymmetricFence::registerAgain() {
  if (kernelHelps) membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

void AsymmetricFence::heavy() {
  turn.fetch_add(0, std::memory_order_acq_rel);
  if (!kernelHelps) return;
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
  KJ_FAIL_SYSCALL("membarrier: has the program set a filter of system calls that refuses it?", errno);
}

}  // namespace vgpu::client
