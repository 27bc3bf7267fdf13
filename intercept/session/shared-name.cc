#include "intercept/session/shared-name.h"

#include <sys/random.h>

#include "vgpu/base/fail.h"

namespace vgpu::client {

SharedName SharedName::make() {
  SharedName name;
  if (getrandom(&name, sizeof name, 0) != sizeof name)
    fail("the system gives no random bytes, of which a shared object's name is made");
  return name;
}

}  // namespace vgpu::client
