// Graphs with nodes on several devices, or launched into a stream of another device than their own.
//
// All launches of a graph, and the numbers that they write into its completion words, belong to one ring: that of the graph's device. A
// launch into another device's stream becomes a launch into an internal stream of the graph's device, which waits for that stream and for
// which that stream waits. Until the launch ends, all devices with nodes count as busy: a wait for one of them waits for the launch. The
// record of another device's event has a number of that device's ring.
#include <algorithm>
#include <bit>

#include "intercept/session/call.h"
#include "intercept/session/graph/executable.h"
#include "intercept/session/refusal.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

namespace {

unsigned firstOf(uint32_t devices) { return static_cast<unsigned>(std::countr_zero(devices)); }

}  // namespace

uint32_t Executable::devicesNamed(Session& session, const NodeWork& work) {
  if (auto* kernel = std::get_if<KernelWork>(&work)) return 1u << handleDevice(kernel->function);
  if (auto* event = std::get_if<EventWork>(&work)) return 1u << handleDevice(event->event);
  if (auto* fill = std::get_if<FillWork>(&work)) return devicesOf(session, fill->given.dst);
  if (auto* alloc = std::get_if<AllocWork>(&work)) return 1u << alloc->memory->device;
  if (auto* library = std::get_if<LibraryWork>(&work)) return 1u << handleDevice(library->call->handle);
  if (auto* copy = std::get_if<CopyWork>(&work)) return devicesOf(session, copy->to) | devicesOf(session, copy->from);
  return 0;
}

CUresult Executable::placeSteps(Thread& thread, Shape& shape, unsigned& device, uint32_t& devices, Problem& problem) {
  Session& session = thread.session;
  uint32_t fixed = 0, recorded = 0;
  for (auto& step : shape.steps) {
    const uint32_t named = devicesNamed(session, step.work);
    devices |= named;
    if (isRecord(step.work)) recorded |= named;
    if (isConditional(step)) fixed |= named;
    if (std::popcount(fixed) < 2) continue;
    problem.node = step.node;
    return refuseInSession("a graph with conditional nodes on several devices");
  }
  if (fixed == 0) fixed = recorded;
  device = fixed != 0 ? firstOf(fixed) : thread.device();
  if (fixed == 0 && devices != 0 && (devices >> device & 1) == 0) device = firstOf(devices);
  for (auto& step : shape.steps) {
    const uint32_t named = devicesNamed(session, step.work);
    step.device = named == 0 || (named >> device & 1) != 0 || std::holds_alternative<EventWork>(step.work) ? device : firstOf(named);
  }
  return CUDA_SUCCESS;
}

unsigned Executable::wordDevice(const Step& step) const {
  return isRecord(step.work) ? handleDevice(std::get<EventWork>(step.work).event) : device;
}

bool Executable::recordsElsewhere() const {
  return std::popcount(devices) > 1 && std::ranges::any_of(records, [&](uint32_t i) { return wordDevice(shape.steps[i]) != device; });
}

// Waits for an event compare its number with others of the event's ring, so the number is that of a frame in that ring, sent before the
// launch is reserved in this one.
CUresult Executable::numberRecords(Thread& thread, std::vector<uint32_t>& words, std::vector<uint64_t>& numbers) {
  for (uint32_t i : records) {
    Step& step = shape.steps[i];
    const uint64_t event = std::get<EventWork>(step.work).event;
    if (wordDevice(step) == device) continue;
    if (session.handles.isLive(api::Kind::EVENT, event)) {
      Call<api::Cuda::EventNumberedParams> frame(thread.of(event), api::Method::eventNumbered);
      frame->setEvent(event);
      step.number = frame.sequence();
      if (CUresult error = frame.post()) return error;
    }
    words.push_back(*step.word);
    numbers.push_back(step.number);
  }
  return CUDA_SUCCESS;
}

CUresult Executable::follow(Thread& thread, unsigned ring) {
  if (ring == lastRing) [[likely]] return CUDA_SUCCESS;
  const unsigned before = lastRing;
  lastRing = ring;
  return orderBehindAll(thread, ring, 1u << before);
}

uint64_t Executable::streamOn(Thread& thread, unsigned on) {
  uint64_t& stream = streams[on];
  if (stream == 0 || !session.handles.isLive(api::Kind::STREAM, stream)) stream = makeOwnStream(thread, on, 0);
  return stream;
}

CUresult Executable::launchAcross(Thread& thread, uint64_t stream, uint32_t others) {
  const unsigned from = thread.deviceOf(stream);
  uint64_t own = stream;
  if (CUresult error = orderBehindAll(thread, device, others)) return error;
  if (from != device) {
    own = streamOn(thread, device);
    StreamFence before;
    if (CUresult error = fenceStream(thread, stream, before)) return error;
    if (CUresult error = awaitFence(thread, own, before)) return error;
  }
  if (CUresult error = launchHere(thread, own)) return error;
  StreamFence after;
  if (CUresult error = fenceStream(thread, own, after)) return error;
  for (unsigned other = 0; other < session.devices.size(); ++other)
    if ((others >> other & 1) != 0)
      if (CUresult error = awaitFence(thread, other == from ? stream : streamOn(thread, other), after)) return error;
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
