#include "intercept/session/modules/linker.h"

#include "intercept/session/call.h"
#include "intercept/session/modules/blob.h"

namespace vgpu::client {

template <typename Results>
void Linker::tell(const Results& reported) {
  options.tell({reported.getErrors().cStr(), reported.getInfo().cStr(), reported.getMilliseconds()});
}

CUresult Linker::createThere(Thread& thread) {
  Call<api::Cuda::LinkCreateParams> frame(thread.of(handle), api::Method::linkCreate, options.words());
  frame->setLink(handle);
  options.put(frame);
  return frame.call();
}

CUresult Linker::addThere(Thread& thread, const LinkInput& input, bool& isMissing) {
  HandleTable& handles = thread.session.handles;
  uint64_t blob = handles.create(api::Kind::BLOB, handleDevice(handle));
  CUresult result = bringBlob(thread, blob, input.bytes);
  if (result == CUDA_SUCCESS) {
    Call<api::Cuda::LinkAddParams> frame(thread.of(handle), api::Method::linkAdd,
                                         input.options.words() + dataWords(input.name.size() + 1));
    frame->setLink(handle);
    frame->setBlob(blob);
    frame->setType(input.type);
    frame->setName(input.name.c_str());
    input.options.put(frame);
    result = frame.call();
    if (result == CUDA_SUCCESS) {
      auto reported = frame.results<api::Cuda::LinkAddResults>();
      isMissing = reported.getMissing();
      result = static_cast<CUresult>(reported.getResult());
      if (!isMissing) tell(reported);
    }
  }
  dropBlob(thread, blob);
  handles.destroy(blob);
  return result;
}

CUresult Linker::repeat(Thread& thread) {
  if (CUresult error = destroy(thread)) return error;
  if (CUresult error = createThere(thread)) return error;
  for (auto& input : inputs) {
    bool isMissing = false;
    addThere(thread, input, isMissing);  // an input that was refused before is refused again
    if (isMissing) return repeat(thread);
  }
  return CUDA_SUCCESS;
}

CUresult Linker::create(Thread& thread) { return createThere(thread); }

CUresult Linker::add(Thread& thread, LinkInput input) {
  std::lock_guard lock(mutex);
  for (;;) {
    bool isMissing = false;
    CUresult result = addThere(thread, input, isMissing);
    if (!isMissing) return inputs.push_back(std::move(input)), result;
    if (CUresult error = repeat(thread)) return error;
  }
}

CUresult Linker::completeThere(Thread& thread, bool& isMissing) {
  Call<api::Cuda::LinkCompleteParams> frame(thread.of(handle), api::Method::linkComplete);
  frame->setLink(handle);
  if (CUresult error = frame.call()) return error;
  auto reported = frame.results<api::Cuda::LinkCompleteResults>();
  isMissing = reported.getMissing();
  if (isMissing) return CUDA_SUCCESS;
  tell(reported);
  image.resize(reported.getBytes());
  return static_cast<CUresult>(reported.getResult());
}

CUresult Linker::fetch(Thread& thread, bool& isMissing) {
  for (size_t have = 0; have < image.size();) {
    Call<api::Cuda::LinkImageParams> frame(thread.of(handle), api::Method::linkImage);
    frame->setLink(handle);
    frame->setOffset(have);
    if (CUresult error = frame.call()) return error;
    auto part = frame.results<api::Cuda::LinkImageResults>().getBytes();
    isMissing = part.size() == 0 || part.size() > image.size() - have;
    if (isMissing) return CUDA_SUCCESS;
    std::memcpy(image.data() + have, part.begin(), part.size());
    have += part.size();
  }
  return CUDA_SUCCESS;
}

CUresult Linker::complete(Thread& thread, std::span<std::byte>& out) {
  std::lock_guard lock(mutex);
  for (;;) {
    bool isMissing = false;
    CUresult result = completeThere(thread, isMissing);
    if (result == CUDA_SUCCESS && !isMissing) result = fetch(thread, isMissing);
    if (!isMissing) return out = image, result;
    if (CUresult error = repeat(thread)) return error;
  }
}

CUresult Linker::destroy(Thread& thread) {
  Call<api::Cuda::LinkDestroyParams> frame(thread.of(handle), api::Method::linkDestroy);
  frame->setLink(handle);
  return frame.post();
}

}  // namespace vgpu::client
