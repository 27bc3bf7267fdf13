#include "intercept/session/graph/captured-call.h"

#include "intercept/session/call.h"

namespace vgpu::client {

// Does nothing in a forked child, which has no session, and if the call has ended with its context.
CapturedCall::~CapturedCall() {
  if (Session::find() != &session || session.handles.find<api::Kind::CAPTURED_CALL>(handle) == nullptr) return;
  Call<api::Cuda::LibraryCaptureEndParams> frame(Thread::current(session).of(handle), api::Method::libraryCaptureEnd);
  frame->setCall(handle);
  frame.post();
  session.handles.destroy(handle);
}

}  // namespace vgpu::client
