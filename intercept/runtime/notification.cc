// Callbacks that the driver calls on its own: its error log, and memory pressure.
#include <bit>

#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

using namespace vgpu::runtime;

static_assert(static_cast<int>(cudaLogLevelError) == CU_LOG_LEVEL_ERROR &&
              static_cast<int>(cudaLogLevelWarning) == CU_LOG_LEVEL_WARNING);
static_assert(sizeof(cudaAsyncNotificationInfo_t) == sizeof(CUasyncNotificationInfo));

// The callback types differ only in the names of parameter types: the enumeration and the structure are the same.
RUNTIME_DEVICE(cudaLogsRegisterCallback, (cudaLogsCallback_t function, void* data, cudaLogsCallbackHandle* callback),
               cuLogsRegisterCallback(std::bit_cast<CUlogsCallback>(function), data,
                                      same<CUlogsCallbackHandle>(callback)))
RUNTIME_DEVICE(cudaLogsUnregisterCallback, (cudaLogsCallbackHandle callback),
               cuLogsUnregisterCallback(handle<CUlogsCallbackHandle>(callback)))
RUNTIME_DEVICE(cudaLogsCurrent, (cudaLogIterator * end, unsigned flags), cuLogsCurrent(end, flags))
RUNTIME_DEVICE(cudaLogsDumpToFile, (cudaLogIterator * from, const char* path, unsigned flags),
               cuLogsDumpToFile(from, path, flags))
RUNTIME_DEVICE(cudaLogsDumpToMemory, (cudaLogIterator * from, char* buffer, size_t* size, unsigned flags),
               cuLogsDumpToMemory(from, buffer, size, flags))

RUNTIME_DEVICE(cudaDeviceRegisterAsyncNotification,
               (int device, cudaAsyncCallback function, void* data, cudaAsyncCallbackHandle_t* callback),
               cuDeviceRegisterAsyncNotification(device, std::bit_cast<CUasyncCallback>(function), data,
                                                 same<CUasyncCallbackHandle>(callback)))
RUNTIME_DEVICE(cudaDeviceUnregisterAsyncNotification, (int device, cudaAsyncCallbackHandle_t callback),
               cuDeviceUnregisterAsyncNotification(device, handle<CUasyncCallbackHandle>(callback)))
