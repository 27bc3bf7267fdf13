// State of the whole process: whether CUDA may be called, and the contexts in use.
//
// Nothing happens before the program's first real CUDA call, which opens and initialises the driver; a device's primary context is made
// when a thread first needs it. A child forked after that first call has no driver (CUDA's rule): every call in it fails with
// cudaErrorInitializationError. After this library's last destructor every call fails with cudaErrorCudartUnloading.
//
// Contexts are numbered by *slots*, so that per-context data are array elements: slot d is the primary context of device d, further slots
// are contexts that the program made with the driver API.
//
// Lock order: a module's lock (registry.h), `contextLock`, the initialisation lock. None is held in a call that can run the program's code.
#pragma once
#include <cuda.h>
#include <driver_types.h>

#include <atomic>

namespace vgpu::runtime {

constexpr int maxDevices = 64;
constexpr int maxSlots = 96;

/// The limits that cudaLaunchKernel checks a configuration against, per device.
struct LaunchLimits {
  unsigned block[3];
  unsigned grid[3];
  unsigned threads;  // of a block
};

/// The calling thread's own state. Plain data: a thread that makes no call pays nothing, and no destructor is needed.
struct Thread {
  int device = -1;              ///< chosen by cudaSetDevice; -1 until then
  int slot = -1;                ///< of `context`
  CUcontext context = nullptr;  ///< the current context when this thread last called; checked again in every call
  unsigned epoch = 0;           ///< the process's `epoch` when `context` was checked
  cudaError_t last = cudaSuccess;
};
extern thread_local constinit Thread thread;

enum class Stage : int { fresh, starting, working, forked, ended };
extern constinit std::atomic<Stage> stage;
/// True once the process has begun to exit: nothing needs to be unloaded, because the driver frees the contexts with their content.
extern constinit std::atomic<bool> exiting;
/// Incremented whenever a context that some thread may have cached is destroyed.
extern constinit std::atomic<unsigned> epoch;

/// The slow part of ready().
cudaError_t startDriver();
/// The slow part of readyInContext(): makes `current`, or the primary context of the thread's device if that is null,
/// the context of this thread.
cudaError_t adoptContext(CUcontext current);

/// Success when the driver can be called.
inline cudaError_t ready() {
  return stage.load(std::memory_order_acquire) == Stage::working ? cudaSuccess : startDriver();
}

/// Success when the driver can be called and the thread has a current context, whose slot is thread.slot.
inline cudaError_t readyInContext() {
  if (cudaError_t error = ready(); error != cudaSuccess) return error;
  CUcontext current = nullptr;
  cuCtxGetCurrent(&current);
  if (current != nullptr && current == thread.context && thread.epoch == epoch.load(std::memory_order_relaxed))
    return cudaSuccess;
  return adoptContext(current);
}

/// The device of the current context or, if there is none, the one that the thread chose. Makes no context. Needs ready().
cudaError_t currentDevice(int& device);
/// Makes `device` the thread's, and its primary context current.
cudaError_t chooseDevice(int device);
/// Makes the device's primary context, without making it current.
cudaError_t holdDevice(int device);
/// Sets the devices that a thread without a chosen device tries, in order. Copies the list.
cudaError_t setValidDevices(const int* devices, int count);
/// Destroys the primary context of the thread's device and drops the records of what was loaded in it.
cudaError_t resetDevice();

const LaunchLimits& launchLimits(int slot);
/// The context of a slot, or null.
CUcontext contextOf(int slot);

}  // namespace vgpu::runtime
