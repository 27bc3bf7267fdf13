// A host function that holds its stream until the program sets the flag, a std::atomic<bool>.
#pragma once

#include <unistd.h>

#include <atomic>

inline void awaitFlag(void* flag) {
  while (!static_cast<std::atomic<bool>*>(flag)->load()) usleep(100);
}
