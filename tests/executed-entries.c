// The library that tests/executed-entries puts between a program and libcuda.so.1 and libcudart.so.13: a wrapper of each function, which
// writes the function's name into the file VGPU_EXECUTED when it first succeeds in its process.
#define _GNU_SOURCE
#define __CUDA_API_VERSION_INTERNAL  // declares every version under its own name
#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct Entry {
  const char* name;
  void *ours, *next;
  char isExecuted;
};
static struct Entry entries[];

typedef void* Find(void* library, const char* name);

static Find* systemsDlsym(void) {
  static Find* find;
  if (find == NULL) find = (Find*)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return find;
}

static void findAll(void) {
  static int areFound;  // set by a thread that has found all; several threads may search at once
  if (__atomic_load_n(&areFound, __ATOMIC_ACQUIRE)) return;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == NULL) return;
  for (struct Entry* entry = entries; entry->name != NULL; ++entry) {
    const int isRuntimes = strncmp(entry->name, "cuda", 4) == 0;
    entry->next = systemsDlsym()(isRuntimes ? RTLD_NEXT : driver, entry->name);
  }
  __atomic_store_n(&areFound, 1, __ATOMIC_RELEASE);
}

static void* nextOf(struct Entry* entry) {
  if (entry->next == NULL) findAll();
  return entry->next;
}

static void executed(struct Entry* entry) {
  if (entry->isExecuted) return;
  entry->isExecuted = 1;
  const char* path = getenv("VGPU_EXECUTED");
  int file = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  char line[128];
  size_t bytes = strlen(entry->name);
  memcpy(line, entry->name, bytes);
  line[bytes] = '\n';
  if (write(file, line, bytes + 1) < 0) abort();
  close(file);
}

static void* wrapped(void* found) {
  if (found == NULL) return NULL;
  for (struct Entry* entry = entries; entry->name != NULL; ++entry)
    if (entry->next == found) return entry->ours;
  return found;
}

enum {
#define ROW(entry) number_##entry,
#include "rows.inc"
#undef ROW
};

// Replaces the function that was found by its wrapper.
static void takeFound(void** found) {
  if (found != NULL) *found = wrapped(*found);
}

#define WRAP_FINDING(symbol_, found_, parameters, arguments)            \
  CUresult CUDAAPI symbol_ parameters {                                 \
    struct Entry* entry_ = &entries[number_##symbol_];                  \
    CUresult result_ = ((__typeof__(&symbol_))nextOf(entry_))arguments; \
    if (result_ == CUDA_SUCCESS) executed(entry_);                      \
    takeFound(found_);                                                  \
    return result_;                                                     \
  }
#define WRAP(symbol_, parameters, arguments) WRAP_FINDING(symbol_, NULL, parameters, arguments)
#define WRAP_RUNTIME(symbol_, parameters, arguments)                               \
  cudaError_t CUDARTAPI symbol_ parameters {                                       \
    struct Entry* entry_ = &entries[number_##symbol_];                             \
    cudaError_t result_ = ((cudaError_t(CUDARTAPI*) parameters)nextOf(entry_))arguments; \
    if (result_ == cudaSuccess) executed(entry_);                                  \
    return result_;                                                                \
  }
#include "wraps.inc"

static struct Entry entries[] = {
#define ROW(entry) {#entry, (void*)entry, NULL, 0},
#include "rows.inc"
#undef ROW
    {NULL, NULL, NULL, 0}};

// RTLD_NEXT depends on the caller, which dlsym() knows by its return address; the compiler's tail call keeps that address.
void* dlsym(void* library, const char* name) {
  Find* find = systemsDlsym();
  if (library == RTLD_NEXT || strncmp(name, "cu", 2) != 0) return find(library, name);
  findAll();
  return wrapped(find(library, name));
}
