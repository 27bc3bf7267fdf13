// Memory, events and pools between processes. In each section a child, which has not used CUDA yet, imports what its parent exports; they
// take turns.
#include <sys/socket.h>

#include "conformance.h"

// The other process: exchanges values and waits. Descriptors are sent with a byte.
struct Peer {
  int socket = -1;

  template <typename Value>
  void give(const Value& value) const {
    if (write(socket, &value, sizeof value) != sizeof value) _exit(3);
  }
  template <typename Value>
  Value take() const {
    Value value{};
    if (recv(socket, &value, sizeof value, MSG_WAITALL) != sizeof value) _exit(4);
    return value;
  }
  void giveFile(int file) const { passFile(file); }
  int takeFile() const { return passFile(-1); }

 private:
  int passFile(int file) const {
    char byte = 0, room[CMSG_SPACE(sizeof(int))]{};
    iovec piece{&byte, 1};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = room;
    header.msg_controllen = sizeof room;
    if (file < 0) {
      if (recvmsg(socket, &header, 0) != 1 || CMSG_FIRSTHDR(&header) == nullptr) _exit(5);
      std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof file);
      return file;
    }
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(item), &file, sizeof file);
    if (sendmsg(socket, &header, 0) != 1) _exit(6);
    return file;
  }
};

static void inTurns(void (*exports)(const Peer&), void (*imports)(const Peer&)) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) _exit(2);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    imports({ends[1]});
    _exit(0);
  }
  close(ends[1]);
  exports({ends[0]});
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  VALUE(status);
}

static constexpr char go = 1;

SECTION(memory) {
  inTurns(
      [](const Peer& child) {
        int *numbers = nullptr, *managed = nullptr, *pinned = nullptr, local = 0, value = 7;
        cudaIpcMemHandle_t handle{}, again{};
        void* own = nullptr;
        CHECK(cudaMalloc(&numbers, 4 << 20));
        CHECK(cudaMemcpy(numbers + 1, &value, sizeof value, cudaMemcpyHostToDevice));
        CHECK(cudaMallocManaged(&managed, 4096));
        CHECK(cudaMallocHost(&pinned, 4096));
        SAY(cudaIpcGetMemHandle(&handle, &local));
        SAY(cudaIpcGetMemHandle(&handle, pinned));
        SAY(cudaIpcGetMemHandle(&handle, nullptr));
        SAY(cudaIpcGetMemHandle(&handle, numbers));
        SAY(cudaIpcGetMemHandle(&again, numbers + 4));
        SAY(cudaIpcOpenMemHandle(&own, handle, cudaIpcMemLazyEnablePeerAccess));
        SAY(cudaIpcCloseMemHandle(numbers));
        SAY(cudaIpcCloseMemHandle(nullptr));
        child.give(handle);
        child.take<char>();
        SAY(cudaMemcpy(&value, numbers, sizeof value, cudaMemcpyDeviceToHost));
        VALUE(value);
        SAY(cudaFree(numbers));
        child.give(go);
        child.take<char>();
      },
      [](const Peer& parent) {
        const auto handle = parent.take<cudaIpcMemHandle_t>();
        cudaIpcMemHandle_t damaged{};
        int *numbers = nullptr, *twice = nullptr, value = 0;
        SAY(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&numbers), damaged, cudaIpcMemLazyEnablePeerAccess));
        SAY(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&numbers), handle, 0));
        SAY(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&numbers), handle, 77));
        SAY(cudaIpcOpenMemHandle(nullptr, handle, cudaIpcMemLazyEnablePeerAccess));
        SAY(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&numbers), handle, cudaIpcMemLazyEnablePeerAccess));
        SAY(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&twice), handle, cudaIpcMemLazyEnablePeerAccess));
        VALUE(twice == numbers);
        SAY(cudaMemcpy(&value, numbers + 1, sizeof value, cudaMemcpyDeviceToHost));
        VALUE(value);
        value = 9;
        SAY(cudaMemcpy(numbers, &value, sizeof value, cudaMemcpyHostToDevice));
        SAY(cudaDeviceSynchronize());
        cudaPointerAttributes attributes{};
        SAY(cudaPointerGetAttributes(&attributes, numbers));
        VALUE(attributes.type);
        size_t bytes = 0;
        CUdeviceptr base = 0;
        SAYCU(cuMemGetAddressRange, &base, &bytes, reinterpret_cast<CUdeviceptr>(numbers));
        VALUE(bytes);
        cudaIpcMemHandle_t further{};
        SAY(cudaIpcGetMemHandle(&further, numbers));
        SAY(cudaFree(numbers));
        parent.give(go);
        parent.take<char>();
        SAY(cudaMemcpy(&value, numbers + 1, sizeof value, cudaMemcpyDeviceToHost));
        VALUE(value);
        SAY(cudaIpcCloseMemHandle(numbers + 1));
        SAY(cudaIpcCloseMemHandle(numbers));
        SAY(cudaIpcCloseMemHandle(numbers));
        SAY(cudaIpcCloseMemHandle(numbers));
        SAY(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&numbers), handle, cudaIpcMemLazyEnablePeerAccess));
        parent.give(go);
      });
}

