// A program without CUDA that opens the library named by its argument, uses it, closes it and opens it again.
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** arguments) {
  for (int round = 0; count == 2 && round < 2; ++round) {
    void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*work)(void) = (int (*)(void))dlsym(library, "pluginWork");
    printf("work %d\n", work == NULL ? -1 : work());
    fflush(stdout);
    dlclose(library);
  }
  return 0;
}
