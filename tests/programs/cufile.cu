// A program that opens cuFile as frameworks do: without NVIDIA's kernel module it copies through host memory or fails with its own error
// codes, and CUDA still works. The library is not part of the toolkit, and is searched for in the linker's folders.
#include <dlfcn.h>

#include "program.h"

namespace {

// From cufile.h.
struct Status {
  int error, driver;
};
constexpr int firstError = 5000;

// Whether the error code is one of cuFile's own, or success.
bool isItsOwn(Status status, const char* what) {
  if (status.error == 0 || status.error > firstError) return true;
  std::fprintf(stderr, "%s: %d, %d\n", what, status.error, status.driver);
  return false;
}

template <typename... Arguments>
Status ask(void* library, const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<Status (*)(Arguments...)>(dlsym(library, name));
  if (function == nullptr) std::fprintf(stderr, "no %s\n", name), std::exit(1);
  return function(arguments...);
}

}  // namespace

int main() {
  void* library = dlopen("libcufile.so.0", RTLD_NOW);
  if (library == nullptr) std::exit(notHere);
  if (access("/proc/modules", R_OK) != 0) std::exit(notHere);  // cuFile 1.20 loops forever if it cannot read it
  DeviceArray<int> data(std::vector<int>{1, 2, 3, 4});
  const size_t bytes = 4 * sizeof(int);
  bool ok = isItsOwn(ask(library, "cuFileDriverOpen"), "cuFileDriverOpen");
  ok &= isItsOwn(ask<const void*, size_t, int>(library, "cuFileBufRegister", static_cast<int*>(data), bytes, 0),
                 "cuFileBufRegister");
  ok &= isItsOwn(ask<const void*>(library, "cuFileBufDeregister", static_cast<int*>(data)), "cuFileBufDeregister");
  ok &= isItsOwn(ask(library, "cuFileDriverClose"), "cuFileDriverClose");
  pausePoint();
  return verdict("cufile", ok & same("kept", data.download(), {1, 2, 3, 4}));
}