SECTION(events) {
  inTurns(
      [](const Peer& child) {
        cudaEvent_t plain = nullptr, timed = nullptr, event = nullptr;
        cudaIpcEventHandle_t handle{};
        CHECK(cudaEventCreate(&plain));
        SAY(cudaEventCreateWithFlags(&timed, cudaEventInterprocess));
        SAY(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
        SAY(cudaIpcGetEventHandle(&handle, plain));
        SAY(cudaIpcGetEventHandle(&handle, nullptr));
        SAY(cudaIpcGetEventHandle(&handle, event));
        SAY(cudaEventRecord(event));
        SAY(cudaEventSynchronize(event));
        child.give(handle);
        child.take<char>();
        SAY(cudaEventQuery(event));
        SAY(cudaEventDestroy(event));
        child.give(go);
        child.take<char>();
      },
      [](const Peer& parent) {
        const auto handle = parent.take<cudaIpcEventHandle_t>();
        cudaIpcEventHandle_t damaged{}, further{};
        cudaEvent_t event = nullptr, other = nullptr;
        float time = 0;
        SAY(cudaIpcOpenEventHandle(&event, damaged));
        SAY(cudaIpcOpenEventHandle(&event, handle));
        SAY(cudaIpcOpenEventHandle(&other, handle));
        VALUE(event == other);
        SAY(cudaEventQuery(event));
        SAY(cudaEventSynchronize(event));
        SAY(cudaStreamWaitEvent(nullptr, event));
        SAY(cudaEventElapsedTime(&time, event, event));
        SAY(cudaIpcGetEventHandle(&further, event));
        SAY(cudaEventRecord(event));
        SAY(cudaDeviceSynchronize());
        parent.give(go);
        parent.take<char>();
        SAY(cudaEventQuery(event));
        SAY(cudaEventDestroy(event));
        SAY(cudaEventDestroy(other));
        parent.give(go);
      });
}

SECTION(pools) {
  inTurns(
      [](const Peer& child) {
        CHECK(cudaFree(nullptr));
        cudaMemPoolProps properties{};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.location.type = cudaMemLocationTypeDevice;
        cudaMemPool_t closed = nullptr, pool = nullptr;
        int file = -1, *numbers = nullptr, *plain = nullptr, value = 7;
        CHECK(cudaMemPoolCreate(&closed, &properties));
        properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
        SAY(cudaMemPoolCreate(&pool, &properties));
        SAY(cudaMemPoolExportToShareableHandle(&file, closed, cudaMemHandleTypePosixFileDescriptor, 0));
        SAY(cudaMemPoolExportToShareableHandle(&file, pool, cudaMemHandleTypeNone, 0));
        SAY(cudaMemPoolExportToShareableHandle(&file, pool, cudaMemHandleTypePosixFileDescriptor, 1));
        SAY(cudaMemPoolExportToShareableHandle(&file, pool, cudaMemHandleTypePosixFileDescriptor, 0));
        VALUE(file >= 0);
        SAY(cudaMallocFromPoolAsync(&numbers, 1 << 20, pool, nullptr));
        CHECK(cudaMemcpy(numbers, &value, sizeof value, cudaMemcpyHostToDevice));
        CHECK(cudaMallocFromPoolAsync(&plain, 1 << 20, closed, nullptr));
        cudaMemPoolPtrExportData data{};
        SAY(cudaMemPoolExportPointer(&data, plain));
        SAY(cudaMemPoolExportPointer(&data, numbers));
        child.giveFile(file);
        child.give(data);
        child.take<char>();
        SAY(cudaFreeAsync(numbers, nullptr));
        SAY(cudaDeviceSynchronize());
        SAY(cudaMemPoolDestroy(pool));
      },
      [](const Peer& parent) {
        int file = parent.takeFile(), *numbers = nullptr, *twice = nullptr, value = 0;
        auto data = parent.take<cudaMemPoolPtrExportData>();
        cudaMemPool_t pool = nullptr;
        CHECK(cudaFree(nullptr));
        SAY(cudaMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>(intptr_t{0}), cudaMemHandleTypePosixFileDescriptor, 0));
        SAY(cudaMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>(static_cast<intptr_t>(file)), cudaMemHandleTypeNone, 0));
        SAY(cudaMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void*>(static_cast<intptr_t>(file)), cudaMemHandleTypePosixFileDescriptor, 0));
        SAY(cudaMallocFromPoolAsync(&numbers, 1 << 20, pool, nullptr));
        SAY(cudaMemPoolImportPointer(reinterpret_cast<void**>(&numbers), pool, &data));
        SAY(cudaMemPoolImportPointer(reinterpret_cast<void**>(&twice), pool, &data));
        VALUE(twice == numbers);
        SAY(cudaMemcpy(&value, numbers, sizeof value, cudaMemcpyDeviceToHost));
        VALUE(value);
        SAY(cudaMemPoolTrimTo(pool, 0));
        SAY(cudaDeviceSetMemPool(0, pool));
        SAY(cudaFreeAsync(numbers, nullptr));
        SAY(cudaDeviceSynchronize());
        SAY(cudaMemPoolDestroy(pool));
        parent.give(go);
      });
}
