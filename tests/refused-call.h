// A thread on which the kernel refuses one system call, for tests of how vgpu handles that.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace vgpu::test {

// Makes all later system calls `call` fail with `error`, on this thread and in its children.
inline void refuseCall(unsigned call, unsigned error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(code), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    throw std::runtime_error("no filter of system calls can be set");
}

template <typename Body>
void withRefusedCall(unsigned call, unsigned error, Body body) {
  std::thread([&] {
    refuseCall(call, error);
    body();
  }).join();
}

}  // namespace vgpu::test
