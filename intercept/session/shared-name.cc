#include "intercept/session/shared-name.h"

#include <sys/random.h>

#include "vgpu/base/fail.h"

namespace vgpu::client {

SharedName SharedName::make() {
  SharedName name;
  if (getrandom(&name, sizeof name, 0) != sizeof name)
    fail("the system returns no random bytes, which the name of a shared object needs");
  return name;
}

}  // namespace vgpu::client
