// A C program without CUDA that opens the plug-in beside it at run time, which contains a CUDA runtime. The plug-in has this program's
// name, with "plugin" for "host" and ".so" appended.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void) {
  char path[PATH_MAX], plugin[PATH_MAX + 32];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length < 0) {
    perror("/proc/self/exe");
    return 1;
  }
  path[length] = 0;
  char* name = strstr(path, "dlopen-host");
  if (!name) {
    fprintf(stderr, "%s: the file should be named dlopen-host\n", path);
    return 1;
  }
  *name = 0;
  snprintf(plugin, sizeof plugin, "%sdlopen-plugin%s.so", path, name + strlen("dlopen-host"));

  void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int (*run)(void);
  *(void**)&run = dlsym(library, "runPlugin");
  if (!run) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  return run();
}
