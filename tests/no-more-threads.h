// A process that can start no thread, as under a system limit on threads or memory.
#pragma once

#include <doctest/doctest.h>
#include <pthread.h>

#include <cstddef>

namespace vgpu::test {

// While an object of this class lives, every start of a thread fails with EAGAIN.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_attr_t attributes;
    REQUIRE_EQ(pthread_getattr_default_np(&before), 0);
    REQUIRE_EQ(pthread_attr_init(&attributes), 0);
    REQUIRE_EQ(pthread_attr_setstacksize(&attributes, size_t{1} << 47), 0);  // a stack larger than the address space
    REQUIRE_EQ(pthread_setattr_default_np(&attributes), 0);
    pthread_attr_destroy(&attributes);
  }
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before);
    pthread_attr_destroy(&before);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before;
};

}  // namespace vgpu::test
