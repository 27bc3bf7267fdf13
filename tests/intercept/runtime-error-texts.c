// Prints name and text of every error code that the libcudart named by its argument knows.
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** arguments) {
  void* library = dlopen(count == 2 ? arguments[1] : "", RTLD_NOW);
  if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  const char* (*name)(int) = (const char* (*)(int))dlsym(library, "cudaGetErrorName");
  const char* (*text)(int) = (const char* (*)(int))dlsym(library, "cudaGetErrorString");
  for (int error = -1; error <= 10010; ++error) printf("%d %s %s\n", error, name(error), text(error));
  return 0;
}
