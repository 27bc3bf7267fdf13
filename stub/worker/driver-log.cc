#include "stub/worker/driver-log.h"

#include <mutex>
#include <utility>

#include "cuda-handlers.h"

namespace vgpu::stub {

namespace {

constexpr size_t mostLogged = 25600;  // bytes, as in the driver (cuda.h, cuLogsDumpToMemory)

struct Collected {
  std::mutex mutex;  // a leaf
  std::string text;
};
// Never destroyed: the driver's own threads may still log.
Collected& collected() {
  static auto& one = *new Collected;
  return one;
}

// The driver may or may not end the text with a newline.
void CUDA_CB collect(void*, CUlogLevel, char* message, size_t length) {
  std::string line(message, length);
  while (!line.empty() && (line.back() == '\0' || line.back() == '\n')) line.pop_back();
  std::lock_guard lock(collected().mutex);
  std::string& text = collected().text;
  text.append(line).push_back('\n');
  if (text.size() > mostLogged) text.erase(0, text.find('\n', text.size() - mostLogged) + 1);
}

}  // namespace

void collectLog(const Driver& driver) {
  takeLog();
  static decltype(driver.cuLogsRegisterCallback) known = nullptr;  // of the process's one driver
  if (std::exchange(known, driver.cuLogsRegisterCallback) == driver.cuLogsRegisterCallback) return;
  CUlogsCallbackHandle ours;
  driver.cuLogsRegisterCallback(collect, nullptr, &ours);
}

std::string takeLog() {
  std::lock_guard lock(collected().mutex);
  return std::exchange(collected().text, {});
}

CUresult logTake(Execution&, const api::FrameReader<api::Cuda::LogTakeParams>&, Reply& reply) {
  std::string text = takeLog();
  reply.init<api::Cuda::LogTakeResults>().setText(text.c_str());
  return CUDA_SUCCESS;
}

}  // namespace vgpu::stub
